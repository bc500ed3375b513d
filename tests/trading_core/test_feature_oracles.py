import warnings

import numpy as np
import pytest

from tests.trading_core.price_paths import columns_of, one_symbol, series, walk
from trading_core.features import compute

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import talib

BARS = one_symbol(walk(11, 3_000))
OPEN, H, L, C, V = (getattr(BARS, name)[:, 0].copy() for name in ("open", "high", "low", "close", "volume"))
LOG_RETURN = np.concatenate([[np.nan], np.log(C[1:] / C[:-1])])


def _shifted(values, n):
    return np.concatenate([np.full(n, np.nan), values[:-n]])


ORACLES = {
    "sma_20": lambda: talib.SMA(C, 20),
    "sma_1": lambda: C,
    "ema_20": lambda: talib.EMA(C, 20),
    "stdev_20": lambda: talib.STDDEV(C, 20),
    "rsi_14": lambda: talib.RSI(C, 14),
    "true_range": lambda: talib.TRANGE(H, L, C),
    "atr_14": lambda: talib.ATR(H, L, C, 14),
    "natr_14": lambda: talib.NATR(H, L, C, 14),
    "highest_20": lambda: _shifted(talib.MAX(H, 20), 1),
    "lowest_20": lambda: _shifted(talib.MIN(L, 20), 1),
    "roc_10": lambda: talib.ROCP(C, 10),
    "log_return": lambda: LOG_RETURN,
    "realized_vol_20": lambda: np.concatenate([[np.nan], talib.STDDEV(LOG_RETURN[1:], 20)]),
    "bandwidth_20": lambda: np.subtract(*talib.BBANDS(C, 20, 2.0, 2.0)[::2]) / talib.SMA(C, 20),
    "keltner_width_20": lambda: 4 * talib.ATR(H, L, C, 20) / talib.EMA(C, 20),
    "donchian_width_20": lambda: (talib.MAX(H, 20) - talib.MIN(L, 20)) / C,
    "zscore_20": lambda: (C - talib.SMA(C, 20)) / talib.STDDEV(C, 20),
    "volume_sma_20": lambda: talib.SMA(V, 20),
    "volume_ratio_20": lambda: V / talib.SMA(V, 20),
    "range_ratio_14": lambda: talib.TRANGE(H, L, C) / talib.ATR(H, L, C, 14),
    "trend_strength_20_50": lambda: (talib.EMA(C, 20) - talib.EMA(C, 50)) / talib.ATR(H, L, C, 50),
    "plus_di_14": lambda: talib.PLUS_DI(H, L, C, 14),
    "minus_di_14": lambda: talib.MINUS_DI(H, L, C, 14),
    "adx_14": lambda: talib.ADX(H, L, C, 14),
    "stochastic_14": lambda: talib.STOCHF(H, L, C, 14, 1)[0],
    "efficiency_10": lambda: np.abs(talib.MOM(C, 10)) / (10 * talib.SMA(np.abs(talib.MOM(C, 1)), 10)),
    "distance_high_20": lambda: (C - _shifted(talib.MAX(H, 20), 1)) / talib.ATR(H, L, C, 20),
    "distance_low_20": lambda: (C - _shifted(talib.MIN(L, 20), 1)) / talib.ATR(H, L, C, 20),
    "distance_sma_20": lambda: (C - talib.SMA(C, 20)) / talib.ATR(H, L, C, 20),
    "gap": lambda: OPEN / _shifted(C, 1) - 1,
    "close_location": lambda: (C - L) / (H - L),
    "trend_rank": lambda: _rank(np.abs((talib.EMA(C, 20) - talib.EMA(C, 50)) / talib.ATR(H, L, C, 50))),
    "range_rank": lambda: _rank(talib.TRANGE(H, L, C) / talib.ATR(H, L, C, 14)),
    "realized_vol_20_rank": lambda: _rank(np.concatenate([[np.nan], talib.STDDEV(LOG_RETURN[1:], 20)])),
    "volume_rank": lambda: _rank(V),
}


def _rank(values, window=252, minimum=60):
    out = np.full(values.size, np.nan)
    first = int(np.flatnonzero(np.isfinite(values))[0])
    for t in range(first + minimum - 1, values.size):
        seen = values[max(first, t - window + 1) : t + 1]
        out[t] = ((seen < values[t]).sum() + 0.5 * ((seen == values[t]).sum() - 1)) / (seen.size - 1)
    return out


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_feature_matches_its_oracle_to_nine_digits(name):
    expected = ORACLES[name]()
    found = compute(BARS, [name])[name][:, 0]
    known = np.isfinite(found)
    assert known.sum() > 2_800
    tolerance = 1e-9 * np.maximum(np.abs(expected[known]), np.nanmedian(np.abs(expected)))
    assert (np.abs(found[known] - expected[known]) <= tolerance).all()


@pytest.mark.parametrize("k", [0, 1, 2])
def test_macd_matches_talib_from_its_first_bar(k):
    names = ("macd_12_26", "macd_signal_12_26_9", "macd_histogram_12_26_9")
    expected = talib.MACD(C, 12, 26, 9)[k]
    found = compute(BARS, names)[names[k]][:, 0]
    np.testing.assert_allclose(found[33:], expected[33:], rtol=1e-9, atol=1e-9 * float(np.nanstd(expected)))


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e6])
def test_moving_mean_and_deviation_over_long_history_keep_nine_digits(start):
    close = walk(5, 100_000, start=start, volatility=0.002)
    found = compute(one_symbol(close), ["sma_30", "stdev_30"])
    windows = np.lib.stride_tricks.sliding_window_view(close.astype(np.longdouble), 30)
    np.testing.assert_allclose(found["sma_30"][29:, 0], windows.mean(axis=1).astype(float), rtol=1e-15)
    np.testing.assert_allclose(found["stdev_30"][29:, 0], windows.std(axis=1).astype(float), rtol=1e-9)


def test_moving_mean_after_price_falls_nine_decades_is_exact():
    close = np.concatenate([np.full(100, 1e6), np.full(100, 1e-3)])
    found = compute(one_symbol(close), ["sma_20", "stdev_20"])
    np.testing.assert_allclose(found["sma_20"][120:, 0], 1e-3, rtol=1e-15)
    assert (found["stdev_20"][120:, 0] == 0).all()


def test_flat_price_gives_zero_deviation_and_unknown_ratios():
    bars = series({"AAA": {name: np.full(120, 10.1) for name in ("open", "high", "low", "close", "volume")}})
    found = compute(
        bars, ["stdev_20", "realized_vol_20", "zscore_20", "rsi_14", "range_ratio_14", "volume_rank"]
    )
    assert (found["stdev_20"][19:] == 0).all()
    assert (found["realized_vol_20"][20:] == 0).all()
    assert np.isnan(found["zscore_20"]).all()
    assert np.isnan(found["rsi_14"]).all()
    assert np.isnan(found["range_ratio_14"]).all()
    assert (found["volume_rank"][59:] == 0.5).all()


def test_rsi_after_a_flat_stretch_recovers():
    close = np.concatenate([np.full(60, 50.0), walk(2, 200, start=50.0)])
    shape = columns_of(close)
    found = compute(series({"AAA": shape}), ["rsi_14"])["rsi_14"][:, 0]
    expected = talib.RSI(close, 14)
    np.testing.assert_allclose(found[80:], expected[80:], rtol=1e-9)


def test_calendar_features_read_the_label_in_utc():
    found = compute(one_symbol(walk(1, 40)), ["hour", "day_of_week", "month"])
    assert found["day_of_week"][:3, 0].tolist() == [2, 3, 4]
    assert found["month"][[0, 30, 31], 0].tolist() == [1, 1, 2]
    assert (found["hour"] == 0).all()
    hours = compute(one_symbol(walk(1, 40), timeframe="1h"), ["hour"])["hour"][:, 0]
    assert hours[:25].tolist() == [*range(24), 0]
