"""Equity curves on which the performance figures are held against an independent library."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peer_runs import Peer
from benchmarks.walks import walk
from trading_core import accounting
from trading_core.bars import NS

FILE = Path(__file__).resolve().parents[1] / "tests" / "trading_core" / "parity" / "data" / "statistics.json"
LIBRARY = Peer("empyrical-reloaded", "statistics")
STEPS_NS = {"1m": 60 * NS, "1h": 3_600 * NS, "1d": 86_400 * NS}
SEEDS = range(31, 43)
BARS = 2_000
FIGURES = ("sharpe", "sortino", "volatility", "cagr", "calmar", "max_drawdown")


def curve(seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], str]:
    """An equity curve, its times and their spacing; every third seed has another spacing."""
    step = list(STEPS_NS)[seed % len(STEPS_NS)]
    values = np.ascontiguousarray(walk(seed, BARS).close[:, 0]) * 1_000.0
    return values, np.arange(BARS, dtype=np.int64) * STEPS_NS[step], step


def bars_per_year(times: npt.NDArray[np.int64]) -> float:
    """What the library is told to annualise by."""
    return float((times.size - 1) / ((times[-1] - times[0]) / accounting.YEAR_NS))


def figures(seed: int) -> dict[str, Any]:
    """This engine's figures of a curve."""
    equity, times, _ = curve(seed)
    ours = {name: getattr(accounting, name)(equity, times) for name in FIGURES[:-1]}
    return {**ours, "max_drawdown": accounting.max_drawdown(equity)}
