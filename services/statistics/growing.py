"""One cluster looked at again and again while its trades arrive: the same samples, without the same work.

Calendar units never reopen a period that is over, so only the blocks of the last period are made anew at each
look. What comes back equals `sample` on the trades known then, to the last bit. Read by `thinktwice gate` and
the worlds.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from services.statistics.expectancy import (
    BetUnit,
    Integers,
    Observations,
    Trades,
    block_labels,
    observe,
    winsorise,
)
from services.statistics.sample import Sample, sample, weigh

ARRAYS = ("values", "low", "high", "sizes", "exit_ns")


class GrowingTrades:
    """Trades of one cluster in order of exit, and the blocks of those that are known so far."""

    def __init__(self, trades: Trades, unit: BetUnit, low: float, high: float, reference: float) -> None:
        """Take trades in any order; `unit` is already resolved.

        Raises:
            DataError: the reference does not lie strictly between the winsor bounds.
        """
        order = np.argsort(trades.exit_ns, kind="stable")
        self.trades = Trades(trades.entry_ns[order], trades.exit_ns[order], trades.r[order])
        self._unit, self._low, self._high, self._reference = unit, low, high, reference
        self._blocks: dict[BetUnit, tuple[Integers, Observations]] = {}

    def count(self, at_ns: int) -> int:
        """Trades that have exited by a time."""
        return int(np.searchsorted(self.trades.exit_ns, at_ns, side="right"))

    def mean_r(self, count: int) -> float | None:
        """Winsorised mean of the first `count` trades."""
        if not count:
            return None
        return round(float(np.sort(winsorise(self.trades.r[:count], self._low, self._high)).mean()), 9)

    def sample(self, count: int, *, mean: bool = True) -> Sample:
        """The sample of the first `count` trades; without `mean` its mean is left out, which saves a sort."""
        if self._unit == "overlap":  # a later entry may join blocks that looked finished
            return sample(self._known(0, count), self._unit, self._low, self._high, self._reference)
        return weigh(
            lambda unit: self._observe(unit, count), self._unit, count, self.mean_r(count) if mean else None
        )

    def observations(self) -> Observations:
        """Blocks of all trades in the declared unit."""
        return self._all(self._unit)[1]

    def _known(self, start: int, end: int) -> Trades:
        kept = self.trades
        return Trades(kept.entry_ns[start:end], kept.exit_ns[start:end], kept.r[start:end])

    def _all(self, unit: BetUnit) -> tuple[Integers, Observations]:
        """Where each block of all trades begins, and all blocks."""
        if unit not in self._blocks:
            labels = block_labels(self.trades, unit)
            starts = np.flatnonzero(np.concatenate(([True], labels[1:] != labels[:-1]))[: len(labels)])
            self._blocks[unit] = starts, self._made(self.trades, unit)
        return self._blocks[unit]

    def _made(self, trades: Trades, unit: BetUnit) -> Observations:
        return observe(trades, unit, self._low, self._high, self._reference)

    def _observe(self, unit: BetUnit, count: int) -> Observations:
        if unit == "overlap":
            return self._made(self._known(0, count), unit)
        starts, every = self._all(unit)
        if count == len(self.trades.r):
            return every
        begun = int(np.searchsorted(starts, count, side="left"))
        finished = max(begun - 1, 0)
        last = self._made(self._known(int(starts[finished]) if begun else 0, count), unit)
        return _joined(every, finished, last)


def _joined(every: Observations, finished: int, last: Observations) -> Observations:
    """The first `finished` blocks of `every`, then the blocks of `last`."""
    arrays: dict[str, Any] = {
        name: np.concatenate((getattr(every, name)[:finished], getattr(last, name))) for name in ARRAYS
    }
    return replace(every, **arrays)
