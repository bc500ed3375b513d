# mypy: ignore-errors
"""The crossing rule in vectorbt, in three forms.

`rust` and `numba` are its ready-made signal simulation, where a time stop can only be an exit signal a
number of bars after each entry signal. `numba_function` is a signal function compiled by the user, which
knows when the position was opened and so gets the time stop right.
"""

import numpy as np
import pandas as pd
import vectorbt as vbt
from job import run
from numba import njit
from vectorbt.portfolio.enums import StopEntryPrice, StopExitPrice


@njit
def signals(c, entries, entered, bars):
    """Enter on a signal when flat; leave when the position is `bars` bars old."""
    if c.position_now > 0.0:
        return False, c.i - entered[c.col] >= bars, False, False
    if entries[c.i, c.col]:
        entered[c.col] = c.i
        return True, False, False, False
    return False, False, False, False


def _later(flags, bars):
    moved = np.zeros_like(flags)
    if bars < len(flags):
        moved[bars:] = flags[:-bars]
    return moved


def prepare(job):
    """Frames of prices; entries moved by one bar, since an order fills at the next open."""
    index = pd.DatetimeIndex(job.times())
    frames = {name: pd.DataFrame(job.arrays[name], index=index) for name in ("open", "high", "low", "close")}
    crossed = np.column_stack([job.crossed(s) for s in range(job.symbols)])
    return frames, crossed


def trade(job, data):
    """From the crossing to the records of closed trades."""
    frames, crossed = data
    entries = _later(crossed, 1)
    form = job.settings["form"]
    shared = {
        "open": frames["open"],
        "high": frames["high"],
        "low": frames["low"],
        "close": frames["close"],
        "price": frames["open"],
        "val_price": -np.inf,  # the close before: what the levels are measured from
        "stop_entry_price": StopEntryPrice.ValPrice,
        "stop_exit_price": StopExitPrice.StopLimit,
        "sl_stop": job.stop_pct,
        "tp_stop": job.target_pct,
        "size": 1.0,
        "fees": job.fee,
        "init_cash": 1e9,
        "freq": "1min",
    }
    if form == "numba_function":
        entered = np.full(job.symbols, -1, dtype=np.int64)
        result = vbt.Portfolio.from_signals(
            signal_func_nb=signals, signal_args=(entries, entered, job.time_stop), **shared
        )
    else:
        exits = _later(entries, job.time_stop)
        result = vbt.Portfolio.from_signals(
            entries=pd.DataFrame(entries, index=frames["close"].index),
            exits=pd.DataFrame(exits, index=frames["close"].index),
            engine=form,
            direction="longonly",
            **shared,
        )
    return result.exit_trades.values


def read(job, records):
    """Rows of the trade list; a position open at the end is no trade."""
    closed = records[records["status"] == 1]
    return [
        (trade["col"], trade["entry_idx"], trade["exit_idx"], trade["entry_price"], trade["exit_price"],
         trade["entry_fees"] + trade["exit_fees"], trade["pnl"])
        for trade in closed
    ]  # fmt: skip


if __name__ == "__main__":
    run("vectorbt", prepare, trade, read)
