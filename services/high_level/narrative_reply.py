"""A model's reply to the question for a narrative, and the narrative that it comes to."""

from dataclasses import dataclass, field

from pydantic import Field, TypeAdapter

from schemas.claims import FactCheck, Section, WrittenSection
from schemas.deliberation import Deliberation
from services.model_calls.reply_format import ClosedReply, ReplyFormat
from services.model_calls.reply_text import is_read, read_reply

PROMPT_NAME = "high_level_reflection"
MOST_SECTIONS = 12


class NarrativeReply(ClosedReply):
    """The closed wire model of the reply."""

    sections: tuple[Section, ...] = Field(min_length=1, max_length=MOST_SECTIONS)


_REPLY = TypeAdapter(NarrativeReply)
FORM = ReplyFormat(PROMPT_NAME, NarrativeReply, lambda text: is_read(text, _REPLY))


@dataclass(frozen=True)
class Narrative:
    """The text that stands, with what it was rendered from.

    Attributes:
        refused: why a model's text, or a part of it, does not stand.
    """

    sections: tuple[WrittenSection, ...]
    text: str
    by_model: bool
    refused: str | None = None
    checked: FactCheck | None = None
    deliberation: Deliberation | None = field(default=None, compare=False)


def read_narrative(reply: str) -> tuple[Section, ...]:
    """The sections of a model's reply.

    Raises:
        MalformedReply: there are none.
    """
    return read_reply(reply, _REPLY).sections
