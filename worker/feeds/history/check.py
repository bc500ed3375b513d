"""What a bar file holds: symbols, range, pauses and bars that deserve a look, as `--data` reads it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.settings import DataSettings
from services.feeds.plausibility import doubted_bars
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from worker.feeds.history.fetch_check import shown

if TYPE_CHECKING:
    from trading_core.bars import BarSeries

MOST_PAUSES = 5
JUMP = (
    0.5  # a change of the close from bar to bar by more than half is worth a look: a split, a slip of a digit
)


def describe_bars(series: "BarSeries") -> dict[str, Any]:
    """Plain data about bars that passed every check of the reader."""
    doubts: dict[str, list[FeedAnomaly]] = {}
    for _, anomaly in doubted_bars(series, DataSettings()):
        doubts.setdefault(str(anomaly.symbol), []).append(anomaly)
    return {
        "timeframe": series.timeframe,
        "label": series.label,
        "from": shown(int(series.times[0])),
        "to": shown(int(series.times[-1])),
        "bars": series.bar_count,
        "rows": series.shape[0],
        "sha256": series.sha256,
        "symbols": {
            symbol: _symbol(series, s) | _implausible(doubts.get(symbol, []))
            for s, symbol in enumerate(series.symbols)
        },
    }


def _symbol(series: "BarSeries", s: int) -> dict[str, Any]:
    rows = np.flatnonzero(series.present[:, s])
    times = series.times[rows]
    close = series.close[rows, s]
    inside = (series.times >= times[0]) & (series.times <= times[-1])
    change = np.abs(np.diff(close) / close[:-1])
    return {
        "bars": int(rows.size),
        "from": shown(int(times[0])),
        "to": shown(int(times[-1])),
        "lowest": float(series.low[rows, s].min()),
        "highest": float(series.high[rows, s].max()),
        "absent_while_others_trade": int((inside & ~series.present[:, s]).sum()),
        "pauses": int((np.diff(times) > series.bar_ns).sum()),
        "longest_pauses": _pauses(times, series.bar_ns),
        "without_volume": int((series.volume[rows, s] == 0.0).sum()),
        "without_movement": int((series.high[rows, s] == series.low[rows, s]).sum()),
        "jumps": [shown(int(times[k + 1])) for k in np.flatnonzero(change > JUMP)[:MOST_PAUSES]],
    }


def _implausible(doubts: list[FeedAnomaly]) -> dict[str, Any]:
    """The bars that `data.plausibility` would leave out with the bands of the defaults.

    Apart from them those outside the band that it would take: the doubts before them agree on no level.
    """
    taken = [shown(int(doubt.label or 0)) for doubt in doubts if doubt.kind is FeedAnomalyKind.UNSETTLED]
    doubts = [doubt for doubt in doubts if doubt.kind is FeedAnomalyKind.IMPLAUSIBLE]
    first = [
        {
            "time": shown(int(doubt.label or 0)),
            "lowest": doubt.detail["bar"][2],
            "highest": doubt.detail["bar"][1],
            "last_good_close": doubt.detail.get("last_good_close"),
        }
        for doubt in doubts[:MOST_PAUSES]
    ]
    return {
        "implausible": len(doubts),
        "first_implausible": first,
        "unsettled": len(taken),
        "first_unsettled": taken[:MOST_PAUSES],
    }


def _pauses(times: Any, bar_ns: int) -> list[dict[str, Any]]:
    """The longest stretches without a bar: the labels around each, and how many bars it would hold."""
    steps = np.diff(times)
    longest = [k for k in np.argsort(-steps, kind="stable")[:MOST_PAUSES] if steps[k] > bar_ns]
    return [
        {
            "after": shown(int(times[k])),
            "until": shown(int(times[k + 1])),
            "bars": int(steps[k] // bar_ns) - 1,
        }
        for k in sorted(longest)
    ]
