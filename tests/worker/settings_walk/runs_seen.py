"""Looks at short runs: what was traded, what was evaluated, and what the regimes were.

Only what a run did is compared, never an id or a hash: settings are part of those whether they act or not.
"""

import asyncio
import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.reflection import Finding, PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.vocabulary import CheckName, Severity
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tests.worker.settings_walk.walking import Look, RowLook, content
from tests.worker.shared_runs import fewer_bars, run_on
from tests.worker.test_execution_settings import EAGER, PATIENT, always
from tests.worker.test_session_wires import finished, late_by, session
from trading_core.bars import COLUMNS, BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest
from worker.runs.run_inputs import require_known_symbols

BUSY = always(
    {
        "setup": "close > 0",
        "activation": "close > 0",
        "stop": "close - 0.3 * atr_14",
        "target": "close + 0.3 * atr_14",
        "invalidation": "close < open",
    }
)
TRADED = (
    "order_accepted", "order_clamped", "order_refused", "entry_filled", "scale_out_filled", "exit_filled",
    "stop_tightened", "episode", "envelope_breach", "envelope_released", "state_transition", "run_finished",
)  # fmt: skip
EVALUATED = ("policy_event", "policy_skip", "policy_evaluation")
REFLECTED = ("policy_reflection",)


@cache
def year() -> BarSeries:
    """A year and a half of three embedded symbols."""
    return fewer_bars("2004-01-01", "2005-06-30")


@cache
def coarse_year() -> BarSeries:
    """The same with prices in halves, so that limits and targets are touched exactly."""
    prices = {name: np.ceil(getattr(year(), name) * 2) / 2 for name in ("open", "high", "low", "close")}
    return replace(year(), **prices)


@cache
def hours() -> BarSeries:
    """Twenty days of hourly bars of two symbols."""
    return make_world("random_walk", seed=5, bars=480, symbols=2, timeframe="1h")


@cache
def holed_year() -> BarSeries:
    """The same with one bar in every six missing, of another symbol each time."""
    rows, symbols = np.indices(year().shape)
    present = year().present & ((rows + 2 * symbols) % 6 != 0)
    columns: dict[str, Any] = {name: np.where(present, getattr(year(), name), np.nan) for name in COLUMNS}
    return replace(year(), present=present, **columns)


def rows_of(rows: Sequence[JournalRow], kinds: Sequence[str]) -> list[Any]:
    return [
        [row.kind, row.symbol, row.known_at, content(json.loads(row.payload))]
        for row in rows
        if row.kind in kinds
    ]


@dataclass
class WaitingSink:
    """Hands over the rows of some kinds one by one, and waits until each is taken; when it is over, none."""

    kinds: Sequence[str]
    taken: asyncio.Queue[Any] = field(default_factory=lambda: asyncio.Queue(1))
    over: bool = False

    async def write(self, rows: list[JournalRow]) -> None:
        """Hand over a batch."""
        for row in rows_of(rows, self.kinds):
            if not self.over:
                await self.taken.put(row)


def look_at(
    bars: Callable[[], BarSeries],
    books: tuple[PlaybookDefinition, ...] | None,
    *kinds: str,
    models: Models | None = None,
) -> RowLook:
    """A look at the rows of some kinds that a run over bars leaves."""

    async def run(settings: Settings, sink: WaitingSink) -> None:
        journal = JournalWriter(sink, flush_rows=1)
        await run_backtest(settings, bars(), journal, definitions=books, own=Overrides(models=models))
        await sink.taken.put(None)

    async def take(sink: WaitingSink, running: asyncio.Task[None]) -> Any:
        taking = asyncio.create_task(sink.taken.get())
        await asyncio.wait((taking, running), return_when=asyncio.FIRST_COMPLETED)
        if not taking.done():
            await running  # it failed before its end
        return await taking

    def read(settings: Settings) -> Generator[Any, None, None]:
        with asyncio.Runner() as runner:
            sink = WaitingSink(kinds)
            running = runner.get_loop().create_task(run(settings, sink))
            try:
                while (row := runner.run(take(sink, running))) is not None:
                    yield row
            finally:
                sink.over = True

    return RowLook(read)


TRADES = look_at(year, None, *TRADED)
EAGER_TRADES = look_at(year, (EAGER,), *TRADED)
PATIENT_TRADES = look_at(coarse_year, (PATIENT,), *TRADED)
BUSY_TRADES = look_at(year, (BUSY,), *TRADED)
HOLED_REFLECTIONS = look_at(holed_year, None, *REFLECTED)
EVALUATIONS = look_at(year, None, *EVALUATED)
REFLECTIONS = look_at(year, None, *REFLECTED)
DOUBTS = look_at(hours, None, "feed_anomaly")
HOURLY = look_at(hours, None, *EVALUATED)
EAGER_HOURLY = look_at(hours, (EAGER,), *TRADED)


def order_names(settings: Settings) -> Any:
    """Ids of the orders, which the venue sees; the account is part of them."""
    return [order["order_id"] for order in run_on(year(), settings).of("order_accepted")]


def document_part(*path: str) -> Look:
    """A look at one part of the document of a run."""

    def looked(settings: Settings) -> Any:
        part: Any = run_on(year(), settings).document
        for name in path:
            part = part[name]
        return part

    return looked


LATE_READS = document_part("memory", "over_budget")
LATE_REFLECTIONS = document_part("policy_loop", "over_budget")


def refusal(settings: Settings) -> str:
    """What a run says of limits for a symbol that its bars do not have."""
    with pytest.raises(ConfigError) as caught:
        require_known_symbols(settings, year())
    return str(caught.value)


def never_today(request: PolicyLevelReflectionRequest) -> Finding:
    """A critic that sends every plan back."""
    return Finding(check=CheckName.OWN, code="not_today", severity=Severity.MAJOR, message="not today")


def refused_rounds(settings: Settings) -> Any:
    """Evaluations of a run in which every plan is sent back."""
    journal = JournalWriter(sink := MemorySink())
    own = Overrides(critics=(never_today,))
    asyncio.run(run_backtest(settings, fewer_bars("2004-01-01", "2004-12-31"), journal, own=own))
    return rows_of(sink.rows, EVALUATED)


def late_answers(settings: Settings) -> Any:
    """How evaluations end while the feed runs on by a bar under each answer."""
    made = session(settings, ("2003-01-01", "2003-09-30"))
    late_by(made, 1, "provide")
    return rows_of(finished(made), ("policy_evaluation",))
