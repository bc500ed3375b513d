"""What the paper trades of a trial have shown: for its promotion or end, and for the next report."""

from collections.abc import Mapping, Sequence
from math import fsum

from schemas.config import GateSettings
from schemas.episode import Episode
from services.statistics.eprocess import e_value, log_e_above, log_e_below
from services.statistics.expectancy import Trades, observe, resolve_unit

Evidence = dict[str, float | int | str | None]


def trial_evidence(episodes: Sequence[Episode], gate: GateSettings) -> Evidence:
    """Trades, blocks, mean R, and e-values on both sides of the reference.

    Episodes of no-learn zones teach nothing here either.
    """
    learnable = [one for one in episodes if not one.no_learn]
    shown: Evidence = {"n": len(learnable), "blocks": 0, "mean_r": None, "reference_r": gate.reference_r}
    if not learnable:
        return shown | {"e_value": None, "e_value_below": None}
    trades = Trades.of([(one.exit_label, one.entry_label, one.r) for one in learnable])
    unit = resolve_unit(gate.bet_unit, learnable[0].timeframe)
    seen = observe(trades, unit, gate.winsor_low, gate.winsor_high, gate.reference_r)
    return shown | {
        "blocks": len(seen),
        "mean_r": rounded(fsum(one.r for one in learnable) / len(learnable)),
        "e_value": rounded(e_value(float(log_e_above(seen.values, seen.low, seen.high, seen.reference)))),
        "e_value_below": rounded(
            e_value(float(log_e_below(seen.values, seen.low, seen.high, seen.reference)))
        ),
    }


def gains(evidence: Mapping[str, float | int | str | None]) -> bool:
    """Whether the mean lies above its reference: the side that evidence of a gain has to be on."""
    mean, reference = evidence.get("mean_r"), evidence.get("reference_r")
    return isinstance(mean, float) and isinstance(reference, float) and mean > reference


def rounded(value: float) -> float:
    """Nine significant digits: what a report prints and a hash keeps."""
    return float(f"{value:.9g}")
