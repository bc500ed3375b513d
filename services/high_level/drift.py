"""Drift findings: decay of a live edge, and regimes that moved.

Everything here is monitoring: an alarm is text in the report and a reason to look, and changes nothing by
itself. It only counts together with a significant loss. Called by the high-level reflection.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from schemas.contract import Contract
from schemas.episode import Episode
from schemas.reflection import DecayLevel, FirePair
from schemas.regime import FINGERPRINT
from services.high_level.clusters import Measure, by_exit
from services.statistics.drift import ARL, detect_decay
from services.statistics.energy_distance import shift_between_halves
from services.statistics.expectancy import Floats

RANK_SHIFT = 0.2
MINIMUM_WINDOWS = 20
LEVEL_SHOWN = 1e9


class DriftInputs(Contract):
    """Shape of `HighLevelReflectionRequest.drift_inputs`; what is left out is not assessed.

    `fingerprints` holds one row of five ranks per decision window, oldest first; without it the fingerprints
    of the episodes stand in. `fires` goes by `playbook|direction`.
    """

    trigger: str | None = Field(
        default=None, description="what asked for this report: slot, batch or surprise"
    )
    fingerprints: tuple[tuple[float, ...], ...] = ()
    fires: dict[str, FirePair] = {}


@dataclass(frozen=True)
class DecayAlarm:
    """A playbook whose live outcomes no longer fit its reference; `known_at` of the trade that raised it."""

    playbook_id: str
    level: float
    known_at: int


def decay_alarms(measures: Iterable[Measure]) -> tuple[DecayAlarm, ...]:
    """One alarm per playbook whose e-detector has passed its limit in this epoch, in name order."""
    alarms = []
    for measure in measures:
        if measure.cluster.regime is not None:
            continue
        seen = measure.observations
        decay = detect_decay(seen.values, seen.low, seen.high, seen.reference)
        if decay.alarm_index is not None:
            exit_ns = int(seen.exit_ns[decay.alarm_index])
            known_at = max(item.known_at for item in measure.cluster.episodes if item.exit_label <= exit_ns)
            alarms.append(DecayAlarm(measure.cluster.playbook_id, decay.highest, known_at))
    return tuple(sorted(alarms, key=lambda alarm: alarm.playbook_id))


def decay_levels(measures: Iterable[Measure]) -> tuple[DecayLevel, ...]:
    """Level of the e-detector of every playbook that traded in this epoch, in name order."""
    rows = []
    for measure in measures:
        if measure.cluster.regime is not None:
            continue
        seen = measure.observations
        decay = detect_decay(seen.values, seen.low, seen.high, seen.reference)
        rows.append(
            DecayLevel(
                playbook_id=measure.cluster.playbook_id,
                n=measure.n,
                mean_r=measure.mean_r,
                level=round(min(decay.level, LEVEL_SHOWN), 9),
                highest=round(min(decay.highest, LEVEL_SHOWN), 9),
                limit=ARL,
                alarmed=decay.alarm_index is not None,
            )
        )
    return tuple(sorted(rows, key=lambda row: row.playbook_id))


def decay_text(alarm: DecayAlarm) -> str:
    """One readable line for one alarm."""
    level = min(alarm.level, LEVEL_SHOWN)
    return f"decay {alarm.playbook_id}: e-detector reached {level:.4g}, limit {ARL:.4g}; monitoring only"


def regime_drift(inputs: DriftInputs, episodes: Sequence[Episode]) -> tuple[str, ...]:
    """One line on the older against the newer half of the fingerprints, monitoring only.

    Means are named from a shift of 0.2 on; the energy distance between the halves comes with its p-value,
    from permuted blocks of at least three correlation times, where there are enough of them.
    """
    source = "decision windows" if inputs.fingerprints else "episodes"
    rows = inputs.fingerprints or tuple(item.fingerprint for item in by_exit(episodes) if item.fingerprint)
    half = len(rows) // 2
    if half < MINIMUM_WINDOWS:
        return (f"regime fingerprint: {len(rows)} {source}, too few to compare two halves",)
    table = np.array(rows, dtype=np.float64)
    shifts = table[half:].mean(axis=0) - table[:half].mean(axis=0)
    moved = [
        f"mean {name} moved by {shift:+.2f}"
        for name, shift in zip(FINGERPRINT, shifts, strict=True)
        if abs(shift) >= RANK_SHIFT
    ]
    means = ", ".join(moved) or f"no mean rank moved by {RANK_SHIFT}"
    found = f"{means} over {len(rows)} {source}; {_energy_text(table)}"
    return (f"regime fingerprint: {found}; monitoring only",)


def _energy_text(table: Floats) -> str:
    shift = shift_between_halves(table)
    parts = f"blocks of {shift.block}"
    if shift.p_value is None:
        return f"energy distance {shift.distance:.3f}, too few {parts} to permute"
    return f"energy distance {shift.distance:.3f}, p {shift.p_value:.3f} over {shift.blocks} {parts}"
