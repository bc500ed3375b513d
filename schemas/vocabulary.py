"""Closed sets: every state, kind, reason and status that the system may say."""

from enum import StrEnum
from typing import Final, Literal, NamedTuple

Direction = Literal["long", "short"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("long", "short")
POSITION_VARIABLES: Final = (  # of rules, by position
    "entry_price", "bars_held", "open_r", "mfe_r", "mae_r", "best_price", "worst_price",
)  # fmt: skip
Claim = Literal["losing", "gaining"]


class PolicyState(StrEnum):
    """State of one symbol; the codes are the positions of the members."""

    IDLE = "IDLE"
    THESIS_ARMED = "THESIS_ARMED"
    POSITION_OPEN = "POSITION_OPEN"
    HOLD_LOCK = "HOLD_LOCK"
    COOLDOWN = "COOLDOWN"
    INVALIDATED = "INVALIDATED"


# How a number of the kernel's record is told.
Reading = Literal[
    "number", "finite", "count", "side", "state", "exit", "refusal", "windows", "clamps", "breach", "halt",
    "stop_source", "entry_kind",
]  # fmt: skip


class Ids(NamedTuple):
    """Whose an event is: names of the ids, and the leg of a trade that they are those of."""

    names: tuple[str, ...] = ()
    leg: Literal["none", "policy", "order", "entry", "add", "scale_out", "exit"] = "none"


class EventField(NamedTuple):
    """What an event says in one field beside its bar and its ids.

    Attributes:
        name: in `detail`.
        place: in the kernel's record: whole number `a` or `b`, or position among the floats.
        reading: how the number there is told; `windows` may leave the field out.
        when: the field is there where the truth of the fourth float is this one; None: always.
    """

    name: str
    place: int | Literal["a", "b"]
    reading: Reading = "number"
    when: bool | None = None


class Form(NamedTuple):
    """One form in which events of a kind come, as the journal page shows it.

    Attributes:
        when: it is written.
        without: names of fields that it lacks, or that `when` tells of.
        beside: names of fields that the policy loop writes into it.
    """

    when: str
    without: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()


def _floats(*names: str) -> tuple[EventField, ...]:
    """The floats of a record from the first on."""
    return tuple(EventField(name, place) for place, name in enumerate(names))


_OWNER: Final = ("policy_id", "playbook_id")
_OF_ORDER: Final = (*_OWNER, "order_id", "direction")
_OF_LEG: Final = (*_OF_ORDER, "entry_order_id", "fill_id")
_NOBODY: Final = Ids()
_POLICY: Final = Ids(_OWNER, "policy")
_DIRECTION: Final = (EventField("direction", "a", "side"),)
_TOUCHED: Final = (*_DIRECTION, *_floats("level", "price"))
_WAITED: Final = (EventField("bars", "a", "count"),)


class TickEventKind(StrEnum):
    """What tick validation reports, only on change; the kernel's code of a kind is its position here.

    Attributes:
        ids: whose an event is.
        fields: what it says beside its bar.
        forms: in which it comes, and when.
    """

    ids: Ids
    fields: tuple[EventField, ...]
    forms: tuple[Form, ...]

    def __new__(cls, name: str, ids: Ids, fields: tuple[EventField, ...], *forms: Form) -> "TickEventKind":
        """The kind of a name, with what its events say."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.ids, kind.fields, kind.forms = ids, fields, forms
        return kind

    @property
    def names(self) -> tuple[str, ...]:
        """Of all ids and fields; one that is left out at times is among them."""
        return (*self.ids.names, *(field.name for field in self.fields))

    STATE_TRANSITION = (
        "state_transition", _NOBODY, (EventField("from", "a", "state"), EventField("to", "b", "state")),
        Form("a legal change of state"),
    )  # fmt: skip
    THESIS_ARMED = (
        "thesis_armed", _POLICY, (*_DIRECTION, *_floats("setup_high", "setup_low", "close")),
        Form("the setup is true at a close"),
    )  # fmt: skip
    ACTIVATION_TRIGGERED = (
        "activation_triggered", _POLICY, _WAITED,
        Form("the activation is true; `bars` since the thesis armed"),
    )  # fmt: skip
    ENTRY_REFINED = (
        "entry_refined", _POLICY,
        (
            EventField("entry_before", 0, when=True), EventField("entry", 1, when=True),
            EventField("stop_before", 0, when=False), EventField("stop", 1, when=False),
            EventField("close", 2),
        ),
        Form("a tighter stop while armed", without=("entry", "entry_before")),
        Form("a better limit than the market, or than the one that rests", without=("stop", "stop_before")),
    )  # fmt: skip
    THESIS_EXPIRED = ("thesis_expired", _POLICY, _WAITED, Form("the activation window is over"))
    INVALIDATION_HIT = (
        "invalidation_hit", _POLICY, (*_DIRECTION, *_floats("close")),
        Form("the invalidation is true at a close"),
    )  # fmt: skip
    ORDER_ACCEPTED = (
        "order_accepted", Ids(_OF_ORDER, "order"),
        (
            *_floats("quantity", "signal_close", "stop", "target", "planned_risk"),
            EventField("entry_kind", 5, "entry_kind"),
        ),
        Form(
            "a market entry will fill at the next open, a limit or stop entry rests until it is met or the "
            "window ends; `signal_close` is what the levels are measured from: the close, or the price of a "
            "resting entry; `planned_risk` is of one unit: from there to the stop"
        ),
    )  # fmt: skip
    ORDER_CLAMPED = (
        "order_clamped", _POLICY, (EventField("clamps", "a", "clamps"), *_floats("wanted", "quantity")),
        Form("the size was cut"),
    )  # fmt: skip
    ORDER_REFUSED = (
        "order_refused", _POLICY,
        (
            EventField("reason", "a", "refusal"), EventField("close", 0), EventField("stop", 1, "finite"),
            EventField("target", 2, "finite"), EventField("windows", "a", "windows"),
        ),
        Form(
            "no order came of an activation, or a resting entry was taken back; `close` is the price of a "
            "resting entry then. `windows` has the reasons of the `envelope.no_trade_windows` it falls into, "
            "and is left out where there are none",
            without=("windows",),
        ),
    )  # fmt: skip
    ENTRY_FILLED = (
        "entry_filled", Ids((*_OF_ORDER, "fill_id"), "entry"),
        _floats("price", "quantity", "fee", "stop", "target", "raw_price"),
        Form("an entry; `raw_price` before slippage"),
    )  # fmt: skip
    STOP_BREACH = ("stop_breach", _POLICY, _TOUCHED, Form("the bar reached the stop"))
    TARGET_BREACH = ("target_breach", _POLICY, _TOUCHED, Form("the bar reached the target"))
    TIME_STOP = ("time_stop", _POLICY, (*_WAITED, *_floats("price")), Form("the horizon is over"))
    EXIT_FILLED = (
        "exit_filled", Ids(_OF_LEG, "exit"),
        (EventField("reason", "a", "exit"), *_floats("price", "quantity", "fee", "pnl", "r", "raw_price")),
        Form("an exit; `quantity` is what was left, `pnl` and `r` are of the whole trade"),
    )  # fmt: skip
    POLICY_EXPIRED = (
        "policy_expired", _POLICY, (), Form("a policy in force reached its horizon without a position"),
    )  # fmt: skip
    STOP_TIGHTENED = (
        "stop_tightened", _POLICY, (*_floats("stop_before", "stop"), EventField("by", 2, "stop_source")),
        Form("a stop moved closer, `by` a trailing stop (`trail`) or at `break_even`"),
        Form("the same by an evaluation (`policy`), with the amendment for it", companions=("amendment_id",)),
    )  # fmt: skip
    ENVELOPE_BREACH = (
        "envelope_breach", _NOBODY,
        (
            EventField("limit", "a", "breach"), *_floats("equity", "peak", "day_start", "gross", "net"),
            EventField("losses_in_a_row", 5, "count"),
        ),
        Form("a limit of the portfolio broke"),
    )  # fmt: skip
    ENVELOPE_RELEASED = (
        "envelope_released", _NOBODY, (EventField("limit", "a", "halt"), *_floats("equity")),
        Form("entries are allowed again"),
    )  # fmt: skip
    SCALE_OUT_FILLED = (
        "scale_out_filled", Ids(_OF_LEG, "scale_out"),
        _floats("price", "quantity", "fee", "remaining", "raw_price"),
        Form("a share of the position was closed; its trade comes with the exit of the rest"),
    )  # fmt: skip
    EXIT_RULE_HIT = (
        "exit_rule_hit", _POLICY, (*_DIRECTION, *_floats("close")),
        Form("the exit rule of an open position is true at a close: it is closed at the next open"),
    )  # fmt: skip
    ADD_FILLED = (
        "add_filled", Ids(_OF_LEG, "add"),
        _floats("price", "quantity", "fee", "remaining", "raw_price"),
        Form("an entry was added to a position; `remaining` is what it holds now"),
    )  # fmt: skip


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


EXPERIMENT_ENDED = "the experiment has ended"  # why its version retires: nothing makes it active


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
    EXIT_RULE = "exit_rule"


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


# Every regime of a market by its name.
REGIMES = tuple(f"{trend}/{band}" for trend in Trend for band in VolatilityBand)


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
