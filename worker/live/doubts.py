"""Doubts: between a feed and the stepper, bars that overlap others or are in doubt leave their rows.

Each is reported before its row.
What the process before this one doubted stands in its journal, so a restart goes on with the same doubts.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas.settings import DataSettings
from services.feeds.overlaps import OverlapGuard
from services.feeds.plausibility import TOLD_HERE, PlausibilityGuard
from services.feeds.port import (
    RECALLED_ROWS,
    BarRow,
    FeedAnomaly,
    FeedAnomalyKind,
    MarketFeed,
    RowMemory,
)
from trading_core.bars import BarSeries
from worker.feeds.replay import rows_of

if TYPE_CHECKING:
    from services.store import RunRecord, Store

Items = AsyncIterator[BarRow | FeedAnomaly]


@dataclass(eq=False)
class Doubts:
    """The doubts of one paper process.

    Attributes:
        guard: judges the rows; None takes them as they come.
        overlaps: judges their labels first; None for recorded bars, which were judged as a series.
        blocks: say in a row which symbols are in doubt. A feed of recorded bars has no news of missing bars,
            because a backtest over the same bars has none.
    """

    guard: PlausibilityGuard | None
    overlaps: OverlapGuard | None
    blocks: bool

    @classmethod
    async def of_run(
        cls,
        settings: DataSettings,
        feed: MarketFeed,
        store: "Store",
        record: "RunRecord",
        bars: BarSeries | None,
    ) -> "Doubts":
        """As `data.plausibility` says for this feed, behind the bars so far; None before the first.

        The feed, too, is reminded of them, and of the conflicts that were told.
        """
        shown: list[dict[str, Any]] = []
        wanted = settings.plausibility == "always" or (settings.plausibility == "live" and not feed.lock_step)
        guard = PlausibilityGuard(feed.symbols, settings) if wanted else None
        if bars is not None:
            anomalies = store.journal.rows(record.run_id, kinds={"feed_anomaly"})
            shown = [json.loads(row.payload) async for row in anomalies]
            if isinstance(feed, RowMemory):
                conflicts = [
                    (past["symbol"], past["bar_label"])
                    for past in shown
                    if past["anomaly"] == FeedAnomalyKind.CONFLICT
                ]
                feed.recall(rows_of(bars, max(0, bars.shape[0] - RECALLED_ROWS), bars.shape[0]), conflicts)
            if guard is not None:
                guard.remember(bars, [past for past in shown if past["anomaly"] in TOLD_HERE])
        overlaps = None if feed.lock_step else OverlapGuard(feed, bars, shown)
        return cls(guard, overlaps, blocks=wanted and not feed.lock_step)

    async def sift(self, items: Items) -> AsyncGenerator[BarRow | FeedAnomaly]:
        """Items of the feed without the bars in doubt; each doubt is told before its row."""
        try:
            async for item in items:
                if isinstance(item, FeedAnomaly):
                    yield item
                    continue
                found, row = ([], item) if self.overlaps is None else self.overlaps.sift(item)
                doubts = list[FeedAnomaly]()
                if row is not None and self.guard is not None:
                    doubts, row = self.guard.sift(row, blocks=self.blocks)
                for anomaly in (*found, *doubts):
                    yield anomaly
                if row is not None:
                    yield row
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()
