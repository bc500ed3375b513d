"""Contracts of both reflections and of tick validation (seed 002, step 1).

The names and fields of the seed are kept; typed findings stand beside the seed's readable lists, and
everything that is measured rather than decided (latency) is telemetry and never hashed.
"""

from datetime import datetime
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from schemas.contract import Contract, Nanoseconds
from schemas.playbook import PlaybookDefinition
from schemas.policy import FrozenPolicy, PolicyAmendment
from schemas.proposal import PolicyProposal
from schemas.snapshot import MemoryBaseRates, PolicySnapshot
from schemas.vocabulary import (
    CheckName,
    EvidenceGrade,
    InvocationOutcome,
    OverrideReason,
    PolicyState,
    RecommendedAction,
    ReflectionStatus,
    Severity,
    TickEventKind,
)

LARGEST_QUOTA = 20  # cases that a bucket of the memory may be asked for


class TickValidationEvent(Contract):
    """One change that tick validation saw on one bar of one symbol. Prices in quote currency, `r` in R."""

    kind: TickEventKind
    symbol: str | None
    bar_label: int
    ts_event: int
    known_at: int
    detail: dict[str, Any] = {}


class TickValidationResult(Contract):
    """Counters of one stretch of tick validation.

    The three forbidden counters are zero or the run has failed.
    """

    bars_validated: int = Field(ge=0)
    events: dict[str, int]
    llm_calls: int = Field(ge=0)
    memory_reads: int = Field(ge=0)
    policy_writes: int = Field(ge=0)


class ReflectionInvocationMeta(Contract):
    """How one invocation of a reflection went, whatever it said."""

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})

    cadence: Literal["policy_loop", "high_level"]
    source: str = Field(description="policy event, or slot")
    outcome: InvocationOutcome
    skip_reason: str | None = None
    batch_size: int | None = None
    tier: Literal["deterministic", "consolidated"] = "deterministic"
    latency_ms: float = Field(default=0.0, ge=0)


class Remedy(Contract):
    """What would satisfy a finding: this field of the proposal, at most or at least this value."""

    field: str
    op: Literal["at_most", "at_least", "equals"]
    value: float | int | str


class Finding(Contract):
    """One typed finding of one check. `code` is stable; `message` is for people."""

    check: CheckName
    code: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    severity: Severity
    message: str
    evidence: tuple[str, ...] = ()
    remedy: Remedy | None = None


class MemoryCase(Contract):
    """One retrieved episode with its distance to the query, rounded to 1e-9."""

    episode_id: str
    symbol: str
    playbook_id: str
    direction: Literal["long", "short"]
    r: float
    distance: float = Field(ge=0)
    failure_mode: str | None = None
    known_at: int


class MemorySummary(Contract):
    """Bounded result of one contrastive retrieval. `insufficient` names the buckets that could not be filled.

    Base rates come from the whole eligible population (same playbook and direction, known at the clock),
    never from the retrieved cases. At most half of a bucket's quota was entered on one day: from
    `passed_over_at` on (a distance; None: nowhere) winners or losers are missing for that reason. `degraded`
    names why nothing was retrieved although something may be known.
    """

    known_at: int
    winners: tuple[MemoryCase, ...] = Field(default=(), max_length=LARGEST_QUOTA)
    losers: tuple[MemoryCase, ...] = Field(default=(), max_length=LARGEST_QUOTA)
    failures: tuple[MemoryCase, ...] = Field(default=(), max_length=LARGEST_QUOTA)
    base_rates: MemoryBaseRates
    insufficient: tuple[str, ...] = ()
    passed_over_at: float | None = Field(default=None, ge=0)
    degraded: Literal["over_budget"] | None = None

    @model_validator(mode="after")
    def _comes_from_one_retrieval(self) -> Self:
        for name, sign in (("winners", 1), ("losers", -1), ("failures", -1)):
            _refuse_bucket(name, getattr(self, name), self.known_at, sign)
        cases = self.winners + self.losers + self.failures
        if len({case.direction for case in cases}) > 1:
            raise ValueError("cases are long and short: one retrieval asks for one direction")
        if self.degraded is not None and cases:
            raise ValueError(
                f"degraded {self.degraded!r} says that nothing was retrieved, but there are cases"
            )
        won = {case.episode_id for case in self.winners}
        lost = {case.episode_id for case in self.losers + self.failures}
        if won & lost:
            raise ValueError(f"episode {min(won & lost)!r} is among the winners and among the losers")
        for name, ids in (("winners", won), ("losers", lost)):
            known = getattr(self.base_rates, name)
            if len(ids) > known:
                raise ValueError(
                    f"{len(ids)} {name} are given, base_rates.{name} says {known}: it counts all of them"
                )
        return self


def _refuse_bucket(name: str, cases: tuple[MemoryCase, ...], known_at: int, sign: int) -> None:
    """Refuse a bucket that no retrieval at `known_at` fills; every R in it has `sign`."""
    seen: set[str] = set()
    farthest = 0.0
    for place, case in enumerate(cases):
        where = f"{name}[{place}]"
        if case.known_at > known_at:
            raise ValueError(f"{where}.known_at {case.known_at} lies after known_at {known_at} of the memory")
        if case.r * sign <= 0:
            side = "above" if sign > 0 else "below"
            raise ValueError(f"{where}.r {case.r!r}: {name} have an R {side} zero")
        if case.distance < farthest:
            raise ValueError(
                f"{where}.distance {case.distance!r} is below the one before: the nearest comes first"
            )
        if case.episode_id in seen:
            raise ValueError(f"{where}.episode_id {case.episode_id!r} is in {name} twice")
        seen.add(case.episode_id)
        farthest = case.distance


class NoLearnZone(Contract):
    """A declared interval [start, end) (halt, feed gap, split day) whose outcomes teach nothing.

    With `end` at `start` it is that one moment.
    """

    start: Nanoseconds
    end: Nanoseconds
    symbol: str | None = Field(default=None, description="None: every symbol")
    reason: str

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"a zone must not end before it starts, got {self.start!r} to {self.end!r}")
        return self

    def touches(self, symbol: str, start: int, end: int) -> bool:
        """Whether [start, end) of a symbol, in ns, shares a moment with the zone.

        The interval of a bar goes from its open time to its close time, whatever its label says.
        """
        shared = self.start < end and (start < self.end or start <= self.start)
        return shared and self.symbol in (None, symbol)


class InvariantContext(Contract):
    """The deterministic guardrails in force at the boundary."""

    kill_switch: bool = False
    halted: bool = False
    allowed_symbols: tuple[str, ...] = ()
    allowed_directions: tuple[Literal["long", "short"], ...] = ("long", "short")
    allowed_playbooks: tuple[str, ...] = ()
    max_risk_fraction: float = 0.01
    max_gross_exposure: float = 1.0
    gross_exposure: float = Field(default=0.0, ge=0)
    max_horizon_bars: int = 250
    max_activation_window_bars: int = 10
    max_staleness_bars: int = 2
    min_reward_to_risk: float = 0.8
    cost_bps_per_side: float = Field(default=7.0, ge=0)
    spread_bps: float = Field(default=0.0, ge=0, description="quoted spread of the market")
    tick_size: float = Field(default=0.0, ge=0, le=1e9, description="grid on which levels trade; 0: none")
    no_learn_zones: tuple[NoLearnZone, ...] = ()


class PolicyLevelReflectionRequest(Contract):
    """Everything the four checks need; it can be stored and read back as JSON.

    `memory` None means that nothing was retrieved (the finding then says `insufficient`); the service fills
    it after the cheap checks have passed. `previous` is the policy frozen before, if any.
    """

    snapshot: PolicySnapshot
    proposal: PolicyProposal
    playbook: PlaybookDefinition
    state: PolicyState
    memory: MemorySummary | None = None
    invariants: InvariantContext


class PolicyAmendmentRequest(Contract):
    """Everything the checks of an amendment need.

    `policy` is the one that the amendment names, None where it is not known; `playbook` the active version of
    its playbook, None where there is none any more.
    """

    snapshot: PolicySnapshot
    amendment: PolicyAmendment
    policy: FrozenPolicy | None
    playbook: PlaybookDefinition | None
    invariants: InvariantContext


class PolicyLevelReflectionResult(Contract):
    """Verdict of the fast reflection on exactly one proposal or amendment under exactly one snapshot.

    `proposal_hash` and `playbook_hash` name the amendment and the playbook of its policy, if it is about one.
    """

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})

    status: ReflectionStatus
    coherence_findings: tuple[str, ...] = ()
    invariant_findings: tuple[str, ...] = ()
    memory_findings: tuple[str, ...] = ()
    expectation_findings: tuple[str, ...] = ()
    requested_revisions: tuple[str, ...] = ()
    latency_ms: int = Field(default=0, ge=0)
    findings: tuple[Finding, ...] = ()
    snapshot_hash: str
    proposal_hash: str
    playbook_hash: str
    prompt_hash: str
    meta: ReflectionInvocationMeta
    checks_run: tuple[CheckName, ...] = ()
    memory: MemorySummary | None = None
    deferred: tuple[str, ...] = Field(default=(), description="needs handed to the next high-level request")


class DeferredItem(Contract):
    """Something the fast path wanted but may not do; the next `HighLevelReflectionRequest` carries it."""

    raised_at: int
    symbol: str
    text: str
    reflection_hash: str


class ClusterFinding(Contract):
    """One cluster of resolved episodes, graded. R multiples after costs, winsorised."""

    playbook_id: str
    regime: str | None
    timeframe: str | None
    n: int = Field(ge=0)
    blocks: int = Field(ge=0)
    unit: str = Field(default="", description="what one block is: trade, overlap, day, week, month, quarter")
    mean_r: float | None
    reference_r: float
    e_value: float | None
    lower_r: float | None
    upper_r: float | None
    smallest_detectable_r: float | None
    alpha: float = Field(description="level at which e-BH tests it: E reaches 1 / alpha when selected")
    family_id: str
    family_size: int
    family_q: float = Field(default=0.0, description="false share that the family may spend in all epochs")
    grade: EvidenceGrade
    strongest_action: RecommendedAction
    reason: str
    win_rate: float | None = None
    hold_p50_bars: float | None = None
    hold_p90_bars: float | None = None
    hold_calibration_z: float | None = None
    mae_p80_r: float | None = None
    mfe_p50_r: float | None = None
    psr: float | None = Field(default=None, description="probabilistic Sharpe ratio; reported, never a gate")
    dsr: float | None = Field(default=None, description="deflated by the size of the family")
    minimum_track_record: float | None = Field(default=None, description="trades for a PSR of 0.95")
    failure_modes: dict[str, int] = {}
    evidence: tuple[str, ...] = Field(default=(), description="episode ids")


class GridTrial(Contract):
    """One value of a parameter's grid, evaluated after costs; it has joined the tested family."""

    playbook_id: str
    parameter: str
    value: float
    n: int
    mean_r: float | None
    e_value: float | None


class DecayLevel(Contract):
    """E-detector of one playbook in its epoch: monitoring, and no reason for a change by itself."""

    playbook_id: str
    n: int = Field(ge=0)
    mean_r: float | None
    level: float = Field(description="at the last observation, shown up to 1e9")
    highest: float
    limit: float = Field(description="level that raises the alarm")
    alarmed: bool


class ExpectationCheck(Contract):
    """Holds and excursions of one playbook beside what its file expects; `missed` names what is off."""

    playbook_id: str
    n: int = Field(ge=0)
    source: str = Field(description="where the expectation comes from: design or measured")
    hold_p50_bars: float
    hold_p90_bars: float
    expected_hold_p50_bars: float
    expected_hold_p90_bars: float
    hold_calibration_z: float | None
    winner_mae_p80_r: float | None
    expected_winner_mae_p80_r: float
    mfe_p50_r: float
    expected_mfe_p50_r: float
    missed: tuple[Literal["hold", "MAE", "MFE"], ...] = ()


class FireCounts(Contract):
    """What one entry rule did between two reports; `r` holds the R of its trades that closed in between."""

    armed: int = Field(default=0, ge=0)
    activated: int = Field(default=0, ge=0)
    expired: int = Field(default=0, ge=0)
    r: tuple[float, ...] = ()


class FirePair(Contract):
    """Counts of the present window against those of the window before."""

    now: FireCounts
    before: FireCounts


class FireWindow(Contract):
    """One entry rule in one window; shares are of the armed theses, None without any."""

    armed: int = Field(ge=0)
    activated: int = Field(ge=0)
    expired: int = Field(ge=0)
    activation_share: float | None
    expiry_share: float | None
    trades: int = Field(ge=0)
    mean_r: float | None


class FireQuality(Contract):
    """One entry rule, which is one direction of a playbook, in this window and in the one before."""

    playbook_id: str
    direction: str
    now: FireWindow
    before: FireWindow


class RegimeShift(Contract):
    """Older against newer half of the regime fingerprints; monitoring only.

    Means go by rank; they and the distance are missing where there are too few windows, the p-value where
    there are too few blocks to permute.
    """

    windows: int = Field(ge=0)
    source: Literal["decision windows", "episodes"]
    older: dict[str, float] = {}
    newer: dict[str, float] = {}
    energy_distance: float | None = None
    block: int | None = Field(default=None, description="windows that are permuted together")
    blocks: int | None = None
    p_value: float | None = None


class JudgeActionSeen(Contract):
    """One action of the judge that the reflected window holds."""

    verdict_id: str
    at: int
    kind: str
    playbook_id: str | None = None
    regime: str | None = None
    parameter: str | None = None
    value: float | None = None


class Recommendation(Contract):
    """What the report recommends; evidence for the judge, never a command."""

    action: RecommendedAction
    playbook_id: str | None
    regime: str | None = None
    change: dict[str, Any] = {}
    grade: EvidenceGrade
    confidence: float = Field(ge=0, le=1)
    reason: str
    evidence_refs: tuple[str, ...] = ()


class UntradedSignal(Contract):
    """A signal that never became a position, with what would have happened; kept apart from episodes."""

    symbol: str
    playbook_id: str
    direction: Literal["long", "short"]
    label: int
    reason: Literal["unfilled", "expired", "blocked"]
    counterfactual_r: float | None
    known_at: int


class HighLevelReflectionRequest(Contract):
    """Batch for one slow reflection: all of it known at `known_at`, episodes by id and by value."""

    slot: int
    known_at: int
    window_start: datetime
    window_end: datetime
    timeframe: str
    episode_ids: tuple[str, ...]
    new_episodes: int
    judge_actions: tuple[str, ...] = Field(default=(), description="verdicts that acted inside the window")
    judge_history: tuple[JudgeActionSeen, ...] = Field(default=(), description="what those verdicts did")
    deferred_items: tuple[DeferredItem, ...] = ()
    untraded_signals: tuple[UntradedSignal, ...] = ()
    drift_inputs: dict[str, Any] = {}
    structural_allowed: bool = True
    shadow_trials: tuple[dict[str, Any], ...] = Field(
        default=(), description="what open trials and disabled cells have shown on paper"
    )
    structural_override: OverrideReason | None = Field(
        default=None, description="the safety override that alone allows structural changes, if one does"
    )
    epochs: dict[str, int] = Field(
        default={}, description="accepted changes so far, by playbook: what its family may still spend"
    )
    epoch_starts: dict[str, int] = Field(
        default={}, description="ns by playbook: trades entered before are not tested"
    )
    tested_before: tuple[str, ...] = Field(
        default=(), description="grid trials of earlier reports in this epoch"
    )


class HighLevelReflectionReport(Contract):
    """Typed report of one slow reflection (seed 002, step 4)."""

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})

    window_start: datetime
    window_end: datetime
    n_episodes: int = Field(ge=0)
    regime_cluster_summary: tuple[dict[str, Any], ...] = ()
    playbook_findings: tuple[dict[str, Any], ...] = ()
    drift_findings: tuple[str, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    evidence_refs: tuple[str, ...] = ()
    clusters: tuple[ClusterFinding, ...] = ()
    expectation_misses: tuple[str, ...] = ()
    failure_modes: dict[str, int] = {}
    grid_trials: tuple[GridTrial, ...] = ()
    untraded: dict[str, Any] = {}
    judge_actions_seen: tuple[str, ...] = ()
    judge_history: tuple[JudgeActionSeen, ...] = ()
    decay: tuple[DecayLevel, ...] = ()
    expectations: tuple[ExpectationCheck, ...] = ()
    fire_quality: tuple[FireQuality, ...] = ()
    regime_shift: RegimeShift | None = None
    unclassified_share: float | None = Field(
        default=None, description="losers that no predicate matches, as a share of all losers"
    )
    shadow_trials: tuple[dict[str, Any], ...] = ()
    deferred_seen: tuple[str, ...] = ()
    recommended_action: RecommendedAction = RecommendedAction.HOLD
    insufficient_sample: bool
    epochs: dict[str, int] = Field(default={}, description="of the request: the judge charges the same")
    excluded: dict[str, int] = Field(
        default={}, description="episodes that were counted but not tested, by reason"
    )
    narrative: str
    prompt_hash: str
    request_hash: str
    known_at: int
    meta: ReflectionInvocationMeta
    latency_ms: int = Field(default=0, ge=0)
