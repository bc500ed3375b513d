"""Blocks of trades by entry: what one bet of the gate is settled on.

A block holds the trades that were entered in one calendar period. It counts when the period is over and all
of its trades have exited, and all blocks before it have: only then does the sum of its outcomes say nothing
about which of them end first. Of each block the sums of R are kept twice, cut on the side that favours a
claim: at `low` for "losing", at `high` for "gaining"; the other side is cut at 50R against bad data alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataError
from services.statistics.calendar_units import BlockUnit, Integers, unit_numbers, unit_starts

Floats = NDArray[np.float64]

LOSING, GAINING = 0, 1
ADVERSE_CUT_R = 50.0
WORST_ROWS = 2
RESEMBLING_FROM = 12  # blocks from which on their resemblance can be seen
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Trades:
    """Resolved trades of one cluster in any order: times in ns UTC and R after costs, each (n,)."""

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

    def __len__(self) -> int:
        return len(self.r)


@dataclass(frozen=True)
class Blocks:
    """Blocks of one cluster in order of their period; arrays of shape (b,), of claims (2, b).

    Attributes:
        numbers: of the periods, see `unit_numbers`.
        sizes: trades.
        complete_at: when the block counts, ns UTC; `NEVER` while one of its positions is open.
        raw, winsorised: sums of R, as it is and cut on both sides.
        sums, squares: of R as each claim sees it, and of its square.
        worst: the two largest R against the claim, (2, 2, b): of R itself for losing, of -R for gaining;
            -50 where a block has one row.
    """

    numbers: Integers
    sizes: Integers
    complete_at: Integers
    raw: Floats
    winsorised: Floats
    sums: Floats
    squares: Floats
    worst: Floats

    def __len__(self) -> int:
        return len(self.sizes)


def winsorise(r: Any, low: float, high: float) -> Floats:
    """R clipped to [low, high], elementwise."""
    return np.clip(np.asarray(r, dtype=np.float64), low, high)


def blocks_of(
    trades: Trades,
    unit: BlockUnit,
    low: float,
    high: float,
    open_since: int | None = None,
    together: int = 1,
) -> Blocks:
    """The blocks of a cluster.

    Args:
        trades: resolved ones.
        unit: calendar period of the entries.
        low: winsor bound of R.
        high: winsor bound of R.
        open_since: earliest entry among the cluster's open positions, ns; blocks from its period on wait.
        together: periods of one block, counted from the epoch; their numbers are those of such groups.
    """
    periods = unit_numbers(trades.entry_ns, unit) // together
    order = np.lexsort((trades.r, periods))  # sums run in value order: the order of rows reaches no bit
    numbers, r = periods[order], trades.r[order]
    starts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1]))[: len(numbers)])
    own = numbers[starts]
    if not len(starts):
        nothing = np.zeros((2, 0))
        return Blocks(own, own, own, nothing[0], nothing[0], nothing, nothing, np.zeros((2, WORST_ROWS, 0)))
    ends = np.append(starts[1:], len(r))
    claims = np.stack((winsorise(r, low, ADVERSE_CUT_R), winsorise(r, -ADVERSE_CUT_R, high)))
    complete = np.maximum.accumulate(
        np.maximum(
            unit_starts((own + 1) * together, unit), np.maximum.reduceat(trades.exit_ns[order], starts)
        )
    )
    if open_since is not None:
        complete = np.where(own >= unit_numbers(open_since, unit) // together, NEVER, complete)
    return Blocks(
        own,
        ends - starts,
        complete,
        np.add.reduceat(r, starts),
        np.add.reduceat(winsorise(r, low, high), starts),
        np.add.reduceat(claims, starts, axis=1),
        np.add.reduceat(claims**2, starts, axis=1),
        np.stack(
            (_largest(claims[LOSING], starts), _largest(-claims[GAINING][::-1], len(r) - ends[::-1])[:, ::-1])
        ),
    )


def _largest(rising: Floats, starts: Integers) -> Floats:
    """The two largest values of each block (2, b) of values that rise within their block."""
    ends = np.append(starts[1:], len(rising))
    places = ends - np.arange(1, WORST_ROWS + 1)[:, None]
    return np.where(places >= starts, rising[np.maximum(places, 0)], -ADVERSE_CUT_R)


def resemblance(off: Floats) -> float:
    """How much larger the error of a mean is than that of separate blocks; 1 where they do not resemble.

    The root of (1 + r) / (1 - r) for the correlation r of neighbours, of deviations (b,), where it is clear.
    """
    if len(off) < RESEMBLING_FROM:
        return 1.0
    r = float((off[1:] * off[:-1]).sum() / (off**2).sum())
    return sqrt((1.0 + r) / (1.0 - r)) if r * sqrt(len(off)) > 1.0 else 1.0
