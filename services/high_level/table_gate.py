"""The gate on a table of trades: look by look, with the functions that grade the slow loop's reports.

Every look sees the trades that had exited by then, all clusters together; the grade that comes back is that
of the last look, with the first look at which a cluster was selected.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from schemas.vocabulary import EvidenceGrade
from services.clock import INTERVAL_NS, Interval, next_slot
from services.high_level.clusters import Cluster, Measure, TradeTable, build_clusters
from services.high_level.drift import DecayAlarm
from services.high_level.grading import Range, Verdict, case_of, decide_cases, full_reason, ranges
from services.high_level.hypotheses import declared_hypotheses
from services.statistics.calendar_units import BlockUnit, Integers, block_unit, unit_numbers, unit_starts
from services.statistics.multiplicity import Family, register_family
from services.statistics.track import Bounds


@dataclass(frozen=True)
class GradedCluster:
    """One cluster at the last look."""

    measured: Measure
    verdict: Verdict
    shown: Range
    first_significant_at: int | None

    @property
    def cluster(self) -> Cluster:
        """Its key, rows and track."""
        return self.measured.cluster

    @property
    def reason(self) -> str:
        """Why it has its grade."""
        return full_reason(self.verdict.decision, self.measured.sample, self.shown)

    @property
    def alarm(self) -> DecayAlarm | None:
        """The alarm of the e-detector, known when the block was complete that raised it."""
        decay = self.measured.decay
        if decay is None or decay.alarm_index is None:
            return None
        known_at = int(self.cluster.track.blocks.complete_at[decay.alarm_index])
        return DecayAlarm(self.cluster.playbook_id, decay.highest, known_at)


@dataclass(frozen=True)
class GradedTable:
    """All clusters in the order of their keys, the family, and the looks that were taken."""

    family: Family
    clusters: tuple[GradedCluster, ...]
    looks: tuple[int, ...]

    @property
    def selected(self) -> tuple[str, ...]:
        """Hypotheses that e-BH selects at the last look."""
        grades = {item.cluster.tested_as: item.verdict.decision.grade for item in self.clusters}
        return tuple(sorted(name for name, grade in grades.items() if grade is EvidenceGrade.SIGNIFICANT))


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
        bounds: what is known of the R of single playbooks' trades.

    Raises:
        DataError: a reference does not lie strictly between the winsor bounds.
    """
    clusters = build_clusters(table, gate, bounds)
    books = definitions or {}
    declared = declared_hypotheses(books.values(), table.timeframes)
    family = register_family(sorted({*declared, *(item.tested_as for item in clusters)}), gate.q)
    first: dict[int, int] = {}
    for look in tell(looks):
        measures = [Measure(cluster, cluster.track.at(look)) for cluster in clusters]
        cases = [case_of(item, gate, books.get(item.cluster.playbook_id)) for item in measures]
        verdicts = decide_cases(cases, family, gate)
        for index, verdict in enumerate(verdicts):
            if verdict.decision.grade is EvidenceGrade.SIGNIFICANT:
                first.setdefault(index, look)
    shown = ranges(
        [(item.cluster.track, item.sample) for item in measures],
        [verdict.alpha or gate.q for verdict in verdicts],
    )
    rows = enumerate(zip(measures, verdicts, shown, strict=True))
    graded = tuple(GradedCluster(*row, first.get(index)) for index, row in rows)
    return GradedTable(family, graded, tuple(looks))


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


def scheduled_looks(exit_ns: Integers, interval: str, batch: int) -> tuple[int, ...]:
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


def _slot_from(at_ns: int, interval: str) -> int:
    if interval in INTERVAL_NS:
        return next_slot(at_ns - 1, cast(Interval, interval))
    month = np.datetime64(at_ns - 1, "ns").astype("datetime64[M]") + 1
    return int(month.astype("datetime64[ns]").astype(np.int64))


def counted_looks(exit_ns: Integers, every: int) -> tuple[int, ...]:
    """A look whenever `every` more trades have exited, and one at the last exit."""
    ordered = np.sort(exit_ns)
    positions = [*range(every - 1, len(ordered), every), len(ordered) - 1]
    return tuple(int(at) for at in np.unique(ordered[positions]))
