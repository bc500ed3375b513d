"""What each tool answers: times as ISO texts in UTC, R multiples after costs, shares 0 to 1.

`rows` are the journal rows that an answer stands on, `known_at` the moment that it is as of, `next_cursor`
the way to the next page.
"""

from typing import Any

from pydantic import Field

from schemas.claims import Claim, FactRow
from schemas.contract import Contract


class ToolStatement(Contract):
    """A claim that holds, in words of code, with the rows that it stands on."""

    claim: Claim
    text: str
    rows: tuple[FactRow, ...] = ()


class ToolResult(Contract):
    """What every answer has; `statements` are its claims, looked up in the run and written in words."""

    run_id: str | None = None
    known_at: str | None = Field(description="ISO time; nothing later is in the answer")
    rows: tuple[FactRow, ...] = Field(default=(), description="journal rows that the answer stands on")
    statements: tuple[ToolStatement, ...] = Field(default=(), description="claims in words, with their rows")
    next_cursor: str | None = Field(default=None, description="of the next page; null at the end")


class RunSeen(Contract):
    """One run; what its end brought is null as of an earlier moment."""

    run_id: str
    name: str
    mode: str
    symbols: tuple[str, ...]
    timeframe: str
    status: str | None = None
    events: int | None = None
    trades: int | None = None
    total_return: float | None = None
    row: FactRow | None = Field(default=None, description="the first row of the run's own journal")


class RunListResult(ToolResult):
    """Newest first."""

    total: int = Field(description="runs that may be asked about, not of the page alone")
    runs: tuple[RunSeen, ...]


class SnapshotSeen(Contract):
    """The market of one symbol at its newest evaluation."""

    symbol: str
    bar: str
    known_at: str
    close: float
    regime: str | None
    structure: str | None
    state: str
    events: tuple[str, ...]
    features: dict[str, float | None]
    position: dict[str, Any] | None
    policy_id: str | None
    row: FactRow


class SnapshotResult(ToolResult):
    """By symbol."""

    snapshots: tuple[SnapshotSeen, ...]


class PlaybookResult(ToolResult):
    """Versions with where they came from and what they have shown; rules where one playbook is asked for."""

    versions: tuple[dict[str, Any], ...]


class EpisodeSeen(Contract):
    """One resolved trade."""

    episode_id: str
    symbol: str
    playbook_id: str
    playbook_version: int
    direction: str
    regime: str
    structure: str
    entered: str
    exited: str
    entry_price: float
    exit_price: float
    r: float
    pnl: float
    mae_r: float
    mfe_r: float
    hold_bars: int
    exit_reason: str
    failure_mode: str | None
    conviction: float
    fill_id: str | None = Field(description="the fill that closed it, for `why`")
    row: FactRow


class GroupSeen(Contract):
    """The trades that have one thing in common; `row` is of the newest."""

    name: str
    figures: dict[str, float]
    row: FactRow


class TradeResult(ToolResult):
    """In the order that was asked for; figures, modes and groups are of all that match, not of the page."""

    figures: dict[str, float] = Field(description="answers of the fact catalogue on all that match")
    failure_modes: dict[str, int]
    groups: tuple[GroupSeen, ...] = ()
    trades: tuple[EpisodeSeen, ...]


class ReasonSeen(Contract):
    """Why something that might have become a trade did not; `row` is of the newest time."""

    what: str
    reason: str
    count: int
    newest: str
    row: FactRow


class DecisionResult(ToolResult):
    """How far decisions came, and what stopped the others, the commonest reason first."""

    evaluations: int = Field(description="bars at which a policy was thought of")
    policies_frozen: int
    theses_armed: int
    entries: int
    newest_entry: FactRow | None
    reasons: tuple[ReasonSeen, ...]


class PositionSeen(Contract):
    """An open position: what opened it and what holds it; `row` is of the fill."""

    symbol: str
    direction: str
    entered: str
    entry_price: float
    quantity: float
    playbook_id: str
    policy_id: str
    stop: float | None
    target: float | None
    fill_id: str
    row: FactRow


class AccountResult(ToolResult):
    """By symbol; figures of the account are the statements."""

    positions: tuple[PositionSeen, ...]


class SeatCost(Contract):
    """Calls of the model in one seat, as they were paid; `row` is of the newest."""

    seat: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float
    row: FactRow


class CostResult(ToolResult):
    """Of trading in money, where a trade is resolved; of models in US dollars, by seat."""

    fees: float = Field(description="fees and carry of resolved trades")
    slippage: float | None = Field(
        description="as if every fill had paid that of the settings; null: unknown"
    )
    funding_bps: float | None = Field(description="carry of the settings: funding, a year")
    borrow_bps: float | None = Field(description="carry of the settings: borrow, a year")
    seats: tuple[SeatCost, ...]


class ReportSeen(Contract):
    """One report and the judge's verdict on it; `content` where one report is asked for."""

    report_id: str
    known_at: str
    n_episodes: int
    recommended_action: str
    insufficient_sample: bool
    narrative: str
    verdict: dict[str, Any] | None
    content: dict[str, Any] | None = None
    row: FactRow
    verdict_row: FactRow | None = None


class ReportResult(ToolResult):
    """Newest first."""

    total: int = Field(description="reports of the run, not of the page alone")
    reports: tuple[ReportSeen, ...]


class GateResult(ToolResult):
    """What the newest report has proven; no cluster before the first one."""

    report_id: str | None
    resolved: int = Field(description="resolved trades known by now, also those after the report")
    clusters: tuple[dict[str, Any], ...]


class LineageStep(Contract):
    """One step back from a fill; steps of depth n + 1 are the reasons of the last one of depth n."""

    depth: int
    title: str
    kind: str
    id: str | None
    symbol: str | None
    found: bool
    facts: dict[str, Any]
    row: FactRow | None


class FillResult(ToolResult):
    """Why a fill happened, or a stop was moved."""

    fill_id: str
    steps: tuple[LineageStep, ...]


class PlanResult(ToolResult):
    """The fast reflection's word on a plan: pass, revise or block, with what would pass."""

    status: str
    proposal: dict[str, Any]
    findings: tuple[dict[str, Any], ...]
    requested_revisions: tuple[str, ...]
    checks_run: tuple[str, ...]


class RuleResult(ToolResult):
    """What a rule would have traded after the run's costs; null where it traded nothing."""

    trial: int = Field(description="number of the rule in the ledger of trials: it has been tried now")
    bars: int = Field(description="present bars that it was tried on, the newest ones")
    first_bar: str
    last_bar: str
    trades: int
    win_rate: float | None
    mean_r: float | None
    total_r: float | None
    exit_reasons: dict[str, int]
    refused: dict[str, int]
