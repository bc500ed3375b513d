"""The live step: one new row through features, rules, regime and kernel, on short and long history."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from benchmarks.crossing import BRACKET, ENTRY
from benchmarks.engine import SEED, TICK
from benchmarks.walks import walks
from schemas.settings import EnvelopeSettings, ExecutionSettings
from tools.docs_pages import table
from trading_core.bars import BarSeries
from trading_core.kernel.flags import event_flags
from trading_core.kernel.fresh import parameter_record
from trading_core.live.growing_bars import Bar, GrowingBars
from trading_core.live.step import LiveStep
from trading_core.market import Market
from trading_core.policy_orders import PolicyOrders
from trading_core.rules.columns import SharedColumns
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine

STEPS = 10_000
WORLDS = ((1_000, 1), (300_000, 1), (1_000, 5))  # bars of history, symbols
FEATURES = (
    "sma_10", "sma_30", "sma_200", "ema_20", "ema_50", "rsi_14", "atr_14", "natr_14", "adx_14", "plus_di_14",
    "minus_di_14", "macd_12_26", "macd_signal_12_26_9", "bandwidth_20", "keltner_width_20", "zscore_20",
    "donchian_width_20", "volume_rank", "realized_vol_20_rank", "bandwidth_20_rank", "range_rank",
    "trend_rank", "stochastic_14", "efficiency_10", "distance_high_20", "distance_sma_20", "gap",
    "close_location", "roc_10", "hour",
)  # fmt: skip
RULES = tuple(f"crosses_above(sma_{k}, sma_{3 * k}) and rsi_14 > {30 + k}" for k in range(5, 25)) + tuple(
    f"close > highest_{k} and volume_rank > 0.5 or prev(close < lowest_{k}, 2)" for k in range(10, 30)
)


@dataclass(frozen=True)
class Steps:
    """CPU microseconds of a step, over its symbols.

    Attributes:
        history: rows before the first step.
        symbols: that have a bar in every step.
        p50: median.
        p99: the slowest in a hundred.
    """

    history: int
    symbols: int
    p50: float
    p99: float


def time_steps() -> list[Steps]:
    """Steps in every world."""
    return [time_world(history, symbols) for history, symbols in WORLDS]


def time_world(history: int, symbols: int) -> Steps:
    """Steps after a history; the first hundred, which may compile, are not counted."""
    full = walks(SEED, history + STEPS, symbols, tick=TICK)
    step = live_step(full, history)
    rows = [_row(full, t) for t in range(history, history + STEPS)]
    spent = np.empty(STEPS)
    for k, (label, bars) in enumerate(rows):
        started = time.process_time_ns()
        step(label, bars)
        spent[k] = time.process_time_ns() - started
    p50, p99 = np.percentile(spent[100:] / 1e3 / symbols, [50, 99])
    return Steps(history, symbols, float(p50), float(p99))


def live_step(full: BarSeries, history: int) -> LiveStep:
    """A step whose engine has validated the history, with the strategy as a policy that never ends."""
    bars = GrowingBars(_first(full, history))
    market = Market.of(bars)
    columns = market.columns
    columns.features.load(FEATURES)
    symbols = range(len(full.symbols))
    for s in symbols:
        for text in (*RULES, ENTRY):
            columns.boolean(text, s)
    parameters = parameter_record(ExecutionSettings(), EnvelopeSettings(), heartbeat=0, emit_events=True)
    engine = TriggerEngine(
        bars, event_flags(market.regimes.flags), parameters, 1e6, TickGuard(),
        TickEventDecoder(bars, "", "bench"), columns=SharedColumns(columns),
    )  # fmt: skip
    for s in symbols:
        engine.install(s, _orders(columns.place(ENTRY, s).index))
    while not engine.done:
        engine.advance()
    return LiveStep(market, engine)


def _orders(setup: int) -> PolicyOrders:
    return PolicyOrders(
        tag=PolicyTag("bench", "crossing"), direction=1, setup=setup, activation=-1, invalidation=-1, stop=-1,
        target=-1, refinement=-1, window=3, horizon=int(BRACKET["time_stop_bars"]), risk_fraction=0.005,
        immediate=True, never_ends=True, stop_pct=BRACKET["stop_pct"], target_pct=BRACKET["target_pct"],
    )  # fmt: skip


def _first(full: BarSeries, rows: int) -> BarSeries:
    kept = {field.name: getattr(full, field.name) for field in fields(full)}
    cut = {name: value[:rows].copy() for name, value in kept.items() if isinstance(value, np.ndarray)}
    return BarSeries(**{**kept, **cut})


def _row(full: BarSeries, t: int) -> tuple[int, dict[str, Bar]]:
    values = (full.open[t], full.high[t], full.low[t], full.close[t], full.volume[t])
    bars = zip(full.symbols, zip(*(part.tolist() for part in values), strict=True), strict=True)
    return int(full.times[t]), {symbol: Bar(*bar) for symbol, bar in bars}


def steps_table(found: Sequence[Steps]) -> str:
    """One line a world."""
    rows = [
        (f"{timing.history:,}", str(timing.symbols), f"{timing.p50:.0f}", f"{timing.p99:.0f}")
        for timing in found
    ]
    return table(("bars of history", "symbols", "p50, µs per symbol", "p99, µs per symbol"), rows)
