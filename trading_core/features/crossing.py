"""Columns of one symbol that are made of columns of others: `close@SPY` and `rank_cs(roc_20)`.

All bars of a row close at one time, so what stands in a row of another symbol is known there. They lie in the
bank, where programs read them as they read the bars, and grow after the columns that they are made of.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from trading_core.bars import BarSeries
from trading_core.features.bank import ColumnBank, FloatArray
from trading_core.features.graph import NUMBER, Place
from trading_core.features.nodes import Node

PlaceOf = Callable[[str, int], Place]
SHARED = -1  # stands for every reader: another symbol's column is the same to all


def reads_others(node: Node) -> bool:
    """Whether a graph reads columns of this module."""
    return bool(node.column and is_crossing(node.column)) or any(map(reads_others, node.inputs))


def is_crossing(column: str) -> bool:
    """Whether a raw column is one of this module."""
    return "@" in column or column.startswith("rank_cs(")


def parts_of(column: str) -> tuple[str, str | None]:
    """What a column of this module is made of: a feature, and whose; None: that of every symbol."""
    base, at, symbol = column.partition("@")
    return (base, symbol.strip("\"'")) if at else (column.partition("(")[2][:-1], None)


def check_symbol(column: str, symbols: tuple[str, ...]) -> None:
    """Make sure that a feature can be had from bars of these symbols.

    Raises:
        RuleError: it is of a symbol that they do not hold.
    """
    symbol = parts_of(column)[1]
    if symbol is not None and symbol not in symbols:
        shown = ", ".join(symbols[:10]) + (", ..." if len(symbols) > 10 else "")
        raise RuleError(
            f"{column!r}: the bars hold no symbol {symbol!r}, only {shown}: add its bars to the data",
            feature=column,
        )


class CrossingColumns:
    """Columns by name and reader.

    Args:
        bank: where they lie.
        place_of: where the column of a feature of a symbol lies, made if need be.
    """

    def __init__(self, bank: ColumnBank, place_of: PlaceOf) -> None:
        self._bank = bank
        self._place_of = place_of
        self._places: dict[tuple[str, int], Place] = {}

    def places(
        self, names: Iterable[str], s: int, bars: BarSeries, rows: int, whole: "CrossingColumns | None" = None
    ) -> dict[str, Place]:
        """Place of every column for the reader `s`, computed on first use for so many rows.

        Where rows are gone, `whole` has the column of all of them.
        """
        wanted = tuple(names)
        for name in wanted:  # all of them first: whoever makes columns again has them in this order
            self._read(name, bars)
        found = {}
        for name in wanted:
            key = name, s if parts_of(name)[1] is None else SHARED
            if key not in self._places:
                self._places[key] = self._bank.new(truth=False)
                if whole is None:
                    self._fill(*key, bars, 0, rows)
                else:
                    self._bank.fill(self._places[key], whole._bank.column(whole._places[key], rows))
            found[name] = self._places[key]
        return found

    def forget(self, used: tuple[int, int]) -> None:
        """Forget the columns that were made since the bank used so many."""
        while self._places and self._places[next(reversed(self._places))].index >= used[NUMBER]:
            self._places.popitem()

    def extend(self, bars: BarSeries, start: int, stop: int) -> None:
        """Compute the rows start..stop of every column; what they are made of has them already."""
        for name, s in self._places:
            self._fill(name, s, bars, start, stop)

    def _read(self, name: str, bars: BarSeries) -> list[Place]:
        check_symbol(name, bars.symbols)
        base, symbol = parts_of(name)
        read = bars.symbols if symbol is None else (symbol,)
        return [self._place_of(base, bars.symbols.index(each)) for each in read]

    def _fill(self, name: str, s: int, bars: BarSeries, start: int, stop: int) -> None:
        rows = [place.index for place in self._read(name, bars)]
        symbol = parts_of(name)[1]
        numbers, index = self._bank.numbers, self._places[name, s].index
        if symbol is None:
            numbers[index, start:stop] = _rank_among(numbers[rows, start:stop], s)
        else:
            before = numbers[index, start - 1] if start else np.nan
            present = bars.present[start:stop, bars.symbols.index(symbol)]
            numbers[index, start:stop] = _carry(numbers[rows[0], start:stop], present, float(before))


def _carry(values: FloatArray, present: npt.NDArray[np.bool_], before: float) -> FloatArray:
    """The value of the last bar at or before each row; `before` until there is one."""
    last = np.maximum.accumulate(np.where(present, np.arange(values.size), -1))
    return np.where(last < 0, before, values[last])


def _rank_among(values: FloatArray, s: int) -> FloatArray:
    """Average rank of row s among the known values of each column over their count; NaN of fewer than two.

    Args:
        values: float64 (S, R); NaN where unknown or without a bar.
        s: whose rank.

    Returns:
        float64 (R,), in (0, 1].
    """
    own, known = values[s], np.isfinite(values).sum(axis=0)
    below, equal = (values < own).sum(axis=0), (values == own).sum(axis=0)
    ranked = np.isfinite(own) & (known > 1)
    return np.where(ranked, (below + 0.5 * (equal + 1)) / np.maximum(known, 1), np.nan)
