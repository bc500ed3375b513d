"""What each tool may be asked: closed, so that an argument which nobody reads is refused and not ignored."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from schemas.canonical import text_to_ns
from schemas.claims import PERIOD
from schemas.contract import Contract
from schemas.vocabulary import Direction

LATEST = "latest"
MOST_ITEMS = 100


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("write a time like 2012-01-31 or 2012-01-31T16:00:00Z")
    try:
        return text_to_ns(value)
    except ValueError as error:
        raise ValueError("write a time like 2012-01-31 or 2012-01-31T16:00:00Z") from error


def _period(value: str | None) -> str | None:
    if value is not None and re.fullmatch(PERIOD, value) is None:
        raise ValueError("write a year, a month, a day, or two with a slash, like 2004-06 or 2004/2005-06-30")
    return value


# Nanoseconds; told as an ISO time, UTC where it names no zone.
Moment = Annotated[int, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Rule = Annotated[str, Field(min_length=1, max_length=1_000)]
RunName = Annotated[Name, Field(description="run id, a unique prefix of one, or latest")]
At = Annotated[
    Moment | None,
    Field(
        description="as of this time, ISO, UTC; 2012-01-31T23:59:59Z is the end of that day; left out: as of "
        "what the server knows"
    ),
]
Since = Annotated[
    Moment | None,
    Field(description="what was known after this time, ISO, UTC; of a bar that is its close"),
]
Period = Annotated[
    str | None,
    AfterValidator(_period),
    Field(
        max_length=21,
        description="entered in this year, month or day of UTC, or from one to another: 2004, 2004-06, "
        "2004-06-30, 2004-06/2005",
    ),
]
Playbook = Annotated[Name | None, Field(description="id of a playbook")]
Symbol = Annotated[Name | None, Field(description="symbol")]
Regime = Annotated[Name | None, Field(description="trend/volatility, such as up/low")]


class ToolArguments(Contract):
    """Closed, and strict about types."""

    model_config = ConfigDict(strict=True)


class PageArguments(ToolArguments):
    """A list is given in pages."""

    limit: int = Field(default=20, ge=1, le=MOST_ITEMS, description="items at most")
    cursor: str | None = Field(
        default=None, max_length=20, pattern="^[0-9]+$", description="next_cursor of the page before"
    )


class RunArguments(PageArguments):
    """One run as of one moment."""

    run: RunName = LATEST
    at: At = None


class SnapshotArguments(RunArguments):
    """Of one symbol, or of all."""

    symbol: Symbol = None


class PlaybookArguments(RunArguments):
    """Of one playbook, or of all."""

    playbook_id: Playbook = None


class TradeArguments(PlaybookArguments):
    """Resolved trades by what they have in common."""

    symbol: Symbol = None
    regime: Regime = None
    direction: Direction | None = None
    period: Period = None
    outcome: Literal["won", "lost"] | None = Field(
        default=None, description="by what they earned after costs"
    )
    order: Literal["best", "worst", "longest", "shortest"] | None = Field(
        default=None, description="by R or by bars held; left out: newest first"
    )
    by: Literal["playbook", "symbol", "regime", "direction", "outcome", "exit_reason"] | None = Field(
        default=None, description="figures of each of these, too, the one with the most R first"
    )


class DecisionArguments(PlaybookArguments):
    """What a run decided, of one symbol or playbook, or of all."""

    symbol: Symbol = None
    since: Since = None


class AccountArguments(RunArguments):
    """The account with its open positions; a page holds them all but in a large universe."""


class CostArguments(RunArguments):
    """What trading and models cost, by seat of the models."""


class ReportArguments(RunArguments):
    """One report with all it says, or the list of them."""

    report_id: Name | None = Field(default=None, description="id of a report, or the start of one")


class GateArguments(PlaybookArguments):
    """Clusters that the newest report graded; as many as a page holds."""

    limit: int = Field(default=MOST_ITEMS, ge=1, le=MOST_ITEMS, description="items at most")
    regime: Regime = None


class FillArguments(RunArguments):
    """One fill, the one that closed a trade, or a stop's amendment; its whole chain where a page holds it."""

    limit: int = Field(default=MOST_ITEMS, ge=1, le=MOST_ITEMS, description="items at most")
    fill_id: Name = Field(
        description="id of a fill, a trade or a stop's amendment, or its start; or the symbol of an open"
        " position, for the fill that opened it"
    )


class PlanArguments(ToolArguments):
    """A plan on one symbol; what is left out is as the playbook's own rules have it."""

    run: RunName = LATEST
    at: At = None
    symbol: Name = Field(description="symbol that the plan is for")
    playbook_id: Name = Field(description="playbook that the plan follows")
    direction: Direction
    setup: Rule | None = Field(default=None, description="boolean rule that must hold while the plan waits")
    activation: Rule | None = Field(default=None, description="boolean rule that opens the trade")
    stop: Rule | None = Field(default=None, description="price, a rule such as close - 2 * atr_14")
    target: Rule | None = Field(default=None, description="price, a rule")
    invalidation: Rule | None = Field(default=None, description="boolean rule that ends the trade")
    horizon_bars: int | None = Field(default=None, ge=1, le=500, description="bars until an exit at the open")
    conviction: float | None = Field(default=None, ge=0, le=1, description="0 to 1")
    rationale: str | None = Field(
        default=None, max_length=4_000, description="why, in words; an order for the other side is found"
    )


class RuleArguments(ToolArguments):
    """A rule with a bracket, on the bars of a run up to the moment."""

    run: RunName = LATEST
    at: At = None
    symbol: Symbol = None
    entry: Rule = Field(
        description="boolean rule, such as crosses_above(sma_10, sma_30); acts at the next open"
    )
    direction: Direction = "long"
    stop_pct: float = Field(
        default=0.02, gt=0, lt=1, description="distance of the stop, as a share of the fill"
    )
    target_pct: float = Field(default=0.04, gt=0, le=10, description="distance of the target, likewise")
    time_stop_bars: int = Field(default=50, ge=1, le=500, description="bars until an exit at the open")


class RunListArguments(PageArguments):
    """All runs of the store."""
