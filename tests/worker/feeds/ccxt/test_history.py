"""Reading the past page by page from exchanges that answer otherwise than they were asked."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar
from tests.worker.feeds.planted import Plan
from tests.worker.feeds.planted_exchange import PlannedMarket
from tests.worker.live.bad_markets import market
from tests.worker.live.virtual_time import run_virtually
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.history import Page, Patience, pages

MINUTE = 60 * 10**9
PAGE, BARS = 200, 1_000
LAST = (BARS - 1) * MINUTE
NOW = BARS * MINUTE
Answer = Callable[[int, int, list[RawBar]], list[RawBar]]


def candle(label: int, symbol: str = "X") -> RawBar:
    return RawBar(symbol, label, Bar(1.0, 1.0, 1.0, 1.0, 1.0))


class OddExchange:
    """Answers as `answer` says, of (since, limit, every bar of the past)."""

    page_bars = PAGE

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests = 0

    async def bars(self, symbol: str, timeframe: str, since: int, limit: int) -> list[RawBar]:
        """As `PublicExchange` does, without what lies before `since`."""
        self.requests += 1
        past = [candle(number * MINUTE) for number in range(BARS + 1)]
        return [episode for episode in self._answer(since, limit, past) if episode.label >= since]


def read(answer: Answer) -> tuple[list[Page], OddExchange]:
    exchange: Any = OddExchange(answer)

    async def all_of_it() -> list[Page]:
        return [page async for page in pages(exchange, "X", "1m", 0, LAST, Patience(), lambda: NOW)]

    return asyncio.run(all_of_it()), exchange


def honest(since: int, limit: int, past: list[RawBar]) -> list[RawBar]:
    return [episode for episode in past if episode.label >= since][:limit]


def labels(found: list[Page]) -> list[int]:
    return [bar.label // MINUTE for page in found for bar in page.bars if bar.label % MINUTE == 0]


EVERY = list(range(BARS))
STRAYS = (10**30, NOW + 50 * 365 * 1_440 * MINUTE, NOW + 2 * MINUTE)


def with_stray(label: int) -> Answer:
    return lambda since, limit, past: [*honest(since, limit, past), candle(label)]


@pytest.mark.parametrize("label", STRAYS)
def test_history_with_one_candle_of_the_future_is_complete_and_tells_it(label) -> None:
    found, exchange = read(with_stray(label))
    assert labels(found) == EVERY
    assert {episode.label for page in found for episode in page.future} == {label}
    assert exchange.requests == BARS // PAGE


def test_history_with_one_candle_far_ahead_of_its_page_is_complete() -> None:
    found, _ = read(with_stray(900 * MINUTE))
    assert sorted(labels(found)) == sorted([*EVERY, 900]), (
        "the stray comes again beside its own page, and alone"
    )


def off_by_a_second(since: int, limit: int, past: list[RawBar]) -> list[RawBar]:
    return [candle(episode.label + 10**9) for episode in honest(since, limit, past)]


def silent_in_the_middle(since: int, limit: int, past: list[RawBar]) -> list[RawBar]:
    return [] if since == PAGE * MINUTE else honest(since, limit, past)


def with_a_hole(since: int, limit: int, past: list[RawBar]) -> list[RawBar]:
    return honest(
        since, limit, [episode for episode in past if not 150 * MINUTE < episode.label < 750 * MINUTE]
    )


@pytest.mark.parametrize(
    ("answer", "expected", "most"),
    [
        (lambda since, limit, past: honest(since, limit, past)[::-1], EVERY, 5),
        (lambda since, limit, past: honest(since, min(limit, 7), past), EVERY, 143),
        (lambda since, limit, past: honest(since, BARS, past), EVERY, 5),
        (lambda since, limit, past: past[:limit], EVERY[:200], 9),
        (lambda since, limit, past: past[-limit:], EVERY[801:], 3),
        (lambda since, limit, past: [], [], 10),
        (lambda since, limit, past: [candle(NOW + k * MINUTE) for k in range(9, 99)], [], 10),
        (off_by_a_second, [], 10),
        (silent_in_the_middle, [*EVERY[:200], *EVERY[400:]], 6),
        (with_a_hole, [*EVERY[:151], *EVERY[750:]], 6),
        (lambda since, limit, past: honest(since, limit, past)[:1], EVERY, 1_000),
    ],
    ids=[
        "descending", "smaller pages", "larger pages", "one page for ever", "ignores since", "nothing",
        "only the future", "off the grid by a second", "nothing in the middle", "a hole of three pages",
        "one bar a page",
    ],
)  # fmt: skip
def test_history_of_an_odd_exchange_ends_with_every_bar_that_it_gave(answer, expected, most) -> None:
    found, exchange = read(answer)
    assert sorted(labels(found)) == expected
    assert exchange.requests <= most
    assert found[-1].next_label > LAST


def test_history_hands_on_labels_off_the_grid_to_be_told_and_never_as_a_cursor() -> None:
    found, _ = read(
        lambda since, limit, past: [
            *honest(since, 20, past),
            candle(since + 500 * MINUTE + 10**9),
            candle(since + 10**9),
        ]
    )
    assert labels(found) == EVERY
    odd = [bar.label for page in found for bar in page.bars if bar.label % MINUTE]
    assert odd == [since * MINUTE + 10**9 for since in range(0, BARS, 20)]


def heard(spoil: Callable[[int, list[RawBar]], list[RawBar]]) -> list[FeedAnomaly]:
    """What the feed tells of a history in which one symbol is answered so."""
    feed = PlannedMarket(Plan(market(3, 240), 200))
    honest_bars = feed.exchange.bars

    async def bars(symbol: str, timeframe: str, since: int, limit: int) -> list[RawBar]:
        found = await honest_bars(symbol, timeframe, since, limit)
        return spoil(feed.exchange.now, found) if symbol == feed.symbols[0] else found

    feed.exchange.bars = bars  # type: ignore[assignment, method-assign]

    async def shown() -> list[FeedAnomaly]:
        return [item async for item in feed.items(None) if isinstance(item, FeedAnomaly)]

    found: list[FeedAnomaly] = run_virtually(shown())
    return found


def test_feed_history_with_a_candle_of_the_future_tells_it_and_lacks_nothing() -> None:
    future = 4_000_000_000 * 10**9 - 4_000_000_000 * 10**9 % MINUTE
    found = heard(lambda now, bars: [*bars, candle(future, bars[0].symbol)] if len(bars) > 100 else bars)
    assert [(episode.kind, episode.label) for episode in found] == [(FeedAnomalyKind.UNCLOSED, future)]


def test_feed_history_of_fewer_bars_than_asked_for_is_told_with_both_numbers() -> None:
    [shown] = heard(lambda now, bars: bars[-51:] if len(bars) > 100 else bars)
    assert (shown.kind, shown.detail["bars"], shown.detail["history"]) == (FeedAnomalyKind.MISSING, 150, 200)
