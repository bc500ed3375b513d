"""The closed wire model of the strategist's reply: what a model may say, and nothing else.

Each of the four answers has its own fields, so an answer cannot contradict itself, and a change names one
field of a plan with a value of that field's type. A reply that does not fit is a typed fault with a reason
that can be sent back. Pure functions over the reply's text; what it means for a plan is decided elsewhere.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from services.model_calls.reply_text import object_without_repeats

LONGEST_REPLY = 20_000
MOST_CHANGES = 20
SHOWN = 80  # characters of a model's own words in a reason


class FaultKind(StrEnum):
    """What was wrong with a reply that came."""

    MALFORMED = "reply_malformed"
    UNKNOWN_BASE = "unknown_base"
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


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ConvictionChange(_Wire):
    """Another conviction."""

    field: Literal["conviction"]
    value: float


class BarsChange(_Wire):
    """Another length in bars."""

    field: Literal["horizon_bars", "activation_window_bars"]
    value: int


class TextChange(_Wire):
    """Another text."""

    field: Literal["thesis", "rationale"]
    value: str


class RuleChange(_Wire):
    """Another rule in one role; null takes an optional rule out."""

    field: Literal["setup", "activation", "refinement", "stop", "target", "invalidation", "entry", "trail"]
    value: str | None


class ParameterChange(_Wire):
    """The playbook's rules with another value of one parameter."""

    field: Literal["parameter"]
    name: str
    value: float


Change = ConvictionChange | BarsChange | TextChange | RuleChange | ParameterChange
Reason = Annotated[str, Field(min_length=1, max_length=1_000)]


class ProposeReply(_Wire):
    """A base, and what to change in it."""

    answer: Literal["propose"]
    reason: Reason
    base: str
    changes: tuple[Annotated[Change, Field(discriminator="field")], ...] = Field(max_length=MOST_CHANGES)


class HoldReply(_Wire):
    """The position stays as it is."""

    answer: Literal["hold"]
    reason: Reason


class TightenReply(_Wire):
    """A stop nearer to the market."""

    answer: Literal["tighten"]
    reason: Reason
    stop: float = Field(gt=0)


class AbstainReply(_Wire):
    """No plan now."""

    answer: Literal["abstain"]
    reason: Reason


Reply = ProposeReply | HoldReply | TightenReply | AbstainReply
_REPLY: TypeAdapter[Reply] = TypeAdapter(Annotated[Reply, Field(discriminator="answer")])


def read_reply(text: str) -> Reply | ReplyFault:
    """The reply in a model's text, or why there is none."""
    if len(text) > LONGEST_REPLY:
        return _malformed(f"{len(text)} characters, more than {LONGEST_REPLY}")
    try:
        json.loads(text, object_pairs_hook=object_without_repeats)
        return _REPLY.validate_json(text)
    except ValidationError as error:
        return _malformed(first_problem(error))
    except RecursionError:
        return _malformed("nested too deeply")
    except json.JSONDecodeError:
        return _malformed("the reply is not one JSON object and nothing else")
    except ValueError as error:
        return _malformed(str(error))


def first_problem(error: ValidationError) -> str:
    """Place and type of the first problem, in words of ours.

    It goes into hashed rows and into the next prompt, and other versions of a library word theirs anew.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:SHOWN] for part in first["loc"]) or "reply"
    if first["type"] == "value_error":
        return f"{place}: {str(first['ctx']['error'])[: 3 * SHOWN]}"
    limits = sorted(first.get("ctx", {}).items())
    told = ", ".join(f"{name} {str(value)[:SHOWN]}" for name, value in limits if name != "error")
    return f"{place}: {first['type'].replace('_', ' ')}{f' ({told})' if told else ''}"


def _malformed(message: str) -> ReplyFault:
    return ReplyFault(FaultKind.MALFORMED, message)
