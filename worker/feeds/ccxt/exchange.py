"""The public data of one exchange: markets, its clock and its bars; every call ends.

A failure is a `FeedError` that says whether to try again; what the operator must mend is an `OperatorError`.
There is no way from here to an account or an order.
"""

import asyncio
import importlib
import logging
import math
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from urllib.parse import urlsplit

from schemas.errors import ConfigError, DataError, FeedError, nearest
from schemas.settings.live import ExchangeSettings
from schemas.timeframes import TIMEFRAME_SECONDS, UNEVEN
from services.feeds.raw_bar import RawBar
from services.model_calls.retry_after import pause_of
from trading_core.live.growing_bars import Bar

NS_PER_MS = 1_000_000
DEFAULT_PAGE, MOST_PAGE = 500, 1_000  # bars
MOST_TEXT = 160
_QUERY = re.compile(r"\?\S*")
_USER = re.compile(r"//[^/\s@]*@")
_MARKUP = re.compile(r"<[^>]*>?")
_OTHER_SHAPE = ("ValueError", "LookupError", "TypeError", "AttributeError", "ArithmeticError")
_REFUSED = ("AuthenticationError", "BadRequest", "ArgumentsRequired", "NotSupported", "RestrictedLocation")
_FAILURES = {  # by class, of which the nearest base counts
    "rate_limited": ("DDoSProtection", "RateLimitExceeded"),
    "timeout": ("RequestTimeout", "TimeoutError"),
    "unavailable": ("ExchangeNotAvailable", "ExchangeError"),
    "refused": _REFUSED,
    "malformed": ("BadResponse", *_OTHER_SHAPE),
}


class PublicExchange:
    """Reads one exchange. Open it, `load` it once, `close` it in the end.

    What it is asked for ends in a `FeedError` where it cannot be reached, or answers nothing usable.
    """

    def __init__(self, name: str, settings: ExchangeSettings) -> None:
        self.name, self._settings = name, settings
        self._driver = open_driver(name, settings)
        self._shut = False

    @property
    def has_clock(self) -> bool:
        """Whether it tells its time."""
        return bool(self._driver.has.get("fetchTime"))

    @property
    def page_bars(self) -> int:
        """Most bars of one answer, as far as ccxt knows."""
        limit: int | None = self._driver.feature_value_by_type("spot", None, "fetchOHLCV", "limit")
        return min(limit, MOST_PAGE) if limit else DEFAULT_PAGE

    async def load(self) -> None:
        """Learn its markets."""
        async with self._ask("markets", most_requests=3):
            found = await self._driver.load_markets()
            if not found:
                _other_shape(found)

    def check(self, symbols: Iterable[str], timeframe: str) -> None:
        """Refuse what the exchange does not offer.

        Raises:
            ConfigError: it has no bars of this timeframe.
            DataError: an unknown symbol, or one that is not traded any more.
        """
        names = self._driver.timeframes or {}
        offered = [name for name in TIMEFRAME_SECONDS if name in names and name not in UNEVEN]
        if timeframe not in offered:
            raise ConfigError(
                f"{self.name} has no bars of {timeframe!r}: it offers {', '.join(offered) or 'none of ours'}"
            )
        markets = self._driver.markets
        for symbol in symbols:
            if symbol not in markets:
                advice = nearest(symbol, markets) or f" Write it like {min(markets)!r}."
                problem = f"has no symbol {symbol!r} among its {len(markets)}.{advice}"
            elif markets[symbol].get("active") is False:
                problem = f"does not trade {symbol!r} any more: choose another"
            else:
                continue
            raise DataError(f"{self.name} {problem}", symbol=symbol)

    async def clock_ns(self) -> int | None:
        """Its time in ns; None where it does not tell."""
        if not self.has_clock:
            return None
        async with self._ask("time"):
            reply = await self._driver.fetch_time()
            return reply * NS_PER_MS if isinstance(reply, int) else _other_shape(reply)

    async def bars(self, symbol: str, timeframe: str, since_ns: int, limit: int) -> list[RawBar]:
        """Bars with labels from `since_ns` on, as they came; the last may still be running.

        What is no number is NaN.
        """
        since_ms = -(-since_ns // NS_PER_MS)
        async with self._ask(f"bars of {symbol}"):
            rows = await self._driver.fetch_ohlcv(symbol, timeframe, since_ms, limit)
            if not (isinstance(rows, list) and all(map(_is_bar, rows))):
                _other_shape(rows)
            bars = [RawBar(symbol, row[0] * NS_PER_MS, Bar(*map(_number, row[1:6]))) for row in rows]
        return [bar for bar in bars if bar.label >= since_ns]

    async def close(self) -> None:
        """Give back every connection; a second time does nothing."""
        if not self._shut:
            self._shut = True
            await self._driver.close()

    @asynccontextmanager
    async def _ask(self, what: str, most_requests: int = 1) -> AsyncIterator[None]:
        """Judge what is raised meanwhile; a request has twice its time, since it may wait for its turn."""
        driver = self._driver
        driver.last_response_headers = None
        try:
            async with asyncio.timeout(2 * most_requests * self._settings.request_timeout_s):
                yield
        except Exception as error:  # noqa: BLE001 - ccxt raises its own tree, and whatever its parsers meet
            raise_feed_error(error, f"{self.name}: {what}", driver.last_response_headers)


def _is_bar(row: Any) -> bool:
    return isinstance(row, (list, tuple)) and len(row) > 5 and type(row[0]) is int


def _other_shape(answer: Any) -> NoReturn:
    raise ValueError(f"the answer is a {type(answer).__name__} of another shape")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


def open_driver(name: str, settings: ExchangeSettings) -> Any:
    """A ccxt exchange.

    Raises:
        ConfigError: ccxt is not installed, or knows no such exchange.
    """
    try:
        rest = importlib.import_module("ccxt.async_support")
    except ModuleNotFoundError as error:
        raise ConfigError(
            "an exchange needs ccxt, which is not installed: run pip install 'thinktwice[live]'"
        ) from error
    if name not in rest.exchanges:
        raise ConfigError(
            f"exchange {name!r} is not one of the {len(rest.exchanges)} that ccxt {rest.__version__} knows."
            f"{nearest(name, rest.exchanges)}"
        )
    config: dict[str, Any] = {"timeout": settings.request_timeout_s * 1_000}
    if settings.markets:
        config["options"] = {"fetchMarkets": {"types": list(settings.markets)}}
    if settings.request_interval_ms is not None:
        config["rateLimit"] = max(settings.request_interval_ms, 0.001)
    driver = getattr(rest, name)(config)
    # It prints whole answers at DEBUG, and complains of objects that were not closed.
    logging.getLogger("ccxt").setLevel(logging.ERROR)
    _expect_json(driver, rest.BadResponse)
    if settings.rest_url is not None:
        _redirect(driver.urls, settings.rest_url)
        if settings.rest_url.startswith("http://"):
            driver.timeout_on_exit = 0  # only TLS connections need time to end in order
    return driver


def _expect_json(driver: Any, malformed: type[Exception]) -> None:
    """An answer of success that is not JSON is malformed; ccxt would read it as an empty list of bars."""
    handle_errors = driver.handle_errors

    def judge_status(status: int, *lines: Any) -> Any:
        *_, parsed, _sent_headers, _sent_body = lines
        if 200 <= status < 300 and parsed is None:
            raise malformed("an answer that is not JSON")
        return handle_errors(status, *lines)

    driver.handle_errors = judge_status


def _redirect(urls: Any, gateway: str) -> None:
    """Put the gateway before the path of every address, nested as ccxt has them; changed in place."""
    for key, value in urls.items():
        if isinstance(value, dict):
            _redirect(value, gateway)
        elif isinstance(value, str) and value.split("://")[0] in ("http", "https"):
            urls[key] = gateway + urlsplit(value).path


def raise_feed_error(error: Exception, doing: str, headers: Mapping[str, str] | None = None) -> NoReturn:
    """Raise what ccxt, asyncio or a parser raised as what it means for a feed.

    Only the class and a shortened text are taken over: never an address with a query, a header, a page of
    HTML, or the cause, which may hold a request.

    Raises:
        FeedError: always. In its context are `failure`, `retry_after_s` as `headers` ask for it, and
            `cut_short`: what to say of a pause that is not kept in full.
    """
    bases = [base.__name__ for base in type(error).__mro__]
    meant = [failure for name in bases for failure, names in _FAILURES.items() if name in names]
    failure = meant[0] if meant else "network"
    pause = pause_of(headers or {}) if failure == "rate_limited" else None
    shown = None if pause is None else pause.shown
    reply = shorten(str(error))
    raise FeedError(
        f"{doing}: {failure.replace('_', ' ')} ({bases[0]}{': ' if reply else ''}{reply})"
        f"{'; ' if shown else ''}{shown or ''}",
        retryable=failure != "refused",
        failure=failure,
        retry_after_s=None if pause is None else pause.wait_s,
        cut_short=shown,
    ) from None


def shorten(text: str) -> str:
    """One short line without queries, users or markup."""
    plain = _MARKUP.sub(" ", _USER.sub("//", _QUERY.sub("", text)))
    line = " ".join(plain.split())
    return line if len(line) <= MOST_TEXT else f"{line[:MOST_TEXT]}..."
