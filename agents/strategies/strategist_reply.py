"""The closed wire model of the strategist's reply: what a model may say, and nothing else.

Each of the four answers has its own fields, so an answer cannot contradict itself; its reasons stand before
it, and a change names one field of a plan with a value of that field's type. A reply that does not fit is a
typed fault with a reason that can be sent back. Pure functions over the reply's text; what it means for a
plan is decided elsewhere.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from schemas.reasons import MOST_REASONS, PlanReason
from schemas.vocabulary import Direction
from services.model_calls.reply_format import ClosedReply, DecisionField, ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply

MOST_CHANGES = 20


class FaultKind(StrEnum):
    """What was wrong with a reply that came."""

    MALFORMED = "reply_malformed"
    UNKNOWN_BASE = "unknown_base"
    UNKNOWN_REASON = "unknown_reason"
    REPEATED_CHANGE = "repeated_change"
    CHANGE_REFUSED = "change_refused"
    NO_POSITION = "no_position"
    POSITION_OPEN = "position_open"
    STOP_NOT_TIGHTER = "stop_not_tighter"


@dataclass(frozen=True)
class ReplyFault:
    """Why a reply counts for nothing; never half of it is applied."""

    kind: FaultKind
    message: str


class _Wire(ClosedReply):
    model_config = ConfigDict(allow_inf_nan=False)


class ConvictionChange(_Wire):
    """Another conviction."""

    field: Literal["conviction"]
    value: float


class BarsChange(_Wire):
    """Another length in bars."""

    field: Literal["horizon_bars", "activation_window_bars"]
    value: int


class RuleChange(_Wire):
    """Another rule in one role; null takes an optional rule out."""

    field: Literal[
        "setup", "activation", "refinement", "stop", "target", "invalidation", "entry", "trail", "exit"
    ]  # fmt: skip
    value: str | None


class ParameterChange(_Wire):
    """The playbook's rules with another value of one parameter."""

    field: Literal["parameter"]
    name: str
    value: float


OfferedChange = ConvictionChange | BarsChange | ParameterChange
Change = OfferedChange | RuleChange
Because = Annotated[tuple[PlanReason, ...], Field(max_length=MOST_REASONS)]
SomeReason = Annotated[tuple[PlanReason, ...], Field(min_length=1, max_length=MOST_REASONS)]
Comment = Annotated[str, Field(max_length=1_000)] | None
WITH_REASONS = DecisionField(("because",))


class ProposeReply(_Wire):
    """Why, a base, what to change in it, and what its author says that the reasons argue for."""

    because: SomeReason
    argues_for: Direction | Literal["neither"] | None = None
    answer: Annotated[Literal["propose"], DecisionField(("because", "argues_for"))]
    base: Annotated[str, WITH_REASONS]
    changes: tuple[Annotated[Change, Field(discriminator="field")], ...] = Field(max_length=MOST_CHANGES)
    comment: Comment = None


class HoldReply(_Wire):
    """The position stays as it is."""

    because: Because = ()
    answer: Annotated[Literal["hold"], WITH_REASONS]
    comment: Comment = None


class TightenReply(_Wire):
    """A stop nearer to the market."""

    because: SomeReason
    answer: Annotated[Literal["tighten"], WITH_REASONS]
    stop: Annotated[float, WITH_REASONS] = Field(gt=0)
    comment: Comment = None


class AbstainReply(_Wire):
    """No plan now."""

    because: Because = ()
    answer: Annotated[Literal["abstain"], WITH_REASONS]
    comment: Comment = None


Reply = ProposeReply | HoldReply | TightenReply | AbstainReply
OneReply = Annotated[Reply, Field(discriminator="answer")]
_REPLY: TypeAdapter[Reply] = TypeAdapter(OneReply, config=ConfigDict(defer_build=True))


def read_strategist_reply(text: str) -> Reply | ReplyFault:
    """The reply in a model's text, or why there is none."""
    try:
        return read_reply(text, _REPLY, without_nulls=True)
    except MalformedReply as error:
        return ReplyFault(FaultKind.MALFORMED, str(error))


class OfferedProposeReply(ProposeReply):
    """As the question offers it: without rules in the model's own words, which no plan passes with."""

    changes: tuple[Annotated[OfferedChange, Field(discriminator="field")], ...] = Field(
        max_length=MOST_CHANGES
    )


OfferedReply = Annotated[
    OfferedProposeReply | HoldReply | TightenReply | AbstainReply, Field(discriminator="answer")
]
FORM = ReplyFormat("strategist", OfferedReply, lambda text: is_read(text, _REPLY, without_nulls=True))
