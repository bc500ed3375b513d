"""A store that goes away between two bars, or two looks of a slow loop, is noticed and told both ways."""

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.errors import StoreError
from services.store.failures import StoreDamaged
from services.store.identity import StoreLost
from services.store.repository import LeaseLost
from tests.worker.live.virtual_time import run_virtually
from tests.worker.operations.operated_paper import (
    ask,
    free_port,
    logged,
    news,
    operated,
    settings_of,
    until_ready,
)
from tests.worker.operations.receiver import receiving
from tests.worker.operations.test_paper_is_operated import value
from tests.worker.operations.test_paper_tells import hourly
from tests.worker.operations.test_worker_is_operated import Process, stored
from worker.live.process import Polling
from worker.operations import monitoring
from worker.operations.metrics import PREFIX
from worker.operations.monitoring import OutageLog, watch_store

LONGEST_S = 60
Statements = tuple[str, str]
BROKEN: Statements = (
    "ALTER TABLE trading_processes RENAME TO gone",
    "ALTER TABLE gone RENAME TO trading_processes",
)
LOCKED: Statements = ("BEGIN IMMEDIATE", "ROLLBACK")


@pytest.mark.parametrize("ends", [StoreDamaged, StoreLost, LeaseLost])
def test_look_between_two_bars_ends_the_run_over_what_waiting_will_not_mend(ends: type[StoreError]) -> None:
    """Nothing is written there: only the look sees it, and a store that is away would be waited for."""
    away: list[StoreError] = []

    async def look() -> None:
        raise ends("gone for good")

    run = SimpleNamespace(
        check=lambda: None,
        committing=SimpleNamespace(away=away.append),
        guard=SimpleNamespace(weigh_store=lambda later: polling._over.set()),
        store_behind=False,
    )
    polling: Any = SimpleNamespace(_over=asyncio.Event(), _look=look, _run=run, _look_s=0.01)
    with pytest.raises(ends):
        asyncio.run(Polling.poll(polling))
    assert away == []


def connected(folder: Path) -> sqlite3.Connection:
    """Somebody else on the store."""
    path = folder / "store.db"
    return sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)


async def until_stored(port: int, bars: int) -> None:
    """All bars of the file were traded and are in the store: from here on it lies between two bars."""
    async with asyncio.timeout(LONGEST_S):
        while True:
            status = json.loads((await ask(port, "/status")).body)
            if (status["bars_validated"], status["buffered_rows"]) == (bars, 0):
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("statements", [BROKEN, LOCKED], ids=["broken", "locked"])
def test_store_away_between_two_bars_is_told_once_and_its_return_before_the_next_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statements: Statements
) -> None:
    bars, port = tmp_path / "bars.csv", free_port()
    hourly(bars)
    settings = settings_of(
        tmp_path,
        runtime={"data": str(bars), "feed": {"poll_s": 0.02, "continuous": True}},
        operations={"port": port},
        data={"timeframe": "1h"},
    )
    wrong, right = statements

    async def play() -> Any:
        async with receiving() as there:
            trading = asyncio.create_task(operated(settings, there, "csv"))
            seen = [await until_ready(port, 200)]
            await until_stored(port, len(bars.read_text().splitlines()) - 1)
            with closing(connected(tmp_path)) as other:
                await asyncio.to_thread(other.execute, wrong)  # the process in this thread may hold the lock
                began = time.time_ns()
                seen.append(await until_ready(port, 503))
                status = json.loads((await ask(port, "/status")).body)
                await asyncio.sleep(1.2)  # more looks, and none of them tells it again
                await asyncio.to_thread(other.execute, right)
            seen.append(await until_ready(port, 200))
            os.kill(os.getpid(), signal.SIGTERM)
            return (await trading).stopped, seen, status, began, news(there)

    stopped, seen, status, began, shown = asyncio.run(play())
    assert stopped == "SIGTERM"
    assert seen[1][0].endswith("store is away, 0 rows wait for it\n")
    assert [value(text, f"{PREFIX}_store_up") for _, text in seen] == [1.0, 0.0, 1.0]
    assert began <= status["store_away_since"] <= time.time_ns()
    events = [logged(tmp_path, kind) for kind in ("store_away", "store_back")]
    assert [len(event) for event in events] == [1, 1]
    assert events[0][0]["level"] == "warning"
    assert events[1][0]["away_s"] >= 1.0
    kinds = [(event["kind"], event["about"]) for event in shown]
    store = [pair for pair in kinds if pair in (("store_away", None), ("recovered", None))]
    assert store == [("store_away", None), ("recovered", None)]
    assert ("safe_mode", "store_away") in kinds  # a csv feed runs on: nobody enters meanwhile
    assert status["state"] == "safe_mode"


def test_slow_loop_notices_its_store_between_two_looks(tmp_path: Path) -> None:
    asyncio.run(stored(tmp_path))

    async def play() -> Any:
        words = ("--period", "30", "--log-format", "json")
        async with (
            receiving() as there,
            Process.started(
                tmp_path,
                *words,
                THINKTWICE_RUNTIME__OPERATIONS__PORT="0",
                THINKTWICE_WEBHOOK_URL=there.url,
            ) as worker,
        ):
            port = (await worker.until("endpoint_open"))["port"]
            await worker.until("worker_started")
            seen = [await until_ready(port, 200)]
            with closing(connected(tmp_path)) as other:
                other.execute(LOCKED[0])
                await worker.until("store_away")
                seen.append(await until_ready(port, 503))
                other.execute(LOCKED[1])
            await worker.until("store_back")
            seen.append(await until_ready(port, 200))
            worker.process.send_signal(signal.SIGTERM)
            return await worker.ended(), worker.records, seen, news(there)

    began = time.monotonic()
    (code, _), records, seen, shown = asyncio.run(play())
    assert code == 0, records
    assert time.monotonic() - began < 30 + LONGEST_S
    assert [value(text, f"{PREFIX}_store_up") for _, text in seen] == [1.0, 0.0, 1.0]
    events = [record["event"] for record in records if record["event"].startswith("store_")]
    assert events == ["store_away", "store_back"]
    assert [event["kind"] for event in shown] == ["store_away", "recovered"]


def heard(*events: str) -> list[str]:
    """What passes of events, `!` before those of whoever looks all the time."""
    shown: list[str] = []
    once = OutageLog(lambda kind, detail: shown.append(kind.removeprefix("store_")))
    for event in events:
        (once.decide if event[0] == "!" else once.hear)(f"store_{event.strip('!')}", {})
    return shown


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        (("away", "away", "back", "back"), ["away", "back"]),
        (("away", "!away", "back", "!back"), ["away", "back"]),
        (("!away", "away", "!back", "back"), ["away", "back"]),
        (("!away", "away", "!back", "away", "back"), ["away", "back"] * 2),
        (("back", "!back"), []),
        (("bottled",), ["bottled"]),
    ],
)
def test_outage_is_told_once_whoever_sees_it_first(events: tuple[str, ...], shown: list[str]) -> None:
    assert heard(*events) == shown


def watched(
    probe: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> list[str]:
    """What is told of a store, twice."""
    monkeypatch.setattr(monitoring, "POLL_S", 0.0)
    monkeypatch.setattr(monitoring, "PATIENCE_S", patience_s)

    async def play() -> list[str]:
        shown: list[str] = []
        enough = asyncio.Event()

        def note(kind: str, detail: dict[str, Any]) -> None:
            shown.append(kind)
            if len(shown) == 2:
                enough.set()

        watching = asyncio.create_task(watch_store(probe, note, lambda: None))
        await asyncio.wait_for(enough.wait(), LONGEST_S)
        watching.cancel()
        await asyncio.wait({watching})
        return shown[:2]

    return asyncio.run(play())


def test_store_that_hangs_is_away_and_the_question_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = []

    async def hangs() -> None:
        questions.append(1)
        await asyncio.Event().wait()

    assert watched(hangs, monkeypatch, 0.01) == ["store_away"] * 2
    assert questions == [1]


def test_mistake_of_a_probe_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong() -> None:
        raise ZeroDivisionError

    async def play() -> None:
        with pytest.raises(ZeroDivisionError):
            await watch_store(wrong, lambda kind, detail: None, lambda: None)

    asyncio.run(play())


def test_store_that_refuses_is_away_for_good_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuses() -> None:
        raise StoreError("disk full", retryable=False)

    assert watched(refuses, monkeypatch, 5.0) == ["store_away"] * 2


def test_store_that_falters_within_its_patience_is_told_away_once_and_back_once_to_the_slow_loop() -> None:
    shown: list[str] = []
    once = OutageLog(lambda kind, detail: shown.append(kind))
    requested = 0

    async def falters() -> None:
        nonlocal requested
        requested += 1
        if requested < 40 and requested % 3 == 0:
            raise StoreError("refused", retryable=True)

    async def play() -> None:
        watching = asyncio.create_task(watch_store(falters, once.decide, lambda: None))
        await asyncio.sleep(60.0)
        watching.cancel()
        await asyncio.wait({watching})

    run_virtually(play())
    assert shown == ["store_away", "store_back"]
