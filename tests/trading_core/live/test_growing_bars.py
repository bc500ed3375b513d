"""Bars that grow row by row: equal to a series made at once, and deaf to rows that cannot be."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataError
from tests.trading_core.market import random_series
from tests.trading_core.scripted_loop import first_rows, row_of
from trading_core.bars import COLUMNS, BarSeries
from trading_core.live.growing_bars import Bar, GrowingBars

TABLES = (*COLUMNS, "present", "times", "close_times")


def _equal(found: BarSeries, expected: BarSeries) -> bool:
    return all(getattr(found, name).tobytes() == getattr(expected, name).tobytes() for name in TABLES)


@pytest.mark.parametrize("label", ["open", "close"])
@given(seed=st.integers(0, 1_000), symbols=st.integers(1, 3), history=st.integers(1, 40))
@settings(max_examples=20)
def test_growing_bars_equal_a_series_made_at_once(label, seed, symbols, history):
    whole = random_series(seed, 60, symbols, missing=0.2)
    object.__setattr__(whole, "label", label)
    bars = GrowingBars(first_rows(whole, history))
    for t in range(history, 60):
        assert bars.append(*row_of(whole, t)) == t
    assert _equal(bars, whole)
    assert (bars.sha256, bars.bar_count, bars.shape) == (whole.sha256, whole.bar_count, whole.shape)


def test_growing_bars_that_outgrow_their_room_keep_what_they_had():
    whole = random_series(1, 9_000)
    bars = GrowingBars(first_rows(whole, 10))
    for t in range(10, 9_000):
        bars.append(*row_of(whole, t))
    assert _equal(bars, whole)


def test_growing_bars_take_further_columns_of_the_names_that_the_history_has():
    whole = random_series(3, 4_200, 2, missing=0.2)
    values = np.where(whole.present, np.arange(8_400.0).reshape(4_200, 2), np.nan)
    values[::7] = np.nan
    whole = replace(whole, extra={"times": values, "funding": -values})
    history = whole.take(np.arange(10), np.arange(2))
    bars = GrowingBars(history)
    for t in range(10, 4_200):
        answer = {
            symbol: {name: None if np.isnan(v[t, s]) else v[t, s] for name, v in whole.extra.items()}
            for s, symbol in enumerate(whole.symbols)
        }
        bars.append(*row_of(whole, t), {symbol: shown | {"other": 1.0} for symbol, shown in answer.items()})
    assert _equal(bars, whole)
    assert list(bars.extra) == ["funding", "times"]
    assert all(bars.extra[name].tobytes() == whole.extra[name].tobytes() for name in whole.extra)
    assert bars.extra_hashes == whole.extra_hashes
    bars.append(int(bars.times[-1]) + 1, {"S00": Bar(1.0, 2.0, 0.5, 1.5, 0.0)})
    assert np.isnan(bars.extra["funding"][-1]).all()


def test_growing_bars_leave_their_history_alone():
    history = random_series(1, 20, 2)
    before = {name: getattr(history, name).tobytes() for name in TABLES}
    bars = GrowingBars(history)
    bars.append(int(history.times[-1]) + 1, {"S00": Bar(1.0, 2.0, 0.5, 1.5, 0.0)})
    assert {name: getattr(history, name).tobytes() for name in TABLES} == before
    assert bars.bar_count == history.bar_count + 1


def test_growing_bars_show_a_row_to_views_taken_anew_only():
    bars = GrowingBars(random_series(1, 20))
    close, digest = bars.close, bars.sha256
    bars.append(int(bars.times[-1]) + 1, {"S00": Bar(1.0, 2.0, 0.5, 1.5, 0.0)})
    assert (close.shape, bars.close.shape) == ((20, 1), (21, 1))
    assert bars.sha256 != digest


GOOD = Bar(10.0, 12.0, 9.0, 11.0, 5.0)
WRONG = {
    "high below its open": GOOD._replace(high=9.5),
    "low above its close": GOOD._replace(low=11.5),
    "price of zero": GOOD._replace(low=0.0),
    "negative price": Bar(-1.0, -1.0, -1.0, -1.0, 1.0),
    "unknown open": GOOD._replace(open=float("nan")),
    "unknown high": GOOD._replace(high=float("nan")),
    "endless high": GOOD._replace(high=float("inf")),
    "unknown low": GOOD._replace(low=float("nan")),
    "unknown close": GOOD._replace(close=float("nan")),
    "negative volume": GOOD._replace(volume=-1.0),
    "unknown volume": GOOD._replace(volume=float("nan")),
    "endless volume": GOOD._replace(volume=float("inf")),
}


@pytest.mark.parametrize("bar", WRONG.values(), ids=WRONG)
def test_growing_bars_refuse_a_bar_that_cannot_be_and_stay(bar):
    bars = GrowingBars(random_series(1, 20, 2))
    before = {name: getattr(bars, name).tobytes() for name in TABLES}
    with pytest.raises(DataError, match="S01.*cannot be a bar"):
        bars.append(int(bars.times[-1]) + 1, {"S00": GOOD, "S01": bar})
    assert {name: getattr(bars, name).tobytes() for name in TABLES} == before


@pytest.mark.parametrize(
    ("late", "row", "named"),
    [
        (0, {"S00": GOOD}, "is not after the last one"),
        (-1, {"S00": GOOD}, "is not after the last one"),
        (1, {}, "no symbol has a bar"),
        (1, {"S00": GOOD, "S0": GOOD}, "unknown symbol 'S0'"),
    ],
)
def test_growing_bars_refuse_a_row_that_cannot_be_and_stay(late, row, named):
    bars = GrowingBars(random_series(1, 20, 2))
    last = int(bars.times[-1])
    with pytest.raises(DataError, match=named):
        bars.append(last + late, row)
    assert (bars.shape, int(bars.times[-1])) == ((20, 2), last)


HOUR_NS = 3_600_000_000_000
anything = st.floats(allow_nan=True, allow_infinity=True, width=32)
prices = st.one_of(st.floats(0.5, 20.0), anything)


@given(
    rows=st.lists(
        st.tuples(
            st.integers(-2, 3),
            st.dictionaries(
                st.sampled_from(["S00", "S01", "S02"]),
                st.builds(Bar, prices, prices, prices, prices, prices),
                max_size=3,
            ),
        ),
        max_size=15,
    )
)
@settings(max_examples=100)
def test_growing_bars_take_any_row_whole_or_not_at_all(rows):
    """What was taken passes the checks of a whole series; what was refused left no trace."""
    bars = GrowingBars(random_series(1, 5, 2))
    taken = 5
    for late, row in rows:
        label = int(bars.times[-1]) + late * HOUR_NS  # whatever overlaps is left out before it comes here
        try:
            bars.append(label, row)
        except DataError:
            assert bars.shape[0] == taken
        else:
            taken += 1
            assert int(bars.times[-1]) == label
    assert bars.shape[0] == taken
    tables = {name: getattr(bars, name).copy() for name in (*COLUMNS, "present")}
    copied = BarSeries(bars.times.copy(), bars.symbols, bars.timeframe, bars.label, **tables)
    assert _equal(copied, bars)
    assert np.isfinite(bars.close[bars.present]).all()
