"""How long a reflection waits for its second reader: by timeframe, by what waits for it, or as it is told."""

import pytest

from schemas.config import ReflectionSettings
from schemas.vocabulary import PolicyEventKind
from tests.services.policy_checks.plans import changed, right_request
from tests.test_low_level_reflection import FakeModel, reflect, reply

FULL = ReflectionSettings(mode="full")
LATE_MS = 5.0  # what the rules may have taken of it


def deadline_given(timeframe, *, settings=FULL, source=PolicyEventKind.REGIME_CHANGE, **parts):
    model = FakeModel(reply())
    snapshot = right_request().snapshot
    opened = {"1m": 60, "5m": 300, "15m": 900, "30m": 1_800, "1h": 3_600, "1d": 86_400}[timeframe]
    request = changed(
        right_request(),
        {"snapshot": changed(snapshot, {"timeframe": timeframe, "bar_label": snapshot.ts_event})},
    )
    assert request.snapshot.opened_at == request.snapshot.ts_event - opened * 10**9
    reflect(request, settings, source, model=model, **parts)
    return model.deadlines[-1]


@pytest.mark.parametrize(
    ("timeframe", "expected_ms"),
    [("1m", 250.0), ("5m", 250.0), ("15m", 2_000.0), ("30m", 2_000.0), ("1h", 5_000.0), ("1d", 5_000.0)],
)
def test_second_reader_has_the_deadline_of_the_timeframe_on_a_market_that_runs_on(timeframe, expected_ms):
    assert expected_ms - LATE_MS < deadline_given(timeframe) <= expected_ms


def test_second_reader_of_a_heartbeat_on_fast_bars_has_the_budget_of_a_heartbeat():
    assert 500.0 - LATE_MS < deadline_given("5m", source=PolicyEventKind.HEARTBEAT) <= 500.0


@pytest.mark.parametrize("timeframe", ["1m", "15m", "1d"])
def test_second_reader_has_five_seconds_where_the_market_waits(timeframe):
    assert 5_000.0 - LATE_MS < deadline_given(timeframe, market_waits=True) <= 5_000.0


def test_second_reader_has_the_deadline_of_the_settings_wherever_it_is_asked():
    settings = ReflectionSettings(mode="full", model_deadline_ms=777.0)
    for waits in (False, True):
        assert 777.0 - LATE_MS < deadline_given("1h", settings=settings, market_waits=waits) <= 777.0
