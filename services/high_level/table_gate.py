"""The gate on a table of trades: look by look, with the functions that grade the slow loop's reports.

Every look sees the trades that had exited by then, all clusters together; the grade that comes back is that
of the last look, with the first look at which a cluster was selected.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from schemas.canonical import ns_to_datetime
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from schemas.slow_reflection import SecondOpinion
from schemas.vocabulary import EvidenceGrade
from services.high_level.clusters import Cluster, Measure, TradeTable, build_clusters, pool
from services.high_level.drift import DecayAlarm
from services.high_level.grading import Range, Verdict, decide_measures, full_reason, range_of
from services.high_level.hypotheses import declared_hypotheses
from services.high_level.what_it_takes import Forecast, forecast, opinion_of
from services.statistics.calendar_units import Integers, block_unit, unit_numbers, unit_starts
from services.statistics.multiplicity import Family, register_family
from services.statistics.slots import INTERVAL_NS, Interval, next_slot
from services.statistics.track import Bounds


@dataclass(frozen=True)
class GradedCluster:
    """One cluster at the last look."""

    measured: Measure
    verdict: Verdict
    shown: Range
    first_significant_at: int | None
    needs: Forecast
    second_opinion: SecondOpinion | None

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
    tried_before: int = 0,
) -> GradedTable:
    """Grade a table at each look, ns in ascending order; the last one is what is reported.

    Args:
        table: the trades.
        gate: settings of the gate.
        looks: times of the looks.
        definitions: playbooks whose declared cells join the family; what the table names always does.
        tell: wraps the looks, to show progress.
        bounds: what is known of the R of single playbooks' trades.
        tried_before: other tables that this one was chosen from: they share the level.

    Raises:
        DataError: a reference does not lie strictly between the winsor bounds.
    """
    books = definitions or {}
    declared = declared_hypotheses(books.values(), table.timeframes)
    clusters = build_clusters(table, gate, bounds, declared=declared)
    names = sorted({*declared, *(item.tested_as for item in clusters)})
    family = register_family(names, gate.q, tried_before=tried_before)
    first: dict[int, int] = {}
    for look in tell(looks):
        measures = [Measure(cluster, cluster.track.at(look)) for cluster in clusters]
        verdicts = decide_measures(measures, family, gate, books)
        for index, verdict in enumerate(verdicts):
            if verdict.decision.grade is EvidenceGrade.SIGNIFICANT:
                first.setdefault(index, look)
    pooled = pool(clusters, table, gate, looks[-1])
    measures = [replace(item, pooled=pooled.get(item.cluster.key)) for item in measures]
    graded = tuple(
        GradedCluster(
            item,
            verdict,
            range_of(item, verdict, gate),
            first.get(index),
            forecast(item, verdict.alpha, verdict.claim is not None, gate, family),
            opinion_of(item, looks[-1], gate, family),
        )
        for index, (item, verdict) in enumerate(zip(measures, verdicts, strict=True))
    )
    return GradedTable(family, graded, tuple(looks))


def entries_per_block(table: TradeTable, gate: GateSettings, limit: int) -> dict[str, Any]:
    """How many trades were entered in one block, whatever their playbook, as plain data.

    `most` is that of the fullest `block`, which `begins` then, as an ISO time in UTC; of equally full ones
    that of the first. `beyond` counts the blocks with more than `limit`. A trade belongs to the block in
    which its playbook counts, by the longest bars of the playbook.
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
    begins_at = ns_to_datetime(-earlier).isoformat()
    beyond = sum(over for *_, over in found)
    return {"limit": limit, "most": most, "block": unit, "begins": begins_at, "beyond": beyond}


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
