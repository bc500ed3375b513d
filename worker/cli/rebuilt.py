"""Runs that commands ask about after they are over, and those that go on and are asked by a request."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from schemas.errors import ConfigError
from services.journal.index import JournalIndex
from services.model_calls.quoting import visible
from worker.cli import wiring
from worker.cli.options import open_for_run, open_for_writing, operator_name, store_address
from worker.cli.out_folder import entry_beside
from worker.cli.progress import progress_bar, told_rows
from worker.cli.wiring import features_of, load_bars
from worker.feeds.selected_bars import FRAME, settings_of_bars
from worker.runs.interrupts import Interrupts
from worker.runs.kept_run import demand_no_own_parts, kept_bars, kept_playbooks
from worker.runs.replay import (
    BacktestScript,
    Replay,
    Script,
    demand_bars_of,
    is_of_this_version,
    stored_settings,
)
from worker.runs.store_run import Progress

if TYPE_CHECKING:
    from schemas.settings import Settings
    from services.store import RunRecord, Store
    from services.store.operator_requests import RequestKind
    from trading_core.bars import BarSeries
    from worker.pages.run_picture import RunPicture
    from worker.review.plan_making import PlanRequest
    from worker.runs.replay import Rebuilt
    from worker.runs.run_result import RunResult

PAPER = "paper"


@asynccontextmanager
async def open_to_write(db: str | None, run: str) -> "AsyncIterator[tuple[Store, RunRecord]]":
    """The store with every table, and the named run in it.

    Raises:
        ConfigError: there is no such store, or no such run in it; then nothing was made.
    """
    async with open_for_run(db, run, upgrades=True) as (_, record):
        pass
    async with await open_for_writing(store_address(db)) as store:
        yield store, record


def takes_requests(record: "RunRecord") -> bool:
    """Whether a process trades this run and is to be asked; a backtest that goes on is refused.

    Raises:
        ConfigError: a run of another mode is under way, or was left behind without an end.
    """
    if record.status != "running":
        return False
    if record.mode == PAPER:
        return True
    raise ConfigError(
        f"run {record.run_id} is a {record.mode} under way, or one that was killed: wait for its end, or "
        "name a run that is over (`thinktwice runs`)"
    )


def will_go_on(record: "RunRecord") -> bool:
    """Whether a run that was interrupted trades again when its command is given again."""
    return record.mode == PAPER and record.status == "interrupted"


def plan_request(record: "RunRecord", into: Path | None) -> "PlanRequest":
    """What is to be planned of a run: by the process that trades it, or into a folder once it is over.

    Raises:
        ConfigError: the run makes no plans; it is over and `into` is no place, or it trades and `into` is.
    """
    from services.playbooks.writing import demand_writable
    from worker.review.plan_making import PlanRequest

    settings = stored_settings(record)
    trades = takes_requests(record) or (will_go_on(record) and into is None)
    if not settings.plans.enabled:
        raise ConfigError(
            f"run {record.run_id} makes no plans (plans.enabled): turn it on and begin another run"
        )
    if trades and into is not None:
        raise ConfigError(f"run {record.run_id} trades: its playbooks change in it; leave out --into")
    if not trades and into is None:
        raise ConfigError(f"run {record.run_id} is over: --into DIR says where its playbooks are written")
    if into is not None:
        if visible(str(into)) != str(into):
            raise ConfigError(
                f"--into {str(into)!r} holds characters that cannot be seen: name another folder"
            )
        demand_writable(into, "--into")
    return PlanRequest(record, settings, trades, into, operator_name(None))


async def queue_request(
    store: "Store", record: "RunRecord", kind: "RequestKind", payload: dict[str, Any]
) -> dict[str, Any]:
    """The request with its number, and where its result will show."""
    number = await store.operator.put(record.run_id, kind, payload)
    return {
        "run_id": record.run_id,
        "request": number,
        "kind": kind,
        "payload": payload,
        "result": f"thinktwice requests {record.run_id}",
    }


def told_request(asked: dict[str, Any]) -> str:
    """A queued request in one line."""
    return (
        f"request {asked['request']} ({asked['kind']}) waits for run {asked['run_id']}: it is taken at the "
        f"next bar close, its result shows in `{asked['result']}`"
    )


async def rebuilt_run(
    store: "Store", record: "RunRecord", data: Path | None = None, at: int | None = None
) -> "Rebuilt":
    """The session of a run that is over as of a time, ns; None for its end.

    Raises:
        ConfigError: its bars cannot be found, or it does not replay as it was stored.
    """
    _demand_no_other_bars(record, data)
    script = await stored_script(store, record, stored_settings(record), data)
    with watch_replay(script) as progress:
        return await Replay(script, store, record).rebuild(at, progress)


async def stored_script(
    store: "Store", record: "RunRecord", settings: "Settings", data: Path | None = None
) -> Script:
    """What plays a stored run again, with the engine ready for it.

    Raises:
        NotPlayable: parts of it are in no store.
        ConfigError: its bars cannot be found.
    """
    demand_no_own_parts(record)
    definitions = kept_playbooks(record) or wiring.playbooks(settings)
    if record.mode == PAPER:  # it keeps what it took in: no bar file is needed
        wiring.ready_engine()
        from worker.live.replay import PaperScript

        return PaperScript(settings, store, record, definitions)
    bars = await _bars_of(store, record, settings, data)
    runner = await wiring.stored_runner(store, record)
    return BacktestScript(runner, settings, bars, store, record, definitions)


async def stored_picture(
    store: "Store", record: "RunRecord", data: Path | None = None, done: "RunResult | None" = None
) -> "RunPicture":
    """The picture of a run that is over: of a finished one from what is stored, else it is played again.

    Args:
        store: that holds its journal.
        record: the run.
        data: a file of its bars; None for the one that it names.
        done: the run itself, where it has just been made.

    Raises:
        NotPlayable: its bars are others, or parts of it are in no store.
        ConfigError: its bars cannot be found, or it does not replay as it was stored.
        StoreError: a row of it is not what was written.
    """
    from worker.review.pictured import picture_of, picture_of_rows
    from worker.slow_worker.ports import JOB

    bars = await traded_bars(store, record, data) if done is None else None
    if bars is None and done is None:
        from worker.runs.run_result import RunResult
        from worker.session import Timing

        done = RunResult((await rebuilt_run(store, record, data)).session, Timing())
    index = await JournalIndex.read(told_rows(store.journal.rows(record.run_id), record.events), lazily=True)
    if bars is None:
        picture = picture_of(record.run_id, record.status, cast("RunResult", done), index)
    else:
        picture = picture_of_rows(record, bars, index)
    told = await store.reports.all(record.run_id, JOB) if store.has_worker_tables else []
    return replace(picture, outside=tuple(entry_beside(report) for report in told))


async def traded_bars(store: "Store", record: "RunRecord", data: Path | None = None) -> "BarSeries | None":
    """The bars that a finished run traded, if everything else that its page needs is stored with it.

    None where its document is not there, was changed, or is of another version, and where its bars are not
    those of its document: then only the run played again says what it was.

    Raises:
        NotPlayable: its bars are others, or parts of it are in no store.
        ConfigError: its bars cannot be found, or its configuration was changed.
    """
    _demand_no_other_bars(record, data)
    demand_no_own_parts(record)
    settings = stored_settings(record)
    if record.document is None or record.status != "finished" or not is_of_this_version(record):
        return None
    if not await store.seals.is_covered(record.run_id) or await store.seals.problems(record.run_id):
        return None
    traded = record.document["data"]["sha256"]
    if record.mode == PAPER:
        bars = await kept_bars(store, record)
    else:
        bars = await _bars_of(store, record, settings, data)
        demand_bars_of(record, bars)
        if bars.sha256 != traded:  # some were left out
            from worker.runs.backtest import sifted_bars

            bars = sifted_bars(bars, settings.data).bars
    return bars if bars.sha256 == traded else None


async def _bars_of(
    store: "Store", record: "RunRecord", settings: "Settings", data: Path | None
) -> "BarSeries":
    kept = data is None and record.data.get("source") == FRAME
    _demand_file(record, data)
    return await kept_bars(store, record) if kept else load_bars(settings_of_bars(record, settings, data))


def _demand_no_other_bars(record: "RunRecord", data: Path | None) -> None:
    if record.mode == PAPER and data is not None:
        raise ConfigError(f"--data: run {record.run_id} traded on paper and keeps the bars that it took")


def _demand_file(record: "RunRecord", data: Path | None) -> None:
    path = record.data["path"]
    if data is None and path is not None and not Path(path).exists():
        raise ConfigError(
            f"run {record.run_id} was made of the bars in {path!r}, which is not there now: put it back, or "
            "tell a command where it lies (`--data FILE`)"
        )


@contextmanager
def watch_replay(script: Script) -> Iterator[Progress]:
    """The progress bar of a replay."""
    first = features_of(script.bars.symbols) if isinstance(script, BacktestScript) else ""
    with Interrupts() as interrupts, progress_bar("replay", interrupts, first=first) as progress:
        yield progress
