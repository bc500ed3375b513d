"""Who may enter on a row: what the feed says, and safe mode on top of it; exits always run on.

The reasons of a row are stored with its bars, so a replay blocks what was blocked without asking why again.

Doubts: between a feed and the trading stepper, bars that overlap others, and bars in doubt, are reported and
taken out of their rows.

What the process before this one doubted stands in its journal, so a restart goes on with the same doubts.
"""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from schemas.settings import DataSettings
from services.feeds.overlaps import OverlapGuard
from services.feeds.plausibility import TOLD_HERE, PlausibilityGuard
from services.feeds.port import (
    RECALLED_ROWS,
    BarRow,
    BlockReason,
    FeedAnomaly,
    FeedAnomalyKind,
    MarketFeed,
    RowMemory,
)
from services.slow_loop.run_state import SAFE_MODE
from trading_core.bars import BarSeries
from worker.feeds.replay import rows_of
from worker.live.safe_mode import HARD, Change, SafeMode, SafeModeReason
from worker.operations.logs import EventSink

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


class EntryGuard:
    """Keeps safe mode from what is known of store, feed and earlier crashes.

    Args:
        symbols: of the run.
        note: told of each change of safe mode.

    Attributes:
        mode: safe mode as it stands.
    """

    def __init__(self, symbols: tuple[str, ...], note: EventSink) -> None:
        self._symbols = symbols
        self._note = note
        self.mode = SafeMode()

    def hold(self, reason: SafeModeReason, detail: str = "") -> None:
        """A reason is in force."""
        self.mode = self._tell(self.mode.raise_reason(reason, time.time_ns(), detail))

    def clear(self, reason: SafeModeReason) -> None:
        """A reason is gone."""
        self.mode = self._tell(self.mode.clear_reason(reason, time.time_ns()))

    def release(self) -> None:
        """The operator takes the run as it is: hard reasons are gone by that word, and end with it."""
        now, mode = time.time_ns(), self.mode
        for reason in HARD:
            mode, _ = mode.clear_reason(reason, now)
        self.mode = self._tell(mode.release(now))

    def weigh_store(self, *, following: bool) -> None:
        """Whether entries have to wait for the store, on the next row or between two."""
        self._weigh(SafeModeReason.STORE_AWAY, following)

    def guard_row(self, row: BarRow, *, store_behind: bool) -> BarRow:
        """The row as it is traded: in safe mode no symbol may enter on it."""
        self.weigh_store(following=store_behind)
        self._weigh(SafeModeReason.FEED_STALE, self._all(row.blocked, BlockReason.STALE))
        self._weigh(SafeModeReason.CLOCK_JUMP, self._all(row.blocked, BlockReason.CLOCK))
        return replace(row, blocked=self._shut(row.blocked)) if self.mode.active else row

    def in_force(self, blocked: Mapping[str, str]) -> dict[str, str]:
        """Who may not enter now: as on the last row, with safe mode as it is by now."""
        of_feed = {symbol: why for symbol, why in blocked.items() if not why.startswith(SAFE_MODE)}
        return dict(sorted((self._shut(of_feed) if self.mode.active else of_feed).items()))

    def _shut(self, blocked: Mapping[str, str]) -> dict[str, str]:
        reasons = ", ".join(str(hold.reason) for hold in self.mode.held)
        return {**dict.fromkeys(self._symbols, f"{SAFE_MODE}: {reasons}"), **blocked}

    def _all(self, blocked: Mapping[str, str], reason: BlockReason) -> bool:
        return all(blocked.get(symbol) == reason for symbol in self._symbols)

    def _weigh(self, reason: SafeModeReason, holds: bool) -> None:
        if holds:
            self.hold(reason)
        elif self.mode.active:
            self.clear(reason)

    def _tell(self, moved: tuple[SafeMode, tuple[Change, ...]]) -> SafeMode:
        mode, changes = moved
        for change in changes:
            payload = {"change": change.kind, "reason": str(change.reason), "detail": change.detail}
            self._note("safe_mode", payload)
        return mode
