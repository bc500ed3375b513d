"""Feature columns of a bar series: computed once per symbol on its own present bars, scattered on request.

Called by the rules, the regime and the snapshot. A value at a bar depends on that bar and earlier ones only.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from trading_core.bars import COLUMNS, NS, BarSeries, FloatArray
from trading_core.features.program import FeatureProgram

_DAY_NS = 86_400 * NS


def compute(bars: BarSeries, names: Iterable[str]) -> dict[str, FloatArray]:
    """Features of every symbol: name -> float64 (T, S), NaN until warm and where the bar is absent.

    Raises:
        RuleError: an unknown feature name.
    """
    columns = FeatureColumns(bars)
    return {name: columns.scattered(name) for name in columns.load(names)}


class FeatureColumns:
    """Cache of feature columns of one bar series."""

    def __init__(self, bars: BarSeries) -> None:
        self.bars = bars
        self._rows = [np.flatnonzero(bars.present[:, s]) for s in range(len(bars.symbols))]
        self._own: dict[tuple[str, int], FloatArray] = {}

    def rows(self, s: int) -> npt.NDArray[np.intp]:
        """Row numbers of symbol s's present bars, ascending."""
        return self._rows[s]

    def load(self, names: Iterable[str], symbols: Iterable[int] | None = None) -> tuple[str, ...]:
        """Compute several features together, which shares their parts; returns the names without repeats."""
        wanted = tuple(dict.fromkeys(names))
        for s in range(len(self.bars.symbols)) if symbols is None else symbols:
            missing = [name for name in wanted if (name, s) not in self._own]
            if missing:
                self._compute(FeatureProgram(missing), s)
        return wanted

    def own(self, name: str, s: int) -> FloatArray:
        """The feature on symbol s's present bars: float64 (rows(s).size,). Shared: do not write to it."""
        self.load([name], [s])
        return self._own[name, s]

    def scattered(self, name: str) -> FloatArray:
        """The feature as float64 (T, S), NaN where a bar is absent."""
        out = np.full(self.bars.shape, np.nan)
        for s, rows in enumerate(self._rows):
            out[rows, s] = self.own(name, s)
        return out

    def _compute(self, program: FeatureProgram, s: int) -> None:
        inputs = np.empty((len(program.inputs), self._rows[s].size))
        for k, column in enumerate(program.inputs):
            inputs[k] = self._raw(column, s)
        result = program.advance(inputs, program.initial_state())
        for name, values in zip(program.names, result, strict=True):
            self._own[name, s] = values

    def _raw(self, column: str, s: int) -> npt.NDArray[np.float64 | np.int64]:
        rows = self._rows[s]
        if column in COLUMNS:
            values: FloatArray = getattr(self.bars, column)[:, s]
            return values if rows.size == values.size else values[rows]
        return calendar(column, self.bars.times[rows])


def calendar(column: str, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """UTC hour, weekday (Monday 0) or month (1-12) of bar labels in ns."""
    if column == "hour":
        return labels % _DAY_NS // (3_600 * NS)
    if column == "day_of_week":
        return (labels // _DAY_NS + 3) % 7  # 1970-01-01 was a Thursday
    return labels.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64) % 12 + 1
