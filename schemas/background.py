"""What a model strategist is shown beside the snapshot: recent bars, cases, its last plans, lessons.

All of it is gathered at the moment of the snapshot and known then; nothing here is needed to trade. A run
whose strategist is a model journals it, so that the same question can be asked again.
"""

from pydantic import Field

from schemas.contract import FINITE, Contract
from schemas.reflection import MemorySummary
from schemas.vocabulary import Direction, EvidenceGrade


class RecentBar(Contract):
    """One own bar of the symbol; ranks are shares of the symbol's last known bars below it, ties half.

    `bars_ago` is 0 for the decision bar. None where a value is unknown or has nothing to be ranked among.
    """

    model_config = FINITE

    bars_ago: int = Field(ge=0)
    close_return: float | None
    close_return_rank: float | None = Field(ge=0, le=1)
    range_share: float | None
    range_share_rank: float | None = Field(ge=0, le=1)
    volume: float | None
    volume_rank: float | None = Field(ge=0, le=1)


class PlanCases(Contract):
    """What memory holds of one playbook and direction, as a reflection on such a plan retrieves it."""

    playbook_id: str
    direction: Direction
    memory: MemorySummary


class ClosedTrade(Contract):
    """One trade of a plan: when it was closed, why, and its R after costs."""

    model_config = FINITE

    closed_at: int
    reason: str
    r: float


class PlanOutcome(Contract):
    """One plan that was frozen on the symbol, and what became of it until now.

    `became` is the last thing that happened, at `became_at`: frozen, a tick event by its kind, or replaced.
    """

    policy_id: str
    playbook_id: str
    direction: Direction
    conviction: float
    frozen_at: int
    became: str = "frozen"
    became_at: int
    theses_armed: int = Field(default=0, ge=0)
    theses_expired: int = Field(default=0, ge=0)
    orders_refused: tuple[str, ...] = ()
    trades: tuple[ClosedTrade, ...] = ()


class LessonInForce(Contract):
    """An active playbook version that a report brought about, and why it is in force."""

    playbook_id: str
    version: int
    since: int
    expires_at: int | None
    reason: str


class FoundLesson(Contract):
    """One cluster of the last report that shows something; R multiples after costs."""

    model_config = FINITE

    playbook_id: str
    regime: str | None
    n: int = Field(ge=0)
    mean_r: float | None
    lower_r: float | None
    upper_r: float | None
    grade: EvidenceGrade
    reason: str


class SymbolPosition(Contract):
    """Another symbol of the run: its regime, and the position in it.

    `exposure` is that position at its last close, as a share of the equity; negative when short.
    """

    model_config = FINITE

    symbol: str
    regime: str | None
    position: Direction | None
    exposure: float


class DecisionBackground(Contract):
    """Everything beside the snapshot that a model strategist is shown; `snapshot_hash` names the snapshot."""

    snapshot_hash: str
    recent_bars: tuple[RecentBar, ...] = Field(description="oldest first")
    cases: tuple[PlanCases, ...]
    last_plans: tuple[PlanOutcome, ...] = Field(description="newest first")
    lessons: tuple[LessonInForce, ...]
    others: tuple[SymbolPosition, ...] = Field(default=(), description="positions first, then by name")
    findings: tuple[FoundLesson, ...] = Field(description="of the last report, at least suggestive")
