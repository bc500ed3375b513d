"""An exchange on loopback that speaks Binance's public spot protocol, and misbehaves on command.

It answers exchangeInfo, time, and klines with limit and paging. ccxt's own classes talk to it unchanged;
nothing happens on it that the test did not ask for.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.exchange.faults import Fault

MINUTE_MS = 60_000
INTERVAL_MS = {"1m": MINUTE_MS, "5m": 5 * MINUTE_MS, "1h": 60 * MINUTE_MS, "1d": 1_440 * MINUTE_MS}
START_MS = 1_700_000_040_000  # 2023-11-14T22:14:00Z, a whole minute
Candle = tuple[float, float, float, float, float]


def candle(k: int, base: float = 100.0) -> Candle:
    """A possible candle, another one for every k."""
    middle = base + k % 17
    return (middle, middle + 2.0, middle - 2.0, middle + (k % 3) - 1.0, 10.0 + k % 5)


@dataclass
class ExchangeServer:
    """The exchange; use as an async context manager.

    Attributes:
        symbols: market ids with base and quote.
        now_ms: its clock, moved by the test.
        history: candles by market id and interval, by open time; what REST answers.
        page: most rows of one answer.
        faults: the next REST requests whose path contains the key meet the next of these instead.
        requests: every REST request, as path and query.
        omit_running: REST leaves out the candle that is not over.
        strays: open times, ms, of candles that every answer of REST holds beside what was asked for.
        inactive: markets that are not traded any more.
        port: where it listens; 0: any free one.
        hanging: requests that get no answer.
    """

    symbols: dict[str, tuple[str, str]] = field(
        default_factory=lambda: {"BTCUSDT": ("BTC", "USDT"), "ETHUSDT": ("ETH", "USDT")}
    )
    now_ms: int = START_MS
    history: dict[tuple[str, str], dict[int, Candle]] = field(default_factory=dict)
    page: int = 1_000
    faults: dict[str, deque[Fault | None]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    omit_running: bool = False
    strays: tuple[int, ...] = ()
    inactive: set[str] = field(default_factory=set)
    port: int = 0
    hanging: int = 0

    async def __aenter__(self) -> Self:
        """Listen on a free port of loopback."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._rest)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cut every connection and stop."""
        await self._runner.cleanup()

    @property
    def rest_url(self) -> str:
        """For `runtime.feed.exchange.rest_url`."""
        return f"http://127.0.0.1:{self.port}"

    def fill(self, market: str, interval: str, first_ms: int, count: int, base: float = 100.0) -> None:
        """Put a run of possible candles into the history."""
        step = INTERVAL_MS[interval]
        rows = self.history.setdefault((market, interval), {})
        rows.update({first_ms + k * step: candle(k, base) for k in range(count)})

    def fail(self, path: str, *faults: Fault | None) -> None:
        """The next requests to a path meet these, one each; None lets one pass."""
        self.faults.setdefault(path, deque()).extend(faults)

    # --- REST

    async def _rest(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.match_info["path"]
        self.requests.append((path, dict(request.query)))
        for part, faults in self.faults.items():
            if part in path and faults and (fault := faults.popleft()) is not None:
                return await self._meet(fault, request)
        answers = {"/api/v3/exchangeInfo": self._markets, "/api/v3/time": self._time}
        if path == "/api/v3/klines":
            return self._klines(request.query)
        if path.endswith("/exchangeInfo") and path not in answers:
            return web.json_response({"symbols": []})
        answer = answers.get(path)
        return answer() if answer else web.json_response({"code": -1, "msg": "unknown path"}, status=404)

    async def _meet(self, fault: Fault, request: web.Request) -> web.StreamResponse:
        endless = fault.__name__ == "hang"
        self.hanging += endless
        try:
            return await fault(request)
        finally:
            self.hanging -= endless

    def _time(self) -> web.Response:
        return web.json_response({"serverTime": self.now_ms})

    def _markets(self) -> web.Response:
        rows = [market(name, *pair, active=name not in self.inactive) for name, pair in self.symbols.items()]
        return web.json_response({"timezone": "UTC", "symbols": rows})

    def _klines(self, query: Any) -> web.Response:
        name, interval = query["symbol"], query["interval"]
        if name not in self.symbols:
            return web.json_response({"code": -1121, "msg": "Invalid symbol."}, status=400)
        rows = self.history.get((name, interval), {})
        first, last = int(query.get("startTime", 0)), int(query.get("endTime", self.now_ms))
        step = INTERVAL_MS[interval]
        reached = self.now_ms - step if self.omit_running else self.now_ms
        keep = [open_ms for open_ms in sorted(rows) if first <= open_ms <= min(last, reached)]
        limit = min(int(query.get("limit", 500)), self.page)
        chosen = keep[:limit] if "startTime" in query else keep[-limit:]
        found = [rest_row(open_ms, rows[open_ms], step) for open_ms in chosen]
        return web.json_response(found + [rest_row(open_ms, candle(0), step) for open_ms in self.strays])


def market(name: str, base: str, quote: str, *, active: bool = True) -> dict[str, Any]:
    """One entry of exchangeInfo."""
    return {
        "symbol": name,
        "status": "TRADING" if active else "BREAK",
        "baseAsset": base,
        "baseAssetPrecision": 8,
        "quoteAsset": quote,
        "quotePrecision": 8,
        "quoteAssetPrecision": 8,
        "orderTypes": ["LIMIT", "MARKET"],
        "isSpotTradingAllowed": True,
        "isMarginTradingAllowed": False,
        "filters": [
            {"filterType": "PRICE_FILTER", "minPrice": "0.01", "maxPrice": "1000000", "tickSize": "0.01"}
        ],
        "permissions": ["SPOT"],
    }


def rest_row(open_ms: int, values: Iterable[float], step: int) -> list[Any]:
    """One row of klines."""
    o, h, low, c, v = (repr(value) for value in values)
    return [open_ms, o, h, low, c, v, open_ms + step - 1, "0", 0, "0", "0", "0"]
