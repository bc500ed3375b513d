"""The trading loop on the exchange feed: what it journals, how it comes back, what its replay gives."""

import asyncio
import json
from pathlib import Path
from typing import Any

from schemas.settings import DataSettings, Settings
from services.store import open_store
from tests.exchange import faults
from tests.exchange.rig import rig
from tests.exchange.server import MINUTE_MS, START_MS, ExchangeServer
from tests.worker.live.paper_runs import KillAt, Killed, address, process_in, replayed, rows_stored

SETTINGS = Settings(data=DataSettings(symbols=("BTC/USDT", "ETH/USDT"), timeframe="1m"))


def reader(folder: Path, **named: Any) -> Any:
    async def read(feed: Any) -> Any:
        async with await open_store(address(folder), create=True) as store:
            return await process_in(store, SETTINGS, feed, [], **named)

    return read


def long_history() -> ExchangeServer:
    server = ExchangeServer()
    for market in server.symbols:
        server.fill(market, "1m", START_MS - 400 * MINUTE_MS, 401)
    return server


def kinds_told(folder: Path) -> list[str]:
    return [json.loads(row.payload)["anomaly"] for row in rows_stored(folder, "latest", "feed_anomaly")]


def test_paper_on_an_exchange_that_drops_out_journals_it_and_replays_to_its_hash(tmp_path: Path) -> None:
    async def run() -> Any:
        async with rig(server=long_history(), history_bars=300, reader=reader(tmp_path)) as r:
            await r.ready()
            await r.trade(1, 3)
            r.server.fail("klines", faults.reset(), faults.server_error())
            await r.trade(4, 6)
            await r.feed.close()
            return r.minutes(), await r.task

    minutes, outcome = asyncio.run(run())
    assert minutes == [0, 1, 2, 3, 4, 5]
    assert kinds_told(tmp_path).count("disconnected") == kinds_told(tmp_path).count("reconnected") == 1
    report = replayed(tmp_path, SETTINGS)
    assert report.ok
    assert report.head_hash == outcome.record.head_hash


def test_paper_killed_on_an_exchange_refills_what_it_missed_and_takes_no_bar_twice(tmp_path: Path) -> None:
    async def first() -> None:
        async with rig(
            server=long_history(), history_bars=300, reader=reader(tmp_path, points=KillAt("validated", 303))
        ) as r:
            try:
                await r.ready()
                await r.trade(1, 8)
            except Killed:
                return
            raise AssertionError("it was not killed")

    async def second() -> list[int]:
        server = long_history()
        server.now_ms = START_MS + 10 * MINUTE_MS
        for market in server.symbols:
            server.fill(market, "1m", START_MS, 11)
        async with rig(server=server, history_bars=300, reader=reader(tmp_path)) as r:
            await r.until(lambda: len(r.live) > 3, "refilled")
            await r.feed.close()
            await r.task
            return r.minutes()

    asyncio.run(first())
    minutes = asyncio.run(second())
    assert minutes == list(range(minutes[0], minutes[-1] + 1))
    assert kinds_told(tmp_path).count("refilled") == 2
    assert replayed(tmp_path, SETTINGS).ok
