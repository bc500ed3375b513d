import warnings

import numpy as np
import pytest

from tests.each_case import check_each
from tests.trading_core.feature_oracles import ORACLES, Own, atr
from tests.trading_core.price_paths import columns_of, one_symbol, series, walk
from trading_core.features import FEATURES, compute, feature_names
from trading_core.rules import parse

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import talib

N = 3_000
COMPLETE = one_symbol(walk(11, N), timeframe="1h")
KEPT = np.random.default_rng(3).random((N, 1)) > 0.2
MISSING = series({"AAA": columns_of(walk(12, N))}, timeframe="1h", present=KEPT)


def test_every_family_has_an_oracle():
    assert {family.example for family in FEATURES.values()} <= set(ORACLES)
    assert set(feature_names()) == set(ORACLES)


@check_each("name", sorted(ORACLES))
@check_each("bars", [COMPLETE, MISSING], ids=["complete", "missing"])
def test_feature_matches_its_oracle_to_nine_digits(bars, name):
    expected = ORACLES[name](Own.of(bars))
    found = compute(bars, [name])[name][bars.present[:, 0], 0]
    known = np.isfinite(found)
    assert known.sum() > 0.8 * found.size
    assert known[int(np.argmax(known)) :].all()
    tolerance = 1e-9 * np.maximum(np.abs(expected[known]), np.nanmedian(np.abs(expected)))
    assert (np.abs(found[known] - expected[known]) <= tolerance).all()


@pytest.mark.parametrize(("width", "requested"), [(2.5, "2.5"), (1.5, "1.5"), (0.75, ".75"), (3.0, "3")])
def test_bands_of_a_width_match_their_oracle(width, requested):
    b = Own.of(COMPLETE)
    upper, middle, lower = talib.BBANDS(b.c, 20, width, width)
    ema, range_ = talib.EMA(b.c, 20), atr(b, 20)
    expected = {
        "bb_upper": upper,
        "bollinger_lower": lower,
        "bandwidth": (upper - lower) / middle,
        "percent_b": (b.c - lower) / (upper - lower),
        "keltner_upper": ema + width * range_,
        "kc_lower": ema - width * range_,
        "keltner_width": 2 * width * range_ / ema,
    }
    for stem, values in expected.items():
        name = next(iter(parse(f"{stem}(20, {requested}) > 0").features))
        found = compute(COMPLETE, [name])[name][:, 0]
        known = np.isfinite(found)
        assert known.sum() > 0.9 * found.size
        np.testing.assert_allclose(found[known], values[known], rtol=1e-9, atol=1e-9)


def test_band_of_its_usual_width_is_the_plain_feature():
    rule = parse("close > bb_upper(20, 2) and close < keltner_upper(20, 2.0)")
    assert rule.text == "close > bollinger_upper_20 and close < keltner_upper_20"


def test_sma_of_one_bar_is_the_close():
    assert compute(COMPLETE, ["sma_1"])["sma_1"].tobytes() == COMPLETE.close.tobytes()


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e6])
def test_moving_mean_and_deviation_over_long_history_keep_nine_digits(start):
    close = walk(5, 100_000, start=start, volatility=0.002)
    found = compute(one_symbol(close), ["sma_30", "stdev_30"])
    windows = np.lib.stride_tricks.sliding_window_view(close.astype(np.longdouble), 30)
    np.testing.assert_allclose(found["sma_30"][29:, 0], windows.mean(axis=1).astype(float), rtol=1e-15)
    np.testing.assert_allclose(found["stdev_30"][29:, 0], windows.std(axis=1).astype(float), rtol=1e-9)


def test_weighted_mean_and_deviation_over_long_history_keep_nine_digits():
    close = walk(6, 20_000, start=1e6, volatility=0.002)
    shape = {name: close for name in ("open", "high", "low", "close", "volume")}
    found = compute(series({"AAA": shape}), ["wma_30", "cci_30"])
    windows = np.lib.stride_tricks.sliding_window_view(close.astype(np.longdouble), 30)
    weights = np.arange(1, 31, dtype=np.longdouble)
    np.testing.assert_allclose(found["wma_30"][29:, 0], (windows @ weights / 465).astype(float), rtol=1e-15)
    centre = windows.mean(axis=1)
    deviation = np.abs(windows - centre[:, np.newaxis]).mean(axis=1)
    expected = ((windows[:, -1] - centre) / (np.longdouble("0.015") * deviation)).astype(float)
    np.testing.assert_allclose(found["cci_30"][29:, 0], expected, rtol=1e-9, atol=1e-9)


def test_moving_mean_after_price_falls_nine_decades_is_exact():
    close = np.concatenate([np.full(100, 1e6), np.full(100, 1e-3)])
    found = compute(one_symbol(close), ["sma_20", "stdev_20"])
    np.testing.assert_allclose(found["sma_20"][120:, 0], 1e-3, rtol=1e-15)
    assert (found["stdev_20"][120:, 0] == 0).all()


def test_flat_price_gives_zero_deviation_and_unknown_ratios():
    bars = series({"AAA": {name: np.full(120, 10.1) for name in ("open", "high", "low", "close", "volume")}})
    unknown = [
        "zscore_20", "percent_b_20", "rsi_14", "cmo_14", "stochastic_14", "stochastic_rsi_14",
        "williams_r_14", "cci_20", "mfi_14", "range_ratio_14", "efficiency_10", "kama_10", "dx_14",
        "volume_zscore_20", "body_ratio", "upper_wick", "close_location",
    ]  # fmt: skip
    zero = {"stdev_20": 19, "realized_vol_20": 20, "linreg_slope_20": 19, "up_streak": 1, "obv": 1}
    found = compute(bars, [*unknown, *zero, "volume_rank", "session_location"])
    for name, first in zero.items():
        assert (found[name][first:] == 0).all(), name
    for name in (*unknown, "session_location"):
        assert np.isnan(found[name]).all(), name
    assert (found["volume_rank"][59:] == 0.5).all()


def test_volume_of_zero_leaves_volume_ratios_unknown_and_prices_known():
    shape = columns_of(walk(1, 100)) | {"volume": np.zeros(100)}
    unknown = ["volume_ratio_20", "volume_zscore_20", "vwap_20", "mfi_14", "session_vwap"]
    found = compute(series({"AAA": shape}), [*unknown, "obv", "session_volume"])
    assert all(np.isnan(found[name]).all() for name in unknown)
    assert (found["obv"][1:] == 0).all()
    assert (found["session_volume"] == 0).all()


def test_rsi_after_a_flat_stretch_recovers():
    close = np.concatenate([np.full(60, 50.0), walk(2, 200, start=50.0)])
    shape = columns_of(close)
    found = compute(series({"AAA": shape}), ["rsi_14"])["rsi_14"][:, 0]
    expected = talib.RSI(close, 14)
    np.testing.assert_allclose(found[80:], expected[80:], rtol=1e-9)


def test_recency_of_equal_extremes_takes_the_later():
    high = np.array([5.0, 9.0, 7.0, 9.0, 6.0, 8.0, 8.0, 4.0, 3.0, 2.0])
    shape = {name: high for name in ("open", "high", "low", "close", "volume")}
    found = compute(series({"AAA": shape}), ["aroon_up_4", "aroon_down_4"])
    assert found["aroon_up_4"][4:, 0].tolist() == [75.0, 50.0, 25.0, 0.0, 50.0, 25.0]
    assert found["aroon_up_4"][:, 0].tolist()[4:] == talib.AROON(high, high, 4)[1].tolist()[4:]
    assert found["aroon_down_4"][:, 0].tolist()[4:] == talib.AROON(high, high, 4)[0].tolist()[4:]
