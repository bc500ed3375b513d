"""Daily bars of Yahoo and Stooq in the form of an exchange: public pages that no contract promises.

Their terms allow private use and no redistribution; few requests are made, one for thousands of days. A label
is the day of the session at 00:00 UTC. Yahoo's prices are adjusted for splits, those of Stooq as it has them.
"""

import asyncio
import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from schemas.errors import ConfigError, DataError, FeedError
from schemas.settings.live import ExchangeSettings
from services.feeds.label_grid import NS
from services.feeds.raw_bar import RawBar
from services.model_calls.retry_after import pause_of
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import PublicExchange, raise_feed_error, shorten

TIMEFRAME = "1d"
DAY_S = 86_400
MOST_BYTES = 50_000_000
_AGENT = "Mozilla/5.0 (thinktwice)"  # Yahoo answers none but browsers
Rows = list[tuple[int, list[Any]]]


@dataclass(frozen=True)
class SourceFormat:
    """How one source is asked, and what it answers."""

    host: str  # its address
    path: Callable[[str, int, int], str]  # of a symbol and the first and the last second
    # day (second of its 00:00 UTC) and values of each row of an answer for a symbol
    read: Callable[[str, str], Rows]


def _yahoo_path(symbol: str, first: int, last: int) -> str:
    return f"/v8/finance/chart/{quote(symbol, safe='')}?period1={first}&period2={last}&interval=1d"


def _read_yahoo(symbol: str, text: str) -> Rows:
    chart = json.loads(text)["chart"]
    if chart.get("error"):
        raise DataError(f"yahoo has no {symbol!r}: {shorten(str(chart['error']))}", symbol=symbol)
    [result] = chart["result"]
    quotes, meta = result["indicators"]["quote"][0], result["meta"]
    name = meta.get("exchangeTimezoneName")  # the offset is that of today, in summer and winter alike
    zone = ZoneInfo(name) if name else timezone(timedelta(seconds=meta["gmtoffset"]))
    times = [datetime.fromtimestamp(second, zone) for second in result.get("timestamp", [])]
    days = [int(time.replace(hour=0, minute=0, second=0, tzinfo=UTC).timestamp()) for time in times]
    columns = [
        [None if value is None else float(value) for value in quotes.get(name) or [None] * len(days)]
        for name in Bar._fields
    ]
    return [(day, list(values)) for day, *values in zip(days, *columns, strict=True)]


def _stooq_path(symbol: str, first: int, last: int) -> str:
    days = [datetime.fromtimestamp(second, UTC).strftime("%Y%m%d") for second in (first, last)]
    return f"/q/d/l/?s={quote(symbol.lower(), safe='')}&d1={days[0]}&d2={days[1]}&i=d"


def _read_stooq(symbol: str, text: str) -> Rows:
    if "No data" in text[:80]:
        return []
    if not text.startswith("Date,"):
        raise DataError(
            f"stooq answers {text[:80]!r}: download the file of {symbol} there and name it with --data"
        )
    found = []
    for row in csv.DictReader(text.splitlines()):
        day = datetime.fromisoformat(row["Date"]).replace(tzinfo=UTC)
        found.append((int(day.timestamp()), [_number(row.get(name.title())) for name in Bar._fields]))
    return found


def _number(cell: str | None) -> float | None:
    return float(cell) if cell else None


FORMATS = {
    "yahoo": SourceFormat("https://query1.finance.yahoo.com", _yahoo_path, _read_yahoo),
    "stooq": SourceFormat("https://stooq.com", _stooq_path, _read_stooq),
}


class PublicSource:
    """One of `FORMATS` with what `fetch` asks of a `PublicExchange`."""

    page_bars = 5_000

    def __init__(self, name: str, settings: ExchangeSettings) -> None:
        import httpx2

        self.name, self._format, self._timeout_s = name, FORMATS[name], settings.request_timeout_s
        self._base = settings.rest_url or self._format.host
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(self._timeout_s), headers={"User-Agent": _AGENT}
        )

    async def load(self) -> None:
        """There is nothing to learn first."""

    def check(self, symbols: Iterable[str], timeframe: str) -> None:
        """Refuse what the source does not offer.

        Raises:
            ConfigError: another timeframe than 1d.
        """
        if timeframe != TIMEFRAME:
            raise ConfigError(f"{self.name} has no bars of {timeframe!r} here: it offers {TIMEFRAME}")

    async def clock_ns(self) -> int | None:
        """It does not tell its time."""
        return None

    async def bars(self, symbol: str, timeframe: str, since_ns: int, limit: int) -> list[RawBar]:
        """Bars with labels from `since_ns` on.

        Raises:
            FeedError: no usable answer.
            DataError: an unknown symbol.
        """
        first, doing = since_ns // NS, f"{self.name}: bars of {symbol}"
        try:
            async with asyncio.timeout(self._timeout_s):
                text = await self._get(self._format.path(symbol, first, first + limit * DAY_S), doing)
            rows = self._format.read(symbol, text)
        except (DataError, FeedError):
            raise
        except Exception as error:  # noqa: BLE001 - of the network, or of an answer of another shape
            raise_feed_error(error, doing)
        found = [
            RawBar(symbol, second * NS, Bar(*values)) for second, values in rows if None not in values[:-1]
        ]
        return [bar for bar in found if bar.label >= since_ns]

    async def close(self) -> None:
        """Give back every connection."""
        await self._client.aclose()

    async def _get(self, path: str, doing: str) -> str:
        async with self._client.stream("GET", self._base + path) as reply:
            body = b""
            async for part in reply.aiter_bytes():
                body += part
                if len(body) > MOST_BYTES:
                    raise ValueError(f"an answer of more than {MOST_BYTES:,} bytes")
        status = reply.status_code
        if status not in (200, 404):
            pause = pause_of(reply.headers) if status == 429 else None
            raise FeedError(
                f"{doing}: the answer is {status}",
                retryable=status == 429 or status >= 500,
                failure="rate_limited" if status == 429 else "unavailable",
                retry_after_s=None if pause is None else pause.wait_s,
                cut_short=None,
            )
        return body.decode()


HistorySource = PublicExchange | PublicSource


def open_source(name: str, settings: ExchangeSettings) -> HistorySource:
    """A source of daily bars, or an exchange of ccxt."""
    return PublicSource(name, settings) if name in FORMATS else PublicExchange(name, settings)
