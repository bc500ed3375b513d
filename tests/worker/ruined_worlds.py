"""Accounts of which nothing is left: a levered position, and a bar that opens far beyond its stop."""

import json
from functools import cache

import numpy as np

from schemas.playbook import PlaybookDefinition
from schemas.settings import DataSettings, EnvelopeSettings, ReflectionSettings, Settings
from schemas.vocabulary import Structure, Trend, VolatilityBand
from tests.services.playbooks.samples import definition
from tests.worker.shared_runs import fewer_bars, run_on
from trading_core.bars import BarSeries

FROM, TO = "2004-01-01", "2004-12-31"
EVERYWHERE = {"trend": tuple(Trend), "volatility": tuple(VolatilityBand), "structure": tuple(Structure)}
RULES = {
    "long": {
        "setup": "close > ema_50",
        "activation": "close > ema_50",
        "stop": "close - 0.5 * atr_14",
        "target": "close + 4 * atr_14",
        "invalidation": "close < lowest_20",
    },
    "short": {
        "setup": "close < ema_50",
        "activation": "close < ema_50",
        "stop": "close + 0.5 * atr_14",
        "target": "close - 2 * atr_14",
        "invalidation": "close > highest_20",
    },
}


def levered_settings() -> Settings:
    """An envelope and a reflection that stop nothing before all is lost; bars are taken as they are."""
    return Settings(
        data=DataSettings(plausibility="off"),
        reflection=ReflectionSettings(mode="off"),
        envelope=EnvelopeSettings(
            risk_fraction=0.02, max_gross_exposure=10.0, max_net_exposure=10.0, max_symbol_exposure=10.0,
            max_exposure_drift=100.0, max_daily_loss=0.99, max_drawdown=0.99,
        ),
    )  # fmt: skip


def bold(side: str) -> PlaybookDefinition:
    """A playbook of one direction that orders wherever it may, with a stop so near that it is levered."""
    return definition(
        rules={side: RULES[side]},
        eligibility={side: EVERYWHERE},
        parameters={},
        risk_fraction=0.02,
    )


@cache
def ruined_bars(side: str) -> BarSeries:
    """Real bars up to the first that is held overnight; from the next on, prices that leave nothing.

    A recovery follows two bars later: an account that is gone must not come back with it.
    """
    bars = fewer_bars(FROM, TO)
    calm = run_on(bars, levered_settings(), [bold(side)])
    exits = [(row.symbol, json.loads(row.payload)) for row in calm.rows if row.kind == "exit_filled"]
    entered = {fill["order_id"]: fill["bar_label"] for fill in calm.of("entry_filled")}
    symbol, label = next(
        (symbol, entered[fill["entry_order_id"]])
        for symbol, fill in exits
        if fill["bar_label"] > entered[fill["entry_order_id"]]
    )
    row = int(np.searchsorted(bars.times, label)) + 1
    return crashed(bars, bars.symbols.index(str(symbol)), row, 0.05 if side == "long" else 20.0)


def crashed(bars: BarSeries, s: int, row: int, factor: float) -> BarSeries:
    """The same bars with two of symbol `s` at other prices."""
    arrays = {name: getattr(bars, name).copy() for name in ("open", "high", "low", "close", "volume")}
    for name in ("open", "high", "low", "close"):
        arrays[name][row : row + 2, s] *= factor
    return BarSeries(bars.times, bars.symbols, bars.timeframe, bars.label, present=bars.present, **arrays)
