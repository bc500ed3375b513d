"""A market that trades by itself, on the loopback exchange and by the wall clock: one-minute candles."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.exchange.server import MINUTE_MS, Candle, ExchangeServer
from trading_core.bars import COLUMNS
from worker.feeds.sample_data.worlds import make_world

HISTORY = 320  # minutes before the first
BEAT_S = 0.5
NAMES = ("ADA", "BNB", "BTC", "ETH", "SOL", "XRP")


def symbols() -> tuple[str, ...]:
    """As an operator names them."""
    return tuple(f"{name}/USDT" for name in NAMES)


@asynccontextmanager
async def real_market(seed: int, minutes: int) -> AsyncIterator[ExchangeServer]:
    """An exchange that trades while the block runs, for at most so many minutes."""
    markets = {f"{name}USDT": (name, "USDT") for name in NAMES}
    now_ms = _now_ms()
    server = ExchangeServer(symbols=markets, now_ms=now_ms)
    first_ms = now_ms // MINUTE_MS * MINUTE_MS - HISTORY * MINUTE_MS
    series = make_world(
        "reverting", seed=seed, bars=HISTORY + minutes + 5, symbols=len(NAMES), timeframe="1m"
    )
    candles: dict[str, dict[int, Candle]] = {
        market: {
            first_ms + k * MINUTE_MS: _candle(tuple(float(getattr(series, name)[k, s]) for name in COLUMNS))
            for k in range(series.shape[0])
        }
        for s, market in enumerate(markets)
    }
    for market, rows in candles.items():
        server.history[(market, "1m")] = {at: row for at, row in rows.items() if at + MINUTE_MS <= now_ms}
    async with server:
        trading = asyncio.create_task(_trade(server, candles))
        try:
            yield server
        finally:
            trading.cancel()
            await asyncio.wait({trading})


async def _trade(server: ExchangeServer, candles: dict[str, dict[int, Candle]]) -> None:
    open_ms = server.now_ms // MINUTE_MS * MINUTE_MS
    while True:
        server.now_ms = _now_ms()
        this_ms = server.now_ms // MINUTE_MS * MINUTE_MS
        for market, rows in candles.items():
            shown = server.history[(market, "1m")]
            if this_ms != open_ms:
                shown[open_ms] = rows[open_ms]
            shown[this_ms] = _so_far(rows[this_ms], (server.now_ms - this_ms) / MINUTE_MS)
        open_ms = this_ms
        await asyncio.sleep(BEAT_S)


def _so_far(whole: Candle, share: float) -> Candle:
    """A candle that is not over: on a straight way from its open to its close."""
    first, _, _, last, volume = whole
    price = round(first + share * (last - first), 2)
    return (first, max(first, price), min(first, price), price, round(share * volume, 3))


def _candle(values: tuple[float, ...]) -> Candle:
    first, high, low, last, volume = (round(value, 2) for value in values)
    return (first, high, low, last, volume)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
