"""Fills of one position as one row: a bet counts once, however many lines a table has for it.

Rows belong together by their `position_id`; else by symbol, direction, entry and exit, where a table names
symbol and direction; else each is a position of its own. Their R is the mean, weighted by `quantity` where
given. Rows that are merely equal stay apart: losers that stop at exactly -1R are equal, winners are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from services.high_level.clusters import TradeTable

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

BY_ID, BY_ORDER, BY_ROW = "position_id", "symbol, direction, entry and exit", "row"
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Positions:
    """How rows were held together: `by` what, and how many `rows` became how many `positions`.

    Attributes:
        equal: rows that are equal in every column to one before, and count.
        mean: R of the positions.
        mean_otherwise: the same without equal rows, or of the rows that are held together; None where each
            row is a position and no two are equal.
    """

    by: str
    rows: int
    positions: int
    equal: int
    mean: float
    mean_otherwise: float | None

    @property
    def merged(self) -> int:
        """Rows that tell of a position that another row tells of as well."""
        return self.rows - self.positions


def number_groups(keys: Sequence[IntArray]) -> IntArray:
    """The number of each row's group (n,): rows are together that agree in every key (n,)."""
    mixed = np.zeros(len(keys[0]), dtype=np.uint64)
    for key in keys:
        mixed = (mixed ^ key.astype(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    _, first, number = np.unique(mixed, return_index=True, return_inverse=True)
    if all(np.array_equal(key[first][number], key) for key in keys):
        return np.asarray(number, dtype=np.int64)
    _, number = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)  # two keys were mixed into one
    return np.asarray(number, dtype=np.int64).ravel()


def merge(table: TradeTable, number: IntArray, quantity: FloatArray | None) -> TradeTable:
    """One row for each group, in the order of their first rows: earliest entry, last exit, mean R.

    Playbook, regime and timeframe are those of a group's first row.
    """
    order = np.lexsort((table.r, number))  # sums run in value order: the order of rows reaches no bit
    starts = np.flatnonzero(np.concatenate(([True], np.diff(number[order]) != 0)))
    r, weight = table.r[order], np.ones(len(number))
    if quantity is not None:  # as shares of the largest fill: no sum of theirs leaves the finite numbers
        largest = np.maximum.reduceat(quantity[order], starts)
        weight = quantity[order] / np.repeat(largest, np.diff(np.append(starts, len(r))))
    mean = np.add.reduceat(r * weight, starts) / np.add.reduceat(weight, starts)
    same = np.minimum.reduceat(r, starts) == np.maximum.reduceat(r, starts)
    first = np.minimum.reduceat(order, starts)
    by_first = np.argsort(first)
    kept = first[by_first]
    return replace(
        table,
        entry_ns=np.minimum.reduceat(table.entry_ns[order], starts)[by_first],
        exit_ns=np.maximum.reduceat(table.exit_ns[order], starts)[by_first],
        r=np.where(same, r[starts], mean)[by_first],
        playbook=table.playbook[kept],
        regime=table.regime[kept],
        timeframe=table.timeframe[kept],
    )
