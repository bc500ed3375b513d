"""The heartbeat of the policy loop, read off a running session: its table, and what overrides it."""

from collections import Counter

import pytest

from schemas.settings import PolicyLoopSettings, Settings
from schemas.vocabulary import PolicyEventKind
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tests.worker.test_session_wires import finished, payloads
from worker.bootstrap import assemble
from worker.feeds.sample_data.worlds import make_world

TABLE = {"1m": 15, "5m": 12, "10m": 12, "15m": 12, "30m": 12, "2h": 12, "4h": 12, "1d": 5, "1w": 5}


def spacing(timeframe: str, heartbeat_s: int | None = None) -> int:
    """Bars between two evaluations of a session that wakes for nothing but its heartbeat."""
    world = make_world("reverting", seed=3, bars=200, symbols=1, timeframe=timeframe)
    loop = PolicyLoopSettings(
        events=(PolicyEventKind.HEARTBEAT,),
        heartbeat_s=heartbeat_s,
        minimum_interval_s=0,
        minimum_interval_bars=0,
    )
    made = assemble(Settings(policy_loop=loop), world, JournalWriter(MemorySink()))
    made.begin()
    rows = [row for row in finished(made) if row.kind == "policy_event"]
    closes: list[int] = world.close_times.tolist()
    evaluated = [
        closes.index(row.known_at)
        for row, payload in zip(rows, payloads(rows, "policy_event"), strict=True)
        if payload["evaluated"]
    ]
    gaps: Counter[int] = Counter(b - a for a, b in zip(evaluated, evaluated[1:], strict=False))
    [(gap, times)] = gaps.most_common(1)
    assert times > 2, gaps
    return gap


@pytest.mark.parametrize(("timeframe", "bars"), TABLE.items())
def test_session_is_evaluated_at_the_heartbeat_of_its_timeframe(timeframe: str, bars: int) -> None:
    assert spacing(timeframe) == bars


@pytest.mark.parametrize(("timeframe", "seconds", "bars"), [("1m", 600, 10), ("1h", 9_000, 3)])
def test_session_is_evaluated_at_the_heartbeat_that_was_set(timeframe: str, seconds: int, bars: int) -> None:
    assert spacing(timeframe, seconds) == bars
