"""Which bars are in doubt, in worlds of ticks that slip, prices that jump, drift and split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.settings import DataSettings
from services.feeds.plausibility import (
    HIGHEST_PRICE,
    LONGEST_DOUBT,
    SETTLED_BARS,
    PlausibilityGuard,
    PriceLevel,
    doubted_bars,
)
from services.feeds.port import BarRow, BlockReason, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from tests.each_case import check_each
from trading_core.bars import COLUMNS, BarSeries
from trading_core.live.growing_bars import Bar

NS = 1_000_000_000
SETTINGS = DataSettings()


def at(price: float, width: float = 0.002) -> Bar:
    """A bar around a price."""
    return Bar(price, price * (1 + width), price * (1 - width), price, 1.0)


def doubtful(bars: list[Bar], settings: DataSettings = SETTINGS) -> list[int]:
    """Numbers of the bars in doubt."""
    level = PriceLevel("A", settings)
    shown = [level.judge(number, bar) for number, bar in enumerate(bars)]
    return [int(item.label or 0) for item in shown if item is not None and item.kind is Kind.IMPLAUSIBLE]


def prices(*found: float) -> list[Bar]:
    return [at(price) for price in found]


def test_level_knows_the_bars_up_to_the_last_one_that_it_doubted_until_a_good_one_comes() -> None:
    level = PriceLevel("A", SETTINGS)
    assert not level.knows(0)
    assert level.judge(1, at(100.0)) is None
    assert not level.knows(1)
    assert level.judge(2, at(1_000.0)) is not None
    assert [level.knows(label) for label in (1, 2, 3)] == [True, True, False]
    assert level.judge(3, at(100.1)) is None
    assert not level.knows(2)


def test_guard_that_reads_a_doubted_row_again_tells_it_once_and_takes_it_for_no_confirmation() -> None:
    guard = PlausibilityGuard(("A",), SETTINGS)
    shown = []
    for label, price in ((1, 100.0), (2, 1_000.0), (2, 1_000.0), (2, 1_000.0)):
        anomalies, left = guard.sift(BarRow(label, {"A": at(price)}), blocks=False)
        shown.append((len(anomalies), left is not None))
    assert shown == [(0, True), (1, False), (0, False), (0, False)]


CALM = [100.0, 100.1, 99.9, 100.2, 100.0]


@check_each(
    ("following", "expected"),
    [
        ([1e300, 100.0, 100.1], [0]),
        ([1e300] * 6, [0, 1, 2, 3, 4, 5]),
        ([1e-300] * 6, [0, 1, 2, 3, 4, 5]),
        ([1_000.0, 100.0, 100.1], [0]),
        ([10.0, 100.0, 100.1], [0]),
        ([151.0, 100.0], [0]),
        ([149.0, 100.0], []),
        ([51.0, 100.0], []),
        ([10.0, 10.1, 10.0, 10.2, 9.9], [0, 1]),
        ([1_000.0, 1_010.0, 1_005.0, 1_001.0, 1_000.0], [0, 1]),
        ([1_000.0, 100.0, 1_000.0, 100.0, 1_000.0, 100.0], [0, 2, 4]),
        ([1_000.0, 1_000.0, 100.0, 1_000.0, 1_000.0, 1_000.0], [0, 1, 3, 4]),
        ([1_000.0, 5_000.0, 300.0, 100.0], [0, 1, 2]),
        ([1_000.0, 10_000.0, 10_000.0, 10_000.0], [0, 1, 2]),
        ([1_000.0, 1e300, 1_000.0, 1_000.0, 1_000.0], [0, 1, 2, 3]),
        ([140.0, 196.0, 274.0, 384.0, 538.0, 753.0], []),
        ([60.0, 36.0, 21.6, 12.96, 7.8], []),
    ],
    ids=[
        "1e300", "1e300 for good", "1e-300 for good", "ten times", "a tenth", "beyond", "within",
        "half", "split", "jump", "alternating", "two of three", "no level", "two jumps", "jump with a slip",
        "drift up", "drift down",
    ],
)  # fmt: skip
def test_plausibility_of_a_world_doubts_these_bars_and_no_other(following, expected) -> None:
    found = doubtful(prices(*CALM, *following))
    assert [number - len(CALM) for number in found] == expected


@pytest.mark.parametrize("wrong", [1e300, 1_000.0, 10.0])
def test_plausibility_of_a_wrong_first_bar_is_mended_by_the_second_that_follows(wrong) -> None:
    found = doubtful(prices(wrong, *CALM, *CALM))
    assert found == ([0] if wrong > HIGHEST_PRICE else [1, 2])


@pytest.mark.parametrize(
    "bar",
    [
        Bar(100.0, 1_000.0, 99.0, 101.0, 1.0),
        Bar(100.0, 101.0, 1.0, 100.0, 1.0),
        Bar(250.0, 251.0, 99.0, 100.0, 1.0),
    ],
)
def test_plausibility_doubts_a_spike_though_the_close_is_where_it_was(bar) -> None:
    assert doubtful([*prices(*CALM), bar, *prices(*CALM)]) == [len(CALM)]
    found = doubtful([*prices(*CALM), bar, bar, bar, bar, *prices(*CALM)])
    assert found == [5, 6, 7, 8], "none confirms another"


def steps(factor: float, bars: int = 60) -> list[float]:
    return [100.0 * factor**number for number in range(1, bars)]


@pytest.mark.parametrize(
    ("following", "most"),
    [
        ([100.0, 1_000.0] * 100, 1),
        ([1_000.0, 100.0] * 100, 1),
        ([200.0, 320.0] * 100, LONGEST_DOUBT),
        (steps(0.4, 40), LONGEST_DOUBT),
        (steps(1.6, 45), LONGEST_DOUBT),
        (steps(3.0, 20), LONGEST_DOUBT),
        ([10_000.0] * 2 + [100.0] * 20, 2),
        ([10_000.0] * 3 + [100.0] * 20, 2),
        ([30.0, 31.0, 29.0, 30.0] * 10, 2),
        ([1e300, 1_000.0] * 50, 2 * LONGEST_DOUBT + 1),
    ],
    ids=[
        "alternating, good first", "alternating, bad first", "two other prices", "crash", "pump",
        "three times", "decimal shift of two", "decimal shift of three",
        "reopens 70 percent lower", "1e300 between",
    ],
)  # fmt: skip
def test_plausibility_of_a_hostile_world_ends_its_doubts_after_so_many_bars(following, most) -> None:
    found = {number - len(CALM) for number in doubtful(prices(*CALM, *following))}
    longest = run = 0
    for number in range(len(following)):
        run = run + 1 if number in found else 0
        longest = max(longest, run)
    assert longest == most, "a stop waits that long and no longer"
    assert not any(
        following[number] > HIGHEST_PRICE and number not in found for number in range(len(following))
    )


def test_plausibility_of_bars_that_swing_within_takes_the_sixth_and_learns_their_width() -> None:
    wild = Bar(100.0, 160.0, 70.0, 100.0, 1.0)
    assert doubtful([*[at(100.0)] * 50, *[wild] * 500]) == [50, 51, 52, 53, 54]
    assert len(doubtful([*[at(100.0)] * 50, *[wild] * 60], DataSettings(plausible_atr=0.0))) == 50, (
        "without ranges one of six is taken"
    )


def test_plausibility_lesson_of_a_taken_bar_leaves_the_next_slip_of_ten_times_in_doubt() -> None:
    garbage = [1.0, 1e4, 3.0, 1e6, 7.0, 1e8, *[1e8] * 3]
    assert doubtful(prices(*[100.0] * 20, *garbage, 1e9, 1e8)) == [20, 21, 22, 23, 24, 29]


def test_plausibility_tells_the_bar_taken_unsettled_and_blocks_until_two_lie_within_the_band() -> None:
    guard = PlausibilityGuard(("A",), SETTINGS)
    crash = [at(price) for price in (*CALM, *steps(0.4, 8), 0.0655, 0.0655, 0.0655)]
    seen = [guard.sift(BarRow(number, {"A": bar}), blocks=True) for number, bar in enumerate(crash)]
    [unsettled] = [anomaly for shown, _ in seen for anomaly in shown if anomaly.kind == "unsettled"]
    taken = len(CALM) + LONGEST_DOUBT
    assert (unsettled.symbol, unsettled.label) == ("A", taken)
    assert unsettled.detail["doubts"] == LONGEST_DOUBT
    assert unsettled.detail["last_good_close"] == CALM[-1]
    blocked = [number for number, (_, row) in enumerate(seen) if row is not None and row.blocked]
    assert blocked == list(range(taken, taken + SETTLED_BARS + 1))
    assert {dict(row.blocked)["A"] for _, row in seen if row is not None and row.blocked} == {
        BlockReason.UNSETTLED
    }


def test_plausibility_unsettled_symbol_that_is_doubted_again_waits_anew() -> None:
    guard = PlausibilityGuard(("A",), SETTINGS)
    bars = prices(*CALM, *steps(0.4, 7), 100 * 0.4**6, 1e5, *[100 * 0.4**6] * 4)
    rows = [guard.sift(BarRow(number, {"A": bar}), blocks=True)[1] for number, bar in enumerate(bars)]
    blocked = [number for number, row in enumerate(rows) if row is not None and row.blocked]
    assert blocked == [10, 11, 13, 14], "the slip lies at 12"


def test_plausibility_of_300_symbols_that_gap_at_once_takes_all_at_the_third_bar() -> None:
    names = [f"S{number:03}" for number in range(300)]
    guard = PlausibilityGuard(names, SETTINGS)
    rows = [BarRow(t, dict.fromkeys(names, at(price))) for t, price in enumerate([*CALM, 30.0, 30.1, 30.0])]
    seen = [guard.sift(row, blocks=True) for row in rows]
    assert [None if row is None else len(row.bars) for _, row in seen] == [300] * 5 + [None, None, 300]
    assert [len(shown) for shown, _ in seen] == [0] * 5 + [301, 301, 0]
    withheld = seen[5][0][-1]
    assert (withheld.kind, withheld.symbol, withheld.label) == ("withheld", None, 5)
    assert withheld.detail["blocked"] == dict.fromkeys(names, BlockReason.IMPLAUSIBLE)


def test_plausibility_band_is_the_wider_of_a_share_and_of_true_ranges() -> None:
    wild = [at(100.0, 0.05) for _ in range(20)]  # true range 10: twenty of them are 200
    assert doubtful([*wild, at(290.0)]) == []
    assert doubtful([*wild, at(310.0)]) == [20]
    assert doubtful([*wild, at(151.0)], DataSettings(plausible_atr=0.0)) == [20]
    assert doubtful([*wild, at(290.0)], DataSettings(plausible_atr=10.0)) == [20]
    assert doubtful(prices(*CALM, 119.0, 95.0), DataSettings(plausible_change=0.1)) == [5]


def test_plausibility_ranges_forget_after_fourteen_bars_and_hold_at_another_level() -> None:
    wild = [at(100.0, 0.05) for _ in range(14)]
    assert doubtful([*wild, *[at(100.0)] * 13, at(100.0), at(160.0)]) == [28]
    assert doubtful([*wild, *[at(100.0)] * 7, at(160.0)]) == [], "half of them are wild"
    split = [at(10.0, 0.05)] * 3
    assert doubtful([*wild, *split]) == [], "a tenth lies within twenty ranges of such a market"
    calm = [at(100.0, 0.02) for _ in range(14)]  # twenty ranges are 80
    assert doubtful([*calm, *[at(10.0, 0.02)] * 3, at(17.0)]) == [14, 15], "then 80 percent of the new level"


def test_plausibility_says_what_it_doubts_and_why() -> None:
    level = PriceLevel("A", DataSettings(plausible_change=0.5, plausible_atr=0.0))
    assert level.judge(0, at(100.0)) is None
    why = {"bar": list(at(1_000.0)), "last_good_close": 100.0, "band": 50.0}
    assert level.judge(1, at(1_000.0)) == FeedAnomaly(Kind.IMPLAUSIBLE, "A", 1, why)
    why = {"bar": list(at(1e300)), "lowest": 1e-18, "highest": 1e12}
    assert level.judge(2, at(1e300)) == FeedAnomaly(Kind.IMPLAUSIBLE, "A", 2, why)


def test_plausibility_row_keeps_the_bars_of_the_others_and_shuts_the_one_in_doubt() -> None:
    guard = PlausibilityGuard(("A", "B"), SETTINGS)
    assert guard.sift(BarRow(0, {"A": at(100.0), "B": at(5.0)}), blocks=True) == (
        [],
        BarRow(0, {"A": at(100.0), "B": at(5.0)}),
    )
    shown, row = guard.sift(BarRow(1, {"A": at(1_000.0), "B": at(5.0)}), blocks=True)
    assert [(episode.kind, episode.symbol, episode.label) for episode in shown] == [("implausible", "A", 1)]
    assert row == BarRow(1, {"B": at(5.0)}, {"A": BlockReason.IMPLAUSIBLE})
    shown, row = guard.sift(BarRow(2, {"A": at(1_000.0)}), blocks=True)
    assert ([anomaly.kind for anomaly in shown], row) == (["implausible", "withheld"], None), "no bar, no row"
    shown, row = guard.sift(BarRow(3, {"A": at(1_000.0), "B": at(5.0)}, {"B": "stale"}), blocks=True)
    assert (shown, row) == ([], BarRow(3, {"A": at(1_000.0), "B": at(5.0)}, {"B": "stale"})), "confirmed"
    _, row = guard.sift(BarRow(4, {"A": at(1.0), "B": at(5.0)}), blocks=False)
    assert row == BarRow(4, {"B": at(5.0)}), "recorded bars have no news of missing ones"
    _, row = guard.sift(BarRow(5, {"A": at(1_000.0), "B": at(50.0)}, history=True), blocks=True)
    assert row == BarRow(5, {"A": at(1_000.0)}, history=True)


def series_of_prices(columns: list[list[float | None]]) -> BarSeries:
    """One column a symbol; None is no bar."""
    table = np.array([[np.nan if price is None else price for price in column] for column in columns]).T
    present = ~np.isnan(table)
    bars = {"open": table, "high": table * 1.01, "low": table * 0.99, "close": table, "volume": table * 0 + 1}
    times = np.arange(table.shape[0], dtype=np.int64) * 60 * NS
    names = tuple(f"S{s}" for s in range(table.shape[1]))
    return BarSeries(times, names, "1m", "open", present=present, zone="UTC", **bars)


MOVES = [None, 1.0, 1.0, 1.0, 1.3, 0.8, 0.3, 4.0, 10.0, 0.1, 1e14]
WALKS = st.lists(
    st.lists(st.sampled_from(MOVES), min_size=30, max_size=30),
    min_size=2,
    max_size=3,
)


def walked(moves: list[list[float | None]]) -> BarSeries:
    columns = []
    for column in moves:
        level, found = 100.0, []
        for move in column:
            if move in (1.3, 0.8, 0.3, 4.0):
                level *= move
            found.append(None if move is None else level * move)
        columns.append(found)
    columns.append([100.0] * 30)
    return series_of_prices(columns)


def rows_of(bars: BarSeries) -> list[BarRow]:
    return [
        BarRow(
            int(bars.times[t]),
            {
                symbol: Bar(*(float(getattr(bars, name)[t, s]) for name in COLUMNS))
                for s, symbol in enumerate(bars.symbols)
                if bars.present[t, s]
            },
        )
        for t in range(bars.shape[0])
    ]


@given(WALKS)
def test_plausibility_of_a_series_is_that_of_its_rows_one_by_one(moves) -> None:
    bars = walked(moves)
    guard = PlausibilityGuard(bars.symbols, SETTINGS)
    expected = [
        (t, anomaly.payload())
        for t, row in enumerate(rows_of(bars))
        for anomaly in guard.sift(row, blocks=False)[0]
    ]
    assert [(t, doubted_bar.payload()) for t, doubted_bar in doubted_bars(bars, SETTINGS)] == expected


@given(WALKS, st.integers(1, 29))
def test_plausibility_after_a_restart_anywhere_doubts_what_it_would_have_doubted(moves, stop) -> None:
    rows = rows_of(walked(moves))
    whole = PlausibilityGuard(("S0", "S1", "S2", "S3"), SETTINGS)
    shown, kept = [], []
    for row in rows[:stop]:
        doubts, left = whole.sift(row, blocks=True)
        shown += [doubt.payload() for doubt in doubts]
        kept += [left] if left is not None else []
    again = PlausibilityGuard(("S0", "S1", "S2", "S3"), SETTINGS)
    again.remember(_series(kept), shown)
    last = kept[-1].label
    for row in rows:
        if row.label > last:  # rows that held nothing but doubts come again
            seen = again.sift(row, blocks=True)
            if row.label >= rows[stop].label:
                assert seen == whole.sift(row, blocks=True)
            else:
                assert seen == ([], None), "told before"


def _series(rows: list[BarRow]) -> BarSeries:
    names = tuple(sorted({symbol for row in rows for symbol in row.bars}))
    columns = {
        name: np.array(
            [[getattr(row.bars[s], name) if s in row.bars else np.nan for s in names] for row in rows]
        )
        for name in COLUMNS
    }
    present = np.array([[s in row.bars for s in names] for row in rows])
    times = np.array([row.label for row in rows], dtype=np.int64)
    return BarSeries(times, names, "1m", "open", present=present, zone="UTC", **columns)
