"""Grades for measured clusters: the registered family, the interval at its level, and the gate's decision.

Called twice by the high-level reflection when a grid was searched, because every value tried makes the family
larger.
"""

from collections.abc import Mapping, Sequence

from schemas.config import GateSettings
from schemas.playbook import PlaybookDefinition
from schemas.reflection import ClusterFinding
from services.high_level.clusters import Measure, describe
from services.high_level.gate import Evidence, GateDecision, decide
from services.statistics.confidence_sequence import confidence_intervals
from services.statistics.multiplicity import Family, e_bh
from services.statistics.power import smallest_detectable_effect


def grade_clusters(
    measures: Sequence[Measure],
    family: Family | None,
    gate: GateSettings,
    definitions: Mapping[str, PlaybookDefinition],
    evidence_limit: int,
) -> tuple[ClusterFinding, ...]:
    """One finding per measured cluster, in the same order; without a family everything is only counted."""
    selected = _selected(measures, family)
    levels = [_level(item, family) or gate.q for item in measures]
    edges = confidence_intervals([item.observations for item in measures], levels)
    return tuple(
        _finding(
            item, edge, family, gate, definitions.get(item.cluster.playbook_id), selected, evidence_limit
        )
        for item, edge in zip(measures, edges, strict=True)
    )


def _level(item: Measure, family: Family | None) -> float | None:
    """The level at which the family tests a cluster; None when it is not registered."""
    registered = family is not None and item.cluster.tested_as in family
    return family.alpha(item.cluster.tested_as) if family is not None and registered else None


def _selected(measures: Sequence[Measure], family: Family | None) -> frozenset[str]:
    """Hypotheses that e-BH would select: at least those significant alone, shown in the reason."""
    if family is None:
        return frozenset()
    tested = {item.cluster.tested_as: item.log_e for item in measures if item.cluster.tested_as in family}
    return frozenset(e_bh(family, tested))


def _decide(
    item: Measure,
    alpha: float | None,
    gate: GateSettings,
    definition: PlaybookDefinition | None,
    e_bh_selects: bool,
) -> GateDecision:
    minimum = max(gate.minimum_trades, definition.minimum_episodes if definition else gate.minimum_trades)
    evidence = Evidence(item.n, item.e_value, alpha, minimum, item.cluster.regime is not None)
    decision = decide(evidence, gate)
    if e_bh_selects and not decision.reason.startswith("selected_in_family"):
        return GateDecision(
            decision.grade, decision.strongest_action, f"{decision.reason}; e-BH would select it"
        )
    return decision


def _finding(
    item: Measure,
    edge: tuple[float, float],
    family: Family | None,
    gate: GateSettings,
    definition: PlaybookDefinition | None,
    selected: frozenset[str],
    evidence_limit: int,
) -> ClusterFinding:
    cluster, seen = item.cluster, item.observations
    alpha = _level(item, family)
    size = len(family) if family is not None and alpha is not None else 0
    decision = _decide(item, alpha, gate, definition, cluster.tested_as in selected)
    lower, upper = _widened(edge, item.mean_r)
    effect = smallest_detectable_effect(seen, alpha or gate.q)
    return ClusterFinding(
        playbook_id=cluster.playbook_id,
        regime=cluster.regime,
        timeframe=cluster.timeframe,
        n=item.n,
        blocks=len(seen),
        mean_r=item.mean_r,
        reference_r=seen.reference,
        e_value=item.e_value,
        lower_r=lower,
        upper_r=upper,
        smallest_detectable_r=None if effect is None else round(effect, 9),
        alpha=alpha or gate.q,
        family_id=family.family_id if family is not None and size else "unregistered",
        family_size=size,
        grade=decision.grade,
        strongest_action=decision.strongest_action,
        reason=decision.reason,
        evidence=tuple(episode.episode_id for episode in cluster.episodes[-evidence_limit:]),
        **describe(cluster.episodes, definition),
    )


def _widened(edge: tuple[float, float], mean: float | None) -> tuple[float, float]:
    """The interval, widened where needed to hold the mean over trades: blocks weigh trades differently."""
    lower, upper = edge
    held = lower if mean is None else mean
    return round(min(lower, held), 9), round(max(upper, held), 9)
