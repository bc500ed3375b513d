"""The closed wire model of the judge's reply: typed reasons, and ids of the accepted actions that stay.

What does not fit, or keeps what was not offered, is a fault with its kind. Pure functions over the reply's
text.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from agents.language_models.paced import PACED
from schemas.claims import (
    AdviceClaim,
    CompareClaim,
    EveryClaim,
    GradeClaim,
    RankClaim,
    ShareClaim,
    SignClaim,
    ValueClaim,
)
from services.model_calls.account import BREAKER, BUDGET
from services.model_calls.quoting import visible
from services.model_calls.record import LATE
from services.model_calls.reply_format import ClosedReply, DecisionField, ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply

PROMPT = "judge_replanning"
MOST_ACTIONS = 100
SHOWN = 40


class Fallback(StrEnum):
    """Why the rules decide alone although a model was to be asked; a failed call adds its own kind."""

    NO_MODEL = "no_model"
    NOTHING_TO_DROP = "nothing_to_drop"
    MALFORMED = "reply_malformed"
    REPEATED_ACTION = "repeated_action"
    UNKNOWN_ACTION = "unknown_action"
    REFUSED_ACTION = "refused_action"


# No request was made: a limit, the breaker, the clock or the rate did not let it, or there is no model.
NOT_ASKED = frozenset({BUDGET, BREAKER, LATE, PACED, Fallback.NO_MODEL})


def count_opinions(opinions: Mapping[str, int]) -> dict[str, Any]:
    """Of the verdicts that a model was to be asked about: how many had something to weigh, and were asked."""
    payload = dict(sorted(opinions.items()))
    due = sum(payload.values()) - payload.get(Fallback.NOTHING_TO_DROP, 0)
    not_asked = {name: count for name, count in payload.items() if name in NOT_ASKED}
    return {
        "opinions": payload,
        "to_ask": due,
        "asked": due - sum(not_asked.values()),
        "not_asked": not_asked,
    }


ReasonClaim = (
    ValueClaim | ShareClaim | CompareClaim | RankClaim | EveryClaim | SignClaim | GradeClaim | AdviceClaim
)
DropReason = Literal["drift_over", "answered_elsewhere", "too_young", "same_loss", "below_bound"]
DROP_WORDS: dict[DropReason, str] = {
    "drift_over": "the drift that explains the loss is over",
    "answered_elsewhere": "another change answers the same failure",
    "too_young": "an earlier action has had no time to show",
    "same_loss": "another action answers the same loss",
    "below_bound": "the evidence lies below the bound",
}


class DropClaim(ClosedReply):
    """Why an action is dropped, by a closed list."""

    kind: Literal["drop"]
    because: DropReason
    action: Annotated[str, DecisionField(("because",))]


Reason = Annotated[ReasonClaim | DropClaim, Field(discriminator="kind")]


class KeepReply(ClosedReply):
    """The reasons, and which actions stay."""

    reasons: tuple[Reason, ...] = Field(max_length=40)
    comment: str | None
    keep: Annotated[tuple[str, ...], DecisionField(("reasons",))] = Field(max_length=MOST_ACTIONS)


_REPLY = TypeAdapter(KeepReply)
FORM = ReplyFormat(PROMPT, KeepReply, lambda text: is_read(text, _REPLY))


class ReplyFault(ValueError):
    """A reply that counts for nothing."""

    def __init__(self, kind: Fallback, detail: str) -> None:
        super().__init__(f"{kind}: {visible(detail)}")


def read_kept(text: str, accepted: int, refused: int) -> KeepReply:
    """The reply in a model's text; `accepted` and `refused` are how many actions it was shown.

    Raises:
        ReplyFault: there is none, or it keeps what was not offered.
    """
    try:
        reply = read_reply(text, _REPLY)
    except MalformedReply as error:
        raise ReplyFault(Fallback.MALFORMED, error.plain) from error
    if len(set(reply.keep)) < len(reply.keep):
        raise ReplyFault(Fallback.REPEATED_ACTION, "an action is kept twice")
    for name in reply.keep:
        if name in names_of("r", refused):
            raise ReplyFault(Fallback.REFUSED_ACTION, f"{name} stays refused")
        if name not in names_of("a", accepted):
            raise ReplyFault(Fallback.UNKNOWN_ACTION, "an action is kept that was not offered")
    return reply


def names_of(letter: str, count: int) -> tuple[str, ...]:
    """Names under which a model is shown actions: a letter and their number."""
    return tuple(f"{letter}{number}" for number in range(1, count + 1))
