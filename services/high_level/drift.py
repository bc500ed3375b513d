"""Drift findings: decay of a live edge, and regimes that moved.

Everything here is monitoring: an alarm is text in the report and a reason to look, and changes nothing by
itself. It only counts together with a significant loss.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from schemas.contract import Contract
from schemas.episode import Episode
from schemas.regime import FINGERPRINT
from schemas.slow_reflection import DecayLevel, FirePair, RegimeShift
from services.high_level.clusters import Measure, by_exit
from services.high_level.report_lines import LEVEL_SHOWN, decay_text
from services.statistics.blocks import Floats
from services.statistics.drift import ARL
from services.statistics.energy_distance import shift_between_halves

RANK_SHIFT = 0.2
MINIMUM_WINDOWS = 20
MOST_EPISODES = (
    400  # the newest, as many as a run keeps of its decision windows: memory grows with the square
)


class DriftInputs(Contract):
    """Shape of `HighLevelReflectionRequest.drift_inputs`; what is left out is not assessed.

    `fingerprints` holds one row of five ranks per decision window, oldest first; without it the fingerprints
    of the newest 400 episodes stand in. `fires` goes by `playbook|direction`.
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

    def text(self) -> str:
        """One readable line."""
        return decay_text(self.playbook_id, self.level, ARL)


def decay_alarms(measures: Iterable[Measure]) -> tuple[DecayAlarm, ...]:
    """One alarm per playbook whose e-detector has passed its limit in this epoch, in name order."""
    alarms = []
    for measure in measures:
        decay = measure.decay
        if decay is not None and decay.alarm_index is not None:
            complete = int(measure.cluster.track.blocks.complete_at[decay.alarm_index])
            known_at = max(item.known_at for item in measure.episodes if item.exit_label <= complete)
            alarms.append(DecayAlarm(measure.cluster.playbook_id, decay.highest, known_at))
    return tuple(sorted(alarms, key=lambda alarm: alarm.playbook_id))


def decay_levels(measures: Iterable[Measure]) -> tuple[DecayLevel, ...]:
    """Level of the e-detector of every playbook that traded in this epoch, in name order."""
    return tuple(
        DecayLevel(
            playbook_id=measure.cluster.playbook_id,
            n=measure.sample.n,
            mean_r=measure.sample.mean_r,
            level=round(min(measure.decay.level, LEVEL_SHOWN), 9),
            highest=round(min(measure.decay.highest, LEVEL_SHOWN), 9),
            limit=ARL,
            alarmed=measure.decay.alarm_index is not None,
        )
        for measure in sorted(measures, key=lambda item: item.cluster.playbook_id)
        if measure.decay is not None
    )


def regime_shift(inputs: DriftInputs, episodes: Sequence[Episode]) -> RegimeShift:
    """The older against the newer half of the fingerprints: means of the ranks, and the energy distance.

    Its p-value is from permuted blocks of at least three correlation times, where there are enough of them.
    """
    rows = inputs.fingerprints or _fingerprints_of(episodes)[-MOST_EPISODES:]
    source: Literal["decision windows", "episodes"] = (
        "decision windows" if inputs.fingerprints else "episodes"
    )
    half = len(rows) // 2
    if half < MINIMUM_WINDOWS:
        return RegimeShift(windows=len(rows), source=source)
    table = np.array(rows, dtype=np.float64)
    shift = shift_between_halves(table)
    return RegimeShift(
        windows=len(rows),
        source=source,
        older=_means(table[:half]),
        newer=_means(table[half:]),
        energy_distance=round(shift.distance, 9),
        block=shift.block,
        blocks=shift.blocks,
        p_value=None if shift.p_value is None else round(shift.p_value, 9),
    )


def _fingerprints_of(episodes: Sequence[Episode]) -> tuple[tuple[float, ...], ...]:
    return tuple(item.fingerprint for item in by_exit(episodes) if item.fingerprint)


def regime_text(shift: RegimeShift) -> str:
    """One readable line; means are named from a shift of 0.2 on."""
    if shift.energy_distance is None:
        return f"regime fingerprint: {shift.windows} {shift.source}, too few to compare two halves"
    moves = {name: shift.newer[name] - old for name, old in shift.older.items()}
    moved = [f"mean {name} moved by {by:+.2f}" for name, by in moves.items() if abs(by) >= RANK_SHIFT]
    means = ", ".join(moved) or f"no mean rank moved by {RANK_SHIFT}"
    parts = f"blocks of {shift.block}"
    energy = f"energy distance {shift.energy_distance:.3f}"
    if shift.p_value is None:
        energy += f", too few {parts} to permute"
    else:
        energy += f", p {shift.p_value:.3f} over {shift.blocks} {parts}"
    return f"regime fingerprint: {means} over {shift.windows} {shift.source}; {energy}; monitoring only"


def _means(table: Floats) -> dict[str, float]:
    return {name: round(float(mean), 9) for name, mean in zip(FINGERPRINT, table.mean(axis=0), strict=True)}
