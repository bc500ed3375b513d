"""The pieces of the exchange feed by themselves: names, addresses, failures, waits."""

import asyncio
import builtins
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from ccxt.base import errors
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.errors import FeedError
from schemas.settings.live import ExchangeSettings, FeedSettings
from services.feeds.port import FeedAnomalyKind
from tests.exchange.rig import NS_PER_MS, rig
from tests.exchange.server import MINUTE_MS, START_MS, ExchangeServer, candle
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import MOST_TEXT, PublicExchange, open_driver, raise_feed_error, shorten
from worker.feeds.ccxt.feed import CcxtFeed
from worker.feeds.ccxt.history import Patience
from worker.feeds.ccxt.source_clock import FeedTime, backoff_s


def leaves(urls: object) -> list[str]:
    if isinstance(urls, dict):
        return [leaf for value in urls.values() for leaf in leaves(value)]
    return [urls] if isinstance(urls, str) else []


@pytest.mark.parametrize("name", ["binance", "bybit", "coinbase", "kraken", "kucoin", "okx"])
def test_open_driver_with_a_gateway_reaches_no_other_host(name: str) -> None:
    driver = open_driver(name, ExchangeSettings(rest_url="http://gateway.test:8080/rest"))
    now = [urlsplit(url) for url in leaves(driver.urls["api"])]
    then = [urlsplit(url) for url in leaves(open_driver(name, ExchangeSettings()).urls["api"])]
    assert now
    for here, there in zip(now, then, strict=True):
        assert (here.scheme, here.netloc, here.path) == ("http", "gateway.test:8080", "/rest" + there.path)


@pytest.mark.parametrize("name", ["binance", "kraken"])
def test_open_driver_has_no_credentials_and_keeps_quiet(name: str) -> None:
    driver = open_driver(name, ExchangeSettings())
    assert not any(
        getattr(driver, key) for key in ("apiKey", "secret", "password", "uid", "privateKey", "token")
    )
    assert not driver.verbose
    assert logging.getLogger("ccxt").getEffectiveLevel() >= logging.ERROR


def test_public_exchange_offers_nothing_that_trades() -> None:
    offered = [name for name in dir(PublicExchange) if not name.startswith("_")]
    assert offered == ["bars", "check", "clock_ns", "close", "has_clock", "load", "page_bars"]


@pytest.mark.parametrize(
    "address",
    [
        "ftp://host",
        "host:80",
        "http://",
        "http://me:secret@host",
        "http://host/?key=secret",
        "http://host/#secret",
    ],
)
def test_exchange_settings_refuse_an_address_that_is_none_or_holds_a_secret(address: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ExchangeSettings(rest_url=address)
    assert "secret" not in str(caught.value.errors()[0]["msg"])


@pytest.mark.parametrize(
    ("quoted", "kept"),
    [
        ("GET https://host/api?symbol=X&key=abc 503", "GET https://host/api 503"),
        ("https://me:secret@host/path failed", "https://host/path failed"),
        ("<html><body>Soon\n back</body></html>", "Soon back"),
        ("<html><a href='x", ""),
    ],
)
def test_shortened_keeps_no_query_user_or_markup(quoted: str, kept: str) -> None:
    assert shorten(quoted) == kept


@given(st.text(max_size=400))
def test_shortened_is_one_short_line(text: str) -> None:
    line = shorten(text)
    assert len(line) <= MOST_TEXT + 3
    assert "\n" not in line


def test_backoff_doubles_up_to_its_limit_and_never_waits_less_than_asked() -> None:
    waits = [backoff_s(failures, 10.0, None) for failures in range(1, 7)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert backoff_s(10**6, 10.0, None) == 10.0
    assert backoff_s(7, 10.0, 30.0) == 30.0
    assert backoff_s(1, 10.0, 0.2) == 1.0


def test_patience_ends_at_once_where_trying_again_mends_nothing() -> None:
    questions: list[int] = []

    async def refuse() -> None:
        questions.append(1)
        raise FeedError("no", retryable=False, failure="refused", retry_after_s=None)

    with pytest.raises(FeedError):
        asyncio.run(Patience().ask(refuse))
    assert questions == [1]


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("DDoSProtection", "rate_limited"), ("RequestTimeout", "timeout"), ("OnMaintenance", "unavailable"),
        ("ExchangeError", "unavailable"), ("PermissionDenied", "refused"), ("BadSymbol", "refused"),
        ("NotSupported", "refused"), ("NullResponse", "malformed"), ("InvalidNonce", "network"),
        ("OperationFailed", "network"), ("KeyError", "malformed"), ("TimeoutError", "timeout"),
        ("ConnectionResetError", "network"),
    ],
)  # fmt: skip
def test_failure_of_an_exchange_is_that_of_its_nearest_base_and_keeps_no_cause(name, failure) -> None:
    raised: type[Exception] = getattr(errors, name, None) or getattr(builtins, name)
    with pytest.raises(FeedError) as caught:
        raise_feed_error(raised("GET https://host/?key=secret"), "binance: time", {"Retry-After": "7"})
    assert (caught.value.context["failure"], caught.value.retryable) == (failure, failure != "refused")
    assert caught.value.context["retry_after_s"] == (7.0 if failure == "rate_limited" else None)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("name", "bars"), [("okx", 300), ("kucoin", 1_000), ("btcturk", 500)])
def test_page_of_an_exchange_has_as_many_bars_as_ccxt_knows_and_a_thousand_at_most(name, bars) -> None:
    assert PublicExchange(name, ExchangeSettings()).page_bars == bars


def answering(exchange: PublicExchange, method: str, answered: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
    """What a question comes to when ccxt answers it so."""
    setattr(exchange._driver, method, answered)

    async def run() -> Any:
        try:
            async with asyncio.timeout(5.0):
                return await ask()
        finally:
            await exchange.close()

    return asyncio.run(run())


def test_public_exchange_gives_no_bar_before_the_first_that_was_asked_for() -> None:
    exchange = PublicExchange("binance", ExchangeSettings())

    async def rows(*_: object) -> object:
        return [[60_000, 1.0, 1.0, 1.0, 1.0, 1.0], [120_000, 1.0, 2, 1.0, 1.0, None]]

    [found] = answering(
        exchange, "fetch_ohlcv", rows, lambda: exchange.bars("BTC/USDT", "1m", 60_000 * NS_PER_MS + 1, 9)
    )
    assert found[:2] == ("BTC/USDT", 120_000 * NS_PER_MS)
    assert [repr(value) for value in found.bar] == ["1.0", "2.0", "1.0", "1.0", "nan"]


def test_public_exchange_ends_a_request_that_ccxt_would_wait_for() -> None:
    exchange = PublicExchange("binance", ExchangeSettings(request_timeout_s=0.01))

    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(FeedError, match="^binance: time: timeout"):
        answering(exchange, "fetch_time", hang, exchange.clock_ns)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("load_markets", {}),
        ("fetch_time", "now"),
        ("fetch_ohlcv", {"rows": []}),
        ("fetch_ohlcv", [[60_000, 1.0, 1.0]]),
        ("fetch_ohlcv", [["60000", 1.0, 1.0, 1.0, 1.0, 1.0]]),
    ],
)
def test_public_exchange_answer_of_another_shape_is_malformed(method: str, answer: object) -> None:
    exchange = PublicExchange("binance", ExchangeSettings())

    async def answered(*_: object) -> object:
        return answer

    request = {
        "load_markets": exchange.load,
        "fetch_time": exchange.clock_ns,
        "fetch_ohlcv": lambda: exchange.bars("BTC/USDT", "1m", 0, 1),
    }
    with pytest.raises(FeedError, match="of another shape") as caught:
        answering(exchange, method, answered, request[method])
    assert (caught.value.context["failure"], caught.value.retryable) == ("malformed", True)


def test_feed_time_waits_for_the_event_or_the_end() -> None:
    async def run() -> None:
        event, time = asyncio.Event(), FeedTime()
        await time.wait(event, 0.001)
        event.set()
        await time.wait(event, 3_600.0)
        assert time.wall() > 1_700_000_000 * 10**9
        assert time.steady() <= time.steady()

    asyncio.run(run())


def test_ccxt_feed_on_an_exchange_without_clock_goes_by_its_candles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublicExchange, "has_clock", property(lambda self: False))

    async def run() -> None:
        async with rig() as r:
            await r.ready()
            await r.trade(1, 2)
            r.time.wall_ns += 3_600 * 10**9
            await r.pass_time(1.0)
            r.time.wall_ns -= 3_600 * 10**9
            await r.trade(3, 4)
            reasons = [item.detail["reason"] for item in r.shown if item.kind is FeedAnomalyKind.CLOCK]
            assert (reasons[0], reasons[-1]) == ("jump", "source agrees")
            assert r.minutes() == [0, 1, 2, 3]
            assert all("/time" not in path for path, _ in r.server.requests)

    asyncio.run(run())


def test_ccxt_feed_that_never_ran_can_be_closed() -> None:
    asyncio.run(CcxtFeed("binance", ("BTC/USDT",), "1m", FeedSettings()).close())


def test_ccxt_feed_history_longer_than_a_page_is_read_in_pages() -> None:
    async def run() -> None:
        server = ExchangeServer(page=100)
        for market in server.symbols:
            server.fill(market, "1m", START_MS - 1_300 * MINUTE_MS, 1_301)
        async with rig(server=server, history_bars=1_250) as r:
            await r.ready()
            await r.trade(1, 1)
            first = (START_MS - 1_250 * MINUTE_MS) * NS_PER_MS
            assert [row.label for row in r.rows] == [first + k * 60 * 10**9 for k in range(1_251)]
            assert r.rows[0].bars["BTC/USDT"] == Bar(*candle(50))
            assert r.shown == []

    asyncio.run(run())
