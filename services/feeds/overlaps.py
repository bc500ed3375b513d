"""Rows of a live feed without the bars that overlap the one before, by the rule of every bar series."""

from dataclasses import replace

import numpy as np

from schemas.vocabulary import TIMEFRAME_SECONDS
from services.feeds.port import BarRow, BlockReason, FeedAnomaly, FeedAnomalyKind, MarketFeed
from trading_core.bars import BarSeries
from trading_core.spacing import NS, find_overlap


class OverlapGuard:
    """Judges rows in order of their labels; two bars a symbol are remembered.

    Args:
        feed: whose rows.
        bars: those that were traded so far; None before the first.
    """

    def __init__(self, feed: MarketFeed, bars: BarSeries | None) -> None:
        self._timeframe, self._label = feed.timeframe, feed.label
        self._bar_ns = TIMEFRAME_SECONDS[feed.timeframe] * NS
        self._last = {symbol: np.empty(0, dtype=np.int64) for symbol in feed.symbols}
        if bars is not None:
            of_symbol = {symbol: bars.present[:, s] for s, symbol in enumerate(bars.symbols)}
            self._last |= {symbol: bars.times[rows][-2:] for symbol, rows in of_symbol.items()}

    def sift(self, row: BarRow) -> tuple[list[FeedAnomaly], BarRow | None]:
        """What is wrong with the bars of a row, and the row without these; None when no bar is left in it."""
        found, bars, blocked = list[FeedAnomaly](), dict(row.bars), dict(row.blocked)
        for symbol in row.bars:
            times = np.append(self._last[symbol], row.label)
            if find_overlap(times, self._bar_ns, self._label) is None:
                self._last[symbol] = times[-2:]
                continue
            detail = {
                "reason": "overlaps the bar before",
                "before": int(times[-2]),
                "timeframe": self._timeframe,
            }
            found.append(FeedAnomaly(FeedAnomalyKind.INVALID, symbol, row.label, detail))
            del bars[symbol]
            if not row.history:
                blocked.setdefault(symbol, str(BlockReason.MISSING))
        return found, (replace(row, bars=bars, blocked=blocked) if found else row) if bars else None
