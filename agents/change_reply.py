"""The closed wire model of a change request as a model reads it: typed actions, and how it was read."""

from typing import Annotated

from pydantic import Field, FiniteFloat, StringConstraints, TypeAdapter

from schemas.plan import MOST_ACTIONS, ChangeKind
from schemas.vocabulary import Direction
from services.model_calls.reply_format import ClosedReply, DecisionField, ReplyFormat
from services.model_calls.reply_text import is_read, read_reply

PROMPT = "change_plan"
LONGEST_NAME = 200
LONGEST_REASONING = 4_000
Name = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]


class ActionReply(ClosedReply):
    """One action; the fields that its kind has no use for are null. Its life is that of the settings."""

    kind: ChangeKind
    playbook_id: Name | None = None
    regime: Name | None = None
    direction: Direction | None = None
    eligible: bool | None = None
    parameter: Name | None = None
    value: FiniteFloat | None = None
    then_ask: bool = False


class ChangeReply(ClosedReply):
    """What the request asks for, in its order, and how it was read."""

    reasoning: Annotated[str, StringConstraints(max_length=LONGEST_REASONING)]
    actions: Annotated[tuple[ActionReply, ...], DecisionField(("reasoning",))] = Field(
        max_length=MOST_ACTIONS
    )


_REPLY = TypeAdapter(ChangeReply)
FORM = ReplyFormat(PROMPT, ChangeReply, lambda text: is_read(text, _REPLY))


def read_change(text: str) -> ChangeReply:
    """The reply in a model's text.

    Raises:
        MalformedReply: there is none.
    """
    return read_reply(text, _REPLY)
