"""Columns of a symbol that no program makes: `x.funding` of the data, and functions of the caller's own.

They lie in the bank, where programs read them as they read the bars.
"""

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from trading_core.bars import COLUMNS, BarSeries
from trading_core.features.bank import ColumnBank, FloatArray
from trading_core.features.graph import Place
from trading_core.features.own import OWN, OwnFeature, find

FURTHER = "x."


def check_further(name: str, bars: BarSeries) -> None:
    """Make sure that the bars have the column of a feature.

    Raises:
        RuleError: they have not; says which they have.
    """
    column = name.removeprefix(FURTHER)
    if name.startswith(FURTHER) and column not in bars.extra:
        known = ", ".join(f"{FURTHER}{there}" for there in bars.extra) or "none"
        raise RuleError(
            f"{name!r}: the bars have no column {column!r} of numbers beside their prices and volume "
            f"(they have: {known})",
            feature=name,
        )


class FurtherColumns:
    """Columns by name and symbol."""

    def __init__(self, bank: ColumnBank) -> None:
        self._bank = bank
        self._places: dict[tuple[str, int], Place] = {}
        self._functions: dict[str, OwnFeature] = {}  # as they were when their columns were made

    def place(self, name: str, s: int, bars: BarSeries, rows: int) -> Place:
        """Place of a column, filled on first use for so many rows.

        Raises:
            RuleError: the bars do not have it, or its function looks ahead.
        """
        check_further(name, bars)
        if (name, s) not in self._places:
            function = None
            if name.startswith(OWN):
                if (function := find(name.removeprefix(OWN))) is None:
                    raise RuleError(f"feature {name.removeprefix(OWN)!r} is not defined here: see tt.feature")
                self._functions[name] = function
            place = self._bank.new(truth=False)
            self._fill(place, name, s, bars, 0, rows)
            if function is not None:
                own = np.flatnonzero(bars.present[:rows, s])
                values = self._bank.numbers[place.index][own]
                function.check(_own_bars(bars, s, own), bars.times[own], values)
            self._places[name, s] = place
        return self._places[name, s]

    def extend(self, bars: BarSeries, start: int, stop: int) -> None:
        """Fill the rows start..stop of every column."""
        for (name, s), place in self._places.items():
            self._fill(place, name, s, bars, start, stop)

    def _fill(self, place: Place, name: str, s: int, bars: BarSeries, start: int, stop: int) -> None:
        column = self._bank.numbers[place.index]
        if name.startswith(FURTHER):
            column[start:stop] = bars.extra[name.removeprefix(FURTHER)][start:stop, s]
            return
        function, own = self._functions[name], np.flatnonzero(bars.present[:stop, s])
        first = int(np.searchsorted(own, start))
        begin = max(0, first - function.lookback)
        column[start:stop] = np.nan
        column[own[first:]] = function.values(_own_bars(bars, s, own[begin:]), first - begin)


def _own_bars(bars: BarSeries, s: int, rows: npt.NDArray[np.intp]) -> FloatArray:
    return np.stack([getattr(bars, name)[rows, s] for name in COLUMNS])
