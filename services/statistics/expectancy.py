"""Winsorised expectancy and the observation units on which it is tested.

The estimand is m = E[clip(R, low, high)], fixed before the data. Trades whose outcomes may depend on each
other are averaged into one observation (a block), because dependence inside a block is what breaks sequential
tests on trades. Read by the high-level reflection; what it returns feeds the e-process, the interval and the
drift detector.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
BetUnit = Literal["auto", "trade", "overlap", "day", "week", "month", "quarter"]

DAY_NS = 86_400_000_000_000
BLOCK_CLIP = 0.75
COARSER: dict[BetUnit, BetUnit] = {
    "trade": "overlap",
    "overlap": "day",
    "day": "week",
    "week": "month",
    "month": "quarter",
}


@dataclass(frozen=True)
class Trades:
    """Resolved trades of one cluster in any order: bar labels in ns UTC and R after costs, each (n,)."""

    entry_ns: Integers
    exit_ns: Integers
    r: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, float]]) -> "Trades":
        """From rows (exit label, entry label, R).

        Raises:
            DataError: an exit lies before its entry, or an R is not finite.
        """
        exits = np.array([row[0] for row in rows], dtype=np.int64)
        entries = np.array([row[1] for row in rows], dtype=np.int64)
        r = np.array([row[2] for row in rows], dtype=np.float64)
        if np.any(exits < entries):
            first = int(np.argmax(exits < entries))
            raise DataError(f"trade {first}: exit {exits[first]} lies before entry {entries[first]}")
        if not np.all(np.isfinite(r)):
            raise DataError(f"trade {int(np.argmin(np.isfinite(r)))}: R is not a finite number")
        return cls(entries, exits, r)


@dataclass(frozen=True)
class Observations:
    """Blocks in order of their last exit; arrays of shape (b,).

    `values` lie inside [`low`, `high`] of their own block, and so does `reference`. `floor` and `ceiling` are
    the winsor bounds of single trades.
    """

    values: Floats
    low: Floats
    high: Floats
    sizes: Integers
    exit_ns: Integers
    reference: float
    floor: float
    ceiling: float

    def __len__(self) -> int:
        return len(self.values)


def winsorise(r: Floats, low: float, high: float) -> Floats:
    """R clipped to [low, high], elementwise."""
    return np.clip(np.asarray(r, dtype=np.float64), low, high)


def resolve_unit(unit: BetUnit, timeframe: str) -> BetUnit:
    """The unit in force: `auto` is the calendar week, or the month on daily bars.

    The calendar period stands in for the overlap of holding periods: cutting at its edges keeps a chain of
    overlaps in a busy cluster from growing into one endless block.
    """
    if unit != "auto":
        return unit
    return "month" if timeframe == "1d" else "week"


def _overlap_labels(entry_ns: Integers, exit_ns: Integers) -> Integers:
    order = np.lexsort((exit_ns, entry_ns))
    reach = np.maximum.accumulate(exit_ns[order])
    starts = np.concatenate(([False], entry_ns[order][1:] > reach[:-1]))
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.cumsum(starts)
    return labels


def block_labels(trades: Trades, unit: BetUnit) -> Integers:
    """One label per trade, equal for trades of one block; shape (n,).

    trade: trades that exit together. overlap: chains of trades whose holding periods [entry, exit] share a
    bar. day, week (ISO, from Monday), month, quarter: calendar period of the exit in UTC.

    Raises:
        DataError: the unit is `auto`; resolve it first.
    """
    if unit == "trade":
        return trades.exit_ns
    if unit == "overlap":
        return _overlap_labels(trades.entry_ns, trades.exit_ns)
    days = trades.exit_ns // DAY_NS
    if unit == "day":
        return days
    if unit == "week":
        return (days + 3) // 7  # 1970-01-01 was a Thursday
    if unit in ("month", "quarter"):
        months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        return months if unit == "month" else months // 3
    raise DataError(f"bet unit {unit!r} is not resolved: give trade, overlap, day, week, month or quarter")


def _block_bounds(sizes: Integers, reference: float, low: float, high: float) -> tuple[Floats, Floats]:
    reach = BLOCK_CLIP * min(reference - low, high - reference) / np.sqrt(sizes)
    single = sizes == 1
    return np.where(single, low, reference - reach), np.where(single, high, reference + reach)


def observe(trades: Trades, unit: BetUnit, low: float, high: float, reference: float = 0.0) -> Observations:
    """Block means of winsorised R, in order of exit.

    A block of k >= 2 trades is clipped to reference +- 0.75 * min(reference - low, high - reference) /
    sqrt(k): the mean of k trades spreads like 1/sqrt(k), and bets against narrower bounds find the same
    effect in fewer blocks. A block of one keeps [low, high]. Every bound is known before its outcome.
    Clipping is symmetric about the reference; the mean of a skewed outcome moves a little by it, which the
    false-positive rates measured in the tests include.

    Raises:
        DataError: the reference does not lie strictly between the winsor bounds.
    """
    if not low < reference < high:
        raise DataError(
            f"reference {reference!r} must lie strictly between the winsor bounds {low!r} and {high!r}"
        )
    clipped = winsorise(trades.r, low, high)
    _, block, sizes = np.unique(block_labels(trades, unit), return_inverse=True, return_counts=True)
    last = np.full(len(sizes), np.iinfo(np.int64).min)
    np.maximum.at(last, block, trades.exit_ns)
    # Sums run in value order, so the order of the rows cannot reach the last bit.
    within = np.lexsort((clipped, block))
    sums = np.bincount(block[within], weights=clipped[within], minlength=len(sizes))
    sizes = sizes.astype(np.int64)
    lows, highs = _block_bounds(sizes, reference, low, high)
    means = np.clip(sums / np.maximum(sizes, 1), lows, highs)
    order = np.argsort(last, kind="stable")
    return Observations(
        means[order], lows[order], highs[order], sizes[order], last[order], reference, low, high
    )
