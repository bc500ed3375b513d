"""Closed sets: every state, kind, reason and status that the system may say."""

from enum import StrEnum
from typing import Literal

Direction = Literal["long", "short"]
Claim = Literal["losing", "gaining"]
Timeframe = Literal["1m", "5m", "15m", "1h", "4h", "1d"]
TIMEFRAME_SECONDS: dict[str, int] = {"1m": 60, "5m": 300, "15m": 900, "1h": 3_600, "4h": 14_400, "1d": 86_400}


class PolicyState(StrEnum):
    """State of one symbol; the codes are the positions of the members."""

    IDLE = "IDLE"
    THESIS_ARMED = "THESIS_ARMED"
    POSITION_OPEN = "POSITION_OPEN"
    HOLD_LOCK = "HOLD_LOCK"
    COOLDOWN = "COOLDOWN"
    INVALIDATED = "INVALIDATED"


class TickEventKind(StrEnum):
    """What tick validation reports, only on change."""

    STATE_TRANSITION = "state_transition"
    THESIS_ARMED = "thesis_armed"
    ACTIVATION_TRIGGERED = "activation_triggered"
    ENTRY_REFINED = "entry_refined"
    THESIS_EXPIRED = "thesis_expired"
    INVALIDATION_HIT = "invalidation_hit"
    ORDER_ACCEPTED = "order_accepted"
    ORDER_CLAMPED = "order_clamped"
    ORDER_REFUSED = "order_refused"
    ENTRY_FILLED = "entry_filled"
    STOP_BREACH = "stop_breach"
    TARGET_BREACH = "target_breach"
    TIME_STOP = "time_stop"
    EXIT_FILLED = "exit_filled"
    POLICY_EXPIRED = "policy_expired"
    STOP_TIGHTENED = "stop_tightened"
    ENVELOPE_BREACH = "envelope_breach"
    ENVELOPE_RELEASED = "envelope_released"
    SCALE_OUT_FILLED = "scale_out_filled"


class PolicyEventKind(StrEnum):
    """What may start a policy evaluation; nothing else does."""

    REGIME_CHANGE = "regime_change"
    POSITION_OPENED = "position_opened"
    POSITION_CLOSED = "position_closed"
    VOLATILITY_BAND_SHIFT = "volatility_band_shift"
    HEARTBEAT = "heartbeat"
    REPLAN = "replan"
    SAFETY_OVERRIDE = "safety_override"


class OverrideReason(StrEnum):
    """The closed list of overrides that open a boundary in a suppressed state."""

    INVALIDATION_HIT = "invalidation_hit"
    ENVELOPE_BREACH = "envelope_breach"
    KILL_SWITCH = "kill_switch"
    STALE_DATA = "stale_data"
    CONFLICTING_DATA = "conflicting_data"
    VOLATILITY_SHOCK = "volatility_shock"


class SkipReason(StrEnum):
    """Why a policy event did not become an evaluation."""

    THESIS_ARMED = "thesis_armed"
    HOLD_LOCK = "hold_lock"
    MINIMUM_INTERVAL = "minimum_interval"
    WARMING_UP = "warming_up"
    EVENT_DISABLED = "event_disabled"
    SINGLE_FLIGHT = "single_flight"
    DRAINING = "draining"


class SlowSkipReason(StrEnum):
    """Why a slot of the slow loop did not become a run."""

    INTERVAL_NOT_ELAPSED = "interval_not_elapsed"
    INSUFFICIENT_EPISODES = "insufficient_episodes"
    DISABLED = "disabled"


class ReflectionStatus(StrEnum):
    """Verdict of the fast reflection on one proposal."""

    PASS = "pass"
    REVISE = "revise"
    BLOCK = "block"


class InvocationOutcome(StrEnum):
    """How a reflection invocation went; not a verdict."""

    RAN = "ran"
    DEGRADED = "degraded"
    SKIPPED = "skipped"
    ERROR = "error"
    DISABLED = "disabled"


class Severity(StrEnum):
    """Weight of one finding: info and minor pass, major asks for a revision, blocker blocks."""

    INFO = "info"
    MINOR = "minor"
    MAJOR = "major"
    BLOCKER = "blocker"


class CheckName(StrEnum):
    """The checks of the fast reflection, in the order in which they run."""

    INVARIANT = "invariant"
    COHERENCE = "coherence"
    MEMORY = "memory"
    EXPECTATION = "expectation"
    OWN = "own"
    CONSOLIDATION = "consolidation"


class PlanKind(StrEnum):
    """What a strategist may answer; the members never collapse into one another."""

    PROPOSE = "propose"
    HOLD = "hold"
    TIGHTEN = "tighten"
    ABSTAIN = "abstain"


class AmendmentKind(StrEnum):
    """What an evaluation may want of a policy that is there; none of it opens or loosens anything."""

    TIGHTEN = "tighten"
    KEEP = "keep"
    STAND_DOWN = "stand_down"


class EvaluationOutcome(StrEnum):
    """How one policy evaluation ended."""

    FROZEN = "frozen"
    HELD = "held"
    TIGHTENED = "tightened"
    ABSTAINED = "abstained"
    KEPT_PREVIOUS = "kept_previous"
    STOOD_DOWN = "stood_down"
    ERROR = "error"
    STALE = "stale"


class JudgeDecision(StrEnum):
    """The judge at the policy boundary."""

    APPROVE = "approve"
    REVISE = "revise"
    REJECT = "reject"
    STAND_DOWN = "stand_down"


class FindingClass(StrEnum):
    """What kind of trouble the judge saw in the evidence."""

    STRUCTURAL_VIOLATION = "structural_violation"
    STATISTICAL_SUSPICION = "statistical_suspicion"
    MEMORY_CONTRADICTION = "memory_contradiction"
    NONE = "none"


class RecommendedAction(StrEnum):
    """What a high-level report may recommend and the judge may decide, weakest first."""

    HOLD = "hold"
    RESEARCH_EXPERIMENT = "research_experiment"
    POLICY_ADJUST = "policy_adjust"
    REPLAN = "replan"


class EvidenceGrade(StrEnum):
    """How much a finding has shown; a grade bounds the strongest action."""

    INSUFFICIENT_SAMPLE = "insufficient_sample"
    COUNT_ONLY = "count_only"
    SUGGESTIVE = "suggestive"
    SIGNIFICANT = "significant"


class VersionState(StrEnum):
    """Lifecycle of one playbook version."""

    CANDIDATE = "candidate"
    SHADOW = "shadow"
    ACTIVE = "active"
    EXPIRED = "expired"
    RETIRED = "retired"


class ExitReason(StrEnum):
    """Why a position was closed; the codes are the positions of the members."""

    STOP = "stop"
    TARGET = "target"
    TIME_STOP = "time_stop"
    INVALIDATION = "invalidation"
    ENVELOPE = "envelope"
    KILL_SWITCH = "kill_switch"


class Trend(StrEnum):
    """Direction of the market; codes are positions."""

    SIDEWAYS = "sideways"
    UP = "up"
    DOWN = "down"


class VolatilityBand(StrEnum):
    """Rolling rank of realised volatility; codes are positions."""

    LOW = "low"
    MID = "mid"
    HIGH = "high"
    EXTREME = "extreme"


class Structure(StrEnum):
    """What the range is doing; codes are positions."""

    NEUTRAL = "neutral"
    COMPRESSION = "compression"
    EXPANSION = "expansion"
    MEAN_REVERTING = "mean_reverting"
    BREAKOUT = "breakout"
    BREAKDOWN = "breakdown"


class FailureMode(StrEnum):
    """Recurring ways in which a losing episode failed; each a predicate over the recorded path."""

    FALSE_BREAKOUT = "false_breakout"
    TREND_EXHAUSTION = "trend_exhaustion"
    LOW_VOLUME_BREAKOUT = "low_volume_breakout"
    NEWS_WHIPSAW = "news_whipsaw"
    CHOP = "chop"
    LATE_ENTRY = "late_entry"
    STOP_TOO_TIGHT = "stop_too_tight"
    GAP_THROUGH_STOP = "gap_through_stop"
    GAVE_BACK = "gave_back"
    THESIS_FAILED = "thesis_failed"
    NEVER_WORKED = "never_worked"
    UNCLASSIFIED = "unclassified"
