"""What a cluster still needs: blocks until its claim is proven, or what stops it; and the second opinion."""

from dataclasses import dataclass

from schemas.settings import GateSettings
from schemas.slow_reflection import SecondOpinion
from services.high_level.clusters import Measure
from services.model_calls.quoting import count_noun
from services.statistics.multiplicity import Family
from services.statistics.power import blocks_to_prove
from services.statistics.second_opinion import FAR_YEARS, MONTHS, months_to_claim, second_opinion

DECLARED_TARGET_R = 2.0
YEAR_NS = 365.25 * 86_400e9


@dataclass(frozen=True)
class Forecast:
    """Blocks that a cluster still needs at its mean and spread, the years they last, and that in words."""

    blocks: int | None = None
    declared: int | None = None
    years: float | None = None
    text: str = ""


def forecast(
    item: Measure, alpha: float | None, proven: bool, gate: GateSettings, family: Family | None
) -> Forecast:
    """What the claim that a cluster leans to still needs; nothing where it is proven."""
    seen, track = item.sample, item.cluster.track
    if proven:
        return Forecast(0, 0, 0.0, "proven")
    if alpha is None or family is None:
        return Forecast(text="never: it is outside the tested family (playbooks and their eligibility)")
    if seen.blocks < 2:
        return Forecast(
            text=f"open: {count_noun(seen.blocks, f'complete {seen.unit}')} of trades, 2 are the least"
        )
    if seen.leaning is None:
        return Forecast(text=f"open: its means lie on no side of gate.reference_r yet ({seen.blocks} blocks)")
    target = DECLARED_TARGET_R if seen.leaning == "losing" and track.bounds.target is None else None
    needed, declared = (blocks_to_prove(track, seen, alpha, believed) for believed in (None, target))
    if needed is None:
        return Forecast(text="never at this mean: it lies too near to gate.reference_r for its spread")
    ends = track.blocks.complete_at[: seen.blocks]
    years = round(needed * float(ends[-1] - ends[0]) / YEAR_NS / (seen.blocks - 1), 9)
    parts = [f"{seen.leaning}: about {count_noun(needed, 'more block')} ({_lasting(years)})"]
    if declared is not None and declared < needed:
        parts.append(f"{declared:,} with the target declared ({DECLARED_TARGET_R:g}R)")
    if item.cluster.regime is None:
        months = months_to_claim(track, int(ends[-1]), gate.looks, *_level_terms(item, family))
        parts += [f"{_lasting(months / MONTHS)} by the yearly look"] if months else []
    return Forecast(needed, declared, years, ", ".join(parts))


def _lasting(years: float) -> str:
    return f"{years:,.1f} years" if years <= FAR_YEARS else f"over {FAR_YEARS} years"


def opinion_of(item: Measure, at_ns: int, gate: GateSettings, family: Family | None) -> SecondOpinion | None:
    """The second opinion on a playbook at a time, ns; None for its cells, and where it claims nothing."""
    if item.cluster.regime is not None or family is None or item.cluster.tested_as not in family:
        return None
    found = second_opinion(item.cluster.track, at_ns, gate.looks, *_level_terms(item, family))
    return None if found is None else SecondOpinion(**vars(found))


def _level_terms(item: Measure, family: Family) -> tuple[int, int]:
    """Playbooks that share the level, times what was tried on the same bars; and changes of its rules."""
    playbooks = sum("|" not in name for name in family.members) * (1 + family.tried_before)
    return playbooks, family.epochs[family.members.index(item.cluster.tested_as)]
