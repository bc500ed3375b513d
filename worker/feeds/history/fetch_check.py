"""What is wrong with the bars that an exchange gave, and the bars without it: in order, on the grid, once."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from schemas.canonical import ns_to_datetime
from schemas.vocabulary import TIMEFRAME_SECONDS
from services.feeds.raw_bar import fault
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import Candle

NS = 1_000_000_000
MOST_LISTED = 100


@dataclass
class SymbolFindings:
    """The bars of one symbol and what was found in them.

    Attributes:
        bars: by label, ascending; what can be used.
        duplicates: rows that repeated another exactly; dropped.
        conflicts: labels with two different bars; the first is kept.
        invalid: labels whose values cannot be a bar, with the reason; dropped.
        off_grid: labels that are no multiple of the timeframe; dropped.
        future: labels that lay beyond the present; dropped.
        gaps: first and last label of each stretch without bars in the range that was asked for, and how many
            are missing in it.
        asked: bars that were asked for.
    """

    bars: dict[int, Bar] = field(default_factory=dict)
    duplicates: int = 0
    conflicts: list[int] = field(default_factory=list)
    invalid: list[tuple[int, str]] = field(default_factory=list)
    off_grid: list[int] = field(default_factory=list)
    future: list[int] = field(default_factory=list)
    gaps: list[tuple[int, int, int]] = field(default_factory=list)
    asked: int = 0

    @property
    def problems(self) -> int:
        """What the exchange should not have given; a gap is none of it, since nobody may have traded."""
        return len(self.conflicts) + len(self.invalid) + len(self.off_grid) + len(self.future)

    def document(self) -> dict[str, Any]:
        """Plain data; of each list the first hundred."""
        labels = list(self.bars)
        return {
            "bars": len(labels),
            "asked_bars": self.asked,
            "from": shown(labels[0]) if labels else None,
            "to": shown(labels[-1]) if labels else None,
            "missing_bars": sum(count for _, _, count in self.gaps),
            "gaps": [
                {"from": shown(first), "to": shown(last), "bars": count}
                for first, last, count in self.gaps[:MOST_LISTED]
            ],
            "duplicates": self.duplicates,
            "problems": self.problems,
            "conflicts": [shown(label) for label in self.conflicts[:MOST_LISTED]],
            "invalid": [{"time": shown(label), "reason": why} for label, why in self.invalid[:MOST_LISTED]],
            "off_grid": [shown(label) for label in self.off_grid[:MOST_LISTED]],
            "future": [shown(label) for label in self.future[:MOST_LISTED]],
        }


def examine(
    rows: Iterable[Candle], timeframe: str, *, asked: tuple[int, int], future: Iterable[int] = ()
) -> SymbolFindings:
    """The usable bars among rows in any order, and what is wrong with the others.

    Args:
        rows: as they came.
        timeframe: of the bars.
        asked: the first and the last label that were asked for, ns.
        future: labels that lay beyond the present.
    """
    step = TIMEFRAME_SECONDS[timeframe] * NS
    first, last = asked
    found = SymbolFindings(future=sorted(set(future)), asked=(last - first) // step + 1)
    kept: dict[int, Bar] = {}
    for label, bar in rows:
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
    found = []
    before: int | None = None
    for label in labels:
        if before is not None and label - before > step:
            found.append((before + step, label - step, (label - before) // step - 1))
        before = label
    return found


def shown(label: int) -> str:
    """A label as ISO 8601 in UTC; one that no calendar holds as it is."""
    try:
        return ns_to_datetime(label).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{label} ns"
