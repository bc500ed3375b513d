"""Rows of a live feed without the bars that overlap the one before, by the rule of every bar series."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from schemas.timeframes import TIMEFRAME_SECONDS
from services.feeds.port import BarRow, BlockReason, FeedAnomaly, FeedAnomalyKind, MarketFeed
from trading_core.bars import BarSeries
from trading_core.spacing import NS, ends_session, find_overlap

OVERLAPS = "overlaps the bar before"
_SEEN = 2_000  # labels in which a habit of the sessions is looked for


class OverlapGuard:
    """Judges rows in order of their labels; some labels of each symbol are remembered.

    A short bar labelled by its close is taken where sessions are known to end so, since no later label can
    say it yet. One that is refused teaches it: the label after it shows a pause.
    It begins with the bars that were traded so far and the anomalies that were `shown`.
    """

    def __init__(
        self, feed: MarketFeed, bars: BarSeries | None, shown: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self._timeframe, self._label = feed.timeframe, feed.label
        self._bar_ns = TIMEFRAME_SECONDS[feed.timeframe] * NS
        refused = [
            (past["symbol"], past["bar_label"]) for past in shown if past["detail"].get("reason") == OVERLAPS
        ]
        self._last: dict[str, list[int]] = {symbol: [] for symbol in feed.symbols}
        self._seen = {symbol: deque[int](maxlen=_SEEN) for symbol in feed.symbols}
        traded = (
            {}
            if bars is None
            else {name: bars.times[bars.present[:, s]] for s, name in enumerate(bars.symbols)}
        )
        for symbol, times in traded.items():
            self._last[symbol] = times[-2:].tolist()
            labels = {*times[-_SEEN:].tolist(), *(label for of, label in refused if of == symbol)}
            self._seen[symbol] = deque(sorted(labels), _SEEN)

    def sift(self, row: BarRow) -> tuple[list[FeedAnomaly], BarRow | None]:
        """What is wrong with the bars of a row, and the row without these; None when no bar is left in it."""
        found, bars, blocked = list[FeedAnomaly](), dict(row.bars), dict(row.blocked)
        for symbol in row.bars:
            times, seen = [*self._last[symbol], row.label], self._seen[symbol]
            taken = self._fits(times, seen)
            seen.append(row.label)
            if taken:
                self._last[symbol] = times[-2:]
                continue
            detail = {
                "reason": OVERLAPS,
                "before": times[-2],
                "timeframe": self._timeframe,
            }
            found.append(FeedAnomaly(FeedAnomalyKind.INVALID, symbol, row.label, detail))
            del bars[symbol]
            if not row.history:
                blocked.setdefault(symbol, str(BlockReason.MISSING))
        return found, (replace(row, bars=bars, blocked=blocked) if found else row) if bars else None

    def _fits(self, labels: list[int], seen: deque[int]) -> bool:
        if all(after - before >= self._bar_ns for before, after in pairwise(labels)):
            return True  # as almost every bar of a feed
        times = np.array(labels, dtype=np.int64)
        if find_overlap(times, self._bar_ns, self._label) is not None:
            return False
        if find_overlap(times[-2:], self._bar_ns, "open") is None:
            return True
        before, label = labels[-2:]
        return ends_session(np.array(seen, dtype=np.int64), before, label, self._bar_ns)
