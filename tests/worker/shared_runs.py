"""Runs that several tests look at, each made once: embedded bars, a slice of them, the planted world."""

import asyncio
import json
from functools import cache
from typing import Any, NamedTuple

import pytest

from agents import judge_replanning
from agents.language_models.cassette import Cassette
from schemas.judge import JudgeAction, RefusedAction
from schemas.settings import EnvelopeSettings, JudgeSettings, Settings
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.slow_loop.action_contract import ContractState, check_action
from tests.worker.trading_hours import in_trading_hours
from trading_core.bars import BarSeries
from worker.feeds.sample_data import load_embedded_bars
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest
from worker.runs.run_result import RunResult
from worker.session import Session, Timing
from worker.studies.scenarios import planted_books


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
    critics: tuple[Any, ...] = (),
) -> Run:
    """Run over bars with a journal in memory."""
    sink = MemorySink()
    journal = JournalWriter(sink)
    running = run_backtest(
        settings or Settings(),
        bars,
        journal,
        definitions=definitions,
        own=Overrides(models=models, cassette=cassette, critics=critics),
    )
    result = asyncio.run(running)
    return Run(result.document("r", "memory"), tuple(sink.rows), result)


@cache
def embedded_bars(start: str | None = None, end: str | None = None) -> BarSeries:
    """The embedded bars between two dates."""
    return load_embedded_bars(start=start, end=end)


@cache
def fewer_bars(start: str, end: str) -> BarSeries:
    """Three of the five symbols of them: for tests of a path that each symbol takes."""
    return embedded_bars(start, end).select(("AAPL", "IBM", "MSFT"))


@cache
def embedded_run() -> Run:
    """The run that `thinktwice backtest` makes."""
    return run_on(embedded_bars())


@cache
def slice_run() -> Run:
    """Nearly three years of it, quick enough to repeat."""
    return run_on(embedded_bars("2003-01-01", "2005-10-31"))


@cache
def planted_run() -> Run:
    """A world in which one playbook loses by construction, and its own grid holds what wins; the defaults."""
    return run_on(planted_world(), definitions=planted_books())


@cache
def planted_world(bars: int = 1_400) -> BarSeries:
    """The bars of it: the candidate is promoted shortly before the end of the first 1,400."""
    return in_trading_hours(make_world("reverting", seed=6, bars=bars, symbols=6))


NO_EXPERIMENTS = JudgeSettings(max_open_experiments=0)


@cache
def losing_run() -> Run:
    """Such a world with settings at which the account itself proves the loss."""
    return run_on(losing_world(), losing_settings(NO_EXPERIMENTS), planted_books())


def forget_the_room_for_experiments(patch: pytest.MonkeyPatch) -> None:
    """The judge's contract lets one through that has no room: as if the last was taken after its verdict."""

    def checked(action: JudgeAction, state: ContractState) -> RefusedAction | None:
        found = check_action(action, state)
        return None if found is not None and found.code == "too_many_experiments" else found

    patch.setattr(judge_replanning, "check_action", checked)


@cache
def losing_world(bars: int = 2_600) -> BarSeries:
    """The bars of it, or the first of them."""
    return make_world("reverting", seed=6, bars=bars, symbols=6)


def losing_settings(judge: JudgeSettings | None = None) -> Settings:
    """Settings under which the account loses enough to prove it.

    At the defaults the fast reflection and the drawdown stop most of the losing trades, and an experiment has
    proven the better value on paper long before. So past cases, drawdown and daily loss stop nothing here,
    and a run of them may open no experiment.
    """
    return Settings(
        envelope=EnvelopeSettings(allowed_playbooks=("buys_strength",), max_drawdown=0.9, max_daily_loss=0.5),
        judge=judge or JudgeSettings(),
    )


def played(session: Session, *, history: bool = False) -> None:
    """Step a session that has begun to its end, maybe over bars that lie before its run."""

    async def drive() -> None:
        timing = Timing()
        while not session.engine.done:
            await session.step(timing, history=history)
        session.finish()
        await session.journal.flush()

    asyncio.run(drive())
