"""`thinktwice backtest`: check everything, run, record, report. Nothing is made before all input is valid."""

import asyncio
import json as json_text
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from schemas.errors import ConfigError
from worker.cli import wiring
from worker.cli.console import complain
from worker.cli.options import JsonOption, open_for_writing, option
from worker.cli.out_folder import OutFolder, stored_reports
from worker.cli.own_features import FeaturesOption, define_features, keep_features
from worker.cli.page import HtmlOption, demand_page_file, page_of
from worker.cli.run_options import (
    RUN,
    ConfigArgument,
    FreshLedgerOption,
    FullOption,
    run_name,
    run_settings,
    takes,
)
from worker.cli.wiring import features_of, load_bars, tell_of_doubts
from worker.feeds.selected_bars import describe
from worker.runs.interrupts import Interrupts, RunInterrupted, interrupt_at_once, run_async
from worker.runs.progress import progress_bar, step
from worker.runs.store_run import RecordedRun, new_run, record_run
from worker.settings import ResolvedSettings

if TYPE_CHECKING:
    from services.store import Store
    from worker.runs.run_result import RunResult

SHOWN_FAILURES = 5
OWN = ("resample", "playbooks", "cash", "fee", "slippage")


OutOption = Annotated[
    str | None, option(metavar="DIR", help="Write summary.json, trades.csv, equity.csv, reports/.")
]


@takes("data", *RUN, *OWN, "seed", "db", after="config")
def backtest(
    context: typer.Context,
    config: ConfigArgument = None,
    out: OutOption = None,
    html: HtmlOption = None,
    features: FeaturesOption = None,
    fresh_ledger: FreshLedgerOption = False,
    full: FullOption = False,
    json: JsonOption = False,
) -> None:
    """Run a backtest with both reflections and print what a trader reads."""
    resolved = run_settings(context)
    if html is not None:
        demand_page_file(html)
    define_features(features)
    name = run_name(config, resolved.settings)
    with _tell_of_page(html):
        done, failures, unwritten = _run(resolved, name, fresh_ledger=fresh_ledger, html=html)
    from worker.cli.summary import show_run

    try:
        show_run(done.document, failures, done.outcome.stale_positions, json=json, full=full)
    finally:
        if unwritten is not None:
            complain(unwritten)
    if unwritten is not None:
        raise typer.Exit(2)


@contextmanager
def _tell_of_page(html: Path | None) -> Iterator[None]:
    """Say how the page of a run that was stopped is written."""
    try:
        yield
    except RunInterrupted as stop:
        if html is not None and stop.run_id is not None:
            complain(f"the page was not written: {_page_command(stop.run_id, html)} writes it up to here")
        raise


def _run(
    resolved: ResolvedSettings, name: str, *, fresh_ledger: bool = False, html: Path | None = None
) -> tuple[RecordedRun, list[str], str | None]:
    """The run, its failures, and what could not be written of it."""
    settings = resolved.settings
    bars = load_bars(settings)
    tell_of_doubts(bars, settings)
    definitions = wiring.traded_playbooks(settings)
    wiring.demand_known_symbols(settings, bars)
    wiring.demand_models(settings)
    runner = wiring.backtest_runner()
    folder = None if settings.runtime.out is None else OutFolder(Path(settings.runtime.out))
    if folder is not None:
        folder.check()
    data = describe(bars, settings) | keep_features(definitions, bars.timeframe)
    run = new_run(settings, name, "backtest", data)

    async def record() -> tuple[RecordedRun, list[str], str | None]:
        async with await open_for_writing(settings.runtime.db) as store:
            with (
                Interrupts() as interrupts,
                progress_bar("backtest", interrupts, first=features_of(bars.symbols)) as progress,
            ):
                result = await record_run(
                    runner,
                    settings,
                    bars,
                    store,
                    run,
                    definitions=definitions,
                    progress=progress,
                    fresh_ledger=fresh_ledger,
                )
            unwritten = await _write(store, result, folder, html)
            return result, await _failures(store, result.record.run_id), unwritten

    return run_async(record())


async def _write(
    store: "Store", result: RecordedRun, folder: OutFolder | None, html: Path | None
) -> str | None:
    """Write the folder and the page of a run that is stored; what could not be written."""
    run_id = result.record.run_id

    def tell_kept(page: str) -> str:
        told = "" if html is None else f", {_page_command(run_id, page)} writes its page"
        return f"run {run_id} is stored{told}"

    try:
        if folder is not None:
            with step(f"writing {folder.path}"), interrupt_at_once():
                folder.write(result, await stored_reports(store, run_id))
        if html is not None:
            complain(await page_of(store, result.record, html, done=cast("RunResult", result.outcome)))
    except ConfigError as error:
        return f"{error}; {tell_kept('OTHER')}"
    except (asyncio.CancelledError, KeyboardInterrupt):
        complain(tell_kept(str(html)))
        raise
    return None


def _page_command(run_id: str, html: Path | str) -> str:
    return f"`{shlex.join(('thinktwice', 'page', run_id, '--html', str(html)))}`"


async def _failures(store: "Store", run_id: str) -> list[str]:
    rows = [row async for row in store.journal.rows(run_id, kinds={"error"})]
    payloads = (json_text.loads(row.payload) for row in rows[:SHOWN_FAILURES])
    lines = [f"{error['where']}: {error['type']}: {error['message']}" for error in payloads]
    more = len(rows) - len(lines)
    return [*lines, f"and {more} more"] if more else lines
