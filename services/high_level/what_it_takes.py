"""What a cluster still needs: blocks until its claim is proven, or what stops it; and the second opinion."""

from dataclasses import dataclass

from schemas.settings import GateSettings
from schemas.slow_reflection import SecondOpinion
from services.high_level.clusters import Measure
from services.model_calls.quoting import count_noun
from services.statistics.multiplicity import Family
from services.statistics.power import blocks_to_prove
from services.statistics.sample import CLAIMS
from services.statistics.second_opinion import blocks_to_claim, second_opinion

DECLARED_TARGET_R = 2.0
YEAR_NS, FAR_YEARS = 365.25 * 86_400e9, 100


@dataclass(frozen=True)
class Forecast:
    """Blocks that a cluster still needs at its mean and spread, in numbers and in words."""

    blocks: int | None = None
    declared: int | None = None
    text: str = ""


def forecast(
    item: Measure, alpha: float | None, proven: bool, gate: GateSettings, family: Family | None
) -> Forecast:
    """What the claim that a cluster leans to still needs; nothing where it is proven."""
    seen, track = item.sample, item.cluster.track
    if proven:
        return Forecast(0, 0, "proven")
    if alpha is None or family is None:
        return Forecast(text="never: it is outside the tested family (playbooks and their eligibility)")
    if seen.leaning is None or seen.blocks < 2:
        return Forecast(text=f"open: its means lie on no side of gate.reference_r yet ({seen.blocks} blocks)")
    claim = CLAIMS.index(seen.leaning)
    target = DECLARED_TARGET_R if seen.leaning == "losing" and track.bounds.target is None else None
    needed, declared = (
        blocks_to_prove(track, seen.blocks, claim, alpha, believed) for believed in (None, target)
    )
    if needed is None:
        return Forecast(text="never at this mean: it lies too near to gate.reference_r for its spread")
    ends = track.blocks.complete_at[: seen.blocks]
    years = float(ends[-1] - ends[0]) / YEAR_NS / (seen.blocks - 1)
    lasts = f"{needed * years:,.1f} years" if needed * years <= FAR_YEARS else f"over {FAR_YEARS} years"
    parts = [f"{seen.leaning}: about {count_noun(needed, 'more block')} ({lasts})"]
    if declared is not None and declared < needed:
        parts.append(f"{declared:,} with the target declared ({DECLARED_TARGET_R:g}R)")
    if item.cluster.regime is None:
        by_look = blocks_to_claim(track, int(ends[-1]), gate.looks, _sharing(family), claim)
        parts += [] if by_look is None else [f"{count_noun(by_look, 'month')} with trades by the yearly look"]
    return Forecast(needed, declared, ", ".join(parts))


def opinion_of(item: Measure, at_ns: int, gate: GateSettings, family: Family | None) -> SecondOpinion | None:
    """The second opinion on a playbook at a time, ns; None for its cells, and where it claims nothing."""
    name = item.cluster.tested_as
    if item.cluster.regime is not None or family is None or name not in family:
        return None
    epoch = family.epochs[family.members.index(name)]
    found = second_opinion(item.cluster.track, at_ns, gate.looks, _sharing(family), epoch)
    return None if found is None else SecondOpinion(**vars(found))


def _sharing(family: Family) -> int:
    """Playbooks that share the level, times the configurations that were tried on the same bars."""
    return sum("|" not in name for name in family.members) * (1 + family.tried_before)
