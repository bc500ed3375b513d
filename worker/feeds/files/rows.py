"""Rows of bars as one series: what a feed handed over, in the form in which bars enter the engine."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from services.feeds.port import BarRow
from trading_core.bars import COLUMNS, BarSeries


def series_of(
    symbols: tuple[str, ...], timeframe: str, label: Literal["open", "close"], rows: Sequence[BarRow]
) -> BarSeries:
    """The rows as a series; a symbol without a bar is absent.

    Raises:
        DataError: there is no row, or a bar cannot be.
    """
    shape = (len(rows), len(symbols))
    columns = {name: np.full(shape, np.nan) for name in COLUMNS}
    present = np.zeros(shape, dtype=np.bool_)
    for t, row in enumerate(rows):
        for s, symbol in enumerate(symbols):
            if symbol in row.bars:
                present[t, s] = True
                for name, value in zip(COLUMNS, row.bars[symbol], strict=True):
                    columns[name][t, s] = value
    times = np.array([row.label for row in rows], dtype=np.int64)
    return BarSeries(times, symbols, timeframe, label, **columns, present=present)
