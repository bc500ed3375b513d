import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import RuleError
from schemas.timeframes import TIMEFRAME_SECONDS, USUAL
from tests.each_case import check_each
from tests.trading_core.feature_oracles import ORACLES, Own, held, higher_bars
from tests.trading_core.price_paths import columns_of, one_symbol, series, walk
from trading_core.bars import COLUMNS, NS
from trading_core.features import FEATURES, FeatureColumns, compute, feature_names, resolve
from trading_core.features.registry import reads_only_bars
from trading_core.rules import RuleColumns, lint
from trading_core.spacing import HIGHER_SECONDS

N = 3_000
EVERY_NAME = sorted(name for name in feature_names() if reads_only_bars(resolve(name).node))
PRICES = ("open", "high", "low", "close", "volume")


def _bars(timeframe="15m", share=0.0, size=N, label="open"):
    present = np.random.default_rng(5).random((size, 1)) >= share
    bars = series({"AAA": columns_of(walk(12, size))}, timeframe=timeframe, present=present)
    if label == "close":
        bars = dataclasses.replace(bars, times=bars.close_times, label="close")
    return bars


def _higher(name, timeframe):
    if name.endswith("_rank") and name not in FEATURES:
        return f"{name.removesuffix('_rank')}_{timeframe}_rank"
    return f"{name}_{timeframe}"


@check_each("name", EVERY_NAME)
@check_each("share", [0.0, 0.3], ids=["complete", "missing"])
def test_feature_on_higher_bars_matches_its_oracle_on_resampled_bars(name, share):
    bars = _bars(share=share)
    own = Own.of(bars)
    higher, seen = higher_bars(own, "1h")
    expected = held(ORACLES[name](higher), seen, own.c.size)
    request = _higher(name, "1h")
    found = compute(bars, [request])[request][bars.present[:, 0], 0]
    known = np.isfinite(found)
    first = int(seen[resolve(name).lookback])
    assert not known[:first].any()
    assert known[first:].all()
    tolerance = 1e-9 * np.maximum(np.abs(expected[known]), np.nanmedian(np.abs(expected)))
    assert (np.abs(found[known] - expected[known]) <= tolerance).all()


CASES = [(own, higher) for own in USUAL for higher in USUAL
         if higher not in ("1m", "1M") and own not in ("1w", "1M")
         and HIGHER_SECONDS[higher] > TIMEFRAME_SECONDS[own]
         and HIGHER_SECONDS[higher] % TIMEFRAME_SECONDS[own] == 0]  # fmt: skip


@check_each(("own", "higher"), CASES)
@check_each("share", [0.0, 0.5], ids=["complete", "missing"])
@check_each("label", ["open", "close"])
def test_higher_bars_of_every_timeframe_equal_resampled_bars(own, higher, share, label):
    bars = _bars(own, share, label=label)
    expected, seen = higher_bars(Own.of(bars), higher)
    names = [f"{name}_{higher}" for name in PRICES]
    found = compute(bars, names)
    for name, letter in zip(names, "ohlcv", strict=True):
        values = held(getattr(expected, letter), seen, bars.bar_count)
        np.testing.assert_allclose(found[name][bars.present[:, 0], 0], values, rtol=1e-12)


@pytest.mark.parametrize("name", ["close_1h", "rsi_14_4h", "sma_5_1d", "true_range_1d", "close_1h_rank"])
def test_both_label_conventions_give_the_same_bits(name):
    opens, closes = (_bars(share=0.2, label=label) for label in ("open", "close"))
    assert compute(opens, [name])[name].tobytes() == compute(closes, [name])[name].tobytes()


def test_close_of_the_hour_is_seen_on_the_bar_that_completes_it():
    bars = _bars("15m", size=12)
    found = compute(bars, ["close_1h"])["close_1h"][:, 0]
    assert np.isnan(found[:3]).all()
    assert found[3:].tolist() == [bars.close[3, 0]] * 4 + [bars.close[7, 0]] * 4 + [bars.close[11, 0]]


def test_hour_without_its_last_bar_is_seen_one_bar_later_and_without_that_bar():
    present = np.ones((9, 1), dtype=bool)
    present[3] = False
    bars = series({"AAA": columns_of(walk(1, 9))}, timeframe="15m", present=present)
    found = compute(bars, ["close_1h", "high_1h"])
    assert np.isnan(found["close_1h"][:4]).all()
    assert found["close_1h"][4:7, 0].tolist() == [bars.close[2, 0]] * 3
    assert found["high_1h"][4, 0] == bars.high[:3, 0].max()
    assert found["close_1h"][7:, 0].tolist() == [bars.close[7, 0]] * 2


def test_two_hours_over_on_one_bar_are_seen_one_after_the_other():
    present = np.zeros((13, 1), dtype=bool)
    present[[2, 7, 8, 11]] = True  # an hour that misses its last bar, then one with its last bar only
    bars = series({"AAA": columns_of(walk(1, 13))}, timeframe="15m", present=present)
    found = compute(bars, ["close_1h"])["close_1h"][:, 0]
    assert found[[7, 8, 11]].tolist() == [bars.close[2, 0], bars.close[7, 0], bars.close[11, 0]]


def test_weekly_close_of_daily_bars_without_weekends_is_seen_on_monday():
    days = np.arange(30)
    present = ((days + 2) % 7 < 5)[:, np.newaxis]  # the series starts on a Wednesday
    bars = series({"AAA": columns_of(walk(1, 30))}, present=present)
    found = compute(bars, ["close_1w"])["close_1w"][:, 0]
    assert np.isnan(found[:5]).all()
    assert found[5] == bars.close[2, 0]  # Monday 6 January sees Friday 3 January
    assert found[12] == bars.close[9, 0]


def test_weekly_close_of_daily_bars_with_weekends_is_seen_on_sunday():
    bars = series({"AAA": columns_of(walk(1, 30))})
    found = compute(bars, ["close_1w"])["close_1w"][:, 0]
    assert np.isnan(found[:4]).all()
    assert found[4] == bars.close[4, 0]


SHORT = 240
NAMES = ("close_1h", "high_1h", "volume_4h", "sma_3_1h", "rsi_2_1h", "atr_2_4h", "close_1h_rank", "obv_1h")


def _changed(bars, row, factor):
    arrays = {name: getattr(bars, name).copy() for name in COLUMNS}
    for values in arrays.values():
        values[row] *= factor
    return dataclasses.replace(bars, **arrays)


@given(
    st.integers(0, SHORT - 1),
    st.lists(st.booleans(), min_size=SHORT, max_size=SHORT),
    st.floats(0.5, 2.0),
)
def test_changed_bar_leaves_everything_before_it_and_its_open_hour_unchanged(row, kept, factor):
    present = np.array(kept)[:, np.newaxis]
    present[[0, row]] = True
    bars = series({"AAA": columns_of(walk(3, SHORT))}, timeframe="15m", present=present)
    before, after = compute(bars, NAMES), compute(_changed(bars, row, factor), NAMES)
    ends = -(-int(bars.close_times[row]) // (3_600 * NS)) * 3_600 * NS
    closed = int(np.searchsorted(bars.close_times, ends))  # the first row on which the hour can be over
    for name in NAMES:
        assert before[name][:closed].tobytes() == after[name][:closed].tobytes()


@pytest.mark.parametrize(("name", "row"), [("high_1h", 17), ("volume_4h", 17), ("sma_3_1h", 19)])
def test_changed_bar_changes_the_higher_bar_once_it_is_over(name, row):
    bars = _bars("15m", size=40)
    before, after = compute(bars, [name])[name], compute(_changed(bars, row, 1.5), [name])[name]
    over = 31 if name == "volume_4h" else 19
    assert (before[over] != after[over]).all()


@given(st.lists(st.integers(0, SHORT), max_size=6), st.lists(st.booleans(), min_size=SHORT, max_size=SHORT))
def test_longer_history_leaves_the_past_byte_equal(cuts, kept):
    present = np.array(kept)[:, np.newaxis]
    present[0] = True
    bars = series({"AAA": columns_of(walk(4, SHORT))}, timeframe="15m", present=present)
    whole = compute(bars, NAMES)
    for cut in cuts:
        part = bars.select(end_ns=int(bars.times[cut - 1])) if cut else None
        if part is not None:
            for name in NAMES:
                rows = np.searchsorted(bars.times, part.times)
                assert compute(part, [name])[name].tobytes() == whole[name][rows].tobytes()


def test_rank_on_higher_bars_counts_higher_bars():
    bars = _bars("15m", size=4 * 100)
    found = compute(bars, ["close_1h_rank"])["close_1h_rank"][:, 0]
    assert int(np.argmax(np.isfinite(found))) == 4 * 60 - 1


def test_unknown_value_of_a_higher_bar_is_unknown_until_the_next():
    flat = np.full(48, 10.0)
    shape = {name: flat.copy() for name in PRICES}
    for name, step in (("high", 1.0), ("low", -1.0)):
        shape[name][20:24] += step
    bars = series({"AAA": shape}, timeframe="15m")
    found = compute(bars, ["close_location_1h"])["close_location_1h"][:, 0]
    assert np.flatnonzero(np.isfinite(found)).tolist() == [23, 24, 25, 26]


@pytest.mark.parametrize(
    ("own", "name", "words"),
    [
        ("1d", "sma_20_1h", "'sma_20_1h': no '1h' bars can be made of '1d' bars: use one of 1w"),
        ("1h", "close_1h", "use one of 2h, 4h, 1d, 1w, 1M, or the feature without a timeframe"),
        ("5m", "rsi_14_5m_rank", "use one of 10m, 15m, 30m, 1h, 2h, 4h, 1d, 1w, 1M"),
    ],
)
def test_compute_timeframe_not_above_the_bars_says_which_are(own, name, words):
    with pytest.raises(RuleError, match=words):
        compute(one_symbol(walk(1, 30), timeframe=own), [name])


def test_columns_after_a_refused_timeframe_still_answer():
    bars = one_symbol(walk(1, 300))
    columns = FeatureColumns(bars)
    with pytest.raises(RuleError):
        columns.load(["sma_20", "sma_20_1h"])
    with pytest.raises(RuleError):
        columns.load(["sma_20", "sma_20_1h"])
    expected = compute(bars, ["sma_20", "close_1w"])
    for name, values in expected.items():
        assert columns.scatter(name).tobytes() == values.tobytes()


@pytest.mark.parametrize("text", ["close > sma_20_1h", "close - atr_14_4h"])
def test_lint_timeframe_that_the_bars_do_not_have_is_an_unknown_feature(text):
    found = lint({"rule": text}, RuleColumns(one_symbol(walk(1, 300))), 0, 300)
    assert [finding.code for finding in found] == ["unknown_feature"]
    assert "use one of 1w" in found[0].message


INTRADAY = series(
    {"AAA": columns_of(walk(6, 600)), "BBB": columns_of(walk(7, 600), seed=3)},
    timeframe="15m",
    present=np.random.default_rng(2).random((600, 2)) > 0.25,
).select()  # which drops the rows without any bar
ROWS = INTRADAY.shape[0]
SESSIONS = [family for family in FEATURES.values() if re.search("session|week", family.pattern)]
GROUPED = (
    *(family.example for family in SESSIONS),
    *(_higher(name, "1h") for name in EVERY_NAME),
    "close_4h", "rsi_3_1d", "close_1w",
)  # fmt: skip
WHOLE = compute(INTRADAY, GROUPED)


@settings(max_examples=20)
@given(st.lists(st.integers(1, ROWS), max_size=6))
def test_grouped_features_over_any_split_of_the_bars_give_the_same_bits(cuts):
    columns = FeatureColumns(INTRADAY.select(end_ns=int(INTRADAY.times[0])))
    columns.load(GROUPED)
    for stop in sorted({*cuts, ROWS}):
        columns.extend(INTRADAY.select(end_ns=int(INTRADAY.times[stop - 1])))
    for name in GROUPED:
        assert columns.scatter(name).tobytes() == WHOLE[name].tobytes(), name


def test_grouped_features_one_bar_at_a_time_give_the_same_bits():
    names = ["close_1h", "rsi_3_1h", "close_1h_rank", "session_vwap", "previous_session_high", "week_open"]
    columns = FeatureColumns(INTRADAY.select(end_ns=int(INTRADAY.times[0])))
    columns.load(names)
    for t in range(1, ROWS):
        columns.extend(INTRADAY.select(end_ns=int(INTRADAY.times[t])))
    whole = compute(INTRADAY, names)
    for name in names:
        assert columns.scatter(name).tobytes() == whole[name].tobytes()
