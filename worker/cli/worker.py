"""`thinktwice worker`: everything on a feed, or the slow loop of a stored run; results on stdout."""

import asyncio
import json as json_text
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError, InvariantViolation, StoreError
from schemas.settings import Settings
from worker.cli import options
from worker.cli.options import LATEST, argument, console_at, option, run_name, run_settings, takes
from worker.cli.paper import NewOption, SpeedOption, console_beside, show, trade
from worker.cli.printing import complain, print_json_line, print_line, time_option
from worker.cli.stores import open_for_run, open_for_writing
from worker.pages.figures import shown_time
from worker.runs.interrupts import run_async
from worker.settings import ResolvedSettings
from worker.slow_worker.event_texts import TEXTS, describe_event

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from worker.live.monitor import Companion
    from worker.operations.logs import EventSink, Logging
    from worker.operations.monitoring import Prepared
    from worker.slow_worker.ports import Clock
    from worker.slow_worker.service import Looks
    from worker.slow_worker.status import SlowLoopStatus

QUIET_ONCE = frozenset({"lease_taken", "lease_released"})


@takes("data", "symbols", "timeframe", after="feed")
def worker(
    context: typer.Context,
    config: Annotated[
        Path | None,
        argument(
            metavar="CONFIG",
            help="TOML file; its [high_level] is in force, all else in it must be as the run was made.",
        ),
    ] = None,
    feed: Annotated[
        str | None, option(help="Trade this feed, too: ccxt:NAME, csv or replay, as `thinktwice paper` does.")
    ] = None,
    speed: SpeedOption = "max",
    new: NewOption = False,
    fresh_ledger: options.FreshLedger = False,
    run: options.RunOption = LATEST,
    once: Annotated[bool, typer.Option("--once", help="Examine what is due now, then exit.")] = False,
    at: Annotated[
        str | None,
        option(
            "--at",
            metavar="TIME",
            help="With --once: examine what was due at TIME (ISO, UTC), from what was known then.",
        ),
    ] = None,
    period: Annotated[
        float, typer.Option(min=0.1, max=30.0, help="Seconds between two looks, at most 30.")
    ] = 30.0,
    db: options.Db = None,
    log_format: options.LogFormat = None,
    console: options.Console = False,
    console_port: options.ConsolePort = None,
    full: options.Full = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per event, times in ns.")
    ] = False,
) -> None:
    """Run everything on a feed, or the slow loop of a stored run: reflect at its slots, tell the judge.

    With --feed this process trades and reflects fast, and one beside it reflects slowly; more processes
    without --feed may stand by for the slow loop of the same run. What to trade, --speed, --new,
    --fresh-ledger and --full go with --feed, --run goes without it.
    """
    port = console_at(console, console_port)
    refused = {
        "--console is of a process that runs on: it goes without --once": once and port is not None,
        "--at names a past moment: it goes with --once": at is not None and not once,
        "--feed trades its own run: it goes without --once and --run": feed and (once or run != LATEST),
        "--full is of the summary at the end of a feed: it goes with --feed": full and not feed,
        "--fresh-ledger is of a run that begins: it goes with --feed": fresh_ledger and not feed,
        **{
            f"--{name} says what to trade: it goes with --feed": context.params[name] is not None and not feed
            for name in ("data", "symbols", "timeframe")
        },
    }
    if reasons := [reason for reason, applies in refused.items() if applies]:
        raise ConfigError(reasons[0])
    moment = None if at is None else time_option(at, "--at")
    resolved = run_settings(context)
    from worker.operations.logs import configure_logging
    from worker.operations.monitoring import prepare

    with configure_logging(resolved.settings) as logs:
        prepared = prepare(resolved.settings.runtime.operations, logs.redactor)
        if feed is not None:
            name = run_name(config, resolved.settings, feed)
            trading = trade(
                resolved.settings, prepared, feed, speed, name,
                new=new, slow_period_s=period, fresh_ledger=fresh_ledger, console=port,
            )  # fmt: skip
            show(run_async(trading), json=json, full=full)
            return
        beside = console_beside(resolved.settings, prepared, port)
        made = _work(resolved, run, moment, logs, prepared, beside, once=once, period_s=period, json=json)
        if code := run_async(made):
            raise typer.Exit(code)


async def _work(
    given: ResolvedSettings,
    run: str,
    moment: int | None,
    logs: "Logging",
    prepared: "Prepared",
    beside: "Companion | None",
    *,
    once: bool,
    period_s: float,
    json: bool,
) -> int:
    from trading_core.clock import SimulatedClock
    from worker.operations.monitoring import OutageLog
    from worker.review.replanning import judge_models
    from worker.slow_worker.ports import SystemClock
    from worker.slow_worker.run_settings import reflecting_settings
    from worker.slow_worker.slot_runner import RunOfSlots, WorkerContext
    from worker.slow_worker.status import SlowLoopStatus
    from worker.slow_worker.wiring import assemble_worker, new_owner

    address = given.settings.runtime.db
    async with open_for_run(address, run) as (_, record):
        pass  # before anything is written to its store
    in_force = reflecting_settings(record, given)
    clock: Clock = SystemClock() if moment is None else SimulatedClock(moment)
    shown: list[str] = []
    sinks = [_sink(record.run_id, clock, shown, logs, json=json, quiet=QUIET_ONCE if once else frozenset())]
    note = _all_of(sinks)
    goes_on = record.mode == "paper" and record.status == "running"
    symbols = record.data["symbols"]
    asking = nullcontext() if goes_on else judge_models(in_force, symbols, os.environ, clock, note)
    async with await open_for_writing(address) as store, asking as models:
        owner, slots = new_owner(), RunOfSlots(record.run_id, in_force)
        around = WorkerContext(store, slots, clock, note, owner, int(3_000 * period_s))
        made = assemble_worker(around, traded=goes_on, models=models)
        if once:
            return await _look_once(made, store, record, in_force, clock, note, shown)
        status = await SlowLoopStatus.of_run(store, record, in_force, owner, clock)
        sinks.append(status.note)
        note = OutageLog(note).hear
        return await _operate(made, status, sinks, note, prepared, beside, period_s, store.leases.probe)


async def _operate(
    made: "Looks",
    status: "SlowLoopStatus",
    sinks: "list[EventSink]",
    note: "EventSink",
    prepared: "Prepared",
    beside: "Companion | None",
    period_s: float,
    probe: Callable[[], Awaitable[None]],
) -> int:
    from worker.operations.alerts import of_worker
    from worker.operations.monitoring import operate, watch_store
    from worker.slow_worker.status import StatusFromEvents

    now = status.status()
    console = nullcontext() if beside is None else beside.around(status, now.run_id)
    async with operate(prepared, status, now.run_id, now.mode) as operations, console:

        def tell(name: str, fields: dict[str, Any]) -> None:
            operations.notifier.tell(of_worker(name, fields, time.time_ns()))

        sinks.append(tell)
        watching = asyncio.create_task(watch_store(probe, note, lambda: status.away_since))
        try:
            return await _serve(StatusFromEvents(made, status, note), note, period_s)
        except StoreError as error:
            note("worker_died", {"reason": str(error)})
            raise
        finally:
            watching.cancel()
            await asyncio.wait({watching})


async def _look_once(
    made: "Looks",
    store: "Store",
    record: "RunRecord",
    settings: Settings,
    clock: "Clock",
    note: "EventSink",
    shown: list[str],
) -> int:
    from services.statistics.slots import last_slot, next_slot
    from worker.slow_worker.ports import JOB

    try:
        await made.look()
    finally:
        await made.close()
    if not TEXTS.keys() & set(shown) and "standing_by" not in shown:
        interval = settings.high_level.interval_for(record.data["timeframe"])
        claimed = await store.claims.newest_state(record.run_id, JOB)
        slots = {"slot": last_slot(clock.now, interval), "next_slot": next_slot(clock.now, interval)}
        note("nothing_due", {**slots, "newest_decided": claimed.newest})
    return 0


async def _serve(made: "Looks", note: "EventSink", period_s: float) -> int:
    from worker.slow_worker.service import StopSignals, serve
    from worker.slow_worker.waker import HeartbeatLost

    stop = StopSignals()
    stop.listen()
    try:
        return await serve(made, stop, note, period_s=period_s)
    except (HeartbeatLost, InvariantViolation) as error:
        note("worker_died", {"reason": str(error)})
        complain(f"{type(error).__name__}: {error}")
        return 1


def _all_of(sinks: "list[EventSink]") -> "EventSink":
    def note(name: str, fields: dict[str, Any]) -> None:
        for sink in sinks:
            sink(name, fields)

    return note


def _sink(
    run_id: str, clock: "Clock", messages: list[str], logs: "Logging", *, json: bool, quiet: frozenset[str]
) -> "EventSink":
    from worker.operations.logs import level_of, logger

    log = logger("worker", run_id=run_id)

    def note(name: str, fields: dict[str, Any]) -> None:
        messages.append(name)
        if not json and name in quiet:
            return
        shown = json or name in TEXTS
        log.log(level_of(name), name, shown_on_stdout=shown, **fields)
        if json:
            event = logs.redactor.value({"event": name, "at": clock.now, "run_id": run_id, **fields})
            print_json_line(json_text.dumps(event, ensure_ascii=False, allow_nan=False))
            sys.stdout.flush()
        elif shown:
            line = f"{shown_time(clock.now // 10**9 * 10**9):<20}  {run_id}  {describe_event(name, fields)}"
            print_line(logs.redactor.text(line))

    return note
