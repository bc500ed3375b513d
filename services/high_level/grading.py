"""Grades: what the registered family selects, the interval at that level, and the gate's decision.

The high-level reflection, `thinktwice gate` and the worlds grade here, each cluster of a look together,
because e-BH selects from all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from schemas.slow_reflection import ClusterFinding, GridTrial, ShrunkenMean
from schemas.vocabulary import Claim, EvidenceGrade
from services.high_level.cluster_figures import describe
from services.high_level.clusters import Measure
from services.high_level.gate import Evidence, GateDecision, decide
from services.high_level.what_it_takes import forecast, opinion_of
from services.model_calls.quoting import count_noun
from services.statistics.blocks import GAINING, LOSING
from services.statistics.calendar_units import LAST_NS
from services.statistics.multiplicity import Family, e_bh
from services.statistics.power import smallest_detectable_effect
from services.statistics.sample import INTERVAL_ALPHA, PROVEN_E, Sample
from services.statistics.sharpe import sharpe_figures, sharpe_of_a_block
from services.statistics.track import Interval

UNREGISTERED = "unregistered"
EVIDENCE_LIMIT = 50
MOVED = {  # what stands in place of the interval of every look
    "moved": "the interval is that of the last look",
    "none": "there is no interval, the last look alone excludes the mean of all trades as well",
}


@dataclass(frozen=True)
class Verdict:
    """The gate's decision on one cluster, and the level at which its claim was tested.

    None when not registered.
    """

    decision: GateDecision
    alpha: float | None
    claim: Claim | None


@dataclass(frozen=True)
class Range:
    """What a cluster could have shown.

    Attributes:
        interval: of the winsorised mean at 95 %, valid at every look.
        fixed_time: of the same mean for one look declared beforehand; None below ten blocks.
        smallest_detectable: deviation from the reference that the level of its verdict would have found.
    """

    interval: Interval
    fixed_time: tuple[float, float] | None
    smallest_detectable: float | None


def select(family: Family, e_values: Mapping[str, float]) -> int:
    """How many members e-BH selects, from e-values as they are printed; names outside the family are ignored.

    Grading and the judge's second look ask the same question of the same numbers.
    """
    known = {name: float(np.log(e)) for name, e in e_values.items() if name in family and e > 0.0}
    return len(e_bh(family, known))


def decide_measures(
    measures: Sequence[Measure],
    family: Family | None,
    gate: GateSettings,
    definitions: Mapping[str, PlaybookDefinition],
) -> tuple[Verdict, ...]:
    """One verdict per cluster of one look, in the same order; without a family everything is only counted."""
    count = 0
    if family is not None:
        count = select(family, {item.cluster.tested_as: item.sample.e_value for item in measures})
    verdicts = []
    for item in measures:
        cluster, seen, alpha = item.cluster, item.sample, None
        if family is not None and cluster.tested_as in family:
            alpha = family.alpha(cluster.tested_as, count)
        minimum = minimum_of(gate, definitions.get(cluster.playbook_id))
        evidence = Evidence(seen.n, seen.e_value, alpha, minimum, cluster.regime is not None)
        decision = decide(evidence, gate)
        proven = seen.leaning if decision.grade is EvidenceGrade.SIGNIFICANT else None
        verdicts.append(Verdict(decision, alpha, proven))
    return tuple(verdicts)


def range_of(item: Measure, verdict: Verdict, gate: GateSettings) -> Range:
    """Interval of a cluster's sample, and what the level of its verdict could have detected."""
    track, blocks = item.cluster.track, item.sample.blocks
    effect = smallest_detectable_effect(track, blocks, verdict.alpha or gate.q)
    return Range(
        track.interval(blocks, INTERVAL_ALPHA),
        track.fixed_time(blocks),
        None if effect is None else round(effect, 9),
    )


def full_reason(decision: GateDecision, seen: Sample, shown: Range) -> str:
    """The gate's reason, what was odd about the blocks, then what the interval says beside it."""
    parts = [decision.reason, seen.note, _waiting(seen)]
    if decision.grade is not EvidenceGrade.INSUFFICIENT_SAMPLE:  # a small sample is open on both sides anyway
        parts.append(_open_sides(seen, shown.interval))
    if shown.interval.kind in MOVED:
        parts.append(f"no constant mean fits all blocks: {MOVED[shown.interval.kind]}")
    parts.append(_beside_the_grade(decision.grade, shown.interval, seen.reference))
    return "; ".join(part for part in parts if part)


def _beside_the_grade(grade: EvidenceGrade, interval: Interval, reference: float) -> str:
    """Why the interval and the grade do not say the same of the reference; empty where they do."""
    if interval.kind == "none":
        return ""
    excluded = not _holds(interval, reference)
    if excluded == (grade is EvidenceGrade.SIGNIFICANT):
        return ""
    limit = f"E without restarts {{}} {PROVEN_E:g}"
    if not excluded:
        return f"the interval holds the reference: {limit.format('is below')}"
    return (
        f"the interval excludes the reference: {limit.format('was at least')} at this look or an earlier one"
    )


def _holds(interval: Interval, mean: float) -> bool:
    lower, upper = interval.lower, interval.upper
    return (lower is None or lower <= mean) and (upper is None or mean <= upper)


def _waiting(seen: Sample) -> str:
    waiting = seen.n - seen.counted
    if not waiting:
        return ""
    return f"{waiting} of {count_noun(seen.n, 'trade')} in a {seen.unit} that is not complete"


def _open_sides(seen: Sample, interval: Interval) -> str:
    if not interval.kind.startswith("open"):
        return ""
    sides = {"open": "on both sides", "open below": "below", "open above": "above"}[interval.kind]
    return f"open {sides}: {count_noun(seen.blocks, 'complete block')} so far"


def grade_clusters(
    measures: Sequence[Measure],
    family: Family | None,
    gate: GateSettings,
    definitions: Mapping[str, PlaybookDefinition],
    trials: Sequence[GridTrial] = (),
    at_ns: int = LAST_NS,
) -> tuple[ClusterFinding, ...]:
    """One finding per measured cluster, in the same order; without a family everything is only counted.

    `at_ns` is the time of the look, for the second opinion. `trials` are members of the family that are no
    clusters; DSR reads their Sharpe ratios.
    """
    verdicts = decide_measures(measures, family, gate, definitions)
    found = [sharpe_of_a_block(item.cluster.track, item.sample.blocks) for item in measures]
    tried = [sharpe for sharpe in (*found, *(trial.sharpe for trial in trials)) if sharpe is not None]
    findings: list[ClusterFinding] = []
    path = None
    for item, verdict in zip(measures, verdicts, strict=True):
        cluster = item.cluster
        if cluster.track is path:  # the cell above has the same trades, and one timeframe
            own = {"timeframe": cluster.timeframe, **shrunken_fields(item)}
            findings.append(findings[-1].model_copy(update=own))
        else:
            definition = definitions.get(cluster.playbook_id)
            made = _finding(item, verdict, family, gate, definition, tried)
            opinion = opinion_of(item, at_ns, gate, family)
            findings.append(made.model_copy(update={"second_opinion": opinion}) if opinion else made)
        path = cluster.track
    return tuple(findings)


def shrunken_fields(item: Measure) -> dict[str, Any]:
    """The shrunken mean of a cluster and its band, as findings name them; None without a trade."""
    band = (None,) * 3 if item.pooled is None else item.pooled.mean[:3]
    return dict(zip(("shrunken_mean", "shrunken_lower", "shrunken_upper"), band, strict=True))


def shrunken_by_symbol(measures: Sequence[Measure]) -> tuple[ShrunkenMean, ...]:
    """Playbook x regime x symbol: each mean alone and shrunken, in name order."""
    return tuple(
        ShrunkenMean(
            playbook_id=item.cluster.playbook_id,
            regime=str(item.cluster.regime),
            timeframe=str(item.cluster.timeframe),
            symbol=symbol,
            n=band.n,
            mean_r=band.alone,
            shrunken_mean=band.mean,
            shrunken_lower=band.lower,
            shrunken_upper=band.upper,
        )
        for item in measures
        if item.pooled is not None
        for symbol, band in item.pooled.symbols.items()
    )


def minimum_of(gate: GateSettings, definition: PlaybookDefinition | None) -> int:
    """Trades below which a count says nothing: the setting, or the playbook's own where it is larger."""
    return max(gate.minimum_trades, definition.minimum_episodes if definition else gate.minimum_trades)


def _finding(
    item: Measure,
    verdict: Verdict,
    family: Family | None,
    gate: GateSettings,
    definition: PlaybookDefinition | None,
    tried: Sequence[float],
) -> ClusterFinding:
    cluster, seen, shown = item.cluster, item.sample, range_of(item, verdict, gate)
    needs = forecast(item, verdict.alpha, verdict.claim is not None, gate, family)
    size = len(family) if family is not None and verdict.alpha is not None else 0
    figures = sharpe_figures(
        cluster.track, seen, family.variants if family is not None and size else 0, tried
    )
    return ClusterFinding(
        playbook_id=cluster.playbook_id,
        regime=cluster.regime,
        timeframe=cluster.timeframe,
        n=seen.n,
        blocks=seen.blocks,
        unit=seen.unit,
        counted=seen.counted,
        claim=verdict.claim,
        leaning=seen.leaning,
        mean_r=seen.mean_r,
        mean_raw_r=seen.mean_raw,
        reference_r=seen.reference,
        e_value=seen.e_value,
        e_losing=seen.e_values[LOSING],
        e_gaining=seen.e_values[GAINING],
        lower_r=shown.interval.lower,
        upper_r=shown.interval.upper,
        interval_kind=shown.interval.kind,
        fixed_lower_r=None if shown.fixed_time is None else shown.fixed_time[0],
        fixed_upper_r=None if shown.fixed_time is None else shown.fixed_time[1],
        smallest_detectable_r=shown.smallest_detectable,
        **shrunken_fields(item),
        blocks_needed=needs.blocks,
        blocks_needed_declared=needs.declared,
        years_needed=needs.years,
        to_prove=needs.text,
        alpha=verdict.alpha or gate.q,
        family_id=family.family_id if family is not None and size else UNREGISTERED,
        family_size=size,
        family_q=gate.q,
        grade=verdict.decision.grade,
        strongest_action=verdict.decision.strongest_action,
        reason="; ".join(
            filter(None, (full_reason(verdict.decision, seen, shown), figures.companions(verdict.claim)))
        ),
        evidence=tuple(episode.episode_id for episode in item.episodes[-EVIDENCE_LIMIT:]),
        **figures._asdict(),
        **describe(item.episodes, definition),
    )
