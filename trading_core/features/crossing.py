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
from trading_core.features.graph import Place
from trading_core.features.nodes import Node

PlaceOf = Callable[[str, int], Place]
ColumnOf = Callable[[str, int], FloatArray]
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
        column_of: all rows of such a column, those too that the bank keeps no more.
    """

    def __init__(self, bank: ColumnBank, place_of: PlaceOf, column_of: ColumnOf) -> None:
        self._bank = bank
        self._place_of = place_of
        self._column_of = column_of
        self._places: dict[tuple[str, int], Place] = {}

    def places(self, names: Iterable[str], s: int, bars: BarSeries, rows: int) -> dict[str, Place]:
        """Place of every column for the reader `s`, computed on first use for so many rows."""
        wanted = tuple(names)
        for name in wanted:  # all of them first: whoever makes columns again has them in this order
            for part in _list_read(name, bars):
                self._place_of(*part)
        found = {}
        for name in wanted:
            key = name, s if parts_of(name)[1] is None else SHARED
            if key not in self._places:
                self._places[key] = self._bank.new(truth=False)
                self._fill(*key, bars, 0, rows)
            found[name] = self._places[key]
        return found

    def extend(self, bars: BarSeries, start: int, stop: int) -> None:
        """Compute the rows start..stop of every column; what they are made of has them already."""
        for name, s in self._places:
            self._fill(name, s, bars, start, stop)

    def _fill(self, name: str, s: int, bars: BarSeries, start: int, stop: int) -> None:
        read, symbol = _list_read(name, bars), parts_of(name)[1]
        numbers, index = self._bank.numbers, self._places[name, s].index
        if start:
            values = numbers[[self._place_of(*part).index for part in read], start:stop]
        else:
            values = np.stack([self._column_of(*part)[:stop] for part in read])
        if symbol is None:
            numbers[index, start:stop] = _rank_among(values, s)
        else:
            before = numbers[index, start - 1] if start else np.nan
            present = bars.present[start:stop, bars.symbols.index(symbol)]
            numbers[index, start:stop] = _carry(values[0], present, float(before))


def _list_read(name: str, bars: BarSeries) -> list[tuple[str, int]]:
    """Features, each with its symbol, of which a column is made."""
    check_symbol(name, bars.symbols)
    base, symbol = parts_of(name)
    return [(base, bars.symbols.index(each)) for each in (bars.symbols if symbol is None else (symbol,))]


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
