"""Doubts: between a feed and the trading stepper, the bars in doubt are told and taken out of their rows.

What the process before this one doubted stands in its journal, so a restart goes on with the same doubts.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

from schemas.settings import DataSettings
from services.feeds.plausibility import TOLD_HERE, PlausibilityGuard
from services.feeds.port import BarRow, FeedAnomaly, MarketFeed
from worker.live.stepper import LiveStepper

if TYPE_CHECKING:
    from services.store import RunRecord, Store

Items = AsyncIterator[BarRow | FeedAnomaly]


class Doubts:
    """The doubts of one paper process.

    Args:
        guard: judges the rows; None takes them as they come.
        blocks: say in a row which symbols are in doubt. A feed of recorded bars has no news of missing bars,
            because a backtest over the same bars has none.
    """

    def __init__(self, guard: PlausibilityGuard | None, *, blocks: bool) -> None:
        self._guard = guard
        self._blocks = blocks

    @classmethod
    async def of_run(
        cls,
        settings: DataSettings,
        feed: MarketFeed,
        store: "Store",
        record: "RunRecord",
        stepper: LiveStepper,
    ) -> "Doubts":
        """As `data.plausibility` says for this feed, behind the rows of the stepper."""
        wanted = settings.plausibility == "always" or (settings.plausibility == "live" and not feed.lock_step)
        if not wanted:
            return cls(None, blocks=False)
        guard = PlausibilityGuard(stepper.market.symbols, settings)
        if stepper.begun:
            told = [
                json.loads(row.payload)
                async for row in store.journal.rows(record.run_id, kinds={"feed_anomaly"})
            ]
            guard.remember(
                stepper.session.bars, [anomaly for anomaly in told if anomaly["anomaly"] in TOLD_HERE]
            )
        return cls(guard, blocks=not feed.lock_step)

    async def sifted(self, items: Items) -> AsyncGenerator[BarRow | FeedAnomaly]:
        """Items of the feed without the bars in doubt; each doubt is told before its row."""
        try:
            async for item in items:
                if self._guard is None or isinstance(item, FeedAnomaly):
                    yield item
                    continue
                told, row = self._guard.sift(item, blocks=self._blocks)
                for anomaly in told:
                    yield anomaly
                if row is not None:
                    yield row
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()
