"""The one strategy that every engine trades: a crossing of two averages, a bracket and a time stop.

Long one unit when `sma_10` crosses above `sma_30`, 2 % stop, 4 % target, out after 50 bars, 5 basis points a
side. Trade lists carry row numbers for times, so that engines with other ideas of a time stamp compare.
"""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from trading_core.bars import BarSeries
from trading_core.features import compute
from trading_core.research.simulation import SimulationResult, simulate

FAST, SLOW = "sma_10", "sma_30"
ENTRY = f"crosses_above({FAST}, {SLOW})"
BRACKET: dict[str, float] = {"stop_pct": 0.02, "target_pct": 0.04, "time_stop_bars": 50, "fee_bps": 5.0}
TRADE_COLUMNS = ("symbol", "entry_bar", "exit_bar", "entry_price", "exit_price", "fees", "pnl")
Switches = dict[str, Any]

# What most engines share: levels from the close that gave the signal, and money that never runs out.
COMMON: Switches = {"level_base": "signal_close", "cash": 1e9}


def averages(bars: BarSeries) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The engine's own two averages, (T, S) each: what every peer is given.

    Two ways to round one average disagree about a few crossings in a thousand, so all share these.
    """
    columns = compute(bars, (FAST, SLOW))
    return columns[FAST], columns[SLOW]


def find_crossings(fast: npt.NDArray[np.float64], slow: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Where the fast average crosses above the slow one; bool (T, S)."""
    found = np.zeros(fast.shape, dtype=np.bool_)
    found[1:] = (fast[1:] > slow[1:]) & (fast[:-1] <= slow[:-1])
    return found


def crossings_sha256(bars: BarSeries) -> str:
    """Hash of where the averages cross: all that the trades depend on besides the prices."""
    return hashlib.sha256(np.packbits(find_crossings(*averages(bars))).tobytes()).hexdigest()


def bars_sha256(bars: BarSeries) -> str:
    """Hash of labels and prices."""
    digest = hashlib.sha256(bars.times.tobytes())
    for values in (bars.open, bars.high, bars.low, bars.close):
        digest.update(values.tobytes())
    return digest.hexdigest()


def simulate_trades(bars: BarSeries, switches: Switches | None = None) -> pd.DataFrame:
    """The strategy in this engine, as `TRADE_COLUMNS` in order of exit and symbol.

    Args:
        bars: of any number of symbols.
        switches: arguments of `simulate` that differ from its defaults.
    """
    return trade_list(bars, simulated_raw(bars, switches or {}).trades)


def simulated_raw(bars: BarSeries, switches: Switches) -> SimulationResult:
    """The strategy through the public entry, nothing added: what is timed."""
    settings: dict[str, Any] = {"slippage_bps": 0.0, **BRACKET, **switches}
    return simulate(bars, ENTRY, **settings)


def trade_list(bars: BarSeries, trades: pd.DataFrame) -> pd.DataFrame:
    """Trades of `simulate` with row numbers instead of times, in order of exit and symbol."""
    names = {name: s for s, name in enumerate(bars.symbols)}
    frame = pd.DataFrame(
        {
            "symbol": [names[name] for name in trades["symbol"]],
            "entry_bar": _rows(bars, trades["entry_time"]),
            "exit_bar": _rows(bars, trades["exit_time"]),
            **{name: trades[name].to_numpy() for name in TRADE_COLUMNS[3:]},
        }
    ).astype({"symbol": np.int64})
    return frame.sort_values(["exit_bar", "symbol"], kind="stable", ignore_index=True)


def _rows(bars: BarSeries, times: "pd.Series[pd.Timestamp]") -> npt.NDArray[np.int64]:
    stamps = pd.DatetimeIndex(times).as_unit("ns").asi8
    return np.searchsorted(bars.times, stamps).astype(np.int64)
