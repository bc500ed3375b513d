"""What a bar file holds: symbols, range, pauses and bars that deserve a look, as `--data` reads it."""

import calendar
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.settings import DataSettings
from schemas.timeframes import TIMEFRAME_SECONDS
from services.feeds.plausibility import doubted_bars
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar, fault
from trading_core.live.growing_bars import Bar
from trading_core.spacing import DAY_NS, NS, show_label
from worker.feeds.doubts import far_times, list_doubts

MOST_LISTED = 100


@dataclass
class SymbolFindings:
    """The bars of one symbol and what was found in them."""

    bars: dict[int, Bar] = field(default_factory=dict)  # by label, ascending; what can be used
    duplicates: int = 0  # rows that repeated another exactly; dropped
    conflicts: list[int] = field(default_factory=list)  # labels with two different bars; the first is kept
    # labels whose values cannot be a bar, with the reason; dropped
    invalid: list[tuple[int, str]] = field(default_factory=list)
    off_grid: list[int] = field(default_factory=list)  # labels that are no multiple of the timeframe; dropped
    future: list[int] = field(default_factory=list)  # labels that lay beyond the present; dropped
    # first and last label of each stretch without bars in the range that was asked for, and how many are
    # missing in it
    gaps: list[tuple[int, int, int]] = field(default_factory=list)
    requested: int = 0  # bars that were asked for

    @property
    def problems(self) -> int:
        """What the exchange should not have given; a gap is none of it, since nobody may have traded."""
        return len(self.conflicts) + len(self.invalid) + len(self.off_grid) + len(self.future)

    def document(self) -> dict[str, Any]:
        """Plain data; of each list the first hundred."""
        labels = list(self.bars)
        return {
            "bars": len(labels),
            "asked_bars": self.requested,
            "from": show_label(labels[0]) if labels else None,
            "to": show_label(labels[-1]) if labels else None,
            "missing_bars": sum(count for _, _, count in self.gaps),
            "gaps": [
                {"from": show_label(first), "to": show_label(last), "bars": count}
                for first, last, count in self.gaps[:MOST_LISTED]
            ],
            "duplicates": self.duplicates,
            "problems": self.problems,
            "conflicts": [show_label(label) for label in self.conflicts[:MOST_LISTED]],
            "invalid": [
                {"time": show_label(label), "reason": why} for label, why in self.invalid[:MOST_LISTED]
            ],
            "off_grid": [show_label(label) for label in self.off_grid[:MOST_LISTED]],
            "future": [show_label(label) for label in self.future[:MOST_LISTED]],
        }


def examine(
    rows: Iterable[RawBar], timeframe: str, *, requested: tuple[int, int], future: Iterable[int] = ()
) -> SymbolFindings:
    """The usable bars among rows in any order, and what is wrong with the others.

    The first and the last label that were `requested`, and those of the `future`, are ns.
    """
    step = TIMEFRAME_SECONDS[timeframe] * NS
    first, last = requested
    found = SymbolFindings(future=sorted(set(future)), requested=(last - first) // step + 1)
    kept: dict[int, Bar] = {}
    for _, label, bar, _ in rows:
        if label % step:
            found.off_grid.append(label)
        elif (why := fault(bar)) is not None:
            found.invalid.append((label, why))
        elif label not in kept:
            kept[label] = bar
        elif kept[label] == bar:
            found.duplicates += 1
        else:
            found.conflicts.append(label)
    found.bars = dict(sorted(kept.items()))
    found.gaps = gaps((first - step, *found.bars, last + step), step)
    return found


def gaps(labels: Iterable[int], step: int) -> list[tuple[int, int, int]]:
    """First and last missing label and their number, for every hole in ascending labels."""
    return [
        (before + step, label - step, (label - before) // step - 1)
        for before, label in pairwise(labels)
        if label - before > step
    ]


if TYPE_CHECKING:
    from trading_core.bars import BarSeries

MOST_PAUSES = 5
RARE = 0.1  # of the usual weekday: a day of the week with fewer bars is none on which is traded
FEWEST_YEARS = 3  # that show a day of the year on which is never traded
JUMP = 0.5  # a change of the close by more than half is worth a look: a split, a slip of a digit


def describe_bars(series: "BarSeries") -> dict[str, Any]:
    """Plain data about bars that passed every check of the reader."""
    doubts: dict[str, list[FeedAnomaly]] = {}
    for _, anomaly in doubted_bars(series, DataSettings()):
        doubts.setdefault(str(anomaly.symbol), []).append(anomaly)
    off = series.off_phase()
    found = list_doubts(series, DataSettings())
    return {
        "timeframe": series.timeframe,
        "label": series.label,
        "from": show_label(int(series.times[0])),
        "to": show_label(int(series.times[-1])),
        "bars": series.bar_count,
        "rows": series.shape[0],
        "sha256": series.sha256,
        "notes": list(series.notes),
        "symbols": {
            symbol: {"doubts": [doubt.document() for doubt in found if doubt.symbol == symbol]}
            | _symbol(series, s, *_calendar(series, s))
            | _implausible(doubts.get(symbol, []))
            | {
                "off_phase": len(off.get(symbol, ())),
                "first_off_phase": [show_label(int(label)) for label in off.get(symbol, ())[:MOST_PAUSES]],
            }
            for s, symbol in enumerate(series.symbols)
        },
    }


def _symbol(series: "BarSeries", s: int, days: dict[str, Any], shut: Any) -> dict[str, Any]:
    """What is told of a symbol beside its `days`; `shut` are those on which it never trades."""
    rows = np.flatnonzero(series.present[:, s])
    times = series.times[rows]
    close = series.close[rows, s]
    inside = (series.times >= times[0]) & (series.times <= times[-1])
    change = np.abs(np.diff(close) / close[:-1])
    pauses = _pauses(times, series.bar_ns, shut)
    return days | {
        "bars": int(rows.size),
        "from": show_label(int(times[0])),
        "to": show_label(int(times[-1])),
        "lowest": float(series.low[rows, s].min()),
        "highest": float(series.high[rows, s].max()),
        "absent_while_others_trade": int((inside & ~series.present[:, s]).sum()),
        "pauses": int((pauses > 0).sum()),
        "longest_pauses": _longest(times, pauses),
        "without_volume": int((~(series.volume[rows, s] > 0.0)).sum()),
        "without_movement": int((series.high[rows, s] == series.low[rows, s]).sum()),
        "jumps": [show_label(int(times[k + 1])) for k in np.flatnonzero(change > JUMP)[:MOST_PAUSES]],
    }


def _calendar(series: "BarSeries", s: int) -> tuple[dict[str, Any], Any]:
    """The days on which a symbol trades as its bars show them, and stretches of such days without a bar.

    Beside them the days in between on which it never trades. A bar longer than a day covers all of its span.
    """
    if series.bar_ns > DAY_NS:
        return {"weekdays": [], "closed_days": [], "missing": []}, np.empty(0, dtype="datetime64[D]")
    times = series.times[series.present[:, s]]
    times = np.setdiff1d(times, far_times(times))
    days = np.unique(times.astype("datetime64[ns]").astype("datetime64[D]"))
    every = np.arange(days[0], days[-1] + 1)
    weekday, traded = (every.astype(np.int64) + 3) % 7, np.isin(every, days)
    counts = np.bincount(weekday[traded], minlength=7)
    opens = counts > RARE * counts.max()
    of_year = np.array([str(day)[5:] for day in every])
    due, closed = opens[weekday], []
    for name in sorted(set(of_year[due])):
        here = due & (of_year == name)
        if here.sum() >= FEWEST_YEARS and not traded[here].any():
            closed.append(str(name))
    due &= ~np.isin(of_year, closed)
    gone = due & ~traded
    stretches = np.split(every[due][gone[due]], np.flatnonzero(np.diff(np.flatnonzero(gone[due])) > 1) + 1)
    longest = sorted((part for part in stretches if len(part) > 1), key=len, reverse=True)[:MOST_PAUSES]
    payload = {
        "weekdays": [
            day_name[:3] for day_name, is_open in zip(calendar.day_name, opens, strict=True) if is_open
        ],
        "closed_days": closed,
        "missing": [{"from": str(part[0]), "to": str(part[-1]), "days": len(part)} for part in longest],
    }
    return payload, every[~due & ~traded]


def _implausible(doubts: list[FeedAnomaly]) -> dict[str, Any]:
    """The bars that `data.plausibility` would leave out with the bands of the defaults.

    Apart from them those outside the band that it would take: the doubts before them agree on no level.
    """
    taken = [show_label(int(doubt.label or 0)) for doubt in doubts if doubt.kind is FeedAnomalyKind.UNSETTLED]
    doubts = [doubt for doubt in doubts if doubt.kind is FeedAnomalyKind.IMPLAUSIBLE]
    first = [
        {
            "time": show_label(int(doubt.label or 0)),
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


def _pauses(times: Any, bar_ns: int, shut: Any) -> Any:
    """How many bars are missing between each two, without those of days on which there never are any."""
    days = times.astype("datetime64[ns]").astype("datetime64[D]")
    closed = np.searchsorted(shut, days[1:]) - np.searchsorted(shut, days[:-1], side="right")
    return np.rint((np.diff(times) - closed * DAY_NS) / bar_ns).astype(np.int64) - 1


def _longest(times: Any, pauses: Any) -> list[dict[str, Any]]:
    longest = [k for k in np.argsort(-pauses, kind="stable")[:MOST_PAUSES] if pauses[k] > 0]
    return [
        {"after": show_label(int(times[k])), "until": show_label(int(times[k + 1])), "bars": int(pauses[k])}
        for k in sorted(longest)
    ]
