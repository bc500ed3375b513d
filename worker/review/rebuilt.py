"""Runs that are over, played again for the commands that ask about them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from schemas.errors import ConfigError
from services.journal.index import JournalIndex
from worker.feeds.selected_bars import FRAME, settings_of_bars
from worker.review.run_requests import PAPER
from worker.runs import run_inputs
from worker.runs.interrupts import Interrupts
from worker.runs.kept_run import demand_no_own_parts, kept_bars, kept_playbooks
from worker.runs.out_folder import attached_entry
from worker.runs.progress import Progress, progress_bar, told_rows
from worker.runs.readiness import ready_engine
from worker.runs.replay import BacktestScript, Replay, Script, demand_bars_of
from worker.runs.run_inputs import describe_features, load_bars
from worker.runs.store_run import BacktestRunner
from worker.runs.stored_settings import is_of_this_version, stored_settings

if TYPE_CHECKING:
    from schemas.settings import Settings
    from services.store import RunRecord, Store
    from trading_core.bars import BarSeries
    from worker.pages.run_picture import RunPicture
    from worker.runs.replay import Rebuilt
    from worker.runs.run_result import RunResult


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
        NotReplayable: parts of it are in no store.
        ConfigError: its bars cannot be found.
    """
    demand_no_own_parts(record)
    definitions = kept_playbooks(record) or run_inputs.playbooks(settings)
    if record.mode == PAPER:  # it keeps what it took in: no bar file is needed
        ready_engine()
        from worker.live.replay import PaperScript

        return PaperScript(settings, store, record, definitions)
    bars = await _bars_of(store, record, settings, data)
    runner = await _runner_of(store, record)
    return BacktestScript(runner, settings, bars, store, record, definitions)


async def _runner_of(store: "Store", record: "RunRecord") -> BacktestRunner:
    if record.mode != "ablation":
        return run_inputs.backtest_runner()
    from worker.studies.ablation.runner import runner_of

    return await runner_of(store, record)


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
        NotReplayable: its bars are others, or parts of it are in no store.
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
    shown = await store.reports.all(record.run_id, JOB)
    return replace(picture, outside=tuple(attached_entry(report) for report in shown))


async def traded_bars(store: "Store", record: "RunRecord", data: Path | None = None) -> "BarSeries | None":
    """The bars that a finished run traded, if everything else that its page needs is stored with it.

    None where its document is not there, was changed, or is of another version, and where its bars are not
    those of its document: then only the run played again says what it was.

    Raises:
        NotReplayable: its bars are others, or parts of it are in no store.
        ConfigError: its bars cannot be found, or its configuration was changed.
    """
    _demand_no_other_bars(record, data)
    demand_no_own_parts(record)
    settings = stored_settings(record)
    if record.document is None or record.status != "finished" or not is_of_this_version(record):
        return None
    if await store.seals.problems(record.run_id):
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
    if kept:
        return await kept_bars(store, record)
    return load_bars(settings_of_bars(record, settings, data), lambda note: None)  # the run has said it


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
    first = describe_features(script.bars.symbols) if isinstance(script, BacktestScript) else ""
    with Interrupts() as interrupts, progress_bar("replay", interrupts, first=first) as progress:
        yield progress
