"""A model's reply to the question for a narrative, and the narrative that it comes to."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from schemas.deliberation import Deliberation
from schemas.fact_check import FactCheck
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply
from services.text.news import unknown_numbers

MAX_CHARACTERS = 4_000


class NarrativeReply(BaseModel):
    """The closed wire model of the reply."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    narrative: str = Field(min_length=1, max_length=MAX_CHARACTERS)
    cited_evidence: tuple[str, ...]


_REPLY = TypeAdapter(NarrativeReply)
FORM = ReplyFormat("high_level_reflection", NarrativeReply, lambda text: is_read(text, _REPLY))


@dataclass(frozen=True)
class Narrative:
    """The text that stands; `refused` says why a model's text, or a part of it, does not."""

    text: str
    by_model: bool
    refused: str | None = None
    checked: FactCheck | None = None
    deliberation: Deliberation | None = field(default=None, compare=False)


def read_narrative(reply: str, offered: Sequence[str]) -> Narrative:
    """A model's reply as a narrative, or the reason why it is none (`text` is then empty)."""
    try:
        answer = read_reply(reply, _REPLY)
    except MalformedReply as error:
        return Narrative("", False, str(error))
    if not answer.narrative.strip():
        return Narrative("", False, "the narrative has no words")
    if not set(answer.cited_evidence) <= set(offered):
        return Narrative("", False, "the reply cites evidence that was not offered")
    return Narrative(answer.narrative.strip(), True)


def with_known_numbers(told: Narrative, source: str) -> Narrative:
    """The narrative if each of its numbers is some number of `source`; else why it is none."""
    invented = unknown_numbers(told.text, source) if told.by_model else ()
    if not invented:
        return told
    return Narrative("", False, f"numbers that no computation gave: {', '.join(invented[:5])}")
