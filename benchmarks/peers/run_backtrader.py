# mypy: ignore-errors
"""The crossing rule in backtrader: a bracket with absolute prices, closed by the strategy when time is up.

backtrader imports matplotlib only to plot and `collections` names that still exist, so it runs as published.
"""

import backtrader as bt
import numpy as np
from job import run


class Rows(bt.feed.DataBase):
    """A feed that walks over arrays; a bar is its row number of minutes after the first label."""

    params = (("arrays", None), ("stamps", None))

    def start(self):
        """Back to the first row."""
        super().start()
        self.row = 0

    def _load(self):
        if self.row >= len(self.p.stamps):
            return False
        row, (opened, high, low, close) = self.row, self.p.arrays
        self.lines.datetime[0] = self.p.stamps[row]
        self.lines.open[0], self.lines.high[0] = opened[row], high[row]
        self.lines.low[0], self.lines.close[0] = low[row], close[row]
        self.lines.volume[0], self.lines.openinterest[0] = 1_000.0, 0.0
        self.row = row + 1
        return True


class Crossing(bt.Strategy):
    """One bracket per symbol at a time."""

    params = (("job", None),)

    def __init__(self):
        job = self.p.job
        self.crossed = [job.crossed(s) for s in range(job.symbols)]
        self.entered = [None] * job.symbols
        self.children = [None] * job.symbols
        self.entry = [None] * job.symbols
        self.pending = [False] * job.symbols
        self.fee = [0.0] * job.symbols
        self.found = []
        self.place = {data: s for s, data in enumerate(self.datas)}

    def notify_order(self, order):
        """Note fills; a cancelled or margin order changes nothing."""
        if order.status != order.Completed:
            return
        s, row, done = self.place[order.data], len(order.data) - 1, order.executed
        if order.isbuy():
            self.entry[s], self.pending[s] = (row, done.price, done.comm), False
        elif self.entry[s] is not None:
            start, price, fee = self.entry[s]
            fees = fee + done.comm
            self.found.append((s, start, row, price, done.price, fees, done.price - price - fees))
            self.entry[s] = self.children[s] = None

    def next(self):
        """One closed bar of every symbol."""
        job = self.p.job
        for s, data in enumerate(self.datas):
            row = len(data) - 1
            if self.entry[s] is not None:
                if row - self.entry[s][0] >= job.time_stop - 1 and self.children[s] is not None:
                    self.cancel(self.children[s][1])
                    self.children[s] = None
                    self.close(data=data)
            elif self.crossed[s][row] and not self.pending[s]:
                close = data.close[0]
                _, stop, limit = self.buy_bracket(
                    data=data,
                    size=1,
                    exectype=bt.Order.Market,
                    stopprice=close * (1.0 - job.stop_pct),
                    limitprice=close * (1.0 + job.target_pct),
                )
                self.children[s], self.pending[s] = (stop, limit), True


def prepare(job):
    """Arrays and date numbers of every symbol."""
    stamps = bt.date2num(np.datetime64(0, "s").astype(object)) + job.arrays["times"] / 86_400e9
    names = ("open", "high", "low", "close")
    return [Rows(arrays=[job.column(name, s).tolist() for name in names], stamps=stamps.tolist(),
                 timeframe=bt.TimeFrame.Minutes) for s in range(job.symbols)]  # fmt: skip


def trade(job, feeds):
    """One run over all symbols."""
    cerebro = bt.Cerebro(stdstats=False, preload=True, runonce=False)
    cerebro.broker.setcash(1e9)
    cerebro.broker.setcommission(commission=job.fee)
    for feed in feeds:
        cerebro.adddata(feed)
    cerebro.addstrategy(Crossing, job=job)
    return cerebro.run()[0]


def read(job, strategy):
    """Rows of the trade list."""
    return strategy.found


if __name__ == "__main__":
    run("backtrader", prepare, trade, read)
