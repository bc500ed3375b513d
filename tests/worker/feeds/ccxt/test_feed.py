"""CcxtFeed against an exchange on loopback: what it hands over, and what it asks for."""

import asyncio
import importlib

import pytest
from aiohttp import web

from schemas.errors import ConfigError, DataError, FeedError
from schemas.settings.live import ExchangeSettings, FeedSettings
from services.feeds.port import BarRow, FeedAnomalyKind
from tests.exchange import faults
from tests.exchange.rig import NS_PER_MS, Rig, on_rig, rig
from tests.exchange.server import MINUTE_MS, START_MS, ExchangeServer, candle
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.feed import CcxtFeed
from worker.feeds.ccxt.source_clock import FeedTime

Kind = FeedAnomalyKind


def label(minute: int) -> int:
    return (START_MS + minute * MINUTE_MS) * NS_PER_MS


@on_rig(history_bars=4)
async def test_ccxt_feed_first_start_gives_history_then_live_rows_without_news(r: Rig) -> None:
    await r.ready()
    await r.trade(1, 4)
    assert [row.label for row in r.rows] == [label(minute) for minute in range(-4, 4)]
    assert [row.history for row in r.rows] == [True] * 4 + [False] * 4
    assert r.shown == []
    assert r.rows[-1].bars == dict.fromkeys(r.feed.symbols, Bar(*candle(3)))
    assert all(row.blocked == {} for row in r.rows)
    assert r.feed.last_labels() == dict.fromkeys(r.feed.symbols, label(3))
    assert (r.feed.name, r.feed.lock_step, r.feed.label) == ("ccxt:binance", False, "open")


@on_rig()
async def test_ccxt_feed_only_reads_public_data(r: Rig) -> None:
    await r.ready()
    await r.trade(1, 3)
    r.server.fail("klines", faults.reset())
    await r.trade(4, 5)
    public = {"/api/v3/exchangeInfo", "/fapi/v1/exchangeInfo", "/dapi/v1/exchangeInfo"}
    assert {path for path, _ in r.server.requests} <= public | {"/api/v3/time", "/api/v3/klines"}
    assert not any("signature" in query for _, query in r.server.requests)


@on_rig(symbols=("BTC/USDT",))
async def test_ccxt_feed_a_running_candle_waits_for_its_end_and_its_last_values(r: Rig) -> None:
    await r.ready()
    await r.trade(1, 2)
    for second, shift in ((10.0, 1.0), (30.0, 2.0), (59.5, 3.0)):
        await r.to(2, second)
        await r.candles(2, shift, "BTCUSDT")
    assert r.minutes() == [0, 1]
    await r.to(3)
    await r.candles(2, 4.0, "BTCUSDT")
    await r.candles(3, 0.0, "BTCUSDT")
    assert r.minutes() == [0, 1]  # it may still be corrected
    await r.to(3, 1.5)
    assert r.minutes() == [0, 1, 2]
    assert r.live[-1].bars["BTC/USDT"] == Bar(*candle(2, 104.0))


@on_rig()
async def test_ccxt_feed_asks_once_for_each_symbol_after_every_bar(r: Rig) -> None:
    await r.ready()
    begun = r.requested("/api/v3/klines")
    for minute in range(1, 4):
        for market in r.server.symbols:
            r.server.fill(market, "1m", START_MS + minute * MINUTE_MS, 1)
        await r.to(minute, 2.0)
    assert r.minutes() == [0, 1, 2]
    assert r.requested("/api/v3/klines") == begun + 4 * 2  # the bar that ended at the start, too
    assert r.shown == []


@on_rig(after=label(-6))
async def test_ccxt_feed_restart_refills_what_was_missed_and_repeats_nothing(r: Rig) -> None:
    await r.ready()
    await r.trade(1, 2)
    assert r.minutes() == [-5, -4, -3, -2, -1, 0, 1]
    assert not any(row.history for row in r.rows)
    refilled = [item for item in r.shown if item.kind is Kind.REFILLED]
    assert {item.symbol for item in refilled} == set(r.feed.symbols)
    assert [item.label for item in refilled] == [label(-5)] * 2
    assert all(row.blocked for row in r.live if row.label < label(-2))  # too old to be traded


def test_ccxt_feed_restart_tells_a_bar_that_was_missed_for_good_by_its_row_alone() -> None:
    async def run() -> None:
        server = ExchangeServer()
        server.fill("BTCUSDT", "1m", START_MS - 10 * MINUTE_MS, 11)
        server.fill("ETHUSDT", "1m", START_MS - 10 * MINUTE_MS, 11)
        del server.history["ETHUSDT", "1m"][START_MS - 3 * MINUTE_MS]
        async with rig(server=server, after=label(-6)) as r:
            await r.ready()
            missing = [(item.symbol, item.label) for item in r.shown if item.kind is Kind.MISSING]
            assert missing == [("ETH/USDT", label(-3))]

    asyncio.run(run())


def test_ccxt_feed_same_happenings_give_the_same_items() -> None:
    async def once() -> list[object]:
        async with rig() as r:
            await r.ready()
            await r.trade(1, 2)
            r.server.fail("klines", faults.reset(), faults.server_error())
            await r.trade(3, 5)
            return list(r.items)

    assert asyncio.run(once()) == asyncio.run(once())


@on_rig()
async def test_ccxt_feed_close_ends_the_items_and_the_connections(r: Rig) -> None:
    await r.ready()
    await r.feed.close()
    async with asyncio.timeout(5.0):
        await r.task
    assert r.feed._exchange._driver.session is None


@pytest.mark.parametrize("path", ["exchangeInfo", "time", "klines"])
def test_ccxt_feed_that_is_closed_while_its_start_hangs_ends_without_waiting_for_the_answer(path) -> None:
    async def run() -> None:
        server = ExchangeServer()
        server.fail(path, *[faults.hang] * 9)
        async with rig(server=server, exchange={"request_timeout_s": 3_600.0}) as r:
            await r.until(lambda: server.hanging > 0, "it is asked for")
            await r.feed.close()
            async with asyncio.timeout(5.0):
                await r.task
            assert r.rows == []

    asyncio.run(run())


def feed_on(server: ExchangeServer, symbols: tuple[str, ...], timeframe: str = "1m") -> CcxtFeed:
    exchange = ExchangeSettings(rest_url=server.rest_url, request_interval_ms=0.0)
    return CcxtFeed("binance", symbols, timeframe, FeedSettings(exchange=exchange))


@pytest.mark.parametrize(
    ("symbols", "timeframe", "error", "words"),
    [
        (("BTC/USD",), "1m", DataError, r"binance has no symbol 'BTC/USD'.* Did you mean 'BTC/USDT'\?"),
        (("XYZ",), "1m", DataError, r"binance has no symbol 'XYZ' among its 3\. Write it like 'BTC/USDT'"),
        (("OLD/USDT",), "1m", DataError, r"does not trade 'OLD/USDT' any more"),
        (("BTC/USDT",), "9m", ConfigError, r"no bars of '9m': it offers 1m, 3m, 5m, 15m, 30m, 1h, 2h, 4h"),
        (("BTC/USDT",), "1w", ConfigError, r"no bars of '1w': it offers .*, 12h, 1d$"),
    ],
)
def test_ccxt_feed_start_with_what_is_not_offered_says_what_is(symbols, timeframe, error, words) -> None:
    async def run() -> None:
        server = ExchangeServer(inactive={"OLDUSDT"})
        server.symbols["OLDUSDT"] = ("OLD", "USDT")
        async with server:
            feed = feed_on(server, symbols, timeframe)
            with pytest.raises(error, match=words):
                await anext(aiter(feed.items(None)))

    asyncio.run(run())


def test_ccxt_feed_unknown_exchange_names_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match=r"exchange 'binanze' is not one of the \d+ .*Did you mean 'binance'\?"
    ):
        CcxtFeed("binanze", ("BTC/USDT",), "1m", FeedSettings())


def test_ccxt_feed_without_ccxt_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ConfigError, match=r"run pip install 'thinktwice\[live\]'"):
        CcxtFeed("binance", ("BTC/USDT",), "1m", FeedSettings())


def test_ccxt_feed_start_tries_again_and_then_runs() -> None:
    async def run() -> None:
        server = ExchangeServer()
        server.fail("/api/v3/exchangeInfo", faults.server_error(503), faults.html())
        async with rig(server=server) as r:
            for _ in range(2):
                await r.until(lambda: r.time.idle, "waits to try again")
                r.time.move(60.0)
                await asyncio.sleep(0)
            await r.until(lambda: len(r.rows) >= 2, "history")

    asyncio.run(run())


def test_ccxt_feed_start_without_an_exchange_ends_with_one_short_error() -> None:
    async def run() -> None:
        async with ExchangeServer() as server:
            server.fail("exchangeInfo", *[faults.html(502)] * 50)
            feed = feed_on(server, ("BTC/USDT",))
            feed._time = Hurried()
            with pytest.raises(FeedError, match=r"^binance: markets: unavailable \(.{1,260}\)$") as caught:
                await anext(aiter(feed.items(None)))
            assert caught.value.retryable
            assert "<" not in str(caught.value)

    asyncio.run(run())


class Hurried(FeedTime):
    """A time in which nobody waits."""

    def wall(self) -> int:
        return START_MS * NS_PER_MS

    def steady(self) -> int:
        return 1

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        await asyncio.sleep(0)


@on_rig(symbols=("ETH/USDT", "ETH/USDT"))
async def test_ccxt_feed_rows_of_one_symbol_alone_carry_only_it(r: Rig) -> None:
    await r.ready()
    await r.trade(1, 2)
    assert r.feed.symbols == ("ETH/USDT",)
    assert all(isinstance(item, BarRow) and set(item.bars) == {"ETH/USDT"} for item in r.items)


def test_ccxt_feed_slow_answer_about_the_time_takes_no_running_candle_for_a_closed_one() -> None:
    """The answer says when it was given, not when it came: what is over at the earliest is over."""

    async def run() -> None:
        rigs: list[Rig] = []

        async def slow(request: web.Request) -> web.Response:
            rigs[0].server.now_ms += 8_000
            rigs[0].time.move(8.0)
            return web.json_response({"serverTime": rigs[0].server.now_ms})

        server = ExchangeServer()
        server.fail("time", slow)
        async with rig(server=server, symbols=("BTC/USDT",)) as r:
            rigs.append(r)
            await r.ready()
            await r.to(1)
            await r.candles(1, 5.0, "BTCUSDT")
            await r.to(2)
            await r.candles(1, 0.0, "BTCUSDT")
            await r.candles(2, 0.0, "BTCUSDT")
            await r.trade(3, 4, "BTCUSDT")
            assert r.live[1].bars["BTC/USDT"] == Bar(*candle(1))
            assert r.shown == []

    asyncio.run(run())


def test_ccxt_feed_bar_that_changed_while_no_process_ran_is_told_once_as_a_conflict() -> None:
    async def run() -> None:
        server = ExchangeServer(now_ms=START_MS + 3 * MINUTE_MS + 2_000)
        server.fill("BTCUSDT", "1m", START_MS, 4)
        taken = [BarRow(label(k), {"BTC/USDT": Bar(*candle(k, 100.0 - (k == 1)))}) for k in range(3)]
        async with rig(server=server, symbols=("BTC/USDT",), after=label(2)) as r:
            r.feed.recall(taken, ())
            await r.settled()
            await r.trade(4, 6, "BTCUSDT")
            assert [(item.kind, item.label) for item in r.shown] == [(Kind.CONFLICT, label(1))]
            assert r.shown[0].detail == {"kept": list(candle(1, 99.0)), "dropped": list(candle(1))}
            assert [row.label for row in r.rows] == [label(3), label(4), label(5)]

    asyncio.run(run())


def test_ccxt_feed_refill_after_a_long_absence_compares_the_last_bars_that_were_taken() -> None:
    async def run() -> None:
        server = ExchangeServer(now_ms=START_MS + 30 * MINUTE_MS + 2_000)
        server.fill("BTCUSDT", "1m", START_MS, 31)
        taken = [BarRow(label(k), {"BTC/USDT": Bar(*candle(k, 100.0 - (k == 1)))}) for k in range(3)]
        async with rig(server=server, symbols=("BTC/USDT",), after=label(2)) as r:
            r.feed.recall(taken, ())
            await r.settled()
            refilled = {"bars": 27, "to": label(29)}
            assert [(item.kind, item.label) for item in r.shown] == [
                (Kind.CONFLICT, label(1)),
                (Kind.REFILLED, label(3)),
            ]
            assert r.shown[1].detail == refilled
            assert [row.label for row in r.rows] == [label(k) for k in range(3, 30)]

    asyncio.run(run())


def test_ccxt_feed_anomalies_of_the_start_come_after_its_history() -> None:
    async def run() -> None:
        server = ExchangeServer(now_ms=START_MS + 5_000)
        server.fill("BTCUSDT", "1m", START_MS - 10 * MINUTE_MS, 11)
        server.history["BTCUSDT", "1m"][START_MS - 3 * MINUTE_MS] = (100.0, 90.0, 95.0, 100.0, 1.0)
        async with rig(server=server, symbols=("BTC/USDT",), history_bars=4) as r:
            await r.settled()
            found = [item.label if isinstance(item, BarRow) else item.kind.value for item in r.items]
            assert found == [label(-4), label(-2), label(-1), "invalid"]

    asyncio.run(run())
