"""Runs that several tests look at, each made once: embedded bars, a slice of them, the planted world."""

import asyncio
import json
from functools import cache
from typing import Any, NamedTuple

from agents.language_models.cassette import Cassette
from schemas.config import Settings
from schemas.playbook import PlaybookDefinition
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.registry import load_playbooks
from trading_core.bars import BarSeries
from worker.backtest import run_backtest
from worker.models import Models
from worker.run_result import RunResult
from worker.sample_data import load_embedded_bars
from worker.sample_data.worlds import make_world
from worker.scenarios import PLANTED, planted_settings


class Run(NamedTuple):
    """A finished run: the document, the journal rows and the result."""

    document: dict[str, Any]
    rows: tuple[JournalRow, ...]
    result: RunResult

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """Payloads of some kinds, in order."""
        return [json.loads(row.payload) for row in self.rows if row.kind in kinds]


def run_on(
    bars: BarSeries,
    settings: Settings | None = None,
    definitions: Any = None,
    models: Models | None = None,
    cassette: Cassette | None = None,
) -> Run:
    """Run over bars with a journal in memory."""
    sink = MemorySink()
    journal = JournalWriter(sink)
    running = run_backtest(
        settings or Settings(), bars, journal, definitions=definitions, models=models, cassette=cassette
    )
    result = asyncio.run(running)
    return Run(result.document("r", "memory"), tuple(sink.rows), result)


@cache
def embedded_bars(start: str | None = None, end: str | None = None) -> BarSeries:
    """The embedded bars between two dates."""
    return load_embedded_bars(start=start, end=end)


@cache
def embedded_run() -> Run:
    """The run that `thinktwice backtest` makes."""
    return run_on(embedded_bars())


@cache
def slice_run() -> Run:
    """Two and a half years of it, quick enough to repeat."""
    return run_on(embedded_bars("2003-01-01", "2006-06-30"))


@cache
def planted_run() -> Run:
    """A world in which one playbook loses by construction, and its own grid holds what wins."""
    return run_on(planted_world(), planted_settings(), planted_books())


def planted_world() -> BarSeries:
    """The bars of it."""
    return make_world("reverting", seed=3, bars=2_600, symbols=6)


def planted_books() -> tuple[PlaybookDefinition, ...]:
    """The playbooks of it."""
    others = [one for one in load_playbooks(None) if one.id in ("channel_breakout", "mean_reversion")]
    return (*load_playbooks(PLANTED), *others)
