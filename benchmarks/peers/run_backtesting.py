# mypy: ignore-errors
"""The crossing rule in backtesting.py: one symbol a run, levels given with the order at the signal close."""

import warnings

import numpy as np
import pandas as pd
from backtesting import Backtest, Strategy
from job import run


class Crossing(Strategy):
    """Buys one unit when the crossing is true; leaves at a stop, a target or after a number of bars."""

    crossed = None
    stop_pct = target_pct = 0.0
    time_stop = 0

    def init(self):
        """Nothing to compute: the crossing comes with the job."""

    def next(self):
        """One closed bar."""
        row = len(self.data) - 1
        if self.position:
            if row - self.trades[-1].entry_bar >= self.time_stop - 1:
                self.position.close()
        elif self.crossed[row] and not self.orders:
            close = self.data.Close[-1]
            self.buy(size=1, sl=close * (1.0 - self.stop_pct), tp=close * (1.0 + self.target_pct))


def prepare(job):
    """One frame a symbol."""
    names = ("open", "high", "low", "close")
    return [
        pd.DataFrame(
            {name.capitalize(): job.column(name, s) for name in names}, index=pd.DatetimeIndex(job.times())
        )
        for s in range(job.symbols)
    ]


def trade(job, frames):
    """Every symbol in a run of its own: the engine holds one instrument."""
    found = []
    for s, frame in enumerate(frames):
        test = Backtest(frame, Crossing, cash=1e9, commission=job.fee, finalize_trades=False)
        stats = test.run(
            crossed=job.crossed(s),
            stop_pct=job.stop_pct,
            target_pct=job.target_pct,
            time_stop=job.time_stop,
        )
        found.append(stats["_trades"])
    return found


def read(job, found):
    """Rows of the trade list."""
    return [
        (s, trade.EntryBar, trade.ExitBar, trade.EntryPrice, trade.ExitPrice, trade.Commission, trade.PnL)
        for s, trades in enumerate(found)
        for trade in trades.itertuples()
    ]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    run("backtesting", prepare, trade, read)
