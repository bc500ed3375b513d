"""How a run ends and passes on: its end is stored once and by its owner, whoever dies or waits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import cache
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from schemas.errors import FeedError, StoreError
from schemas.settings import Settings
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from services.store import Store, open_store
from services.store.records import Closing
from services.store.repository import LeaseLost
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import (
    Killed,
    RunningFeed,
    address,
    killed,
    process_in,
    read_requests,
    replayed,
    rows_of,
    rows_stored,
    traded,
    waiting_feed,
)
from tests.worker.live.virtual_time import run_virtually
from tests.worker.shared_runs import run_on
from trading_core.bars import BarSeries
from worker.cli.app import app
from worker.feeds.sample_data.worlds import make_world
from worker.live.committer import CLOSED
from worker.live.process import PaperProcess, Polling
from worker.live.process_inputs import ProcessInputs
from worker.live.run_selection import lease_name
from worker.live.traded_run import StopRequest

LOOK_S = 0.01


@cache
def bars() -> BarSeries:
    return make_world("reverting", seed=3, bars=160, symbols=2)


@cache
def head_of_the_backtest() -> str:
    return str(run_on(bars()).document["journal"]["head_hash"])


async def record(store: Store) -> Any:
    return await store.runs.find("latest")


def finished_as_the_backtest(folder: Any) -> None:
    found = read_requests(folder, record)
    assert (found.run_id, found.status) == ("r0001", "finished")
    assert found.head_hash == head_of_the_backtest()
    assert found.document["journal"]["head_hash"] == found.head_hash
    report = replayed(folder, Settings())
    assert (report.ok, report.problem) == (True, None)
    assert [row.kind for row in rows_stored(folder)].count("run_finished") == 1


def with_commit(store: Store, wrapped: Any) -> None:
    """Put something around the transactions of a store."""
    trading: Any = store.trading
    commit = trading.commit

    async def around(
        lease: Any, run_id: str, bars: Any, rows: Any, closing: Closing | None, counts: Any
    ) -> None:
        await wrapped(closing, lambda: commit(lease, run_id, bars, rows, closing, counts))

    trading.commit = around


def traded_around(folder: Any, wrapped: Any, **named: Any) -> Any:
    """A process whose transactions are wrapped."""

    async def run() -> Any:
        async with await open_store(address(folder), create=True) as store:
            with_commit(store, wrapped)
            return await process_in(store, Settings(), waiting_feed(bars()), [], **named)

    return asyncio.run(run())


def test_paper_process_killed_behind_its_last_transaction_leaves_a_run_that_is_over(tmp_path) -> None:
    assert killed(tmp_path, Settings(), waiting_feed(bars()), CLOSED, 1)
    finished_as_the_backtest(tmp_path)

    async def unsent(store: Store) -> int:
        return len(await store.trading.list_unacknowledged("r0001"))

    assert read_requests(tmp_path, unsent) == 0, "orders leave before the run is closed"


def test_paper_process_killed_before_its_last_transaction_closes_the_run_when_it_goes_on(tmp_path) -> None:
    async def dies(closing: Closing | None, commit: Any) -> None:
        if closing is not None:
            raise Killed("before the end is stored")
        await commit()

    with pytest.raises(Killed):
        traded_around(tmp_path, dies)
    assert read_requests(tmp_path, record).status == "running"
    traded(tmp_path, Settings(), waiting_feed(bars()))
    finished_as_the_backtest(tmp_path)


def test_paper_end_that_is_stored_though_nobody_was_told_is_stored_once(tmp_path) -> None:
    lost: list[str] = []

    async def unheard(closing: Closing | None, commit: Any) -> None:
        await commit()
        if closing is not None and len(lost) < 2:
            lost.append(closing.status)
            raise StoreError("the answer was lost", retryable=True)

    traded_around(tmp_path, unheard)
    assert lost == ["finished", "finished"]
    finished_as_the_backtest(tmp_path)


AWAY = "'bars.csv' has been away for 60 s: put it back"


class LeavingFeed(RunningFeed):
    """A feed that goes away after so many rows, says so, and then refuses."""

    def __init__(self, rows: int, *, lock_step: bool) -> None:
        gone = FeedAnomaly(FeedAnomalyKind.DISCONNECTED, None, None, {"reason": "No such file"})
        super().__init__(bars(), items=[*list(rows_of(bars()))[:rows], gone])
        self.lock_step = lock_step

    async def items(self, after: int | None) -> AsyncIterator[Any]:
        """As they are, then the refusal."""
        async for item in super().items(after):
            yield item
        raise FeedError(AWAY, retryable=True)


@pytest.mark.parametrize("lock_step", [True, False])
@pytest.mark.parametrize("count", [0, 100])
def test_paper_process_whose_feed_refuses_leaves_an_interrupted_run_that_says_why(
    tmp_path, count, lock_step
) -> None:
    with pytest.raises(FeedError, match="has been away"):
        traded(tmp_path, Settings(), LeavingFeed(count, lock_step=lock_step))
    assert read_requests(tmp_path, record).status == "interrupted"
    seen = read_requests(tmp_path, lambda store: store.trading.last_seen("r0001"))
    assert (seen.signs["state"], seen.signs["reason"]) == ("stopping", AWAY)
    text = CliRunner().invoke(app, ["status", "--db", address(tmp_path)], catch_exceptions=False).stdout
    assert "(paper, interrupted)" in text
    assert f"process    not running ({AWAY}), last seen" in text
    assert "feed       running is AWAY: " in text
    assert "without a word" not in text
    back = RunningFeed(bars())
    back.lock_step = lock_step
    traded(tmp_path, Settings(), back)
    found = read_requests(tmp_path, record)
    assert (found.run_id, found.status) == ("r0001", "finished")
    assert replayed(tmp_path, Settings()).ok


def test_paper_last_sign_says_that_nothing_waits_however_long_the_end_takes_to_store(tmp_path) -> None:
    async def slowly(closing: Closing | None, commit: Any) -> None:
        if closing is not None:
            await asyncio.sleep(10 * LOOK_S)  # the process looks around meanwhile
        await commit()

    traded_around(tmp_path, slowly, look_s=LOOK_S)
    seen = read_requests(tmp_path, lambda store: store.trading.last_seen("r0001"))
    assert (seen.signs["buffered_rows"], seen.signs["bars_validated"]) == (0, bars().present.sum())


def test_paper_process_that_lost_its_lease_neither_closes_its_run_nor_speaks_for_it(tmp_path) -> None:
    async def scenario() -> tuple[str, Any]:
        async with await open_store(address(tmp_path), create=True) as store:
            name = lease_name("r0001")

            async def taken_over(number: int) -> None:
                if number == 100:
                    await process.traded.committing.caught_up()
                    held = await store.leases.holder(name)
                    assert held is not None
                    await store.leases.release(held)
                    new = await store.leases.take(name, "elsewhere:2:b", 60_000)
                    assert new is not None
                    await store.trading.say(new, "r0001", {"state": "running"})
                    process.stop("SIGTERM")

            process = PaperProcess(
                ProcessInputs(
                    Settings(),
                    RunningFeed(bars(), taken_over),
                    store,
                    "elsewhere:1:a",
                    NullMonitor(lambda *shown: None),
                )
            )
            with pytest.raises(LeaseLost):
                await process.run("lost")
            seen = await store.trading.last_seen("r0001")
            return (await record(store)).status, seen

    status, seen = asyncio.run(scenario())
    assert status == "running", "it is the other one's run"
    assert seen.owner == "elsewhere:2:b"


async def until(holds: Callable[[], Any]) -> None:
    """Look again and again until something holds; it may be something to await."""
    while True:
        found = holds()
        if await found if isawaitable(found) else found:
            return
        await asyncio.sleep(LOOK_S)


async def answered(store: Store) -> int:
    """How many requests have their answer."""
    return sum(request.state != "waiting" for request in await store.operator.all("r0001"))


async def all_answered(store: Store) -> bool:
    return await answered(store) == len(await store.operator.all("r0001"))


class Successor:
    """Two processes for one run in one event loop: the second waits for the first."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        self.shown: list[tuple[str, Any]] = []

    def process(self, store: Store, owner: str, feed: Any) -> PaperProcess:
        return PaperProcess(ProcessInputs(
            Settings(), feed, store, owner, NullMonitor(lambda kind, shown: self.shown.append((kind, shown))),
            look_s=LOOK_S, lease_ms=60_000,
        ))  # fmt: skip

    async def waits(self) -> None:
        await until(lambda: "standing_by" in [kind for kind, _ in self.shown])


class HeldFeed:
    """Waits at a row until it is let go."""

    name = "running"
    lock_step = False

    def __init__(self, series: BarSeries, row: int) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self._row = row
        self._feed = RunningFeed(series, self._between)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    async def _between(self, number: int) -> None:
        if number == self._row:
            self.reached.set()
            await self.go.wait()

    def items(self, after: int | None) -> AsyncIterator[Any]:
        return self._feed.items(after)


def test_paper_successor_that_was_started_first_goes_on_with_what_was_interrupted(tmp_path) -> None:
    async def scenario() -> Any:
        both = Successor(tmp_path)
        async with await open_store(address(tmp_path), create=True) as store:
            held = HeldFeed(bars(), 120)
            first = both.process(store, "elsewhere:1:a", held)
            going = asyncio.create_task(first.run("one"))
            await held.reached.wait()
            second = asyncio.create_task(both.process(store, "elsewhere:1:b", RunningFeed(bars())).run("one"))
            await both.waits()
            first.stop("SIGTERM")
            stopped, outcome = await asyncio.gather(going, second)
            return stopped, outcome

    stopped, outcome = asyncio.run(scenario())
    assert stopped.record.status == "interrupted"
    assert (outcome.record.run_id, outcome.record.status) == ("r0001", "finished")
    report = replayed(tmp_path, Settings())
    assert (report.ok, report.problem) == (True, None)


def test_paper_successor_of_a_run_that_ended_meanwhile_trades_a_new_one(tmp_path) -> None:
    async def scenario() -> Any:
        both = Successor(tmp_path)
        async with await open_store(address(tmp_path), create=True) as store:
            held = HeldFeed(bars(), 120)
            going = asyncio.create_task(both.process(store, "elsewhere:1:a", held).run("one"))
            await held.reached.wait()
            second = asyncio.create_task(both.process(store, "elsewhere:1:b", RunningFeed(bars())).run("one"))
            await both.waits()
            held.go.set()
            return await asyncio.gather(going, second)

    first, second = asyncio.run(scenario())
    assert (first.record.run_id, first.record.status) == ("r0001", "finished")
    assert (second.record.run_id, second.record.status) == ("r0002", "finished")


def test_paper_successor_that_is_stopped_while_it_waits_ends_quietly(tmp_path) -> None:
    async def scenario() -> Any:
        both = Successor(tmp_path)
        async with await open_store(address(tmp_path), create=True) as store:
            held = HeldFeed(bars(), 120)
            going = asyncio.create_task(both.process(store, "elsewhere:1:a", held).run("one"))
            await held.reached.wait()
            second = both.process(store, "elsewhere:1:b", RunningFeed(bars()))
            waiting = asyncio.create_task(second.run("one"))
            await both.waits()
            second.stop("SIGTERM")
            outcome = await waiting
            held.go.set()
            return outcome, await going

    outcome, first = asyncio.run(scenario())
    assert (outcome.stopped, outcome.result) == ("SIGTERM", None)
    assert first.record.status == "finished", "whoever trades is left alone"


def test_paper_process_on_a_feed_that_waits_is_stopped_while_its_store_is_away(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("worker.live.traded_run.STOP_S", 0.2)
    seen: list[PaperProcess] = []

    async def away(closing: Closing | None, commit: Any) -> None:
        if seen[0].traded.stepper.rows < 100:
            await commit()
            return
        seen[0].stop("SIGTERM")
        raise StoreError("away", retryable=True)

    async def scenario() -> None:
        async with await open_store(address(tmp_path), create=True) as store:
            with_commit(store, away)
            seen.append(
                PaperProcess(
                    ProcessInputs(
                        Settings(), waiting_feed(bars()), store, "h:1:a", NullMonitor(lambda *shown: None)
                    )
                )
            )
            with pytest.raises(StoreError, match="1 rows of bars are not stored"):
                await asyncio.wait_for(seen[0].run("away"), 20.0)

    asyncio.run(scenario())
    traded(tmp_path, Settings(), waiting_feed(bars()))
    finished_as_the_backtest(tmp_path)


def test_paper_process_stopped_while_it_recovers_changes_nothing_and_goes_on_later(tmp_path) -> None:
    assert killed(tmp_path, Settings(), waiting_feed(bars()), "committed", 150)
    before = read_requests(tmp_path, record)

    async def scenario() -> Any:
        async with await open_store(address(tmp_path), create=True) as store:
            process = PaperProcess(ProcessInputs(
                Settings(), waiting_feed(bars()), store, "h:1:a", NullMonitor(lambda *shown: None),
                progress=lambda recovered, taken: process.stop("SIGTERM") if recovered == 20 else None,
            ))  # fmt: skip
            outcome = await process.run("early")
            return outcome, process.traded.stepper.rows

    outcome, rows = asyncio.run(scenario())
    assert (outcome.stopped, outcome.document, rows) == ("SIGTERM", None, 20)
    after = read_requests(tmp_path, record)
    assert (after.status, after.events, after.head_hash) == ("interrupted", before.events, before.head_hash)
    traded(tmp_path, Settings(), waiting_feed(bars()))
    finished_as_the_backtest(tmp_path)


class UnheardAnswers:
    """A store that fails the first answers to an operator, then takes them."""

    def __init__(self, store: Store, failures: int, *, killed: bool = False) -> None:
        operator: Any = store.operator
        self._answer = operator.answer
        self._left = failures
        self._killed = killed
        operator.answer = self.answer

    async def answer(self, *given: Any) -> Any:
        if self._left:
            self._left -= 1
            if self._killed:
                raise Killed("between its deed and its answer")
            raise StoreError("away for a moment", retryable=True)
        return await self._answer(*given)


async def _asks(store: Store, process: PaperProcess, feed: HeldFeed) -> None:
    await feed.reached.wait()
    if not await store.operator.all("r0001"):  # a successor may be handed the row again
        await store.operator.put("r0001", "rollback", {"playbook_id": "mean_reversion"})
    await until(lambda: all_answered(store))
    feed.go.set()


@pytest.mark.parametrize("dies", [False, True])
def test_paper_request_that_was_refused_is_answered_so_though_the_first_answer_was_lost(
    tmp_path, dies
) -> None:
    async def scenario() -> Any:
        both = Successor(tmp_path)
        async with await open_store(address(tmp_path), create=True) as store:
            UnheardAnswers(store, 1, killed=dies)
            outcome = None
            while outcome is None:
                feed = HeldFeed(bars(), 120)
                process = both.process(store, "h:1:a", feed)
                asking = asyncio.create_task(_asks(store, process, feed))
                try:
                    outcome = await process.run("asked")
                except Killed:
                    asking.cancel()
                    held = await store.leases.holder(lease_name("r0001"))
                    assert held is not None
                    await store.leases.release(held)
            return await store.operator.all("r0001")

    (answer,) = asyncio.run(scenario())
    assert answer.state == "refused"
    assert "nothing different to roll back to" in answer.result["reason"]
    report = replayed(tmp_path, Settings())
    assert (report.ok, report.problem) == (True, None)


def test_paper_process_on_a_feed_that_waits_outlives_an_answer_that_cannot_be_stored(tmp_path) -> None:
    async def scenario() -> Any:
        messages: list[tuple[str, Any]] = []
        async with await open_store(address(tmp_path), create=True) as store:
            UnheardAnswers(store, 1)
            put = store.operator.put
            asked_at = [100]

            async def asks(closing: Closing | None, commit: Any) -> None:
                await commit()
                if asked_at and process.traded.stepper.rows == asked_at[0]:
                    asked_at.clear()
                    await put("r0001", "kill_switch", {"on": True})
                await asyncio.sleep(2 * LOOK_S if not asked_at else 0)

            with_commit(store, asks)
            process = PaperProcess(ProcessInputs(
                Settings(), waiting_feed(bars()), store, "h:1:a",
                NullMonitor(lambda kind, detail: messages.append((kind, detail))), look_s=LOOK_S,
            ))  # fmt: skip
            outcome = await process.run("asked")
            return outcome, messages, await store.operator.all("r0001")

    outcome, shown, (answer,) = asyncio.run(scenario())
    assert outcome.record.status == "finished"
    assert "request_not_answered" in [kind for kind, _ in shown]
    assert (answer.state, answer.result) == ("done", {"kill_switch": True})
    assert [row.kind for row in rows_stored(tmp_path)].count("operator_command") == 1


def test_paper_request_that_changes_playbooks_waits_until_no_evaluation_is_out(tmp_path) -> None:
    async def scenario() -> list[tuple[str, int]]:
        done: list[tuple[str, int]] = []
        async with await open_store(address(tmp_path), create=True) as store:
            thinking = asyncio.Event()
            slowed: list[int] = []

            async def between(number: int) -> None:
                await asyncio.sleep(0)
                if number == 130:
                    _slow_down(process, thinking)
                    slowed.append(number)
                if slowed and not process.traded.stepper.session.policy_loop.in_flight and not done:
                    return
                if slowed and len(slowed) == 1:
                    slowed.append(number)
                    await store.operator.put("r0001", "kill_switch", {"on": True})
                    await store.operator.put("r0001", "rollback", {"playbook_id": "mean_reversion"})
                    await until(lambda: answered(store))
                    await asyncio.sleep(5 * LOOK_S)
                    thinking.set()
                    await until(lambda: all_answered(store))

            process = PaperProcess(ProcessInputs(
                Settings(), RunningFeed(bars(), between), store, "h:1:a",
                NullMonitor(lambda kind, detail: _noted(process, done, kind, detail)), look_s=LOOK_S,
            ))  # fmt: skip
            await process.run("asked")
        return done

    done = asyncio.run(scenario())
    assert [kind for kind, _ in done] == ["kill_switch", "rollback"]
    flying = dict(done)
    assert flying["kill_switch"] > 0, "a kill switch waits for nobody"
    assert flying["rollback"] == 0


def _noted(process: PaperProcess, done: list[tuple[str, int]], kind: str, detail: dict[str, Any]) -> None:
    if kind == "operator_command":
        done.append((detail["kind"], process.traded.stepper.session.policy_loop.in_flight))


def _slow_down(process: PaperProcess, until: asyncio.Event) -> None:
    provider: Any = process.traded.stepper.session.policy_loop.provider
    provide = provider.provide

    async def late(*args: Any, **named: Any) -> Any:
        await until.wait()
        return await provide(*args, **named)

    provider.provide = late


def test_word_of_a_process_that_waits_for_the_store_is_never_stored_after_a_newer_one() -> None:
    stored: list[dict[str, int]] = []
    moment, waits_s = {"rows": 0}, iter((1.0, 0.0))  # the first waits for a commit of the same store

    async def say(lease: Any, run_id: str, answer: dict[str, int]) -> None:
        await asyncio.sleep(next(waits_s))
        stored.append(answer)

    store: Any = SimpleNamespace(trading=SimpleNamespace(say=say))
    status = SimpleNamespace(status=lambda: SimpleNamespace(document=lambda now: dict(moment)))
    run: Any = SimpleNamespace(
        committer=SimpleNamespace(lease=object(), run_id="r0001", closing=False), status=status
    )
    quiet: Any = SimpleNamespace(store=store, surroundings=NullMonitor(lambda kind, detail: None), look_s=0.0)
    polling = Polling(quiet, StopRequest(quiet.surroundings.note), run)

    async def both() -> None:
        first = asyncio.create_task(polling.say())
        await asyncio.sleep(0.5)
        moment["rows"] = 504
        await polling.say()
        await first

    run_virtually(both())
    assert stored == [{"rows": 0}, {"rows": 504}]
