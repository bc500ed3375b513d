"""Plausibility: whether a bar can follow the bars before it, or is in doubt until the next two confirm it.

A bar in doubt is told and not traded: its symbol has no bar in that row. Pure; the same bars in the same
order give the same doubts, on a live feed, on recorded bars and after a restart.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from schemas.config import DataSettings
from services.feeds.block_reasons import BlockReason
from services.market_feed import BarRow, FeedAnomaly, FeedAnomalyKind
from trading_core.bars import COLUMNS, BarSeries
from trading_core.growing_bars import Bar

ATR_BARS = 14
CONFIRMING_BARS = 2
LOWEST_PRICE, HIGHEST_PRICE = 1e-18, 1e12  # beyond them no number of bars confirms a level


class PriceLevel:
    """The level at which one symbol trades, as far as its good bars tell.

    The band lies around the last good close: `change` of it or `atr` times the mean true range of the last 14
    good bars, whichever is wider. Ranges count as shares of the close before them, so that they hold at
    another level, too; the first good bar behind a doubt has none.
    """

    def __init__(self, change: float, atr: float) -> None:
        self._change = change
        self._atr = atr
        self._close: float | None = None
        self._ranges: deque[float] = deque(maxlen=ATR_BARS)
        self._doubtful_close: float | None = None
        self._confirmations = 0
        self._last_doubt: int | None = None

    def knows(self, label: int) -> bool:
        """Whether the bar of this label was doubted already, as when a source is read again."""
        return self._last_doubt is not None and label <= self._last_doubt

    def doubt(self, label: int, bar: Bar) -> dict[str, Any] | None:
        """What speaks against the bar, as plain data; None when it is good, and then it is taken over."""
        if not (bar.low >= LOWEST_PRICE and bar.high <= HIGHEST_PRICE):
            why: dict[str, Any] = {"lowest": LOWEST_PRICE, "highest": HIGHEST_PRICE}
        elif self._close is None or self._holds(bar, self._close) or self._confirms(bar):
            self.accept(bar)
            return None
        else:
            why = {"last_good_close": self._close, "band": self._width() * self._close}
        self.hold(label, bar)
        return {"bar": list(bar), **why}

    def accept(self, bar: Bar) -> None:
        """Take over a good bar."""
        before = self._close
        if before is not None and self._last_doubt is None:
            self._ranges.append((max(bar.high, before) - min(bar.low, before)) / before)
        self._close = bar.close
        self._doubtful_close, self._confirmations, self._last_doubt = None, 0, None

    def hold(self, label: int, bar: Bar) -> None:
        """Note a bar in doubt: where it lies, and whether it confirms the doubtful one before it."""
        possible = bar.low >= LOWEST_PRICE and bar.high <= HIGHEST_PRICE
        follows = self._doubtful_close is not None and self._holds(bar, self._doubtful_close)
        self._confirmations = self._confirmations + 1 if follows else 0
        self._doubtful_close = bar.close if possible else None
        self._last_doubt = label

    def _confirms(self, bar: Bar) -> bool:
        level = self._doubtful_close
        return level is not None and self._confirmations + 1 >= CONFIRMING_BARS and self._holds(bar, level)

    def _holds(self, bar: Bar, close: float) -> bool:
        band = self._width() * close
        return close - band <= bar.low and bar.high <= close + band

    def _width(self) -> float:
        """Half the band as a share of the close."""
        ranges = self._ranges
        return max(self._change, self._atr * sum(ranges) / len(ranges)) if ranges else self._change


class PlausibilityGuard:
    """Judges rows of bars in order of their labels.

    Args:
        symbols: of the rows.
        settings: the width of the band.
    """

    def __init__(self, symbols: Iterable[str], settings: DataSettings) -> None:
        self._levels = {
            symbol: PriceLevel(settings.plausible_change, settings.plausible_atr) for symbol in symbols
        }

    def remember(self, good: BarSeries, doubts: Iterable[Mapping[str, Any]]) -> None:
        """Stand where a process stood that traded these bars and journalled these doubts.

        Args:
            good: the bars that were traded.
            doubts: payloads of the anomalies, in order.
        """
        held: dict[str, list[tuple[int, Bar]]] = {symbol: [] for symbol in self._levels}
        for one in doubts:
            held[one["symbol"]].append((one["bar_label"], Bar(*one["detail"]["bar"])))
        for s, symbol in enumerate(good.symbols):
            level, waiting = self._levels[symbol], deque(held[symbol])
            for label, bar in _newest(good, s, ATR_BARS + 1 + len(waiting)):
                while waiting and waiting[0][0] < label:
                    level.hold(*waiting.popleft())
                level.accept(bar)
            for doubtful in waiting:
                level.hold(*doubtful)

    def sift(self, row: BarRow, *, blocks: bool) -> tuple[list[FeedAnomaly], BarRow | None]:
        """A row without the bars in doubt, and what is to be told before it.

        Args:
            row: behind those before it.
            blocks: say in the row that a doubted symbol may not enter.

        Returns:
            The anomalies; the row, or None when no bar is left in it.
        """
        told, doubted = [], set()
        for symbol, bar in row.bars.items():
            level = self._levels[symbol]
            if level.knows(row.label):
                doubted.add(symbol)
            elif (why := level.doubt(row.label, bar)) is not None:
                doubted.add(symbol)
                told.append(FeedAnomaly(FeedAnomalyKind.IMPLAUSIBLE, symbol, row.label, why))
        if not doubted:
            return told, row
        left = {symbol: bar for symbol, bar in row.bars.items() if symbol not in doubted}
        shut = dict.fromkeys(sorted(doubted), str(BlockReason.IMPLAUSIBLE))
        blocked = {**shut, **row.blocked} if blocks and not row.history else row.blocked
        return told, replace(row, bars=left, blocked=blocked) if left else None


def doubted_bars(bars: BarSeries, settings: DataSettings) -> Iterator[tuple[int, FeedAnomaly]]:
    """The bars in doubt of a whole series with their rows, in order of rows, then symbols."""
    found = []
    for s, symbol in enumerate(bars.symbols):
        if _never_leaves(bars, s, settings.plausible_change):
            continue
        level = PriceLevel(settings.plausible_change, settings.plausible_atr)
        rows = np.flatnonzero(bars.present[:, s]).tolist()
        for row, (label, bar) in zip(rows, _newest(bars, s), strict=True):
            if (why := level.doubt(label, bar)) is not None:
                found.append((row, s, FeedAnomaly(FeedAnomalyKind.IMPLAUSIBLE, symbol, label, why)))
    return ((row, anomaly) for row, _, anomaly in sorted(found, key=lambda doubt: doubt[:2]))


def _never_leaves(bars: BarSeries, s: int, change: float) -> bool:
    """Whether every bar lies so near the close before it that none can be in doubt: the quick look."""
    rows = bars.present[:, s]
    high, low, before = bars.high[rows, s], bars.low[rows, s], bars.close[rows, s][:-1]
    near = (high[1:] <= before + change * before) & (low[1:] >= before - change * before)
    return bool(near.all() and (high <= HIGHEST_PRICE).all() and (low >= LOWEST_PRICE).all())


def _newest(bars: BarSeries, s: int, most: int | None = None) -> Iterator[tuple[int, Bar]]:
    """The newest bars of a symbol, or all, with their labels, ascending."""
    rows = np.flatnonzero(bars.present[:, s])
    rows = rows if most is None else rows[-most:]
    tables = [getattr(bars, name)[rows, s].tolist() for name in COLUMNS]
    return zip(bars.times[rows].tolist(), map(Bar, *tables), strict=True)
