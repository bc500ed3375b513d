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
from schemas.settings import Settings
from worker.cli import options
from worker.cli.options import RUN, define_features, option, run_name, run_settings, takes
from worker.cli.outcome import checked_folder, show_run
from worker.cli.printing import complain, print_document
from worker.cli.reports import HtmlOption, demand_page_file, page_of
from worker.cli.stores import open_for_writing
from worker.feeds.selected_bars import describe
from worker.runs import run_inputs
from worker.runs.interrupts import Interrupts, RunInterrupted, interrupt_at_once, run_async
from worker.runs.kept_run import keep_features
from worker.runs.out_folder import OutFolder, stored_reports
from worker.runs.progress import progress_bar, step
from worker.runs.readiness import ready_engine
from worker.runs.run_inputs import describe_features, prepare_run, require_models
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


DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Count what models would be asked, by rules; ask and store nothing.")
]


@takes("data", *RUN, *OWN, "seed", "db", after="config")
def backtest(
    context: typer.Context,
    config: options.Config = None,
    out: OutOption = None,
    html: HtmlOption = None,
    features: options.Features = None,
    fresh_ledger: options.FreshLedger = False,
    full: options.Full = False,
    json: options.Json = False,
    dry_run: DryRunOption = False,
) -> None:
    """Run a backtest with both reflections and print what a trader reads."""
    resolved = run_settings(context)
    if dry_run:
        define_features(features)
        return _count_questions(resolved.settings, json=json)
    if html is not None:
        demand_page_file(html)
    define_features(features)
    name = run_name(config, resolved.settings)
    with _tell_of_page(html):
        done, failures, unwritten = _run(resolved, name, fresh_ledger=fresh_ledger, html=html)
    try:
        show_run(done.document, failures, done.outcome.stale_positions, json=json, full=full)
    finally:
        if unwritten is not None:
            complain(unwritten)
    if unwritten is not None:
        raise typer.Exit(2)


def _count_questions(settings: Settings, *, json: bool) -> None:
    bars, definitions = prepare_run(settings, complain)
    ready_engine()
    from worker.runs.dry_run import count_questions, describe_questions

    first = describe_features(bars.symbols)
    with Interrupts() as interrupts, progress_bar("dry run", interrupts, first=first) as progress:
        found = run_async(count_questions(settings, bars, definitions, progress))
    print_document(found, json, lambda shown: [describe_questions(shown)])


@contextmanager
def _tell_of_page(html: Path | None) -> Iterator[None]:
    try:
        yield
    except RunInterrupted as stop:
        if html is not None and stop.run_id is not None:
            complain(f"the page was not written: {_page_command(stop.run_id, html)} writes it up to here")
        raise


def _run(
    resolved: ResolvedSettings, name: str, *, fresh_ledger: bool = False, html: Path | None = None
) -> tuple[RecordedRun, list[str], str | None]:
    settings = resolved.settings
    bars, definitions = prepare_run(settings, complain)
    require_models(settings)
    runner = run_inputs.backtest_runner(complain)
    folder = checked_folder(settings)
    data = describe(bars, settings) | keep_features(definitions, bars.timeframe)
    run = new_run(settings, name, "backtest", data)

    async def record() -> tuple[RecordedRun, list[str], str | None]:
        async with await open_for_writing(settings.runtime.db) as store:
            with (
                Interrupts() as interrupts,
                progress_bar("backtest", interrupts, first=describe_features(bars.symbols)) as progress,
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
    run_id = result.record.run_id

    def tell_kept(page: str) -> str:
        text = "" if html is None else f", {_page_command(run_id, page)} writes its page"
        return f"run {run_id} is stored{text}"

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
