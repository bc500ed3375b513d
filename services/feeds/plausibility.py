"""Plausibility: whether a bar can follow the bars before it, or is in doubt until the next two confirm it.

A bar in doubt is told and not traded: its symbol has no bar in that row. Doubts end: where `LONGEST_DOUBT` of
them in a row agree on no level, the next bar is taken as it is and told, and entries wait for bars within the
band. Pure; the same bars in the same order give the same doubts, on a live feed, on recorded bars and after
a restart.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from schemas.settings import DataSettings
from services.feeds.port import BarRow, BlockReason, FeedAnomaly, FeedAnomalyKind
from trading_core.bars import COLUMNS, BarSeries
from trading_core.live.growing_bars import Bar, bar_of

ATR_BARS = 14
CONFIRMING_BARS = 2
LONGEST_DOUBT = 5  # so many possible bars in a row may be in doubt; the next is taken
SETTLED_BARS = 2  # bars within the band after one that was taken so, before entries are allowed again
WIDEST_LESSON = 1.0  # what a bar that was taken so counts for at most among the ranges
TOLD_HERE = frozenset({FeedAnomalyKind.IMPLAUSIBLE, FeedAnomalyKind.UNSETTLED, FeedAnomalyKind.WITHHELD})
LOWEST_PRICE, HIGHEST_PRICE = 1e-18, 1e12  # beyond them no number of bars confirms a level


class PriceLevel:
    """The level at which one symbol trades, as far as its good bars tell.

    The band lies around the last good close: `change` of it or `atr` times the mean true range of the last 14
    good bars, whichever is wider. Ranges count as shares of the close before them, so that they hold at
    another level, too; the first good bar behind a doubt has none. A bar that is taken because the doubts
    agreed on no level has the range to the doubt before it: so the band grows to the swings of such a market.
    """

    def __init__(self, symbol: str, settings: DataSettings) -> None:
        self._symbol = symbol
        self._change, self._atr = settings.plausible_change, settings.plausible_atr
        self._close: float | None = None
        self._ranges: deque[float] = deque(maxlen=ATR_BARS)
        self._doubtful_close: float | None = None
        self._confirmations = 0
        self._last_doubt: int | None = None
        self._doubts = 0  # possible bars in doubt since the last good one
        self._unsettled_told: int | None = None
        self._settling = 0

    @property
    def blocks(self) -> bool:
        """Whether the symbol may not enter on the good bar just taken over: its price has not settled."""
        return self._settling > 0

    def knows(self, label: int) -> bool:
        """Whether the bar of this label was doubted already, as when a source is read again."""
        return self._last_doubt is not None and label <= self._last_doubt

    def judge(self, label: int, bar: Bar) -> FeedAnomaly | None:
        """What is to be told of the next bar; None of one that is taken over as good, or was told before."""
        if not (bar.low >= LOWEST_PRICE and bar.high <= HIGHEST_PRICE):
            why: dict[str, Any] = {"lowest": LOWEST_PRICE, "highest": HIGHEST_PRICE}
        elif self._close is None or self._holds(bar, self._close) or self._confirms(bar):
            self.accept(bar)
            return None
        elif self._doubts >= LONGEST_DOUBT:
            was_shown = label == self._unsettled_told
            why = {"bar": list(bar), "doubts": self._doubts, **self._against()}
            self.take_unsettled(label, bar)
            return None if was_shown else FeedAnomaly(FeedAnomalyKind.UNSETTLED, self._symbol, label, why)
        else:
            why = self._against()
        self.hold(label, bar)
        return FeedAnomaly(FeedAnomalyKind.IMPLAUSIBLE, self._symbol, label, {"bar": list(bar), **why})

    def accept(self, bar: Bar) -> None:
        """Take over a good bar."""
        self._settling = max(0, self._settling - 1)
        before = self._close
        if before is not None and self._last_doubt is None:
            self._ranges.append((max(bar.high, before) - min(bar.low, before)) / before)
        self._go_on_from(bar)

    def take_unsettled(self, label: int, bar: Bar) -> None:
        """Take over a bar outside the band: the doubts before it agreed on no level."""
        before = self._doubtful_close or self._close or bar.close
        self._ranges.append(min(WIDEST_LESSON, (max(bar.high, before) - min(bar.low, before)) / before))
        self._unsettled_told, self._settling = label, SETTLED_BARS + 1
        self._go_on_from(bar)

    def note_unsettled(self, label: int) -> None:
        """The bar of this label was told to be taken, and may come again."""
        self._unsettled_told = label

    def _go_on_from(self, bar: Bar) -> None:
        self._close = bar.close
        self._doubtful_close, self._confirmations, self._last_doubt, self._doubts = None, 0, None, 0

    def hold(self, label: int, bar: Bar) -> None:
        """Note a bar in doubt: where it lies, and whether it confirms the doubtful one before it."""
        possible = bar.low >= LOWEST_PRICE and bar.high <= HIGHEST_PRICE
        follows = self._doubtful_close is not None and self._holds(bar, self._doubtful_close)
        self._confirmations = self._confirmations + 1 if follows else 0
        self._doubtful_close = bar.close if possible else None
        self._last_doubt = label
        self._doubts += possible
        self._settling = SETTLED_BARS + 1 if self._settling else 0

    def _against(self) -> dict[str, Any]:
        close = self._close or 0.0
        return {"last_good_close": close, "band": self._width() * close}

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
    """Judges rows of bars in order of their labels."""

    def __init__(self, symbols: Iterable[str], settings: DataSettings) -> None:
        self._levels = {symbol: PriceLevel(symbol, settings) for symbol in symbols}
        self._withheld: int | None = None

    def remember(self, good: BarSeries, doubts: Iterable[Mapping[str, Any]]) -> None:
        """Stand where a process stood that traded the good bars and journalled anomalies `TOLD_HERE`."""
        held: dict[str, list[tuple[int, Bar]]] = {symbol: [] for symbol in self._levels}
        unsettled: dict[str, set[int]] = {symbol: set() for symbol in self._levels}
        for payload in doubts:
            symbol, label = payload["symbol"], payload["bar_label"]
            if payload["anomaly"] == FeedAnomalyKind.WITHHELD:
                self._withheld = label
            elif payload["anomaly"] == FeedAnomalyKind.UNSETTLED:
                unsettled[symbol].add(label)
                self._levels[symbol].note_unsettled(label)
            else:
                held[symbol].append((label, Bar(*payload["detail"]["bar"])))
        for s, symbol in enumerate(good.symbols):
            level, waiting = self._levels[symbol], deque(held[symbol])
            for label, bar in _newest(good, s, ATR_BARS + 1 + len(waiting)):
                while waiting and waiting[0][0] < label:
                    level.hold(*waiting.popleft())
                if label in unsettled[symbol]:
                    level.take_unsettled(label, bar)
                else:
                    level.accept(bar)
            for doubtful in waiting:
                level.hold(*doubtful)

    def sift(self, row: BarRow, *, blocks: bool) -> tuple[list[FeedAnomaly], BarRow | None]:
        """What is to be told before a row, and the row without bars in doubt; None when it has no other.

        Where it `blocks`, the row says that a doubted symbol may not enter.
        """
        shown, left, shut = list[FeedAnomaly](), dict[str, Bar](), dict[str, str]()
        for symbol, bar in row.bars.items():
            level = self._levels[symbol]
            anomaly = None if level.knows(row.label) else level.judge(row.label, bar)
            shown += [] if anomaly is None else [anomaly]
            if level.knows(row.label):
                shut[symbol] = str(BlockReason.IMPLAUSIBLE)
                continue
            left[symbol] = bar
            if level.blocks:
                shut[symbol] = str(BlockReason.UNSETTLED)
        if not shut:
            return shown, row
        blocks = blocks and not row.history
        blocked = {**dict(sorted(shut.items())), **row.blocked} if blocks else row.blocked
        if left:
            return shown, replace(row, bars=left, blocked=blocked)
        if blocks and (self._withheld is None or row.label > self._withheld):
            self._withheld = row.label
            shown.append(FeedAnomaly(FeedAnomalyKind.WITHHELD, None, row.label, {"blocked": dict(blocked)}))
        return shown, None


def doubted_bars(bars: BarSeries, settings: DataSettings) -> Iterator[tuple[int, FeedAnomaly]]:
    """What is to be told of the bars of a whole series with their rows, in order of rows, then symbols."""
    found = []
    for s, symbol in enumerate(bars.symbols):
        if _never_leaves(bars, s, settings.plausible_change):
            continue
        level = PriceLevel(symbol, settings)
        rows = np.flatnonzero(bars.present[:, s]).tolist()
        for row, (label, bar) in zip(rows, _newest(bars, s), strict=True):
            if (anomaly := level.judge(label, bar)) is not None:
                found.append((row, s, anomaly))
    return ((row, anomaly) for row, _, anomaly in sorted(found, key=lambda doubt: doubt[:2]))


def _never_leaves(bars: BarSeries, s: int, change: float) -> bool:
    """Whether every bar lies so near the close before it that none can be in doubt: the quick look."""
    rows = bars.present[:, s]
    high, low, before = bars.high[rows, s], bars.low[rows, s], bars.close[rows, s][:-1]
    near = (high[1:] <= before + change * before) & (low[1:] >= before - change * before)
    return bool(near.all() and (high <= HIGHEST_PRICE).all() and (low >= LOWEST_PRICE).all())


def _newest(bars: BarSeries, s: int, most: int | None = None) -> Iterator[tuple[int, Bar]]:
    rows = np.flatnonzero(bars.present[:, s])
    rows = rows if most is None else rows[-most:]
    tables = [getattr(bars, name)[rows, s].tolist() for name in COLUMNS]
    return zip(bars.times[rows].tolist(), map(bar_of, *tables), strict=True)
