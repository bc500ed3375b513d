"""Recorded bars without those in doubt, for runs that have all of their bars at once.

A paper run over the same bars leaves out the same ones and journals the same doubts at the same places.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schemas.errors import DataError
from schemas.settings import DataSettings
from services.feeds.plausibility import doubted_bars
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from trading_core.bars import COLUMNS, BarSeries
from worker.session import Session


@dataclass(frozen=True)
class SiftedBars:
    """Bars to trade on.

    Attributes:
        bars: without those in doubt.
        told: what is to be journalled once so many rows are validated.
    """

    bars: BarSeries
    told: Mapping[int, list[FeedAnomaly]] = field(default_factory=dict)

    def next_row(self, t: int) -> int:
        """The row before which the next doubt is told; else the number of rows."""
        return min((row for row in self.told if row > t), default=self.bars.shape[0])

    def tell(self, session: Session) -> None:
        """Journal what is to be told where the session stands, once a step."""
        for anomaly in self.told.get(session.engine.t, ()):
            session.note_anomaly(anomaly.payload())


def sifted_bars(bars: BarSeries, settings: DataSettings) -> SiftedBars:
    """The bars as a run over recorded bars takes them: all, unless `data.plausibility` is `always`.

    Raises:
        DataError: every bar is in doubt.
    """
    doubts = list(doubted_bars(bars, settings)) if settings.plausibility == "always" else []
    if not doubts:
        return SiftedBars(bars)
    present = bars.present.copy()
    for row, anomaly in doubts:
        if anomaly.kind is FeedAnomalyKind.UNSETTLED:
            continue
        present[row, bars.symbols.index(str(anomaly.symbol))] = False
    kept = present.any(axis=1)
    if not kept.any():
        raise DataError("every bar is implausible: data.plausibility = 'off' takes them as they are")
    columns = {name: np.where(present, getattr(bars, name), np.nan)[kept] for name in COLUMNS}
    left = BarSeries(
        bars.times[kept], bars.symbols, bars.timeframe, bars.label, present=present[kept], **columns
    )
    told: dict[int, list[FeedAnomaly]] = {}
    rows = np.flatnonzero(kept)
    for row, anomaly in doubts:
        before = max(1, int(np.searchsorted(rows, row)))  # nothing is journalled before the first row
        told.setdefault(before, []).append(anomaly)
    return SiftedBars(left, told)
