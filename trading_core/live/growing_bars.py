"""Bars that arrive one row at a time: a `BarSeries` whose arrays are views of larger ones.

A new row is checked like a whole series and costs the same on any length of history; a refused row changes
nothing. A backtest has all of its bars at once.
"""

from collections.abc import Mapping
from math import isnan
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from schemas.errors import DataError, nearest
from schemas.timeframes import close_of
from trading_core.bars import COLUMNS, BarSeries

_FIRST_ROWS = 4_096
FURTHER = "x."  # before the name of a further column among the tables
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Bar(NamedTuple):
    """One bar of one symbol; None: its volume is unknown."""

    open: float
    high: float
    low: float
    close: float
    volume: float | None


def bar_of(open: float, high: float, low: float, close: float, volume: float) -> Bar:
    """The bar of numbers in which NaN is an unknown volume."""
    return Bar(open, high, low, close, None if isnan(volume) else volume)


class GrowingBars(BarSeries):
    """A bar series that `append` makes longer; what has been seen never changes.

    The times of results are the labels as they came. Memory is taken from the system as rows are written, so
    room for twice the rows costs nothing until they come.
    """

    def __init__(self, history: BarSeries) -> None:
        """Start from bars that are known already."""
        rows, symbols = history.shape
        for name in ("symbols", "timeframe", "label", "zone"):
            object.__setattr__(self, name, getattr(history, name))
        self._columns = {name: s for s, name in enumerate(history.symbols)}
        self._rows = rows
        self._further = tuple(history.extra)
        self._tables: dict[str, Any] = {}
        self._reserve(2 * max(rows, _FIRST_ROWS), symbols)
        for name in self._tables:
            self._tables[name][:rows] = _table_of(history, name)
        self._show()

    def append(
        self, label: int, bars: Mapping[str, Bar], extra: Mapping[str, Mapping[str, float | None]] = NOTHING
    ) -> int:
        """Add one row; symbols without a bar are absent in it.

        Args:
            label: ns, after the last one.
            bars: the row's bars by symbol.
            extra: by symbol what the further columns that the history has say; None, and what is left out,
                is unknown.

        Returns:
            The number of the row.

        Raises:
            DataError: an unknown symbol, a label that is not after the last, or a bar that cannot be.
        """
        row = self._rows
        last = int(self._tables["times"][row - 1])
        if label <= last:
            raise DataError(
                f"label {label} is not after the last one, {last}: bars arrive in order", label=label
            )
        if not bars:
            raise DataError(f"label {label}: no symbol has a bar; an empty row is not a row", label=label)
        for symbol, bar in bars.items():
            self._check(symbol, bar, label)
        if row == self._tables["times"].size:
            self._reserve(2 * row, len(self.symbols))
        tables = self._tables
        for name in (*COLUMNS, *map(FURTHER.__add__, self._further)):
            tables[name][row] = np.nan
        tables["present"][row] = False
        for symbol, bar in bars.items():
            s = self._columns[symbol]
            tables["present"][row, s] = True
            for name, value in zip(COLUMNS, bar, strict=True):
                tables[name][row, s] = np.nan if value is None else value
            for name in self._further:
                further = extra.get(symbol, NOTHING).get(name)
                tables[FURTHER + name][row, s] = np.nan if further is None else further
        tables["times"][row] = label
        tables["close_times"][row] = close_of(label, self.timeframe, self.label, self.zone)
        self._rows = row + 1
        self._show()
        return row

    def _check(self, symbol: str, bar: Bar, label: int) -> None:
        if symbol not in self._columns:
            raise DataError(
                f"unknown symbol {symbol!r}: the series has {', '.join(self.symbols)}."
                f"{nearest(symbol, self.symbols)}",
                symbol=symbol,
                label=label,
            )
        o, h, low, c, v = bar
        possible = 0.0 < low <= o <= h < np.inf and low <= c <= h and (v is None or 0.0 <= v < np.inf)
        if not possible:
            raise DataError(
                f"{symbol} at {label}: open {o!r} high {h!r} low {low!r} close {c!r} volume {v!r} cannot be "
                "a bar: prices are finite and above zero, open and close lie within low..high, volume is not "
                "negative",
                symbol=symbol,
                label=label,
            )

    def _reserve(self, capacity: int, symbols: int) -> None:
        for name in (*COLUMNS, "present", "times", "close_times", *map(FURTHER.__add__, self._further)):
            is_time = name in ("times", "close_times")
            kind = np.bool_ if name == "present" else np.int64 if is_time else np.float64
            shape = (capacity,) if is_time else (capacity, symbols)
            table = np.empty(shape, dtype=kind)
            if name in self._tables:
                table[: self._rows] = self._tables[name][: self._rows]
            self._tables[name] = table

    def _show(self) -> None:
        # A frozen dataclass keeps its fields in __dict__; so does a cached property.
        shown = {name: table[: self._rows] for name, table in self._tables.items()}
        shown["extra"] = {name: shown.pop(FURTHER + name) for name in self._further}
        self.__dict__.update(shown)
        self.__dict__.pop("sha256", None)
        self.__dict__.pop("bar_count", None)
        self.__dict__.pop("extra_hashes", None)


def _table_of(history: BarSeries, name: str) -> Any:
    return history.extra[name.removeprefix(FURTHER)] if name.startswith(FURTHER) else getattr(history, name)
