"""Drift findings: decay of a live edge, holds and excursions off expectation, regimes, fire quality.

Everything here is monitoring: an alarm is text in the report and a reason to look, and changes nothing by
itself. It only counts together with a significant loss. Called by the high-level reflection.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from schemas.contract import Contract
from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.regime import FINGERPRINT
from services.high_level.clusters import Measure, by_exit, describe
from services.statistics.drift import ARL, detect_decay

HOLD_Z_LIMIT = 2.0
EXCURSION_DRIFT_R = 0.25
RANK_SHIFT = 0.2
SHARE_SHIFT = 0.2
MINIMUM_WINDOWS = 20
MINIMUM_TRADES = 5


class FireCounts(Contract):
    """What the entry rules of one playbook did in one window: armed theses and how they ended."""

    armed: int = Field(ge=0)
    activated: int = Field(ge=0)
    expired: int = Field(ge=0)


class FirePair(Contract):
    """Counts of the present window against those of the window before."""

    now: FireCounts
    before: FireCounts


class DriftInputs(Contract):
    """Shape of `HighLevelReflectionRequest.drift_inputs`; what is left out is not assessed.

    `fingerprints` holds one row of five ranks per decision window, oldest first; without it the fingerprints
    of the episodes stand in.
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


def decay_text(alarm: DecayAlarm) -> str:
    """One readable line for one alarm."""
    level = min(alarm.level, 1e9)
    return f"decay {alarm.playbook_id}: e-detector reached {level:.4g}, limit {ARL:.4g}; monitoring only"


def regime_drift(inputs: DriftInputs, episodes: Sequence[Episode]) -> tuple[str, ...]:
    """Shift of the mean fingerprint rank between the older and the newer half, monitoring only.

    Five ranks each move by chance; lines appear from a shift of 0.2 on at least 20 windows a half. The
    significance of a shift is not claimed.
    """
    source = "decision windows" if inputs.fingerprints else "episodes"
    rows = inputs.fingerprints or tuple(item.fingerprint for item in by_exit(episodes) if item.fingerprint)
    half = len(rows) // 2
    if half < MINIMUM_WINDOWS:
        return (f"regime fingerprint: {len(rows)} {source}, too few to compare two halves",)
    table = np.array(rows, dtype=np.float64)
    shifts = table[half:].mean(axis=0) - table[:half].mean(axis=0)
    moved = [
        f"regime fingerprint: mean {name} moved by {shift:+.2f} over {len(rows)} {source}; monitoring only"
        for name, shift in zip(FINGERPRINT, shifts, strict=True)
        if abs(shift) >= RANK_SHIFT
    ]
    return tuple(moved) or (
        f"regime fingerprint: no mean rank moved by {RANK_SHIFT} over {len(rows)} {source}",
    )


def fire_quality(inputs: DriftInputs) -> tuple[str, ...]:
    """Activation and expiry shares of armed theses against the window before, where they moved by 0.2."""
    lines = []
    for playbook_id, pair in sorted(inputs.fires.items()):
        if min(pair.now.armed, pair.before.armed) < MINIMUM_TRADES:
            continue
        for name in ("activated", "expired"):
            now = getattr(pair.now, name) / pair.now.armed
            before = getattr(pair.before, name) / pair.before.armed
            if abs(now - before) >= SHARE_SHIFT:
                lines.append(f"fire quality {playbook_id}: share {name} went from {before:.2f} to {now:.2f}")
    return tuple(lines)


def expectation_misses(
    measures: Iterable[Measure], definitions: Mapping[str, PlaybookDefinition]
) -> tuple[str, ...]:
    """Playbooks whose holds or excursions left what their file expects."""
    lines: list[str] = []
    for measure in measures:
        playbook_id, definition = measure.cluster.playbook_id, definitions.get(measure.cluster.playbook_id)
        if measure.cluster.regime is None and definition is not None and measure.n >= MINIMUM_TRADES:
            lines += _misses_of(playbook_id, measure.cluster.episodes, definition)
    return tuple(sorted(lines))


def _misses_of(
    playbook_id: str, episodes: Sequence[Episode], definition: PlaybookDefinition
) -> Iterable[str]:
    facts, expected = describe(episodes, definition), definition.expectation
    z = facts["hold_calibration_z"]
    if z is not None and abs(z) > HOLD_Z_LIMIT:
        yield (
            f"hold {playbook_id}: P50 {facts['hold_p50_bars']:g} and P90 {facts['hold_p90_bars']:g} bars "
            f"against {expected.hold_p50_bars:g} and {expected.hold_p90_bars:g}, z {z:.2f}"
        )
    adverse = facts["mae_p80_r"]
    if adverse is not None and adverse <= expected.winner_mae_p80_r - EXCURSION_DRIFT_R:
        yield f"MAE {playbook_id}: winners' P80 {adverse:.2f}R against {expected.winner_mae_p80_r:.2f}R"
    favourable = facts["mfe_p50_r"]
    if favourable <= expected.mfe_p50_r - EXCURSION_DRIFT_R:
        yield f"MFE {playbook_id}: median {favourable:.2f}R against {expected.mfe_p50_r:.2f}R"
