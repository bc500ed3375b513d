"""The gate on a table of trades: look by look, with the functions that grade the slow loop's reports.

Every look sees the trades that had exited by then, all clusters together; the grade that comes back is that
of the last look, with the first look at which a cluster was selected.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from schemas.vocabulary import EvidenceGrade
from services.high_level.drift import DecayAlarm
from services.high_level.grading import Case, Range, Verdict, decide_cases, full_reason, minimum_of, ranges
from services.high_level.hypotheses import declared_hypotheses
from services.high_level.trade_table import TableCluster, TradeTable, clusters_of
from services.statistics.calendar_units import BlockUnit, Integers, block_unit, unit_numbers, unit_starts
from services.statistics.drift import Decay, detect_decay
from services.statistics.multiplicity import Family, register_family
from services.statistics.slots import Interval, next_slot
from services.statistics.track import Bounds, Sample


@dataclass(frozen=True)
class GradedCluster:
    """One cluster at the last look."""

    cluster: TableCluster
    sample: Sample
    verdict: Verdict
    shown: Range
    first_significant_at: int | None

    @property
    def reason(self) -> str:
        """Why it has its grade."""
        return full_reason(self.verdict.decision, self.sample, self.shown)

    @cached_property
    def decay(self) -> Decay | None:
        """The e-detector for a loss of a whole playbook; None for its cells, as in the slow loop."""
        if self.cluster.regime is not None:
            return None
        return detect_decay(self.cluster.track.decay[: self.sample.blocks])

    @property
    def alarm(self) -> DecayAlarm | None:
        """The alarm of the e-detector, known when the block was complete that raised it."""
        if self.decay is None or self.decay.alarm_index is None:
            return None
        known_at = int(self.cluster.track.blocks.complete_at[self.decay.alarm_index])
        return DecayAlarm(self.cluster.playbook_id, self.decay.highest, known_at)


@dataclass(frozen=True)
class GradedTable:
    """All clusters in the order of their keys, the family, and the looks that were taken."""

    family: Family
    clusters: tuple[GradedCluster, ...]
    looks: tuple[int, ...]

    @property
    def selected(self) -> tuple[str, ...]:
        """Hypotheses that e-BH selects at the last look."""
        names = {
            item.cluster.tested_as
            for item in self.clusters
            if item.verdict.decision.grade is EvidenceGrade.SIGNIFICANT
        }
        return tuple(sorted(names))


def grade_table(
    table: TradeTable,
    gate: GateSettings,
    looks: Sequence[int],
    definitions: Mapping[str, PlaybookDefinition] | None = None,
    tell: Callable[[Iterable[int]], Iterable[int]] = iter,
    bounds: Mapping[str, Bounds] | None = None,
) -> GradedTable:
    """Grade a table at each look, ns in ascending order; the last one is what is reported.

    Args:
        table: the trades.
        gate: settings of the gate.
        looks: times of the looks.
        definitions: playbooks whose declared cells join the family; what the table names always does.
        tell: wraps the looks, to show progress.
        bounds: what is known of the R of single playbooks' trades, see `clusters_of`.

    Raises:
        DataError: a reference does not lie strictly between the winsor bounds.
    """
    clusters = clusters_of(table, gate, bounds)
    books = definitions or {}
    declared = declared_hypotheses(books.values(), table.timeframes)
    family = register_family(sorted({*declared, *(item.tested_as for item in clusters)}), gate.q)
    minima = [minimum_of(gate, books.get(item.playbook_id)) for item in clusters]
    first: dict[int, int] = {}
    for look in tell(looks):
        samples = [item.track.at(look) for item in clusters]
        cases = [_case(*row) for row in zip(clusters, samples, minima, strict=True)]
        verdicts = decide_cases(cases, family, gate)
        for index in _significant(verdicts):
            first.setdefault(index, look)
    shown = ranges(
        [(item.track, seen) for item, seen in zip(clusters, samples, strict=True)],
        [verdict.alpha or gate.q for verdict in verdicts],
    )
    rows = enumerate(zip(clusters, samples, verdicts, shown, strict=True))
    graded = tuple(GradedCluster(*row, first.get(index)) for index, row in rows)
    return GradedTable(family, graded, tuple(looks))


def _significant(verdicts: Sequence[Verdict]) -> list[int]:
    grades = [verdict.decision.grade for verdict in verdicts]
    return [index for index, grade in enumerate(grades) if grade is EvidenceGrade.SIGNIFICANT]


@dataclass(frozen=True)
class EntriesPerBlock:
    """How many trades of a table were entered in one block, whatever their playbook.

    Attributes:
        most: the largest number of them.
        unit: what that block is.
        begins: its first moment, ns UTC.
        beyond: blocks with more than the limit.
    """

    most: int
    unit: BlockUnit
    begins: int
    beyond: int


def entries_per_block(table: TradeTable, gate: GateSettings, limit: int) -> EntriesPerBlock:
    """The fullest block of a table, and how many hold more than `limit`.

    A trade belongs to the block in which its playbook counts, by the longest bars of the playbook. Of blocks
    that are equally full the first one is named.
    """
    longest = np.zeros(len(table.playbooks), dtype=np.int64)
    np.maximum.at(longest, table.playbook, np.array(table.bar_s, dtype=np.int64)[table.timeframe])
    units = [block_unit(gate.block, seconds) for seconds in longest.tolist()]
    found = []
    for unit in sorted(set(units)):
        own = np.array([own_unit == unit for own_unit in units])[table.playbook]
        numbers, counts = np.unique(unit_numbers(table.entry_ns[own], unit), return_counts=True)
        fullest = int(np.argmax(counts))
        begins = int(unit_starts(numbers[fullest], unit))
        found.append((int(counts[fullest]), -begins, unit, int((counts > limit).sum())))
    most, earlier, unit, _ = max(found)
    return EntriesPerBlock(most, unit, -earlier, sum(beyond for *_, beyond in found))


def _case(item: TableCluster, seen: Sample, minimum: int) -> Case:
    return Case(item.tested_as, seen, minimum, item.regime is not None)


def scheduled_looks(exit_ns: Integers, interval: Interval | str, batch: int) -> tuple[int, ...]:
    """Slots at which the schedule would have looked, and the first slot that knows every trade.

    A slot is daily, weekly (Monday) or monthly, 00:00 UTC; it counts when at least `batch` trades exited
    since the one before that did.
    """
    ordered = np.sort(exit_ns)
    looks: list[int] = []
    seen, slot = 0, int(ordered[0]) - 1
    while seen < len(ordered):
        slot = _slot_from(max(int(ordered[min(seen + batch, len(ordered)) - 1]), slot + 1), interval)
        looks.append(slot)
        seen = int(np.searchsorted(ordered, slot, side="right"))
    return tuple(looks)


def _slot_from(at_ns: int, interval: Interval | str) -> int:
    """First slot at or after a time."""
    if interval == "daily":
        return next_slot(at_ns - 1, "daily")
    if interval == "weekly":
        return next_slot(at_ns - 1, "weekly")
    month = np.datetime64(at_ns - 1, "ns").astype("datetime64[M]") + 1
    return int(month.astype("datetime64[ns]").astype(np.int64))


def counted_looks(exit_ns: Integers, every: int) -> tuple[int, ...]:
    """A look whenever `every` more trades have exited, and one at the last exit."""
    ordered = np.sort(exit_ns)
    positions = [*range(every - 1, len(ordered), every), len(ordered) - 1]
    return tuple(int(at) for at in np.unique(ordered[positions]))
