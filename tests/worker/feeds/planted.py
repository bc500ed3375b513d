"""Faults planted into recorded bars by seed, and what a feed has to make of them: an oracle of its own.

A plan says which bar is sent how, at most one fault a row. From the plan alone, without the code of the
feeds, follow the rows that arrive, who may not enter on them, and which anomalies are told, each once.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from schemas.settings.live import FeedSettings
from services.feeds.port import BarRow
from services.feeds.port import FeedAnomalyKind as Kind
from tests.worker.live.paper_runs import rows_of
from trading_core.bars import BarSeries
from trading_core.live.growing_bars import Bar

NS = 1_000_000_000
APART = 8  # rows without a fault around a silence or an outage
SILENCE_BARS = 6
Key = tuple[Kind, str | None, int | None]
Offset = Callable[[float], float]  # by how many seconds the wall clock is ahead, by seconds of virtual time


def right(_seconds: float) -> float:
    """A wall clock that is right."""
    return 0.0


class Fault(StrEnum):
    """How a bar is sent."""

    TWICE = "twice"  # the same again, up to three times
    DISORDERED = "disordered"  # after later ones, but before its row has to go
    WITHHELD = "withheld"  # not sent, but the source has it when it is asked
    LATE = "late"  # after its row has gone
    LOST = "lost"  # never
    CONTRADICTED = "contradicted"  # again with other values, after its row has gone
    DISPUTED = "disputed"  # the same, before its row goes


SHOWN = {
    Fault.TWICE: Kind.DUPLICATE,
    Fault.CONTRADICTED: Kind.CONFLICT,
    Fault.DISPUTED: Kind.CONFLICT,
    Fault.LATE: Kind.LATE,
}


@dataclass(frozen=True)
class Shares:
    """Shares of bars with each fault; of rows with which a silence or an outage begins."""

    twice: float = 0.0
    disordered: float = 0.0
    withheld: float = 0.0
    late: float = 0.0
    lost: float = 0.0
    contradicted: float = 0.0
    disputed: float = 0.0
    silences: float = 0.0
    outages: float = 0.0


@dataclass
class Plan:
    """What is done to which bar.

    Attributes:
        series: the bars as they are.
        history: rows that are there before the run begins; they have no faults.
        faults: by row and column.
        outages: rows after whose close the source is away.
    """

    series: BarSeries
    history: int
    faults: dict[tuple[int, int], Fault] = field(default_factory=dict)
    outages: set[int] = field(default_factory=set)

    def counts(self) -> Counter[str]:
        """Faults by name."""
        found = Counter(str(fault) for fault in self.faults.values())
        found["outages"] = len(self.outages)
        return found

    def at(self, row: int, column: int) -> Fault | None:
        """The fault of one bar."""
        return self.faults.get((row, column))

    def arrives(self, row: int, column: int) -> bool:
        """Whether a bar is there when its row goes."""
        return self.at(row, column) not in (Fault.LATE, Fault.LOST)

    def rows(self, settings: FeedSettings) -> list[BarRow]:
        """The rows of the feed: what arrives, and who may not enter."""
        symbols = self.series.symbols
        missed = dict.fromkeys(symbols, 0)
        shut = dict.fromkeys(symbols, 0)
        found = []
        for number, row in enumerate(rows_of(self.series)):
            if number < self.history:
                found.append(BarRow(row.label, row.bars, history=True))
                continue
            bars: dict[str, Bar] = {}
            blocked = {}
            for column, symbol in enumerate(symbols):
                if not self.arrives(number, column):
                    missed[symbol] += 1
                    stale = missed[symbol] >= settings.stale_after_bars
                    blocked[symbol] = "stale" if stale else "missing bar"
                    continue
                bars[symbol] = row.bars[symbol]
                missed[symbol] = 0
                fault = self.at(number, column)
                if shut[symbol] or fault is Fault.DISPUTED:
                    blocked[symbol] = "conflicting bars"
                shut[symbol] = max(0, shut[symbol] - 1)
                if fault in (Fault.CONTRADICTED, Fault.DISPUTED):
                    shut[symbol] = settings.quarantine_bars
            found.append(BarRow(row.label, bars, blocked))
        return found

    def shown(self, settings: FeedSettings) -> Counter[Key]:
        """The anomalies of bars; those of a connection, and of a refill, are each feed's own."""
        found: Counter[Key] = Counter()
        labels = self.series.times.tolist()
        for (row, column), fault in self.faults.items():
            if fault in SHOWN:
                found[SHOWN[fault], self.series.symbols[column], labels[row]] += 1
        for column, symbol in enumerate(self.series.symbols):
            found.update(self._absent(symbol, column, labels, settings.stale_after_bars))
        return found

    def _absent(self, symbol: str, column: int, labels: list[int], stale_after: int) -> Iterator[Key]:
        """Missing bars are told until the symbol is stale; its return is told once."""
        missed, last = 0, labels[self.history - 1]
        for row in range(self.history, len(labels)):
            if self.arrives(row, column):
                if missed >= stale_after:
                    yield Kind.FRESH, symbol, labels[row]
                missed, last = 0, labels[row]
                continue
            missed += 1
            if missed <= stale_after:
                yield Kind.MISSING, symbol, labels[row]
            if missed == stale_after:
                yield Kind.STALE, symbol, last


def planted(series: BarSeries, seed: int, shares: Shares, history: int) -> Plan:
    """A plan by seed: never two faults in a row, and nothing beside a silence or an outage."""
    rng = np.random.default_rng(seed)
    rows, columns = series.shape
    plan = Plan(series, history)
    quiet: set[int] = set()
    possible = range(history + APART, rows - 2 * APART)
    for row in possible:
        draw = float(rng.random())
        if draw >= shares.outages + shares.silences or quiet & set(range(row - APART, row + APART)):
            continue
        quiet |= set(range(row - APART, row + SILENCE_BARS + APART))
        if draw < shares.outages:
            plan.outages.add(row)
        else:
            column = int(rng.integers(columns))
            plan.faults |= {(row + n, column): Fault.LOST for n in range(SILENCE_BARS)}
    for row in possible:
        if row not in quiet:
            _plant(plan, row, rng, shares)
    return plan


def _plant(plan: Plan, row: int, rng: np.random.Generator, shares: Shares) -> None:
    """At most one fault in a row of bars, so that no row is empty."""
    columns = plan.series.shape[1]
    column, draw = int(rng.integers(columns)), float(rng.random()) / columns
    for fault in Fault:
        share = getattr(shares, fault)
        if draw < share:
            plan.faults[row, column] = fault
            return
        draw -= share
