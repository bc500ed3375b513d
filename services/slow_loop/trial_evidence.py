"""What the paper trades of a trial have shown: for its promotion or end, and for the next report."""

from collections.abc import Mapping, Sequence

from schemas.config import GateSettings
from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from services.high_level.clusters import bounds_of, trades_of
from services.statistics.calendar_units import unit_of_timeframe
from services.statistics.track import Track

Evidence = dict[str, float | int | str | None]


def trial_track(
    episodes: Sequence[Episode],
    gate: GateSettings,
    definition: PlaybookDefinition | None = None,
    open_since: int | None = None,
) -> Track | None:
    """The blocks of a trial's trades; None without any.

    Episodes of no-learn zones teach nothing here either.
    """
    learnable = [one for one in episodes if not one.no_learn]
    if not learnable:
        return None
    unit = unit_of_timeframe(gate.block, learnable[0].timeframe)
    return Track(trades_of(learnable), unit, gate.reference_r, bounds_of(definition, gate), open_since)


def trial_evidence(
    episodes: Sequence[Episode],
    gate: GateSettings,
    at_ns: int,
    definition: PlaybookDefinition | None = None,
    open_since: int | None = None,
) -> Evidence:
    """Trades, complete blocks, means, and e-values of both claims without restarts, at a time."""
    track = trial_track(episodes, gate, definition, open_since)
    if track is None:
        nothing: Evidence = {
            "n": 0,
            "blocks": 0,
            "mean_r": None,
            "mean_raw_r": None,
            "reference_r": gate.reference_r,
        }
        return nothing | {"e_value": None, "e_value_below": None}
    seen = track.at(at_ns)
    return {
        "n": seen.n,
        "blocks": seen.blocks,
        "mean_r": seen.mean_r,
        "mean_raw_r": seen.mean_raw,
        "reference_r": seen.reference,
        "e_value": seen.proof_of("gaining"),
        "e_value_below": seen.proof_of("losing"),
    }


def gains(evidence: Mapping[str, float | int | str | None]) -> bool:
    """Whether both means lie above the reference: the side that evidence of a gain has to be on."""
    reference = evidence.get("reference_r")
    means = evidence.get("mean_r"), evidence.get("mean_raw_r")
    return isinstance(reference, float) and all(isinstance(one, float) and one > reference for one in means)


def rounded(value: float) -> float:
    """Nine significant digits: what a report prints and a hash keeps."""
    return float(f"{value:.9g}")
