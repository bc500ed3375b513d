"""Contracts of the slow reflection: its batch, its graded findings, its report (seed 002, step 4)."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from schemas.claims import FactCheck, WrittenSection
from schemas.contract import Contract, Moment
from schemas.deliberation import Deliberation
from schemas.invocation import ReflectionInvocationMeta
from schemas.trials import TrialLedger
from schemas.vocabulary import Claim, EvidenceGrade, OverrideReason, RecommendedAction

SUGGESTIVE_E = 10.0  # evidence that is suggestive, where the count is reached


class SecondOpinion(Contract):
    """A claim of the group-sequential test; `look` of `looks` at which t reached the bound. Never a grade."""

    claim: Claim
    looks: int = Field(ge=1)
    look: int = Field(ge=1)
    t: float = Field(description="over months, corrected for skewness; below 0 where it loses")
    bound: float = Field(gt=0, description="that its size reached at this look")


class ShrunkenMean(Contract):
    """Mean R of a playbook's trades of one symbol in a regime, and what is left of it once all are pooled."""

    playbook_id: str
    regime: str
    timeframe: str
    symbol: str
    n: int = Field(ge=1)
    mean_r: float = Field(description="of these trades alone, winsorised")
    shrunken_mean: float
    shrunken_lower: float = Field(description="of the band of 90 %, as is `shrunken_upper`")
    shrunken_upper: float


class ClusterFinding(Contract):
    """One cluster of resolved episodes, graded. R multiples after costs, winsorised."""

    playbook_id: str
    regime: str | None
    timeframe: str | None
    n: int = Field(ge=0)
    blocks: int = Field(
        ge=0, description="complete ones: their period is over and all their trades have exited"
    )
    unit: str = Field(default="", description="period of the entries of one block: day, week, month, quarter")
    counted: int = Field(
        default=0, ge=0, description="trades of complete blocks: means and evidence are theirs"
    )
    claim: Claim | None = Field(default=None, description="what is proven at the level of the family")
    leaning: Claim | None = Field(
        default=None, description="the side on which both means lie, unless the other claim is proven"
    )
    mean_r: float | None
    mean_raw_r: float | None = Field(default=None, description="as it is, not winsorised")
    reference_r: float
    e_value: float | None = Field(description="for what it leans to; 1 while it leans to nothing")
    e_losing: float | None = None
    e_gaining: float | None = None
    lower_r: float | None = Field(description="of the winsorised mean; None: open, or no interval")
    upper_r: float | None
    interval_kind: str = Field(
        default="", description="anytime, open, open below, open above; moved: of the last look; or none"
    )
    fixed_lower_r: float | None = Field(
        default=None,
        description="Student's t over blocks, for one look declared beforehand; from 10 blocks on",
    )
    fixed_upper_r: float | None = None
    smallest_detectable_r: float | None
    shrunken_mean: float | None = Field(default=None, description="winsorised, drawn towards other clusters")
    shrunken_lower: float | None = Field(default=None, description="of its band of 90 %")
    shrunken_upper: float | None = None
    blocks_needed: int | None = Field(
        default=None, description="more blocks until it is proven at this mean; None: not at all"
    )
    blocks_needed_declared: int | None = Field(
        default=None, description="the same with a target of 2R declared"
    )
    years_needed: float | None = Field(
        default=None, description="that those blocks last, as they came so far"
    )
    to_prove: str = Field(default="", description="that in words, or what stops it")
    second_opinion: SecondOpinion | None = Field(
        default=None, description="of a playbook; never mixed with the grade"
    )
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
    psr: float | None = Field(
        default=None, description="probabilistic Sharpe ratio of sums of blocks; reported, never a gate"
    )
    dsr: float | None = Field(default=None, description="deflated by what was tried, and by its spread")
    minimum_track_record: float | None = Field(default=None, description="blocks for a PSR of 0.95")
    failure_modes: dict[str, int] = {}
    evidence: tuple[str, ...] = Field(default=(), description="episode ids")


class GridTrial(Contract):
    """One value of a parameter's grid, evaluated after costs; it has joined the tested family."""

    sparse_fields: ClassVar[frozenset[str]] = frozenset({"leaning"})

    playbook_id: str
    parameter: str
    value: float
    n: int
    mean_r: float | None
    e_value: float | None
    leaning: Claim | None = Field(default=None, description="the claim that the e-value is for")
    sharpe: float | None = Field(default=None, description="of a block; from ten blocks on")

    @property
    def hypothesis(self) -> str:
        """Its name in the registered family."""
        return f"grid|{self.playbook_id}|{self.parameter}|{self.value!r}"


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
    source: str = Field(description="where the expectation comes from: default, design or measured")
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

    sparse_fields: ClassVar[frozenset[str]] = frozenset({"supported"})

    action: RecommendedAction
    playbook_id: str | None
    regime: str | None = None
    change: dict[str, Any] = {}
    grade: EvidenceGrade
    confidence: float = Field(ge=0, le=1)
    reason: str
    evidence_refs: tuple[str, ...] = ()
    supported: bool = Field(
        default=False, description="rests on the second opinion on its playbook, whatever the grade"
    )


class UntradedSignal(Contract):
    """A signal that never became a position, with what would have happened; kept apart from episodes."""

    symbol: str
    playbook_id: str
    direction: Literal["long", "short"]
    label: int
    reason: Literal["unfilled", "expired", "blocked"]
    counterfactual_r: float | None
    known_at: int


class OpenEntry(Contract):
    """A position that is open at the request's clock: its block waits for its exit."""

    playbook_id: str
    regime: str
    entry_label: int


class DeferredItem(Contract):
    """Something the fast path wanted but may not do; the next `HighLevelReflectionRequest` carries it."""

    raised_at: int
    symbol: str
    text: str
    reflection_hash: str


class HighLevelReflectionRequest(Contract):
    """Batch for one slow reflection: all of it known at `known_at`, episodes by id and by value."""

    sparse_fields: ClassVar[frozenset[str]] = frozenset({"ledger"})

    slot: int
    known_at: int
    window_start: Moment
    window_end: Moment
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
        default=(), description="what open trials, banned cells, risk cuts and refuted candidates have shown"
    )
    structural_override: OverrideReason | None = Field(
        default=None, description="the safety override that alone allows structural changes, if one does"
    )
    epochs: dict[str, int] = Field(
        default={},
        description="changes of the rules so far by playbook, of what trades at all (`playbook|*`), and of "
        "cells that were opened again (`playbook|regime`): what the family may still spend",
    )
    epoch_starts: dict[str, int] = Field(
        default={},
        description="ns: trades entered before are not tested; by playbook, of all its open cells together "
        "(`playbook|*`), or of one cell (`playbook|regime`)",
    )
    same_rules: dict[str, tuple[str, ...]] = Field(
        default={}, description="versions whose trades count as those of the one in force, by playbook"
    )
    tested_before: tuple[str, ...] = Field(
        default=(), description="grid trials of earlier reports in this epoch"
    )
    open_entries: tuple[OpenEntry, ...] = ()
    ledger: TrialLedger | None = Field(
        default=None, description="what was tried on these bars before the run, if anything was"
    )


class HighLevelReflectionReport(Contract):
    """Typed report of one slow reflection (seed 002, step 4)."""

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})
    sparse_fields: ClassVar[frozenset[str]] = frozenset({"ledger"})

    window_start: Moment
    window_end: Moment
    n_episodes: int = Field(ge=0)
    regime_cluster_summary: tuple[dict[str, Any], ...] = ()
    playbook_findings: tuple[dict[str, Any], ...] = ()
    drift_findings: tuple[str, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    evidence_refs: tuple[str, ...] = ()
    clusters: tuple[ClusterFinding, ...] = ()
    shrunken_means: tuple[ShrunkenMean, ...] = ()
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
    sections: tuple[WrittenSection, ...] = Field(default=(), description="what the narrative says, as claims")
    narrative: str
    prompt_hash: str | None = Field(default=None, description="of the template that a model wrote by")
    request_hash: str
    known_at: int
    meta: ReflectionInvocationMeta
    latency_ms: int = Field(default=0, ge=0)
    ledger: TrialLedger | None = Field(
        default=None, description="of the request: the judge shares with the same trials"
    )
    fact_check: FactCheck | None = Field(
        default=None, description="of the text of a model, kept or not; in a journal row of its own"
    )

    deliberation: Deliberation | None = Field(
        default=None, description="how the text of a model was refined; in journal rows of its own"
    )

    def payload(self) -> dict[str, Any]:
        """What was found, without how its text was refined and checked."""
        payload = super().payload()
        del payload["fact_check"], payload["deliberation"]
        return payload
