"""CcxtFeed against an exchange that misbehaves: each fault is told once, by its own name; rows stay whole."""

import asyncio
import random
from collections import Counter
from collections.abc import MutableMapping
from typing import Any

import pytest
from aiohttp import web
from ccxt.base.errors import RateLimitExceeded
from structlog.testing import capture_logs

from schemas.errors import FeedError
from schemas.settings.live import FeedSettings
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from tests.exchange import faults
from tests.exchange.rig import NS_PER_MS, Rig, on_rig, rig
from tests.exchange.server import MINUTE_MS, START_MS, ExchangeServer, candle
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import raise_feed_error
from worker.feeds.ccxt.feed import CcxtFeed

Kind = FeedAnomalyKind
BTC, ETH = "BTC/USDT", "ETH/USDT"


def label(minute: int) -> int:
    return (START_MS + minute * MINUTE_MS) * NS_PER_MS


def read_shown(r: Rig, kind: Kind) -> list[FeedAnomaly]:
    return [item for item in r.shown if item.kind is kind]


async def begun(r: Rig) -> None:
    """Minutes 0 and 1 are handed over."""
    await r.ready()
    await r.trade(1, 2)
    assert r.minutes() == [0, 1]
    assert r.shown == []


@on_rig()
async def test_ccxt_feed_candles_that_are_asked_for_again_give_one_row_and_no_news(r: Rig) -> None:
    await begun(r)
    await r.trade(3, 3)
    assert r.minutes() == [0, 1, 2]
    assert r.shown == []
    again = [int(query["startTime"]) for path, query in r.server.requests if path.endswith("klines")]
    assert max(again) < START_MS, "bars that were handed over are asked for with every new one"


@on_rig(symbols=(BTC,))
async def test_ccxt_feed_repeated_row_of_rest_is_a_duplicate(r: Rig) -> None:
    await r.settled()
    r.server.fill("BTCUSDT", "1m", START_MS, 3)
    await r.to(0, 30.0)
    row = [START_MS, *map(str, candle(0)), START_MS + 59_999]
    r.server.fail("klines", faults.answer([row, row, row]))
    await r.to(1, 2.0)
    assert [(item.kind, item.symbol, item.label) for item in r.shown] == [(Kind.DUPLICATE, BTC, label(0))]
    assert r.minutes() == [0]


@on_rig()
async def test_ccxt_feed_candle_out_of_order_is_late_and_never_traded(r: Rig) -> None:
    await begun(r)
    late = r.server.history["ETHUSDT", "1m"].pop(START_MS + MINUTE_MS * 2)
    await r.to(3)
    await r.candles(3)
    await r.to(3, 10.0)
    row = r.live[-1]
    assert (row.label, set(row.bars)) == (label(2), {BTC})
    r.server.history["ETHUSDT", "1m"][START_MS + MINUTE_MS * 2] = late
    await r.trade(4, 6)
    assert [(item.symbol, item.label) for item in read_shown(r, Kind.LATE)] == [(ETH, label(2))]
    assert r.live[2] is row
    assert r.minutes() == [0, 1, 2, 3, 4, 5]


@on_rig()
async def test_ccxt_feed_bar_that_nobody_has_is_missing_and_blocks_its_symbol(r: Rig) -> None:
    await begun(r)
    await r.trade(3, 3)
    await r.to(4)
    await r.candles(4, 0.0, "BTCUSDT")
    # ETH: minute 3 is withdrawn by the exchange, minute 4 never begins.
    del r.server.history["ETHUSDT", "1m"][START_MS + 3 * MINUTE_MS]
    await r.to(4, 4.5)
    assert r.minutes() == [0, 1, 2]
    await r.to(4, 8.0)
    assert r.minutes() == [0, 1, 2, 3]
    assert set(r.live[-1].bars) == {BTC}
    assert r.live[-1].blocked == {ETH: "missing bar"}
    assert [(item.kind, item.symbol, item.label) for item in r.shown] == [(Kind.MISSING, ETH, label(3))]


@on_rig(quarantine_bars=2)
async def test_ccxt_feed_conflicting_candle_is_told_once_and_blocks_entries(r: Rig) -> None:
    await begun(r)
    r.server.history["BTCUSDT", "1m"][START_MS + MINUTE_MS] = candle(1, 150.0)
    await r.trade(3, 4)
    conflict = read_shown(r, Kind.CONFLICT)
    assert [(item.symbol, item.label) for item in conflict] == [(BTC, label(1))]
    assert conflict[0].detail == {"kept": list(candle(1)), "dropped": list(candle(1, 150.0))}
    assert r.live[1].bars[BTC] == Bar(*candle(1))
    assert r.live[2].blocked == {BTC: "conflicting bars"}


@on_rig()
async def test_ccxt_feed_symbol_without_bars_becomes_stale_and_fresh_again(r: Rig) -> None:
    await begun(r)
    r.server.history["ETHUSDT", "1m"].pop(START_MS + 2 * MINUTE_MS)
    await r.trade(3, 6, "BTCUSDT")
    await r.to(6, 8.0)
    assert [item.symbol for item in read_shown(r, Kind.STALE)] == [ETH]
    assert r.live[-1].blocked == {ETH: "stale"}
    await r.trade(7, 9)
    assert [item.symbol for item in read_shown(r, Kind.FRESH)] == [ETH]
    assert r.live[-1].blocked == {}


@on_rig(symbols=(BTC,))
async def test_ccxt_feed_candle_of_the_future_is_unclosed_and_closes_nothing(r: Rig) -> None:
    await begun(r)
    r.server.omit_running = True  # ccxt cuts an answer off after as many rows as were asked for
    r.server.strays = (START_MS + 9 * MINUTE_MS,)
    await r.trade(3, 3)
    assert [(item.symbol, item.label) for item in read_shown(r, Kind.UNCLOSED)] == [(BTC, label(9))]
    await r.trade(4, 4)
    assert r.minutes() == [0, 1, 2, 3]
    assert len(read_shown(r, Kind.UNCLOSED)) == 1
    assert r.feed._assembler is not None
    assert r.feed._assembler.counts[Kind.UNCLOSED] == 1, "not once a look"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ((100.0, 99.0, 98.0, 98.5, 1.0), "open or close lies outside low..high"),
        ((0.0, 99.0, 0.0, 98.5, 1.0), "a price is not above zero"),
        ((100.0, 101.0, 99.0, 100.0, -1.0), "volume is negative"),
    ],
)
@on_rig(symbols=(BTC,))
async def test_ccxt_feed_values_that_cannot_be_a_bar_are_invalid(r: Rig, values, reason) -> None:
    await r.ready()
    await r.trade(1, 2)
    r.server.history["BTCUSDT", "1m"][START_MS + 2 * MINUTE_MS] = values
    await r.trade(3, 4)
    assert [(item.label, item.detail["reason"]) for item in read_shown(r, Kind.INVALID)] == [
        (label(2), reason)
    ]
    assert r.minutes() == [0, 1, 3]


@on_rig(symbols=(BTC,))
async def test_ccxt_feed_label_off_the_grid_is_invalid_and_no_beginning_of_a_candle(r: Rig) -> None:
    await begun(r)
    r.server.strays = (START_MS + 2 * MINUTE_MS + 30_000,)
    await r.trade(3, 4)
    assert [item.detail["reason"] for item in read_shown(r, Kind.INVALID)] == ["label off the grid"]
    assert r.minutes() == [0, 1, 2, 3]


BROKEN = (
    faults.reset(),
    faults.half(),
    faults.truncated(),
    faults.html(),
    faults.server_error(),
    faults.answer({"code": 5000, "msg": "internal"}),
)
REASONS = ("unavailable", "unavailable", "malformed", "malformed", "unavailable", "unavailable")


@pytest.mark.parametrize(("fault", "reason"), list(zip(BROKEN, REASONS, strict=True)))
@on_rig()
async def test_ccxt_feed_exchange_that_is_away_for_minutes_is_told_once_and_what_was_missed_refilled(
    r: Rig, fault, reason
) -> None:
    await begun(r)
    clock_asked = r.requested("/api/v3/time")
    r.server.fail("klines", *[fault] * 1_000)
    for minute in range(3, 6):
        await r.to(minute)
        await r.candles(minute)
        await r.to(minute, 20.0)
    assert r.minutes() == [0, 1]
    r.server.faults.clear()
    await r.trade(6, 9)
    assert r.minutes() == list(range(9))
    assert all(set(row.bars) == {BTC, ETH} for row in r.live)
    assert r.requested("/api/v3/time") == clock_asked + 1, "the clocks are compared again"
    links = [item for item in r.shown if "channel" in item.detail]
    assert [(item.kind, dict(item.detail)) for item in links] == [
        (Kind.DISCONNECTED, {"channel": "rest", "reason": reason}),
        (Kind.RECONNECTED, {"channel": "rest"}),
    ]
    assert Counter(item.symbol for item in read_shown(r, Kind.REFILLED)) == Counter({BTC: 1, ETH: 1})


@on_rig(symbols=(BTC,), exchange={"request_timeout_s": 30.0}, grace_s=20.0)
async def test_ccxt_feed_bar_that_ran_when_it_was_asked_for_is_asked_for_again(r: Rig) -> None:
    await begun(r)
    answered = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        rows = [[START_MS + k * MINUTE_MS, *map(str, candle(k)), 0] for k in (2, 3)]
        await answered.wait()
        return web.json_response(rows)

    slow.__name__ = "hang"
    r.server.history["BTCUSDT", "1m"].pop(START_MS + 2 * MINUTE_MS)
    await r.to(3, 2.5)
    r.server.fail("klines", slow)
    await r.to(4)
    await r.candles(3, 7.0)  # its last values
    await r.candles(4)
    await r.to(4, 5.0)
    answered.set()
    await r.to(4, 20.0)
    assert r.live[-1].label == label(3)
    assert r.live[-1].bars[BTC] == Bar(*candle(3, 107.0))


@on_rig(symbols=(BTC,))
async def test_ccxt_feed_running_candle_is_no_bar_while_our_clock_is_ahead_and_the_exchange_away(
    r: Rig,
) -> None:
    await begun(r)
    r.server.fail("/time", *[faults.server_error()] * 50)
    await r.to(2, 20.0)
    await r.candles(2, 1.0)
    r.time.wall_ns += 3_600 * 10**9
    await r.to(2, 40.0)
    r.server.faults.clear()
    await r.to(3)
    await r.candles(2, 7.0)  # its last values
    await r.trade(3, 6)
    assert r.minutes() == [0, 1, 2, 3, 4, 5]
    assert r.live[2].bars[BTC] == Bar(*candle(2, 107.0))


@on_rig()
async def test_ccxt_feed_long_gap_is_refilled_whole_before_rows_go_on(r: Rig) -> None:
    await begun(r)
    # The machine sleeps: no look is taken.
    for market in r.server.symbols:
        r.server.fill(market, "1m", START_MS + 2 * MINUTE_MS, 20)
    r.server.fail("klines", None, faults.server_error(), faults.server_error())
    await r.pass_time(18 * 60.0)
    assert r.minutes() == [0, 1], "BTC is there, ETH is not: the rows wait"
    await r.to(21, 2.0)
    assert r.minutes() == list(range(21))
    assert all(set(row.bars) == {BTC, ETH} for row in r.live)
    assert Kind.MISSING not in r.kinds()
    assert sorted((item.symbol, item.label) for item in read_shown(r, Kind.REFILLED))[0] == (
        BTC,
        label(2),
    )


def test_ccxt_feed_attempts_wait_longer_each_time_up_to_the_limit() -> None:
    async def run() -> list[float]:
        async with rig(symbols=(BTC,), exchange={"backoff_max_s": 8.0}) as r:
            await begun(r)
            r.server.fail("klines", *[faults.server_error()] * 20)
            attempts = []
            seen = len(r.server.requests)
            for _ in range(230):
                await r.pass_time(0.5)
                if len(r.server.requests) > seen:
                    seen = len(r.server.requests)
                    attempts.append(r.time.steady_ns / 1e9)
            return [round(after - before, 1) for before, after in zip(attempts, attempts[1:], strict=False)]

    waits = asyncio.run(run())
    assert waits == asyncio.run(run())
    assert waits == sorted(waits)
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] <= 8.5


def test_ccxt_feed_bars_before_are_asked_for_with_the_first_attempt_alone() -> None:
    async def run() -> list[int]:
        async with rig(symbols=(BTC,)) as r:
            await begun(r)
            r.server.fail("klines", *[faults.server_error()] * 20)
            seen = len(r.server.requests)
            await r.to(3, 10.0)
            starts = [int(query["startTime"]) for _, query in r.server.requests[seen:]]
            return [(start - START_MS) // MINUTE_MS for start in starts]

    assert asyncio.run(run()) == [-3, 2, 2, 2]


def test_ccxt_feed_has_no_more_requests_on_their_way_than_have_a_turn() -> None:
    async def run() -> None:
        server = ExchangeServer(symbols={f"{name}USDT": (name, "USDT") for name in "ABCDEF"})
        async with rig(server=server, symbols=tuple(f"{name}/USDT" for name in "ABCDEF")) as r:
            await r.settled()
            server.fail("klines", *[faults.hang] * 6)
            await r.to(1, 1.5)
            assert server.hanging == 4

    asyncio.run(run())


def test_ccxt_feed_symbol_that_fails_is_asked_no_sooner_because_another_bar_is_wanted() -> None:
    async def run() -> list[float]:
        async with rig() as r:
            await begun(r)
            bars, attempts = r.feed._exchange.bars, []

            async def some(symbol: str, *questions: Any) -> Any:
                if symbol == ETH:
                    attempts.append(r.time.steady_ns / 1e9)
                    raise FeedError("away", retryable=True, failure="unavailable", retry_after_s=None)
                return await bars(symbol, *questions)

            r.feed._exchange.bars = some  # type: ignore[assignment, method-assign]
            await r.trade(3, 7)
            assert [set(row.bars) for row in r.live[2:]] == [{BTC}] * 4, "another bar is wanted each minute"
            return [round(after - before, 1) for before, after in zip(attempts, attempts[1:], strict=False)]

    waits = asyncio.run(run())
    assert waits == sorted(waits)
    assert waits[-1] > 30.0


@on_rig(grace_s=150.0)
async def test_ccxt_feed_bar_that_is_corrected_before_its_row_goes_is_a_conflict_and_no_refill(
    r: Rig,
) -> None:
    await r.ready()
    await r.trade(1, 2)
    r.server.history["ETHUSDT", "1m"].pop(START_MS + 2 * MINUTE_MS)
    await r.trade(3, 3)
    r.server.history["BTCUSDT", "1m"][START_MS + 2 * MINUTE_MS] = candle(2, 150.0)
    await r.trade(4, 4)
    assert [(item.kind, item.symbol, item.label) for item in r.shown] == [(Kind.CONFLICT, BTC, label(2))]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (faults.server_error(500), "unavailable"),
        (faults.server_error(503), "unavailable"),
        (faults.html(200), "malformed"),
        (faults.html(502), "unavailable"),
        (faults.truncated(), "malformed"),
        (faults.half(), "unavailable"),
        (faults.answer(None), "malformed"),
        (faults.hang, "timeout"),
        (faults.drip(), "timeout"),
    ],
)
def test_ccxt_feed_broken_answer_of_rest_is_told_and_asked_for_again(fault, reason) -> None:
    async def run() -> None:
        hurried = {"request_timeout_s": 0.05 if reason == "timeout" else 2.0}
        async with rig(symbols=(BTC,), exchange=hurried) as r:
            await r.settled()
            r.server.fill("BTCUSDT", "1m", START_MS, 3)
            await r.to(0, 30.0)
            r.server.fail("klines", fault, fault)
            await r.to(1, 1.0)
            await r.until(lambda: bool(r.server.faults["klines"]) and not r.asking, "the first failed")
            await r.pass_time(1.0)
            await r.until(lambda: not r.server.faults["klines"] and not r.asking, "the second failed")
            assert r.minutes() == []
            await r.to(1, 8.0)
            assert r.minutes() == [0]
            assert [(item.kind, dict(item.detail)) for item in r.shown] == [
                (Kind.DISCONNECTED, {"channel": "rest", "reason": reason}),
                (Kind.RECONNECTED, {"channel": "rest"}),
            ]

    asyncio.run(run())


@on_rig(grace_s=120.0)
async def test_ccxt_feed_rate_limit_of_one_request_is_obeyed_for_every_symbol(r: Rig) -> None:
    await r.settled()
    for market in r.server.symbols:
        r.server.fill(market, "1m", START_MS, 4)
    await r.to(0, 30.0)
    r.server.fail("klines", faults.rate_limited("75"))
    await r.to(1, 2.0)
    request = len(r.server.requests)
    await r.to(2, 15.0)
    assert len(r.server.requests) == request
    await r.to(2, 20.0)
    assert r.minutes() == [0, 1]
    assert all(set(row.bars) == {BTC, ETH} for row in r.live)
    assert [item.detail.get("reason") for item in r.shown if "channel" in item.detail] == [
        "rate_limited",
        None,
    ]


@on_rig(symbols=(BTC,))
async def test_ccxt_feed_pause_of_a_day_is_kept_for_an_hour_and_told_while_rest_is_down_already(
    r: Rig,
) -> None:
    await r.settled()
    r.server.fill("BTCUSDT", "1m", START_MS, 4)
    await r.to(0, 30.0)
    r.server.fail("klines", faults.server_error(), faults.rate_limited("86400"))
    await r.to(1, 2.0)
    await r.to(1, 20.0)
    links = [dict(item.detail) for item in r.shown if item.detail.get("channel") == "rest"]
    assert links == [
        {"channel": "rest", "reason": "unavailable"},
        {
            "channel": "rest",
            "reason": "rate_limited",
            "pause": "it asks for a pause of 86400 s, of which 3600 s are kept",
        },
    ]


def test_ccxt_feed_pause_at_the_start_is_logged_with_its_cut() -> None:
    async def run() -> list[MutableMapping[str, Any]]:
        feed = CcxtFeed("binance", (BTC,), "1m", FeedSettings())

        async def closed(event: asyncio.Event, seconds: float) -> None:
            event.set()

        async def throttled() -> None:
            raise_feed_error(RateLimitExceeded("slow down"), "binance: markets", {"Retry-After": "99999"})

        feed._time.wait = closed  # type: ignore[method-assign]
        feed._exchange.load = throttled  # type: ignore[method-assign]
        with capture_logs() as reply:
            assert [item async for item in feed.items(None)] == []
        return reply

    [line] = asyncio.run(run())
    assert (line["event"], line["wait_s"]) == ("feed_start_waits", 3_600.0)
    assert "it asks for a pause of 99999 s, of which 3600 s are kept" in line["reason"]


@on_rig(exchange={"request_timeout_s": 30.0})
async def test_ccxt_feed_one_request_that_hangs_holds_up_no_other_symbol(r: Rig) -> None:
    await r.settled()
    for market in r.server.symbols:
        r.server.fill(market, "1m", START_MS, 3)
    await r.to(0, 30.0)
    r.server.fail("klines", faults.hang)
    await r.to(1, 8.0)
    assert r.minutes() == [0]
    assert set(r.live[0].bars) == {ETH}
    assert [(item.kind, item.symbol) for item in r.shown] == [(Kind.MISSING, BTC)]


@pytest.mark.parametrize("hours", [1, -1])
@on_rig()
async def test_ccxt_feed_clock_off_by_an_hour_is_told_and_blocks_entries_only(r: Rig, hours) -> None:
    r.time.wall_ns += hours * 3_600 * 10**9
    await r.ready()
    await r.trade(1, 3)
    clock = read_shown(r, Kind.CLOCK)
    assert [item.detail["reason"] for item in clock] == ["source differs"]
    assert clock[0].measured["ahead_s"] == pytest.approx(hours * 3_600.0, abs=2.0)
    assert r.minutes() == [0, 1, 2]  # the exchange's own time counts
    assert all(set(row.blocked.values()) == {"clock in doubt"} for row in r.live)


@on_rig()
async def test_ccxt_feed_clock_that_jumps_is_compared_with_the_exchange_at_once(r: Rig) -> None:
    await begun(r)
    r.time.wall_ns += 3_600 * 10**9
    await r.pass_time(1.0)
    r.time.wall_ns -= 3_600 * 10**9
    await r.trade(3, 4)
    assert [item.detail["reason"] for item in read_shown(r, Kind.CLOCK)][0] == "jump"
    assert [item.detail["reason"] for item in read_shown(r, Kind.CLOCK)][-1] == "source agrees"
    assert r.minutes() == [0, 1, 2, 3]
    assert r.live[-1].blocked == {}


@on_rig()
async def test_ccxt_feed_symbol_that_is_refused_while_it_runs_leaves_the_others_alone(r: Rig) -> None:
    await r.settled()
    for market in r.server.symbols:
        r.server.fill(market, "1m", START_MS, 8)
    await r.to(0, 30.0)
    del r.server.symbols["ETHUSDT"]
    await r.to(5, 8.0)
    assert r.minutes() == [0, 1, 2, 3, 4]
    assert all(set(row.bars) == {BTC} for row in r.live)
    refused = [(item.symbol, dict(item.detail)) for item in read_shown(r, Kind.DISCONNECTED)]
    assert refused == [(ETH, {"channel": "rest", "reason": "refused"})]
    assert [item.symbol for item in read_shown(r, Kind.STALE)] == [ETH]
    r.server.symbols["ETHUSDT"] = ("ETH", "USDT")
    await r.to(7, 30.0)
    assert [item.symbol for item in read_shown(r, Kind.RECONNECTED)] == [ETH]
    assert set(r.live[-1].bars) == {BTC, ETH}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ccxt_feed_storm_of_faults_gives_the_rows_of_a_clean_feed(seed: int) -> None:
    chance = random.Random(seed)

    async def misbehave(r: Rig, minute: int) -> None:
        act = chance.randrange(12)
        if act < 4:
            r.server.fail("klines", *[chance.choice(BROKEN)] * chance.randint(1, 3))
        elif act == 4:
            r.server.fail("klines", faults.server_error(), faults.html(), faults.truncated())
        elif act == 5:
            r.server.fail("klines", faults.rate_limited("2"), faults.half())
        elif act == 6:
            await r.candles(minute)
        elif act == 7 and minute > 1:  # the end of the last candle comes again after the next has begun
            values = r.server.history["BTCUSDT", "1m"][START_MS + (minute - 1) * MINUTE_MS]
            row = [START_MS + (minute - 1) * MINUTE_MS, *map(str, values), START_MS + minute * MINUTE_MS - 1]
            r.server.fail("klines", faults.answer([row]))

    async def run() -> None:
        async with rig(grace_s=45.0) as r:
            await r.ready()
            for minute in range(1, 40):
                await r.to(minute)
                await r.candles(minute)
                await r.to(minute, chance.choice((2.0, 20.0, 58.0)))
                await misbehave(r, minute)
            r.server.faults.clear()
            await r.trade(40, 42)
            assert r.minutes() == list(range(42))
            for minute, row in enumerate(r.live):
                assert row.bars == dict.fromkeys((BTC, ETH), Bar(*candle(minute)))
                assert row.blocked == {}
            assert set(r.kinds()) <= {Kind.DISCONNECTED, Kind.RECONNECTED, Kind.REFILLED}
            down = Counter(item.detail["channel"] for item in read_shown(r, Kind.DISCONNECTED))
            up = Counter(item.detail["channel"] for item in read_shown(r, Kind.RECONNECTED))
            assert down == up

    asyncio.run(run())
