"""MarketFeed: where the bars of a trading loop come from, row by row, and what was wrong with them.

A feed hands over closed bars only, in order of their labels, each label once. Whatever was wrong on the way
(duplicates, late, missing, conflicting, stale bars, a lost connection) comes as an anomaly of its own, once,
before the row that it concerns. Declared here for the trading loop, implemented in `worker.feeds`.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from trading_core.bars import COLUMNS, BarSeries, FloatArray
from trading_core.live.growing_bars import Bar


class BlockReason(StrEnum):
    """Why a symbol may not enter on a row: the first that holds, in this order. Exits always run on."""

    TOO_LATE = "known too late"  # the close of the row lies too far back to trade on it
    CLOCK = "clock in doubt"  # our clock jumped, or the source's does not agree with it
    STALE = "stale"  # no bar of the symbol for too long, until it has bars again
    MISSING = "missing bar"  # the row has no bar of the symbol
    CONFLICT = "conflicting bars"  # two bars of one label disagreed; some clean bars must follow first
    IMPLAUSIBLE = "implausible bar"  # the bar of the row is in doubt; the symbol has none in it
    UNSETTLED = (
        "unsettled price"  # the bars in doubt agreed on no level; some bars within the band must follow
    )


class FeedAnomalyKind(StrEnum):
    """What can be wrong with a feed."""

    DUPLICATE = "duplicate"  # the same bar again: dropped
    CONFLICT = "conflict"  # the same label with other values: the first stays, entries are blocked
    LATE = "late"  # a bar of a label that was handed over already: never traded again
    MISSING = "missing"  # no bar of a symbol for a label
    INVALID = "invalid"  # values that cannot be a bar, or a label off the grid
    IMPLAUSIBLE = "implausible"  # a price far from the last good close: in doubt until two bars confirm it
    UNSETTLED = "unsettled"  # the bars in doubt agree on no level: this one is taken, entries wait
    WITHHELD = "withheld"  # every bar of a row is in doubt: there is no row, and its symbols are blocked
    UNCLOSED = "unclosed"  # a bar that is not over yet
    STALE = "stale"  # no bar of a symbol for too long
    FRESH = "fresh"  # a stale symbol has bars again
    REFILLED = "refilled"  # a gap was filled from the source's history
    DISCONNECTED = "disconnected"
    RECONNECTED = "reconnected"
    CLOCK = "clock"  # wall clock and monotonic clock disagree, or the source's clock differs from ours


# What leaves a symbol's data in conflict: an override, which opens a boundary of it in every state.
CONFLICTING = frozenset({FeedAnomalyKind.CONFLICT, FeedAnomalyKind.IMPLAUSIBLE})

# What leaves a bar out for good; one that is missing or not over yet is no bar of the feed.
LEAVES_OUT = (
    FeedAnomalyKind.CONFLICT,
    FeedAnomalyKind.IMPLAUSIBLE,
    FeedAnomalyKind.INVALID,
    FeedAnomalyKind.LATE,
)


@dataclass(frozen=True)
class BarRow:
    """The closed bars of one label."""

    label: int  # ns, after that of the row before
    bars: Mapping[str, Bar]  # by symbol; a symbol without a bar is absent
    # symbols that may not enter on this row, each with the reason (stale data, a conflict, a bar that is
    # known too late to be traded). Stops and other exits run on.
    blocked: Mapping[str, str] = field(default_factory=dict)
    history: bool = False  # a bar from before the run began: it warms up features, nothing is decided on it
    # by symbol what further columns of the data say, see `BarSeries.extra`; None unknown
    extra: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class FeedAnomaly:
    """Something that was wrong, told once."""

    kind: FeedAnomalyKind
    symbol: str | None  # whose bar; None for the feed as a whole
    label: int | None  # ns of the bar; None where there is no bar
    # plain data: values, counts, reasons. Nothing measured by a wall clock.
    detail: Mapping[str, Any] = field(default_factory=dict)
    # what clocks and waits measured; beside the hash, never in it
    measured: Mapping[str, Any] = field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        """As it is journalled."""
        return {
            "anomaly": str(self.kind),
            "symbol": self.symbol,
            "bar_label": self.label,
            "detail": dict(self.detail),
        }


Recalled = tuple[Sequence[BarRow], Collection[tuple[str, int]]]
RECALLED_ROWS = 16  # newest ones, which are compared when a source gives them again


@runtime_checkable
class RowMemory(Protocol):
    """A feed that compares what its source gives again with what was taken, by an earlier process as well."""

    def recall(self, rows: Sequence[BarRow], conflicts: Collection[tuple[str, int]]) -> None:
        """Note, before the first item, the newest rows that were taken, ascending, and conflicts told."""


class MarketFeed(Protocol):
    """Rows of closed bars.

    Attributes:
        name: as given by the user, for example `replay` or `ccxt:kraken`.
        symbols: sorted; the columns of every row.
        timeframe: for example `1m`.
        label: whether labels are opens or closes of bars.
        lock_step: whether the feed waits for policy loop and slow loop (recorded bars), or runs on (live).
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see the class
    @property
    def symbols(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def timeframe(self) -> str: ...  # noqa: D102
    @property
    def label(self) -> Literal["open", "close"]: ...  # noqa: D102
    @property
    def lock_step(self) -> bool: ...  # noqa: D102

    def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """Rows with labels after `after`, and anomalies; ends when the bars end.

        Args:
            after: ns, label of the last row that was taken; None for the first start. Rows between it and
                the present are refilled from the source's history.

        Raises:
            FeedError: the source is gone for good, or does not know a symbol or the timeframe.
        """

    def last_labels(self) -> dict[str, int]:
        """The label (ns) of the last bar of each symbol that was handed over; absent where there is none."""

    async def close(self) -> None:
        """Give back connections and files; a running `items` ends."""


async def news_after_history(
    items: AsyncIterator[BarRow | FeedAnomaly], seen: Sequence[FeedAnomaly] = ()
) -> AsyncIterator[BarRow | FeedAnomaly]:
    """The items of a first start: what was `seen` before and among rows of history comes after them.

    It was seen now, and whoever takes it stamps it with the close of the row before it.
    """
    news = list(seen)
    async for item in items:
        if isinstance(item, FeedAnomaly):
            news.append(item)
            continue
        while news and not item.history:
            yield news.pop(0)
        yield item
    for anomaly in news:
        yield anomaly


def series_of(
    symbols: tuple[str, ...],
    timeframe: str,
    label: Literal["open", "close"],
    rows: Sequence[BarRow],
    zone: str = "UTC",
) -> BarSeries:
    """The rows as a series; a symbol without a bar is absent.

    Raises:
        DataError: there is no row, or a bar cannot be.
    """
    shape = (len(rows), len(symbols))
    columns = {name: np.full(shape, np.nan) for name in COLUMNS}
    present = np.zeros(shape, dtype=np.bool_)
    extra: dict[str, FloatArray] = {}
    for t, row in enumerate(rows):
        for s, symbol in enumerate(symbols):
            if symbol in row.bars:
                present[t, s] = True
                for name, value in zip(COLUMNS, row.bars[symbol], strict=True):
                    columns[name][t, s] = np.nan if value is None else value
                for name, further in row.extra.get(symbol, {}).items():
                    extra.setdefault(name, np.full(shape, np.nan))[t, s] = (
                        np.nan if further is None else further
                    )
    times = np.array([row.label for row in rows], dtype=np.int64)
    return BarSeries(times, symbols, timeframe, label, **columns, present=present, zone=zone, extra=extra)
