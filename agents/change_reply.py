"""The closed wire model of a change request as a model reads it: one action a line, and how it was read."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from schemas.plan import MOST_ACTIONS
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import is_read, read_reply

PROMPT = "change_plan"
LONGEST_LINE = 200
LONGEST_REASONING = 4_000


class ChangeReply(BaseModel):
    """What the request asks for, a form a line, and how it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reasoning: Annotated[str, StringConstraints(max_length=LONGEST_REASONING)]
    actions: tuple[Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_LINE)], ...] = Field(
        max_length=2 * MOST_ACTIONS
    )


_REPLY = TypeAdapter(ChangeReply)
FORM = ReplyFormat(PROMPT, ChangeReply, lambda text: is_read(text, _REPLY))


def read_change(text: str) -> ChangeReply:
    """The reply in a model's text.

    Raises:
        MalformedReply: there is none.
    """
    return read_reply(text, _REPLY)
