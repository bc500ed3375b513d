"""A feed that runs on: the engine waits for nobody, answers arrive, and the journal says when."""

import asyncio
import json
import logging
from functools import cache
from typing import Any

import pytest

from schemas.errors import ConfigError, StoreError
from schemas.settings import MemorySettings, Settings
from services.memory.episode_memory import MemoryView
from services.store import Store, open_store
from services.store.repository import LeaseLost
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import (
    KillAt,
    Killed,
    RunningFeed,
    address,
    replayed,
    rows_stored,
)
from tests.worker.shared_runs import embedded_bars
from tests.worker.test_session_with_a_model import FULL, AnsweringModel
from tests.worker.wire import AGREES
from trading_core.bars import BarSeries
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.models import Models
from worker.operations.logs import level_of

TURNS = 4  # of the event loop between two rows: enough for answers that wait for nothing


@cache
def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2010-03-31").select(("AAPL", "IBM"))


class Live:
    """One live run of a test.

    Args:
        later: rows that the market goes on while somebody thinks.
        settings: of the run.
        points: where it dies.
        models: whom it asks.
    """

    def __init__(
        self, later: int = 0, settings: Settings | None = None, points: Any = None, models: Any = None
    ) -> None:
        self.settings = settings or Settings()
        self.points = points
        self.models = models
        self.later = later
        self.taken = 0
        self.rows = asyncio.Condition()
        self.shown: list[tuple[str, dict[str, Any]]] = []
        self.process: PaperProcess
        self.store: Store
        self.patched = False
        self.waited = 0

    async def between(self, number: int) -> None:
        """The market goes on by one row; whoever waits for it is told."""
        if self.later and not self.patched and self.process.traded.stepper.begun:
            self._slow_down()
        self.taken = number
        async with self.rows:
            self.rows.notify_all()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if number and self.process.traded.committing.away_since is None:
            await self.process.traded.committing.caught_up()  # a real bar takes longer than the store

    def _slow_down(self) -> None:
        provider: Any = self.process.traded.stepper.session.policy_loop.provider
        provide = provider.provide

        async def late(*args: Any, **named: Any) -> Any:
            until = min(self.taken + self.later, bars().shape[0] - 2)
            async with self.rows:
                await self.rows.wait_for(lambda: self.taken >= until)
            self.waited += 1
            return await provide(*args, **named)

        provider.provide = late
        self.patched = True

    async def trade(self, folder: Any, feed: RunningFeed | None = None) -> PaperOutcome:
        async with await open_store(address(folder), create=True) as self.store:
            self.process = PaperProcess(
                ProcessInputs(
                    self.settings,
                    feed or RunningFeed(bars(), self.between),
                    self.store,
                    "host:1:a",
                    NullMonitor(lambda kind, detail: self.shown.append((kind, detail))),
                    points=self.points,
                    models=self.models,
                    look_s=0.02,
                )
            )
            return await self.process.run("live")


def payloads(folder: Any, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row.payload) for row in rows_stored(folder, "latest", kind)]


def test_paper_live_run_that_begins_says_its_id_and_what_it_follows(tmp_path) -> None:
    first = Live(points=KillAt("validated", 20))
    with pytest.raises(Killed):
        asyncio.run(first.trade(tmp_path))
    answer = {"run_id": "r0001", "feed": "running", "path": None, "symbols": ["AAPL", "IBM"]}
    assert [detail for kind, detail in first.shown if kind == "following"] == [answer]
    assert level_of("following") == logging.INFO
    again = Live()
    asyncio.run(again.trade(tmp_path))
    kinds = [kind for kind, _detail in again.shown]
    assert ("following" in kinds, "recovered" in kinds) == (False, True)


def test_paper_live_answers_are_journalled_with_their_bar_and_the_run_replays_to_its_hash(tmp_path) -> None:
    live = Live()
    outcome = asyncio.run(live.trade(tmp_path))
    arrived = payloads(tmp_path, "answer_arrived")
    evaluated = payloads(tmp_path, "policy_evaluation")
    assert [event["event_id"] for event in arrived] == [event["event_id"] for event in evaluated]
    assert len(arrived) > 50
    assert outcome.document is not None
    assert outcome.document["errors"] == 0
    assert outcome.document["performance"]["trades"] > 3
    report = replayed(tmp_path, live.settings)
    assert (report.ok, report.problem) == (True, None)
    assert report.head_hash == outcome.record.head_hash


@pytest.mark.parametrize(("later", "stale"), [(1, False), (3, True)])
def test_paper_live_answer_after_more_than_its_bars_is_stale_and_never_trades(tmp_path, later, stale) -> None:
    live = Live(later)
    outcome = asyncio.run(live.trade(tmp_path))
    assert live.waited > 20, "somebody has to be late for this to mean something"
    arrived = payloads(tmp_path, "answer_arrived")
    outcomes = [payload["outcome"] for payload in payloads(tmp_path, "policy_evaluation")]
    assert max(entry["bars_later"] for entry in arrived) >= later
    late = [how for how, entry in zip(outcomes, arrived, strict=True) if entry["bars_later"] > 1]
    assert set(late) == ({"stale"} if late else set())
    assert bool(late) == stale or later == 1
    assert ("frozen" in outcomes) or stale
    assert outcome.document is not None
    assert outcome.document["errors"] == 0
    report = replayed(tmp_path, live.settings)
    assert (report.ok, report.problem) == (True, None)


def test_paper_live_run_killed_with_an_answer_on_its_way_asks_again_and_replays(tmp_path) -> None:
    first = Live(2, points=KillAt("validated", 180))
    with pytest.raises(Killed):
        asyncio.run(first.trade(tmp_path))
    second = Live(1)
    outcome = asyncio.run(second.trade(tmp_path))
    assert outcome.record.run_id == "r0001"
    assert outcome.document is not None
    assert outcome.document["data"]["bars"] == bars().bar_count
    questions = [
        payload["event_id"] for payload in payloads(tmp_path, "policy_event") if payload["evaluated"]
    ]
    answered = [payload["event_id"] for payload in payloads(tmp_path, "answer_arrived")]
    assert sorted(questions) == sorted(answered), "no evaluation is lost and none is answered twice"
    report = replayed(tmp_path, second.settings)
    assert (report.ok, report.problem) == (True, None)


def test_paper_live_retrieval_over_its_budget_is_degraded_and_the_replay_measures_nothing(
    tmp_path, monkeypatch
) -> None:
    live = Live(settings=Settings(memory=MemorySettings(budget_ms=1e-9)))
    outcome = asyncio.run(live.trade(tmp_path))
    assert outcome.document is not None
    assert outcome.document["memory"]["degraded"] > 0
    late = [payload for payload in payloads(tmp_path, "answer_arrived") if payload["late_retrievals"]]
    assert late
    monkeypatch.setattr(MemoryView, "_elapsed_ms", lambda self, started: 0.0)
    report = replayed(tmp_path, live.settings)
    assert (report.ok, report.problem) == (True, None)


def test_paper_live_store_that_is_away_blocks_entries_and_loses_nothing(tmp_path) -> None:
    live, away = Live(), range(150, 230)
    between = live.between

    async def fail(*args: Any) -> None:
        raise StoreError("away", retryable=True)

    async def with_an_outage(number: int) -> None:
        trading: Any = live.store.trading
        if number == away.start:
            trading.commit = fail
        if number == away.stop:
            del trading.commit
            committing = live.process.traded.committing
            while committing.away_since is not None:  # noqa: ASYNC110 - seen from outside only
                await asyncio.sleep(0.01)
        await between(number)

    outcome = asyncio.run(live.trade(tmp_path, RunningFeed(bars(), with_an_outage)))
    assert [kind for kind, _ in live.shown if kind.startswith("store")] == ["store_away", "store_back"]
    blocked = payloads(tmp_path, "entries_blocked")
    assert [set(entry["blocked"].values()) for entry in blocked[:2]] == [{"safe mode: store_away"}, set()]
    labels = bars().times.tolist()
    first, last = (labels.index(entry["bar_label"]) for entry in blocked[:2])
    assert first <= away.start + 3
    assert last >= away.stop - 1
    taken = [labels.index(payload["bar_label"]) for payload in payloads(tmp_path, "order_accepted")]
    assert taken
    assert not [row for row in taken if first <= row < last], "no entry while nothing can be kept"
    assert outcome.document is not None
    assert outcome.document["data"]["bars"] == bars().bar_count
    report = replayed(tmp_path, live.settings)
    assert (report.ok, report.problem) == (True, None)


@pytest.mark.usefixtures("over_the_cap")
def test_paper_live_run_with_a_model_is_killed_and_goes_on_without_asking_again(tmp_path) -> None:
    first, second = AnsweringModel(json.dumps(AGREES)), AnsweringModel(json.dumps(AGREES))
    dying = Live(1, FULL, KillAt("validated", 250), Models(fast=first, slow=first))
    with pytest.raises(Killed):
        asyncio.run(dying.trade(tmp_path))
    recorded = len(rows_stored(tmp_path, "latest", "model_call"))
    assert recorded > 5
    going_on = Live(1, FULL, models=Models(fast=second, slow=second))
    outcome = asyncio.run(going_on.trade(tmp_path))
    calls = len(rows_stored(tmp_path, "latest", "model_call"))
    assert len(second.prompts) == calls - recorded > 5, "what was answered is played, not asked"
    assert outcome.document is not None
    assert outcome.document["errors"] == 0
    assert outcome.document["model"]["calls"] == calls
    report = replayed(tmp_path, FULL)
    assert (report.ok, report.problem) == (True, None)


@pytest.mark.usefixtures("over_the_cap")
def test_paper_live_run_that_records_goes_on_with_its_cassette_and_verify_leaves_it_alone(tmp_path) -> None:
    tape = tmp_path / "tape.jsonl"
    runtime = FULL.runtime.model_copy(update={"llm": "record", "cassette": str(tape)})
    settings = FULL.model_copy(update={"runtime": runtime})
    first, second = AnsweringModel(json.dumps(AGREES)), AnsweringModel(json.dumps(AGREES))
    dying = Live(1, settings, KillAt("validated", 250), Models(fast=first, slow=first))
    with pytest.raises(Killed):
        asyncio.run(dying.trade(tmp_path))
    lost = len(tape.read_text("utf-8").splitlines()) - len(rows_stored(tmp_path, "latest", "model_call"))
    assert lost >= 0
    asyncio.run(Live(1, settings, models=Models(fast=second, slow=second)).trade(tmp_path))
    recorded = tape.read_text("utf-8")
    calls = [json.loads(row.payload)["call"] for row in rows_stored(tmp_path, "latest", "model_call")]
    assert [json.loads(line)["payload"]["call"] for line in recorded.splitlines()] == calls
    assert replayed(tmp_path, settings).ok
    assert tape.read_text("utf-8") == recorded
    tape.unlink()
    assert replayed(tmp_path, settings).ok
    assert not tape.exists()


def test_paper_run_that_is_new_does_not_record_into_a_file_that_is_there(tmp_path) -> None:
    tape = tmp_path / "tape.jsonl"
    tape.write_text("somebody else's\n", "utf-8")
    runtime = FULL.runtime.model_copy(update={"llm": "record", "cassette": str(tape)})
    settings = FULL.model_copy(update={"runtime": runtime})
    model = AnsweringModel(json.dumps(AGREES))
    with pytest.raises(ConfigError, match="exists"):
        asyncio.run(Live(0, settings, models=Models(fast=model, slow=model)).trade(tmp_path))
    assert tape.read_text("utf-8") == "somebody else's\n"


def test_paper_live_stop_while_the_store_is_away_says_what_is_not_stored_and_ends(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("worker.live.traded_run.STOP_S", 0.2)
    live = Live()
    between = live.between

    async def fail(*args: Any) -> None:
        raise StoreError("away", retryable=True)

    async def stopped_in_an_outage(number: int) -> None:
        trading: Any = live.store.trading
        if number == 150:
            trading.commit = fail
        if number == 160:
            live.process.stop("SIGTERM")
        await between(number)

    with pytest.raises(StoreError, match="rows of bars are not stored"):
        asyncio.run(live.trade(tmp_path, RunningFeed(bars(), stopped_in_an_outage)))
    outcome = asyncio.run(Live().trade(tmp_path))
    assert outcome.document is not None
    assert outcome.document["data"]["bars"] == bars().bar_count
    assert replayed(tmp_path, Settings()).ok


def test_paper_live_process_that_lost_its_run_ends_though_no_bar_comes(tmp_path) -> None:
    live = Live()
    between = live.between

    async def taken_over(*args: Any) -> None:
        raise LeaseLost("another process trades it")

    async def silent_market(number: int) -> None:
        trading: Any = live.store.trading
        if number == 100:
            trading.commit = taken_over
        if number == 101:
            await asyncio.Event().wait()
        if number != 101:
            await between(number)

    async def trade() -> None:
        await asyncio.wait_for(live.trade(tmp_path, RunningFeed(bars(), silent_market)), 20.0)

    with pytest.raises(LeaseLost):
        asyncio.run(trade())
