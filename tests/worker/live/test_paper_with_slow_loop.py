"""Trading loop and slow loop in one process: reports reach the judge through the inbox, once each."""

import asyncio
import json
from functools import cache
from typing import Any

from typer.testing import CliRunner

from schemas.settings import RuntimeSettings, Settings
from services.statistics.slots import last_slot
from services.store import Store, open_store
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import RunningFeed, address, read_requests, replayed, rows_stored
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from worker.cli.app import app
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.live.with_slow_loop import WithSlowLoop
from worker.slow_worker.ports import JOB

PAUSE_ROWS = 60  # between two pauses in which the slow loop gets its turn


@cache
def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2010-09-30")


class BarClock:
    """The slow loop's present: the close of the last bar that the trading loop has stored."""

    def __init__(self) -> None:
        self.process: PaperProcess | None = None

    @property
    def now(self) -> int:
        """Ns."""
        process = self.process
        if process is None or not hasattr(process, "traded") or not process.traded.stepper.begun:
            return int(bars().close_times[0])
        return process.traded.stepper.session.clock.now


async def trade(folder: Any, shown: list[tuple[str, dict[str, Any]]]) -> PaperOutcome:
    clock, happened = BarClock(), asyncio.Event()
    settings = Settings(runtime=RuntimeSettings(db=address(folder)))

    def note(kind: str, detail: dict[str, Any]) -> None:
        shown.append((kind, detail))
        happened.set()

    def decided(slot: int) -> bool:
        slots = [entry["slot"] for kind, entry in shown if kind in ("slot_skipped", "report_written")]
        return max(slots, default=0) >= slot

    def heard(process: PaperProcess) -> bool:
        written = sum(kind == "report_written" for kind, _ in shown)
        return process.traded.stepper.session.slow_loop.counters.runs == written

    async def between(number: int) -> None:
        process = clock.process
        if number == 0 or process is None:
            return
        await process.traded.committing.caught_up()
        if number % PAUSE_ROWS == 0:
            slot = last_slot(clock.now, "weekly")
            while not (decided(slot) and heard(process)):
                happened.clear()
                await asyncio.wait_for(happened.wait(), 240.0)

    async with await open_store(address(folder), create=True) as store:
        around = WithSlowLoop(NullMonitor(note), store, settings, "host:1:a", 0.1, note_died(shown), clock)
        process = clock.process = PaperProcess(
            ProcessInputs(settings, RunningFeed(bars(), between), store, "host:1:a", around, look_s=0.05)
        )
        return await process.run("everything")


def note_died(shown: list[tuple[str, dict[str, Any]]]) -> Any:
    return lambda why: shown.append(("died", {"why": why}))


async def _reports(store: Store) -> list[Any]:
    return await store.reports.all((await store.runs.find("latest")).run_id, JOB)


def test_paper_with_slow_loop_hears_each_report_once_and_replays(tmp_path) -> None:
    messages: list[tuple[str, dict[str, Any]]] = []
    outcome = asyncio.run(trade(tmp_path, messages))
    assert outcome.document is not None
    assert outcome.document["errors"] == 0
    assert "died" not in [kind for kind, _ in messages]
    written = [entry["report_id"] for kind, entry in messages if kind == "report_written"]
    arrived = [json.loads(row.payload) for row in rows_stored(tmp_path, "latest", "report_arrived")]
    heard = [item["report_id"] for item in arrived]
    assert heard
    assert heard == written[: len(heard)], "in order, each once"
    verdicts = [json.loads(row.payload) for row in rows_stored(tmp_path, "latest", "replan_verdict")]
    assert [verdict["report_id"] for verdict in verdicts] == heard
    requests = [json.loads(row.payload) for row in rows_stored(tmp_path, "latest", "high_level_request")]
    assert any(request["request"]["untraded_signals"] for request in requests), (
        "resolved on the bars of the run"
    )
    stored = read_requests(tmp_path, _reports)
    delivered = [claim for claim in stored if claim.verdict is not None]
    assert {item.report_id for item in delivered} <= set(heard)
    assert len(delivered) >= len(heard) - 1, "the last one may be acknowledged by the next process"
    report = replayed(tmp_path, Settings())
    assert (report.ok, report.problem) == (True, None)
    shown = CliRunner().invoke(app, ["reports", "--db", address(tmp_path), "--json"], catch_exceptions=False)
    slots = [slot for slot in json.loads(shown.stdout)["slots"] if slot["report_id"] in heard]
    assert {slot["by"] for slot in slots} == {"worker"}, "also once the run has heard of them"
    assert all(slot["epoch"] and slot["facts"] for slot in slots)
    assert {slot["delivery"] for slot in slots} == {"delivered"}
    assert len(slots) == len(heard)
