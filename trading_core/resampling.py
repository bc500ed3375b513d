"""Longer bars made of recorded ones: the buckets of features on higher bars, as a series of its own.

A bar belongs to the longer bar in which it ends. Labels are the begin of the longer bar, or its end where the
series is labelled by closes, so nothing in it is known before its close. Missing bars are not invented: a
longer bar is made of those that are there. One whose end the data does not reach is left out.
"""

from collections.abc import Callable

import numpy as np

from schemas.errors import DataError, RuleError
from schemas.timeframes import DAY_S, NS, TIMEFRAME_SECONDS
from trading_core.bars import COLUMNS, BarSeries, FloatArray, IntArray
from trading_core.features.calendar import check_above
from trading_core.spacing import bucket_numbers, bucket_starts, show_label


def resample(bars: BarSeries, timeframe: str, tell: Callable[[str], None] = lambda note: None) -> BarSeries:
    """The bars of a longer timeframe: first open, highest high, lowest low, last close, sum of volume.

    Args:
        bars: the shorter bars; their zone counts days, weeks and months.
        timeframe: of the longer bars; that of the bars gives them back.
        tell: takes what a trader should know: an unfinished bar that is left out, and bars that are shorter
            than the others because sessions end within them or bars are missing.

    Raises:
        DataError: no such bars can be made of these, or none is complete.
    """
    if timeframe == bars.timeframe:
        return bars
    try:
        check_above(timeframe, bars.timeframe)
    except RuleError as error:
        raise DataError(f"--resample {timeframe}: {error}") from error
    numbers = bucket_numbers(timeframe, bars.close_times, bars.zone)
    buckets, firsts = np.unique(numbers, return_index=True)
    starts = bucket_starts(timeframe, buckets, bars.zone)
    ends = bucket_starts(timeframe, buckets + 1, bars.zone)
    _check_inside(bars, timeframe, firsts, starts)
    whole = buckets.size - int(int(bars.close_times[-1]) < int(ends[-1]))
    if whole < buckets.size:
        tell(f"the {timeframe} bar from {show_label(int(starts[-1]))} on is not complete and left out")
    if not whole:
        raise DataError(f"--resample {timeframe}: the bars make no complete one: give more bars")
    made = {name: np.full((whole, len(bars.symbols)), np.nan) for name in COLUMNS}
    counts = np.zeros((whole, len(bars.symbols)), dtype=np.int64)
    rows_of = np.searchsorted(buckets, numbers)
    for s in range(len(bars.symbols)):
        rows = np.flatnonzero(bars.present[:, s] & (rows_of < whole))
        if rows.size:
            _aggregate(bars, s, rows, rows_of[rows], made, counts)
    _tell_short(bars, timeframe, counts, starts, tell)
    present = counts > 0
    times = (starts[:whole] if bars.label == "open" else ends[:whole]).copy()
    return BarSeries(
        times, bars.symbols, timeframe, bars.label, present=present, zone=bars.zone,
        notes=bars.notes, repeated=bars.repeated, made_of=bars, **made,
    )  # fmt: skip


def _check_inside(bars: BarSeries, timeframe: str, firsts: IntArray, starts: IntArray) -> None:
    """Refuse bars that lie across an edge of the longer ones: their open would be older than the bar's."""
    for row, start in zip(firsts.tolist(), starts.tolist(), strict=True):
        if bars.open_of(row) < start:
            raise DataError(
                f"--resample {timeframe}: the {bars.timeframe} bar of {show_label(int(bars.times[row]))} "
                f"lies across {show_label(start)}, where a {timeframe} bar begins in {bars.zone}: take a "
                "timeframe whose bars begin with yours, or set data.zone to the zone of the market"
            )


def _aggregate(
    bars: BarSeries, s: int, rows: IntArray, of: IntArray, made: dict[str, FloatArray], counts: IntArray
) -> None:
    """Write the longer bars of one symbol: `rows` are its own bars, `of` the longer bar of each."""
    targets, firsts, sizes = np.unique(of, return_index=True, return_counts=True)
    lasts = firsts + sizes - 1
    made["open"][targets, s] = bars.open[rows, s][firsts]
    made["high"][targets, s] = np.maximum.reduceat(bars.high[rows, s], firsts)
    made["low"][targets, s] = np.minimum.reduceat(bars.low[rows, s], firsts)
    made["close"][targets, s] = bars.close[rows, s][lasts]
    made["volume"][targets, s] = np.add.reduceat(bars.volume[rows, s], firsts)
    counts[targets, s] = sizes


def _tell_short(
    bars: BarSeries, timeframe: str, counts: IntArray, starts: IntArray, tell: Callable[[str], None]
) -> None:
    """Say how many bars within a day hold less than their length."""
    length = TIMEFRAME_SECONDS[timeframe]
    short = (counts > 0) & (counts * bars.bar_ns < length * NS)
    if length < DAY_S and short.any():
        first = int(starts[int(np.flatnonzero(short.any(axis=1))[0])])
        tell(
            f"{int(short.sum()):,} of {int((counts > 0).sum()):,} {timeframe} bars hold less than "
            f"{timeframe} of {bars.timeframe} bars, first from {show_label(first)} on: sessions begin or end "
            "within them, or bars are missing"
        )
