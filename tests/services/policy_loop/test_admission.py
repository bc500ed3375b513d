"""The gate as a table: which facts admit which event, and with which reason the others are skipped."""

import itertools

import pytest

from schemas.settings import PolicyLoopSettings
from schemas.vocabulary import OverrideReason, PolicyEventKind, PolicyState, SkipReason
from services.policy_loop.admission import BoundaryFacts, decide
from tests.each_case import check_each

DEFAULTS = PolicyLoopSettings()
EVENTS = (
    PolicyEventKind.REGIME_CHANGE,
    PolicyEventKind.VOLATILITY_BAND_SHIFT,
    PolicyEventKind.HEARTBEAT,
    PolicyEventKind.POSITION_OPENED,
    PolicyEventKind.POSITION_CLOSED,
)
OPEN_STATES = [
    state for state in PolicyState if state not in (PolicyState.THESIS_ARMED, PolicyState.HOLD_LOCK)
]


def facts(**changes: object) -> BoundaryFacts:
    values: dict = dict(  # type: ignore[type-arg]
        state=PolicyState.IDLE, events=(PolicyEventKind.HEARTBEAT,), overrides=(), own_bar=100,
        last_evaluation_bar=50, warming_up=False,
    )  # fmt: skip
    return BoundaryFacts(**(values | changes))


@check_each(("state", "event"), list(itertools.product(OPEN_STATES, EVENTS)))
def test_gate_open_state_admits_every_enabled_event(state: PolicyState, event: PolicyEventKind) -> None:
    decision = decide(facts(state=state, events=(event,)), DEFAULTS, "1h")
    assert (decision.admitted, decision.skips) == ((event,), ())


@pytest.mark.parametrize(
    ("state", "reason"),
    [(PolicyState.THESIS_ARMED, SkipReason.THESIS_ARMED), (PolicyState.HOLD_LOCK, SkipReason.HOLD_LOCK)],
)
@pytest.mark.parametrize("event", EVENTS[:3])
def test_gate_suppressed_state_skips_with_its_reason(
    state: PolicyState, reason: SkipReason, event: PolicyEventKind
) -> None:
    decision = decide(facts(state=state, events=(event,)), DEFAULTS, "1h")
    assert not decision.evaluate
    assert [(skip.event, skip.reason) for skip in decision.skips] == [(event, reason)]


@check_each("override", list(OverrideReason))
@check_each("state", list(PolicyState))
def test_gate_every_override_opens_a_boundary_in_every_state(
    override: OverrideReason, state: PolicyState
) -> None:
    decision = decide(
        facts(state=state, events=(), overrides=(override,), last_evaluation_bar=100), DEFAULTS, "1h"
    )
    assert decision.evaluate
    assert decision.overrides == (override,)


@pytest.mark.parametrize("event", EVENTS[:3])
def test_gate_minimum_interval_skips_and_says_how_long(event: PolicyEventKind) -> None:
    decision = decide(facts(events=(event,), last_evaluation_bar=98), DEFAULTS, "1h")
    assert [(skip.reason, skip.bars_to_wait) for skip in decision.skips] == [(SkipReason.MINIMUM_INTERVAL, 1)]
    assert decide(facts(events=(event,), last_evaluation_bar=97), DEFAULTS, "1h").evaluate


@pytest.mark.parametrize("event", EVENTS[3:])
def test_gate_position_events_bypass_the_minimum_interval(event: PolicyEventKind) -> None:
    assert decide(facts(events=(event,), last_evaluation_bar=100), DEFAULTS, "1h").evaluate


def test_gate_several_events_give_one_skip_each() -> None:
    decision = decide(facts(state=PolicyState.HOLD_LOCK, events=EVENTS[:3]), DEFAULTS, "1h")
    assert [skip.event for skip in decision.skips] == list(EVENTS[:3])


@pytest.mark.parametrize("event", EVENTS)
def test_gate_disabled_event_is_skipped_and_starts_nothing(event: PolicyEventKind) -> None:
    settings = PolicyLoopSettings(events=tuple(kind for kind in EVENTS if kind is not event))
    decision = decide(facts(events=(event,)), settings, "1h")
    assert not decision.evaluate
    assert [skip.reason for skip in decision.skips] == [SkipReason.EVENT_DISABLED]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"warming_up": True}, SkipReason.WARMING_UP),
        ({"in_flight": True}, SkipReason.SINGLE_FLIGHT),
        ({"draining": True}, SkipReason.DRAINING),
    ],
)
def test_gate_without_regime_or_while_busy_nothing_starts(change: dict, reason: SkipReason) -> None:  # type: ignore[type-arg]
    for overrides in ((), (OverrideReason.VOLATILITY_SHOCK,)):
        decision = decide(facts(overrides=overrides, **change), DEFAULTS, "1h")
        assert not decision.evaluate
        assert {skip.reason for skip in decision.skips} == {reason}


def test_gate_minimum_interval_is_the_larger_of_seconds_and_bars() -> None:
    assert [DEFAULTS.minimum_bars(word) for word in ("1m", "5m", "15m", "1h", "1d")] == [15, 3, 3, 3, 3]


def test_gate_heartbeat_follows_the_table_or_the_setting() -> None:
    frames = ("1m", "2m", "5m", "10m", "30m", "2h", "4h", "12h", "1d", "1w", "1M")
    assert [DEFAULTS.heartbeat_bars(frame) for frame in frames] == [15, *[12] * 7, 5, 5, 5]
    assert PolicyLoopSettings(heartbeat_s=3_600).heartbeat_bars("15m") == 4
    assert PolicyLoopSettings(heartbeat_s=1).heartbeat_bars("1d") == 1
