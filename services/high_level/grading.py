"""Grades: what the registered family selects, the interval at that level, and the gate's decision.

The high-level reflection, `thinktwice gate` and the worlds grade here, each cluster of a look together,
because e-BH selects from all of them. Called twice by the high-level reflection when a grid was searched:
every value tried makes the family larger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.config import GateSettings
from schemas.playbook import PlaybookDefinition
from schemas.reflection import ClusterFinding
from schemas.vocabulary import EvidenceGrade
from services.high_level.clusters import Measure, describe
from services.high_level.gate import Evidence, GateDecision, decide
from services.statistics.confidence_sequence import confidence_intervals
from services.statistics.multiplicity import Family, e_bh
from services.statistics.power import smallest_detectable_effect
from services.statistics.sample import Sample
from services.statistics.sharpe import deflated_sharpe, minimum_track_record, moments, probabilistic_sharpe

UNREGISTERED = "unregistered"
AT_BOUND = 0.001  # of the winsor bounds' distance: an edge so near to one of them says nothing


@dataclass(frozen=True)
class Case:
    """One cluster to be graded; `minimum` trades make a count, `tested_as` names it in the family."""

    tested_as: str
    sample: Sample
    minimum: int
    regime_cell: bool


@dataclass(frozen=True)
class Verdict:
    """The gate's decision on one case, and the level at which it was tested; None when not registered."""

    decision: GateDecision
    alpha: float | None


@dataclass(frozen=True)
class Range:
    """What a case could have shown: the interval at its level, and the smallest detectable deviation."""

    lower: float
    upper: float
    smallest_detectable: float | None
    moved: bool


def select(family: Family, e_values: Mapping[str, float]) -> int:
    """How many members e-BH selects, from e-values as they are printed; names outside the family are ignored.

    Grading and the judge's second look ask the same question of the same numbers.
    """
    known = {name: float(np.log(e)) for name, e in e_values.items() if name in family and e > 0.0}
    return len(e_bh(family, known))


def decide_cases(cases: Sequence[Case], family: Family | None, gate: GateSettings) -> tuple[Verdict, ...]:
    """One verdict per case of one look, in the same order; without a family everything is only counted."""
    count = 0
    if family is not None:
        count = select(family, {case.tested_as: case.sample.e_value for case in cases})
    verdicts = []
    for case in cases:
        alpha = None
        if family is not None and case.tested_as in family:
            alpha = family.alpha(case.tested_as, count)
        seen = case.sample
        decision = decide(Evidence(seen.n, seen.e_value, alpha, case.minimum, case.regime_cell), gate)
        verdicts.append(Verdict(decision, alpha))
    return tuple(verdicts)


def ranges(samples: Sequence[Sample], levels: Sequence[float]) -> tuple[Range, ...]:
    """Interval and smallest detectable effect of each sample at its own level.

    The interval is the intersection over the blocks so far, and of a widened sample the hull of those of its
    units. Where no constant mean is left the last look stands alone and `moved` is true.
    """
    flat = [(index, unit) for index, seen in enumerate(samples) for unit in seen.units]
    units, alphas = [unit for _, unit in flat], [levels[index] for index, _ in flat]
    running = confidence_intervals(units, alphas, running=True)
    emptied = [position for position, (lower, upper) in enumerate(running) if lower > upper]
    alone = confidence_intervals([units[k] for k in emptied], [alphas[k] for k in emptied])
    edges = list(running)
    for position, edge in zip(emptied, alone, strict=True):
        edges[position] = edge
    moved = {flat[position][0] for position in emptied}
    found = []
    for index, seen in enumerate(samples):
        own = [edge for (owner, _), edge in zip(flat, edges, strict=True) if owner == index]
        effect = smallest_detectable_effect(seen.observations, levels[index])
        lower, upper = _widened(own, seen.mean_r)
        found.append(Range(lower, upper, None if effect is None else round(effect, 9), index in moved))
    return tuple(found)


def _widened(edges: Sequence[tuple[float, float]], mean: float | None) -> tuple[float, float]:
    """The hull, widened where needed to hold the mean over trades: blocks weigh trades differently."""
    lower, upper = min(edge[0] for edge in edges), max(edge[1] for edge in edges)
    held = lower if mean is None else mean
    return round(min(lower, held), 9), round(max(upper, held), 9)


def full_reason(decision: GateDecision, seen: Sample, shown: Range) -> str:
    """The gate's reason, then what was odd about the blocks."""
    parts = [decision.reason, seen.note]
    if decision.grade is not EvidenceGrade.INSUFFICIENT_SAMPLE:  # a small sample is open on both sides anyway
        parts += _open_sides(seen, shown)
    if shown.moved:
        parts.append("no constant mean fits all blocks: the interval is that of the last look")
    return "; ".join(part for part in parts if part)


def _open_sides(seen: Sample, shown: Range) -> list[str]:
    """Why an edge stands at a winsor bound: too few blocks, or a mean that their narrower bounds cut off.

    A mean of k trades is clipped to the reference +- 0.75 x 3 / sqrt(k) (`expectancy`). Where the expectancy
    itself lies at that bound, clipped means look alike whatever they were before, and exclude nothing beyond.
    """
    blocks = seen.observations
    if not len(blocks):
        return []
    reach = AT_BOUND * (blocks.ceiling - blocks.floor)
    told, count = [], f"{len(blocks)} block{'s' if len(blocks) > 1 else ''}"
    if shown.lower <= blocks.floor + reach:
        told.append(f"open below: {count}, means clipped at {blocks.low.max():+.2f} R, exclude no lower mean")
    if shown.upper >= blocks.ceiling - reach:
        told.append(
            f"open above: {count}, means clipped at {blocks.high.min():+.2f} R, exclude no higher mean"
        )
    return told


def grade_clusters(
    measures: Sequence[Measure],
    family: Family | None,
    gate: GateSettings,
    definitions: Mapping[str, PlaybookDefinition],
    evidence_limit: int,
) -> tuple[ClusterFinding, ...]:
    """One finding per measured cluster, in the same order; without a family everything is only counted."""
    cases = [case_of(item, gate, definitions.get(item.cluster.playbook_id)) for item in measures]
    verdicts = decide_cases(cases, family, gate)
    levels = [verdict.alpha or gate.q for verdict in verdicts]
    shown = ranges([item.sample for item in measures], levels)
    return tuple(
        _finding(item, verdict, seen, family, gate, definitions.get(item.cluster.playbook_id), evidence_limit)
        for item, verdict, seen in zip(measures, verdicts, shown, strict=True)
    )


def case_of(item: Measure, gate: GateSettings, definition: PlaybookDefinition | None) -> Case:
    """The case that a measured cluster makes."""
    return Case(
        item.cluster.tested_as, item.sample, minimum_of(gate, definition), item.cluster.regime is not None
    )


def minimum_of(gate: GateSettings, definition: PlaybookDefinition | None) -> int:
    """Trades below which a count says nothing: the setting, or the playbook's own where it is larger."""
    return max(gate.minimum_trades, definition.minimum_episodes if definition else gate.minimum_trades)


def _finding(
    item: Measure,
    verdict: Verdict,
    shown: Range,
    family: Family | None,
    gate: GateSettings,
    definition: PlaybookDefinition | None,
    evidence_limit: int,
) -> ClusterFinding:
    cluster, seen = item.cluster, item.sample
    size = len(family) if family is not None and verdict.alpha is not None else 0
    return ClusterFinding(
        playbook_id=cluster.playbook_id,
        regime=cluster.regime,
        timeframe=cluster.timeframe,
        n=seen.n,
        blocks=len(seen.observations),
        unit=seen.unit,
        mean_r=seen.mean_r,
        reference_r=seen.observations.reference,
        e_value=seen.e_value,
        lower_r=shown.lower,
        upper_r=shown.upper,
        smallest_detectable_r=shown.smallest_detectable,
        alpha=verdict.alpha or gate.q,
        family_id=family.family_id if family is not None and size else UNREGISTERED,
        family_size=size,
        family_q=gate.q,
        grade=verdict.decision.grade,
        strongest_action=verdict.decision.strongest_action,
        reason=full_reason(verdict.decision, seen, shown),
        evidence=tuple(episode.episode_id for episode in cluster.episodes[-evidence_limit:]),
        **_sharpe(item, family.variants if family is not None and size else 0),
        **describe(cluster.episodes, definition),
    )


def _sharpe(item: Measure, variants: int) -> dict[str, Any]:
    """PSR, DSR and the minimum track record at a fixed look: reported, and read by no decision."""
    found = moments(np.array([episode.r for episode in item.cluster.episodes]))
    if found is None:
        return {}
    needed = minimum_track_record(found)
    return {
        "psr": round(probabilistic_sharpe(found), 6),
        "dsr": round(deflated_sharpe(found, max(variants, 1)), 6),
        "minimum_track_record": None if needed is None else round(needed, 3),
    }
