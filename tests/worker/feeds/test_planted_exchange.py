"""What an exchange feed does about a hole must not depend on the holes before it."""

from collections import Counter

from services.feeds.port import BarRow, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from tests.trading_core.market import random_series
from tests.worker.feeds.planted import Fault, Plan
from tests.worker.feeds.planted_exchange import PlannedMarket
from tests.worker.live.paper_runs import rows_of
from tests.worker.live.virtual_time import run_virtually
from worker.feeds.ccxt.live import MOST_GIVEN

SERIES = random_series(3, bars=60, symbols=2, timeframe="1m", missing=0.0)


def items_of(market: PlannedMarket) -> list[BarRow | FeedAnomaly]:
    async def drive() -> list[BarRow | FeedAnomaly]:
        return [item async for item in market.items(None)]

    found: list[BarRow | FeedAnomaly] = run_virtually(drive())
    return found


def test_outage_is_mended_in_time_however_many_bars_of_a_symbol_never_came_before_it() -> None:
    lost = dict.fromkeys([(row, 0) for row in range(20, 40, 2)], Fault.LOST)
    market = PlannedMarket(Plan(SERIES, 10, lost, outages={12, 44}))
    items = items_of(market)
    payload = Counter((item.kind, item.symbol, item.label) for item in items if isinstance(item, FeedAnomaly))
    assert payload == market.shown()
    assert [item for item in items if isinstance(item, BarRow)] == Plan(SERIES, 10, lost).rows(
        market.settings
    )


def test_bar_that_stands_twice_in_an_answer_is_told_once() -> None:
    market = PlannedMarket(Plan(SERIES, 10, {(20, 0): Fault.TWICE}))
    shown = [item for item in items_of(market) if isinstance(item, FeedAnomaly)]
    assert [item.kind for item in shown] == [Kind.DUPLICATE]


def test_bar_that_stands_twice_in_an_answer_is_one_bar_of_the_refill() -> None:
    market = PlannedMarket(Plan(SERIES, 10, {(20, 0): Fault.TWICE}, outages={18}), outage_s=200.0)
    shown = [item for item in items_of(market) if isinstance(item, FeedAnomaly)]
    refilled = [
        item.detail["bars"]
        for item in shown
        if item.kind is Kind.REFILLED and item.symbol == SERIES.symbols[0]
    ]
    assert refilled == [3], "of rows 19 to 21"


def test_machine_that_slept_for_more_bars_than_are_remembered_gets_each_of_them_once() -> None:
    series = random_series(3, bars=MOST_GIVEN + 500, symbols=2, timeframe="1m", missing=0.0)
    sleeps_s = (MOST_GIVEN + 400) * 60.0
    market = PlannedMarket(Plan(series, 10), sleep=(130.0, sleeps_s))
    items = items_of(market)
    rows = [item for item in items if isinstance(item, BarRow)]
    assert [(row.label, row.bars) for row in rows] == [(row.label, row.bars) for row in rows_of(series)]
    payload = Counter(item.kind for item in items if isinstance(item, FeedAnomaly))
    assert payload == {Kind.CLOCK: 2, Kind.STALE: 2, Kind.FRESH: 2, Kind.REFILLED: 4}
