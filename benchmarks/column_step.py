"""CPU time of one new bar of one symbol: features, rules and the regime, on histories of several lengths.

Run `uv run python -m benchmarks.column_step`.
"""

import time

import numpy as np

from trading_core.bars import COLUMNS, NS, BarSeries
from trading_core.regime import RegimeTracker
from trading_core.rules import RuleColumns

STEPS = 20_000
FEATURES = (
    "sma_10", "sma_30", "sma_200", "ema_20", "ema_50", "rsi_14", "atr_14", "natr_14", "adx_14", "plus_di_14",
    "minus_di_14", "macd_12_26", "macd_signal_12_26_9", "bandwidth_20", "keltner_width_20",
    "donchian_width_20", "zscore_20", "volume_rank", "realized_vol_20_rank", "bandwidth_20_rank",
    "range_rank", "trend_rank", "stochastic_14", "efficiency_10", "distance_high_20", "distance_sma_20",
    "gap", "close_location", "roc_10", "hour", "sma_20_1h", "rsi_14_1h", "close_1d", "sma_20_1h_rank",
    "atr_14_4h", "session_vwap", "previous_session_high",
)  # fmt: skip
CONDITIONS = tuple(
    text
    for k in range(5, 25)
    for text in (
        f"crosses_above(sma_{k}, sma_{k + 20}) and rsi_14 > {30 + k}",
        f"close > highest_20 and volume_rank > 0.{k:02d} or prev(close < lowest_20, {k})",
    )
)
LEVELS = ("close - 2 * atr_14", "min(lowest_5, prev(low, 1))", "max(close, sma_20) / sma_5")


def main() -> None:
    """Print one line for each length of history."""
    print(f"{len(FEATURES)} features, {len(CONDITIONS) + len(LEVELS)} rules, regime; {STEPS:,} steps each")
    for history in (1_000, 20_000, 100_000):
        taken = step_times(history) / 1e3
        p50, p99, slowest = *np.percentile(taken, [50, 99]), taken.max()
        print(f"history {history:>7,}: p50 {p50:.1f} us, p99 {p99:.1f} us, slowest {slowest:.1f} us")


def step_times(history: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """CPU ns of every step after a history of so many bars."""
    whole = _walk(history + STEPS + 1)
    rules = RuleColumns(_rows(whole, history))
    rules.features.load(FEATURES)
    for text in CONDITIONS:
        rules.boolean(text, 0)
    for text in LEVELS:
        rules.number(text, 0)
    regime = RegimeTracker(rules.bars, features=rules.features)
    taken = np.empty(STEPS + 1)
    for k in range(STEPS + 1):
        bars = _rows(whole, history + k + 1)
        started = time.process_time_ns()
        rules.extend(bars)
        regime.extend()
        taken[k] = time.process_time_ns() - started
    return taken[1:]  # the first step puts the program of all columns together


def _walk(rows: int) -> BarSeries:
    rng = np.random.default_rng(0)
    close = (100 * np.exp(np.cumsum(rng.normal(0, 0.001, rows)))).reshape(-1, 1)
    volume = rng.uniform(1.0, 1e6, (rows, 1))
    times = 1_577_836_800 * NS + np.arange(rows, dtype=np.int64) * 60 * NS
    present = np.ones((rows, 1), dtype=np.bool_)
    high, low = close * 1.001, close * 0.999
    return BarSeries(times, ("X",), "1m", "open", close.copy(), high, low, close, volume, present)


def _rows(bars: BarSeries, rows: int) -> BarSeries:
    """The first rows as views; they were checked as part of the whole."""
    part = object.__new__(BarSeries)
    arrays = {name: getattr(bars, name)[:rows] for name in (*COLUMNS, "times", "present")}
    vars(part).update(vars(bars) | arrays)
    return part


if __name__ == "__main__":
    main()
