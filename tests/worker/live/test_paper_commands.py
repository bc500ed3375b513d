"""What an operator asks of a running process is done between two rows, journalled, and replayed."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from schemas.settings import Settings
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from services.journal.kinds import INPUT_KINDS
from services.store import Store, open_store
from services.store.operator_requests import OperatorRequest
from tests.docs.test_documented_contracts import documented_payloads
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import (
    RunningFeed,
    address,
    killed,
    read_requests,
    replayed,
    rows_of,
    rows_stored,
    traded,
    waiting_feed,
)
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.live.safe_mode import SafeModeReason
from worker.runs.replay import ReplayReport

ASK_AT, OFF_AT = 200, 300


def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2010-06-30").select(("AAPL", "IBM"))


class Asked:
    """A live run in which an operator asks for something at some rows.

    Args:
        requests: by row, what is put into the store before it is handed over.
    """

    def __init__(self, requests: dict[int, tuple[str, dict[str, Any]]], **named: Any) -> None:
        self.requests = requests
        self.named = named
        self.process: PaperProcess
        self.shown: list[tuple[str, dict[str, Any]]] = []
        self.answered = asyncio.Event()

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        self.shown.append((kind, detail))
        if kind == "operator_command":
            self.answered.set()

    async def between(self, number: int) -> None:
        if number == 0:
            return
        await self.process.traded.committing.caught_up()
        if number in self.requests:
            kind, payload = self.requests[number]
            self.answered.clear()
            await self.store.operator.put("r0001", kind, payload)  # type: ignore[arg-type]
            await asyncio.wait_for(self.answered.wait(), 20.0)

    async def trade(self, folder: Any, items: list[Any] | None = None) -> PaperOutcome:
        async with await open_store(address(folder), create=True) as self.store:
            feed = RunningFeed(bars(), self.between, items)
            around = NullMonitor(self.note)
            self.process = PaperProcess(
                ProcessInputs(Settings(), feed, self.store, "host:1:a", around, look_s=0.02, **self.named)
            )
            return await self.process.run("asked")


def positions_between(folder: Any, first: int, last: int) -> list[int]:
    labels = bars().times.tolist()
    rows = [json.loads(row.payload) for row in rows_stored(folder, "latest", "entry_filled")]
    return [
        labels.index(item["bar_label"]) for item in rows if first < labels.index(item["bar_label"]) <= last
    ]


def test_paper_kill_switch_flattens_and_blocks_until_it_is_off_again(tmp_path) -> None:
    requests = {ASK_AT: ("kill_switch", {"on": True}), OFF_AT: ("kill_switch", {"on": False})}
    live = Asked(requests)
    asyncio.run(live.trade(tmp_path))
    commands = [json.loads(row.payload) for row in rows_stored(tmp_path, "latest", "operator_command")]
    assert [command["payload"]["on"] for command in commands] == [True, False]
    assert positions_between(tmp_path, ASK_AT + 1, OFF_AT) == []
    assert positions_between(tmp_path, OFF_AT, bars().shape[0])

    async def answers(store: Store) -> list[str]:
        return [request.state for request in await store.operator.all("r0001")]

    assert read_requests(tmp_path, answers) == ["done", "done"]
    report = replayed(tmp_path, Settings())
    assert (report.ok, report.problem) == (True, None)


@dataclass(frozen=True)
class Heard:
    """A run that was told of anomalies and asked for a rollback and a replan, and its replay."""

    folder: Any
    label: int
    outcome: PaperOutcome
    report: ReplayReport

    def answer(self, kind: str) -> OperatorRequest:
        """The only request of a kind, answered."""

        async def answers(store: Store) -> list[OperatorRequest]:
            return await store.operator.all("r0001")

        every: list[OperatorRequest] = read_requests(self.folder, answers)
        (found,) = [request for request in every if request.kind == kind]
        return found


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    folder = tmp_path_factory.mktemp("heard")
    items: list[Any] = list(rows_of(bars()))
    label = items[120].label
    early = FeedAnomaly(FeedAnomalyKind.RECONNECTED, None, None, {"after": 1})
    late = FeedAnomaly(FeedAnomalyKind.DUPLICATE, "AAPL", label, {"bars": 1}, {"skew_ms": 3.5})
    live = Asked(
        {ASK_AT: ("rollback", {"playbook_id": "mean_reversion"}), OFF_AT: ("replan", {"report_id": None})}
    )
    outcome = asyncio.run(live.trade(folder, [early, *items[:150], late, *items[150:]]))
    return Heard(folder, label, outcome, replayed(folder, Settings()))


def test_paper_rollback_with_nothing_to_roll_back_is_refused_and_says_why(heard) -> None:
    answer = heard.answer("rollback")
    assert answer.state == "refused"
    assert "nothing different to roll back to" in answer.result["reason"]
    assert heard.outcome.document is not None
    assert heard.report.ok


def test_paper_replan_request_reflects_asks_the_judge_and_replays(heard) -> None:
    answer = heard.answer("replan")
    assert answer.state == "done"
    verdicts = [json.loads(row.payload) for row in rows_stored(heard.folder, "latest", "replan_verdict")]
    assert [verdict["verdict_id"] for verdict in verdicts] == [answer.result["verdict_id"]]
    assert heard.outcome.document["high_level"]["runs"] == 1
    assert (heard.report.ok, heard.report.problem) == (True, None)


def test_paper_stop_request_ends_the_process_and_the_run_goes_on_later(tmp_path) -> None:
    live = Asked({ASK_AT: ("stop", {})})
    outcome = asyncio.run(live.trade(tmp_path))
    assert outcome.stopped == "the operator's request"
    assert outcome.record.status == "interrupted"
    assert outcome.document is None
    again = asyncio.run(Asked({}).trade(tmp_path))
    assert again.record.run_id == "r0001"
    assert again.record.status == "finished"
    assert again.document is not None
    assert again.document["data"]["bars"] == bars().bar_count
    assert replayed(tmp_path, Settings()).ok


def test_paper_process_after_too_many_crashes_enters_nothing_before_the_operator_says_so(tmp_path) -> None:
    async def too_often(run_id: str) -> bool:
        return True

    live = Asked({ASK_AT: ("kill_switch", {"on": False})}, crashed_too_often=too_often)
    asyncio.run(live.trade(tmp_path))
    entered = [detail for kind, detail in live.shown if kind == "safe_mode"]
    assert [payload["change"] for payload in entered] == ["entered", "left"]
    assert entered[0]["reason"] == SafeModeReason.CRASH_LOOP
    assert positions_between(tmp_path, -1, ASK_AT) == []
    assert positions_between(tmp_path, ASK_AT, bars().shape[0])
    assert replayed(tmp_path, Settings()).ok


def test_paper_anomalies_are_journalled_where_they_came_and_replayed_there(heard) -> None:
    rows = rows_stored(heard.folder, "latest", "feed_anomaly")
    assert [json.loads(row.payload)["anomaly"] for row in rows] == ["reconnected", "duplicate"]
    assert json.loads(rows[1].telemetry) == {"skew_ms": 3.5}
    assert json.loads(rows[1].payload)["bar_label"] == heard.label
    assert rows[1].known_at == int(bars().close_times[149])
    assert (heard.report.ok, heard.report.problem) == (True, None)


@pytest.mark.parametrize("kind", sorted(INPUT_KINDS - {"report_arrived"}))
def test_paper_inputs_have_the_fields_that_the_page_gives(tmp_path_factory, kind) -> None:
    folder = _run_with_every_input(tmp_path_factory)
    rows = rows_stored(folder, "latest", kind)
    assert rows
    assert {frozenset(json.loads(row.payload)) for row in rows} == {frozenset(documented_payloads()[kind][0])}


_MADE: dict[str, Any] = {}


def _run_with_every_input(factory: Any) -> Any:
    if "folder" not in _MADE:
        _MADE["folder"] = factory.mktemp("inputs")
        items: list[Any] = list(rows_of(bars()))[:ASK_AT]
        items.insert(100, FeedAnomaly(FeedAnomalyKind.LATE, "IBM", items[50].label, {}))
        asyncio.run(Asked({150: ("kill_switch", {"on": True})}).trade(_MADE["folder"], items))
    return _MADE["folder"]


def test_paper_command_that_was_carried_out_before_a_crash_is_not_carried_out_again(tmp_path) -> None:
    feed = waiting_feed(bars())
    assert killed(tmp_path, Settings(), feed, "committed", 60)

    async def ask(store: Store) -> int:
        return await store.operator.put("r0001", "kill_switch", {"on": True})

    read_requests(tmp_path, ask)
    # In lock-step a request is fetched by time; it is carried out at some row, then the process dies.
    outcome = traded(tmp_path, Settings(), feed, look_s=0.001)
    assert outcome.document is not None
    commands = rows_stored(tmp_path, "latest", "operator_command")
    assert len(commands) == 1
    assert replayed(tmp_path, Settings()).ok
