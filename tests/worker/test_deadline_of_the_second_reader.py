"""How long a reflection waits for its second reader: by timeframe, by what waits for it, or as it is told."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agents.strategies import plan_provider
from schemas.settings import ReflectionSettings, Settings
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind, PolicyEventKind
from services.context import RunContext
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.ports import RevisionBudget
from tests.services.policy_checks.plans import noted_request, on_timeframe
from tests.test_low_level_reflection import FakeModel, reflect, reply
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

FULL = ReflectionSettings(mode="full")


def deadline_given(timeframe, *, settings=FULL, source=PolicyEventKind.REGIME_CHANGE, **parts):
    model = FakeModel(reply())
    request = on_timeframe(timeframe, noted_request())
    reflect(request, settings, source, model=model, timer=lambda: 0, **parts)
    return float(str(model.calls[-1]["deadline_ms"]))


@pytest.mark.parametrize(
    ("timeframe", "expected_ms"),
    [
        ("1m", 250.0),
        ("5m", 250.0),
        ("10m", 250.0),
        ("15m", 2_000.0),
        ("30m", 2_000.0),
        ("1h", 5_000.0),
        ("2h", 5_000.0),
        ("1d", 5_000.0),
        ("1w", 5_000.0),
        ("1M", 5_000.0),
    ],
)
def test_second_reader_has_the_deadline_of_the_timeframe_on_a_market_that_runs_on(timeframe, expected_ms):
    assert deadline_given(timeframe) == expected_ms


def test_second_reader_of_a_heartbeat_on_fast_bars_has_the_budget_of_a_heartbeat():
    assert deadline_given("5m", source=PolicyEventKind.HEARTBEAT) == 500.0


@pytest.mark.parametrize("timeframe", ["1m", "15m", "1d"])
def test_second_reader_has_five_seconds_where_the_market_waits(timeframe):
    assert deadline_given(timeframe, market_waits=True) == 5_000.0


def test_second_reader_has_a_budget_that_was_raised():
    settings = ReflectionSettings(mode="full", budget_event_ms=9_000.0)
    assert deadline_given("1h", settings=settings) == 9_000.0


def test_second_reader_has_the_deadline_of_the_settings_wherever_it_is_asked():
    settings = ReflectionSettings(mode="full", model_deadline_ms=777.0)
    for waits in (False, True):
        assert deadline_given("1h", settings=settings, market_waits=waits) == 777.0


@pytest.mark.parametrize("waits", [True, False])
def test_plan_provider_tells_its_reflection_whether_the_market_waits(waits, monkeypatch):
    monkeypatch.setattr(plan_provider, "linter", lambda columns: lambda snapshot, proposal: ())
    model, request = FakeModel(reply()), on_timeframe("5m", noted_request())
    version = SimpleNamespace(definition=request.playbook)
    parts: dict[str, Any] = {
        "strategist": SimpleNamespace(answer=lambda snapshot, revision: proposed(request.proposal)),
        "playbooks": SimpleNamespace(active=lambda: (version,), get=lambda name: version),
        "columns": None,
        "memory": None,
    }
    made, clock = Settings().model_copy(update={"reflection": FULL}), SimulatedClock()
    journal = JournalWriter(MemorySink())
    context = RunContext(made, clock, journal, TickGuard(), market_waits=waits)
    provider = plan_provider.assemble_provider(context, model=model, **parts)
    asyncio.run(provider.provide(request.snapshot, request.invariants, RevisionBudget(0)))
    given_ms = float(str(model.calls[-1]["deadline_ms"]))
    assert (given_ms > 500.0) is waits  # the five seconds of a market that waits, or a heartbeat at most


async def proposed(proposal):
    return StrategistAnswer(kind=PlanKind.PROPOSE, proposal=proposal, reason="test")
