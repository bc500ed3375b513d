"""Bars that arrive: the first rows of a series, and random patterns of missing bars."""

import dataclasses
from typing import Literal

import numpy as np
import numpy.typing as npt

from tests.trading_core.price_paths import columns_of, series, walk
from trading_core.bars import COLUMNS, BarSeries


def first_rows(bars: BarSeries, rows: int) -> BarSeries:
    """The series as it was after so many rows."""
    return taken(bars, np.arange(rows))


def taken(bars: BarSeries, rows: npt.NDArray[np.int64]) -> BarSeries:
    """The series with these rows only."""
    arrays = {name: np.ascontiguousarray(getattr(bars, name)[rows]) for name in COLUMNS}
    present = np.ascontiguousarray(bars.present[rows])
    return BarSeries(
        bars.times[rows], bars.symbols, bars.timeframe, bars.label,
        present=present, zone=bars.zone, **arrays,
    )  # fmt: skip


def gappy(
    seed: int, rows: int, share: float, *, timeframe: str = "15m", label: Literal["open", "close"] = "open"
) -> BarSeries:
    """Two symbols that each miss a share of their bars."""
    present: npt.NDArray[np.bool_] = np.random.default_rng(seed).random((rows, 2)) >= share
    shapes = {"AAA": columns_of(walk(seed, rows), seed), "BBB": columns_of(walk(seed + 1, rows), seed + 1)}
    return dataclasses.replace(series(shapes, timeframe=timeframe, present=present), label=label)


def edges(cuts: list[int], rows: int) -> list[int]:
    """Row counts at which a series is followed: from at least one row to all of them."""
    return sorted({1, *(cut for cut in cuts if cut > 0), rows})
