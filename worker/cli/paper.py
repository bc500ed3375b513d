"""`thinktwice paper`: the trading loop alone, on a feed; it goes on where it was left, however it ended."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.cli import options
from worker.cli.options import RUN, console_at, option, run_name, run_settings, takes
from worker.cli.outcome import show_run
from worker.cli.printing import complain
from worker.cli.stores import open_for_writing
from worker.runs.interrupts import Interrupts, hear_stops, nothing_to_lose, run_async
from worker.runs.progress import Progress, progress_bar, step
from worker.runs.readiness import ready_engine
from worker.runs.run_inputs import load_traded_bars, require_models, traded_playbooks

if TYPE_CHECKING:
    from services.feeds.port import MarketFeed
    from worker.live.monitor import Companion, Monitor
    from worker.live.process import PaperOutcome
    from worker.live.run_selection import AbandonedRun
    from worker.operations.monitoring import Prepared


FeedOption = Annotated[
    str, typer.Option(help="replay (recorded bars), csv (a growing file) or ccxt:NAME (an exchange).")
]
FeedDataOption = Annotated[str | None, option(help="Bar file of replay and csv. [embedded daily bars]")]
SpeedOption = Annotated[str, typer.Option(help="Of a replay: seconds of bar time in a second, or max.")]
NewOption = Annotated[
    bool, typer.Option("--new", help="Trade a new run, even if one was left that could go on.")
]


@takes(*RUN, "seed", "db", after="speed")
def paper(
    context: typer.Context,
    config: options.Config = None,
    feed: FeedOption = "replay",
    data: FeedDataOption = None,
    speed: SpeedOption = "max",
    log_format: options.LogFormat = None,
    new: NewOption = False,
    fresh_ledger: options.FreshLedger = False,
    console: options.Console = False,
    console_port: options.ConsolePort = None,
    full: options.Full = False,
    json: options.Json = False,
) -> None:
    """Trade on paper, bar by bar: durable after every bar, and the same run again after a crash.

    A run that was stopped or killed goes on when the same command is given again: what is stored is
    played and compared first. At the end of a replay the document of the run is printed, as by `backtest`.
    """
    port = console_at(console, console_port)
    resolved = run_settings(context)
    name = run_name(config, resolved.settings, feed)
    from worker.operations.logs import configure_logging
    from worker.operations.monitoring import prepare

    with configure_logging(resolved.settings) as logs:
        prepared = prepare(resolved.settings.runtime.operations, logs.redactor)
        outcome = run_async(
            trade(
                resolved.settings, prepared, feed, speed, name,
                new=new, fresh_ledger=fresh_ledger, console=port,
            )
        )  # fmt: skip
    show(outcome, json=json, full=full)


# Of an orderly end that a person asked for; a supervisor asks by SIGTERM, and gets 0.
EXIT_CODES = {name: 128 + signal.Signals[name] for name in ("SIGINT", "SIGHUP")}


async def trade(
    settings: Settings,
    prepared: "Prepared",
    feed_text: str,
    speed: str,
    name: str,
    *,
    new: bool,
    slow_period_s: float | None = None,
    fresh_ledger: bool = False,
    console: int | None = None,
) -> "PaperOutcome":
    """Trade until the feed ends or a signal comes.

    Args:
        settings: the resolved configuration.
        prepared: what operates the process.
        feed_text: as the operator named the feed.
        speed: of a replay.
        name: what the operator would call the run.
        new: do not go on with a run that was left behind.
        slow_period_s: seconds between looks of a slow loop beside a feed that runs on; None: no slow loop.
        fresh_ledger: a run that begins here starts as on a store in which nothing was tried.
        console: port of 127.0.0.1 at which the console is served meanwhile; None: nowhere.
    """
    from worker.live.commit_loop import COMMAND_S
    from worker.live.crash_counter import StartLimit
    from worker.live.monitor import OperatedMonitor
    from worker.live.process import PaperProcess
    from worker.live.process_inputs import ProcessInputs
    from worker.live.run_selection import left_behind
    from worker.live.with_slow_loop import WithSlowLoop
    from worker.operations.endpoint_access import demand_address
    from worker.slow_worker.wiring import new_owner

    await demand_address(settings.runtime.operations)
    beside = console_beside(settings, prepared, console)
    definitions = traded_playbooks(settings, complain)
    feed = open_feed(feed_text, settings, speed)
    try:
        require_models(settings, goes_on=not new)
        with nothing_to_lose():
            ready_engine()
        async with await open_for_writing(settings.runtime.db, command_s=COMMAND_S) as store:
            owner, surroundings = new_owner(), OperatedMonitor(prepared, settings.runtime.console.url)
            limit = StartLimit(store.leases, owner, settings.runtime.operations, surroundings.note)
            around: Monitor = surroundings if beside is None else beside.over(surroundings)
            if slow_period_s is not None and not feed.lock_step:
                around = WithSlowLoop(
                    around, store, settings, owner, slow_period_s, lambda why: process.stop(why)
                )
            process = PaperProcess(ProcessInputs(
                settings, feed, store, owner, around, definitions=definitions,
                crashed_too_often=limit.crashed_too_often, progress=lambda *rows: draw(sum(rows), None),
                fresh_ledger=fresh_ledger,
            ))  # fmt: skip
            hear_stops(lambda signum: process.stop(signum.name))
            async with limit.withdrawn():
                with _watch(feed) as draw:
                    for abandoned in await left_behind(store, settings, feed, new=new):
                        _tell(abandoned, settings)
                    return await process.run(name, new=new)
    finally:
        await feed.close()


def console_beside(settings: Settings, prepared: "Prepared", port: int | None) -> "Companion | None":
    """The console that a process is asked for; its port is tried before anything is made.

    Raises:
        ConfigError: the port cannot be had.
    """
    if port is None:
        return None
    from worker.console.beside import ConsoleThread

    made: Companion = ConsoleThread(settings, prepared, port)
    return made


def open_feed(text: str, settings: Settings, speed: str) -> "MarketFeed":
    """The feed of a paper run.

    Raises:
        ConfigError: there is no such feed, or it cannot be opened.
        DataError: its bar file cannot be used, or `data.on_doubt` refuses bars of it.
        FeedError: its source cannot be reached.
    """
    with step("opening the feed; the first time this may take a minute"):
        from worker.feeds import opening

    replays = text.strip() == "replay"
    pace = None if not replays and speed == "max" else opening.speed_of(speed)
    series = load_traded_bars(settings, complain) if replays else None
    with step(f"opening feed {text}"):
        return opening.open_feed(text, settings, speed=pace, series=series)


@contextmanager
def _watch(feed: "MarketFeed") -> Iterator[Progress]:
    """A bar over the rows of a feed that waits; one that runs on is watched by `thinktwice status`."""
    if not feed.lock_step:
        yield lambda done, total: None
        return
    with progress_bar("paper", Interrupts(), "rows", first="playing what is stored") as draw:
        yield draw


def _tell(left: "AbandonedRun", settings: Settings) -> None:
    """Say that a run is left behind: in the log, and on stderr when the log goes elsewhere."""
    from worker.operations.logs import logger

    logger("trading").warning("run_left_behind", **left.detail)
    if settings.runtime.operations.log_file is not None:
        complain(str(left))


def show(outcome: "PaperOutcome", *, json: bool, full: bool = False) -> None:
    """Print the document of a run whose feed ended, or say how it goes on; exit with its code."""
    document, run_id = outcome.document, outcome.record.run_id
    if document is None:
        if outcome.stopped is None:
            raise ConfigError("the feed ended before its first bar: nothing was traded")
        complain(f"stopped by {outcome.stopped}: run {run_id} is stored up to here; the same command goes on")
        raise typer.Exit(EXIT_CODES.get(outcome.stopped, 0))
    show_run(document, json=json, full=full)
