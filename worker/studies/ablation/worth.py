"""What each tier was worth: helped, hurt or unknown, from paired blocks; the document that `ablate` prints.

`helped` needs more than earning more than without the tier: where a coin vetoes at the same rate, the tier
must beat the coin too, because trading less is no skill. Nothing here runs anything.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings, Settings
from services.statistics.blocks import NEVER, Floats, Trades
from services.statistics.calendar_units import BlockUnit, unit_of_timeframe
from services.statistics.paired import ALPHA, PairedResult, compare_pairs
from services.statistics.track import Bounds, Track
from trading_core.bars import BarSeries
from worker.feeds.doubts import doubt_documents
from worker.feeds.selected_bars import describe
from worker.runs.progress import Progress
from worker.runs.store_run import new_run
from worker.studies.ablation.arms import MEANING, NO_MODEL, Arm, ArmResult
from worker.studies.ablation.refused_plans import PaperTrades, shadow_ledger
from worker.studies.ablation.runner import MODE, Ablation, AblationRunner

if TYPE_CHECKING:
    from services.store import NewRun, Store

Watched = Callable[[str], AbstractContextManager[Progress]]
Worth = Literal["helped", "hurt", "unknown", "no better than chance at the same rate"]
CHANCE: Worth = "no better than chance at the same rate"
DIGITS = 9
_AGAINST = {"higher": "it made more", "lower": "it made less", "unknown": "it made no more or less"}


@dataclass(frozen=True)
class Tier:
    """One question: an arm with the tier against one without, and whether a coin vetoes at its rate."""

    name: str
    with_: Arm
    without: Arm
    coin: bool


TIERS = (
    Tier("fast reflection", Arm.FAST_ONLY, Arm.NO_REFLECTION, coin=True),
    Tier("slow loop", Arm.DETERMINISTIC, Arm.FAST_ONLY, coin=False),
    Tier("both by rules", Arm.DETERMINISTIC, Arm.NO_REFLECTION, coin=True),
    Tier("model", Arm.FULL, Arm.DETERMINISTIC, coin=False),
)


def worth_document(
    ablation: Ablation, ledger: Sequence[PaperTrades], timeframe: str, seed: int, gate: GateSettings
) -> dict[str, Any]:
    """Arms, tiers with their answers, and the shadow ledger; fractions, undefined is None.

    Args:
        ablation: the finished runs.
        ledger: what refused plans and banned cells would have made.
        timeframe: of the bars; it declares the block.
        seed: of the resampling.
        gate: winsor bounds of the ledger.
    """
    unit = unit_of_timeframe(gate.block, timeframe)
    found = compare_pairs(_cases(ablation), unit, seed)
    return {
        "alpha": ALPHA,
        "unit": unit,
        "arms": [_arm(ablation, arm) for arm in Arm],
        "random_veto": {
            "rates": [vars(rate) for rate in ablation.rates],
            "seeds": [_run(veto) for veto in ablation.vetoes],
        },
        "tiers": [_tier(tier, ablation, found) for tier in TIERS],
        "shadow_ledger": [_paper(group, len(ledger), timeframe, gate) for group in ledger],
    }


def _cases(ablation: Ablation) -> dict[str, Any]:
    cases = {}
    for tier in TIERS:
        if tier.with_ not in ablation.arms:
            continue
        cases[tier.name] = partial(_difference, ablation.arms[tier.with_], [ablation.arms[tier.without]])
        if tier.coin and ablation.vetoes:
            cases[f"{tier.name} against chance"] = partial(
                _difference, ablation.arms[tier.with_], ablation.vetoes
            )
    return cases


def _difference(with_: ArmResult, others: Sequence[ArmResult], unit: BlockUnit) -> Floats:
    """Return per block less the mean of the others (b,)."""
    theirs = np.mean([other.block_returns(unit) for other in others], axis=0)
    difference: Floats = with_.block_returns(unit) - theirs
    return difference


def _tier(tier: Tier, ablation: Ablation, found: dict[str, PairedResult]) -> dict[str, Any]:
    named = {"tier": tier.name, "with": str(tier.with_), "without": str(tier.without)}
    if tier.name not in found:
        empty = dict.fromkeys(("answer", "reason", "exposure", "difference", "against_chance"))
        return named | empty | {"reason": f"not run: {NO_MODEL}"}
    alone, chance = found[tier.name], found.get(f"{tier.name} against chance")
    mine, other = ablation.arms[tier.with_], ablation.arms[tier.without]
    sides = [mine, other, *(ablation.vetoes if chance is not None else ())]
    unfit = _unfit(sides)
    return named | {
        "answer": answer_of(alone, chance) if unfit is None else "unknown",
        "reason": _reason(alone, chance) if unfit is None else unfit,
        "exposure": {
            "with": _exposure([mine]),
            "without": _exposure([other]),
            "random_veto": _exposure(ablation.vetoes) if chance is not None else None,
        },
        "difference": _show_edge(alone),
        "against_chance": None
        if chance is None
        else _show_edge(chance)
        | {
            "beaten": sum(bool(other.curve[-1] < mine.curve[-1]) for other in ablation.vetoes),
            "seeds": len(ablation.vetoes),
        },
    }


def _unfit(sides: Sequence[ArmResult]) -> str | None:
    """Why no answer may come of these runs: they failed in part, or a model may have read about the bars."""
    failed = sorted({str(side.arm) for side in sides if side.document["errors"]})
    if failed:
        return f"errors in {', '.join(failed)}"
    found = [side.document["contamination"] for side in sides]
    reasons = [label["reason"] for label in found if label["label"] != "anonymised"]
    return next((f"contaminated: {reason}" for reason in reasons if reason is not None), None)


def answer_of(alone: PairedResult, chance: PairedResult | None) -> Worth:
    """The answer from the comparison without the tier, and that with the coin where there is one."""
    if alone.answer == "unknown":
        return "unknown"
    if alone.answer == "lower":
        return "hurt"
    return "helped" if chance is None or chance.answer == "higher" else CHANCE


def _reason(alone: PairedResult, chance: PairedResult | None) -> str:
    lines = [alone.reason]
    if chance is not None and (alone.answer != "unknown" or chance.answer != "unknown"):
        lines.append(f"{_AGAINST[chance.answer]} than a coin at the same rate")
    return "; ".join(part for part in lines if part)


def _show_edge(one: PairedResult) -> dict[str, Any]:
    """Per block and per year, as fractions of equity; None for an edge that nothing bounds."""
    edges = {"mean": one.mean, "lower": one.lower, "upper": one.upper}
    return {
        "answer": one.answer,
        "unit": one.unit,
        "blocks": one.blocks,
        "differing": one.differing,
        "per_block": {name: _finite(value) for name, value in edges.items()},
        "per_year": {name: _finite(value * one.a_year) for name, value in edges.items()},
        "p_value": round(one.p_value, DIGITS),
        "level": round(one.level, DIGITS),
    }


def _finite(value: float) -> float | None:
    """None for an edge that too few differing blocks leave open."""
    return round(value, DIGITS) if np.isfinite(value) else None


def _exposure(results: Sequence[ArmResult]) -> dict[str, float]:
    """Mean over runs of the share of bars with a position, and of the gross exposure."""
    return {
        "bars": round(float(np.mean([result.exposure for result in results])), DIGITS),
        "gross": round(float(np.mean([result.mean_gross for result in results])), DIGITS),
    }


def _arm(ablation: Ablation, arm: Arm) -> dict[str, Any]:
    result = ablation.vetoes[0] if arm is Arm.RANDOM_VETO and ablation.vetoes else ablation.arms.get(arm)
    named = {"arm": str(arm), "meaning": MEANING[arm]}
    if result is None:
        why = NO_MODEL if arm is Arm.FULL else "no seed asked for"
        return named | {"status": f"not run: {why}", "run": None}
    return named | {"status": "run", "run": _run(result)}


def _run(result: ArmResult) -> dict[str, Any]:
    document = result.document
    performance, policy = document["performance"], document["policy_loop"]
    names = ("total_return", "net_return", "max_drawdown", "trades", "expectancy_r")
    return {
        "run_id": result.run_id,
        "config_hash": result.config_hash,
        "head_hash": result.head_hash,
        "seed": result.seed,
        **{name: performance[name] for name in names},
        "exposure": _exposure([result]),
        **{name: policy[name] for name in ("evaluations", "frozen", "stand_downs", "revisions")},
        "sent_back": {
            "proposals": sum(policy["reflections"][status] for status in ("revise", "block")),
            "own_bases": policy["sent_back_own"],
            "not_offered": sum(policy["passed_over"].values()),
        },
        "errors": document["errors"],
        "contamination": document["contamination"]["label"],
    }


def _paper(group: PaperTrades, groups: int, timeframe: str, gate: GateSettings) -> dict[str, Any]:
    bounds = Bounds(gate.winsor_low, gate.winsor_high, strict=gate.strict)
    track = Track(Trades.of(group.outcomes), unit_of_timeframe(gate.block, timeframe), 0.0, bounds)
    seen = track.at(NEVER - 1)  # every plan has come to an end: no block waits
    shown = track.interval(seen.blocks, ALPHA / groups)
    answer = "unknown"
    if shown.lower is not None and shown.lower > 0.0:
        answer = "won"
    elif shown.upper is not None and shown.upper < 0.0:
        answer = "lost"
    return {
        "reason": group.reason,
        "plans": group.plans,
        "n": seen.n,
        "unresolved": group.unresolved,
        "blocks": seen.blocks,
        "unit": seen.unit,
        "mean_r": seen.mean_r,
        "lower_r": shown.lower,
        "upper_r": shown.upper,
        "answer": answer,
    }


async def measured_worth(
    settings: Settings,
    bars: BarSeries,
    definitions: Sequence[PlaybookDefinition],
    store: "Store",
    watched: Watched,
    *,
    name: str,
    seeds: int,
    keep_all: bool = False,
) -> dict[str, Any]:
    """The document of an ablation, every arm a run in the store.

    Args:
        settings: the configuration in force.
        bars: of every arm.
        definitions: playbooks of every arm.
        store: takes the runs.
        watched: a progress bar with a title.
        name: of the runs, before that of the arm.
        seeds: runs of the coin.
        keep_all: whether the run of every seed is stored; else only that of the first.
    """

    def of_arm(arm: Settings, arm_name: str) -> "NewRun":
        return new_run(arm, f"{name}: {arm_name}", MODE, describe(bars, arm))

    runner = AblationRunner(settings, bars, definitions, store, of_arm, watched, keep_all)
    ablation = await runner.run(seeds)
    ledger = await shadow_ledger(ablation, store, bars, settings)
    worth = worth_document(ablation, ledger, bars.timeframe, settings.seed, settings.gate)
    return {"data": describe(bars, settings) | {"doubts": doubt_documents(bars, settings.data)}} | worth
