"""Figures of clusters that are shown and never tested, and which episodes are tested at all.

Only trades of the version now in force are tested: an accepted change has a new version hash and so starts a
new epoch.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from schemas.episode import Episode
from schemas.playbook import Expectation, PlaybookDefinition
from schemas.settings import GateSettings
from schemas.slow_reflection import ExpectationCheck
from schemas.vocabulary import FailureMode
from services.high_level.clusters import Measure, by_exit
from services.statistics.blocks import winsorise
from services.statistics.drift import hold_calibration_z
from services.statistics.quantiles import quantile

RECURRENCE = 2
HOLD_Z_LIMIT = 2.0
EXCURSION_DRIFT_R = 0.25
MINIMUM_TRADES = 5

Miss = Literal["hold", "MAE", "MFE"]


def describe(episodes: Sequence[Episode], definition: PlaybookDefinition | None) -> dict[str, Any]:
    """Win rate, hold quantiles, excursions and failure modes of a cluster: shown, never tested."""
    if not episodes:
        return {}
    holds = sorted([float(item.hold_bars) for item in episodes])
    winners = [item.mae_r for item in episodes if item.r > 0]
    z = None
    if definition is not None:
        z = hold_calibration_z(
            np.array(holds), definition.expectation.hold_p50_bars, definition.expectation.hold_p90_bars
        )
    return {
        "win_rate": round(len(winners) / len(episodes), 9),
        "hold_p50_bars": round(quantile(holds, 0.5), 9),
        "hold_p90_bars": round(quantile(holds, 0.9), 9),
        "hold_calibration_z": None if z is None else round(z, 9),
        "mae_p80_r": round(quantile(winners, 0.2), 9) if winners else None,
        "mfe_p50_r": round(float(np.median([item.mfe_r for item in episodes])), 9),
        "failure_modes": count_failures(episodes),
    }


def count_failures(episodes: Iterable[Episode]) -> dict[str, int]:
    """Failure modes with their counts, in name order; losers that are scratches have none."""
    counts = Counter([item.failure_mode for item in episodes if item.failure_mode is not None])
    return {str(mode): count for mode, count in sorted(counts.items())}


def unclassified_share(failures: Mapping[str, int]) -> float | None:
    """Losers that no predicate matches over all that have a mode; None without one."""
    losers = sum(failures.values())
    return round(failures.get(FailureMode.UNCLASSIFIED, 0) / losers, 9) if losers else None


def regime_marginals(episodes: Sequence[Episode], gate: GateSettings) -> tuple[dict[str, Any], ...]:
    """One row per regime over all playbooks: shown beside the clusters, not a hypothesis of its own."""
    groups: dict[str, list[Episode]] = {}
    for item in episodes:
        groups.setdefault(item.regime, []).append(item)
    rows = []
    for regime, members in sorted(groups.items()):
        r = winsorise(np.array(sorted(item.r for item in members)), gate.winsor_low, gate.winsor_high)
        failures = count_failures(members)
        rows.append(
            {
                "regime": regime,
                "n": len(members),
                "mean_r": round(float(r.mean()), 9),
                "win_rate": round(float(np.mean(r > 0)), 9),
                "playbooks": dict(sorted(Counter(item.playbook_id for item in members).items())),
                "failure_modes": failures,
                "recurring": [mode for mode, count in failures.items() if count >= RECURRENCE],
            }
        )
    return tuple(rows)


@dataclass(frozen=True)
class Population:
    """Episodes of a request, split into what is tested and what is only counted, by reason."""

    live: tuple[Episode, ...]
    tested: tuple[Episode, ...]
    excluded: dict[str, int]


def split_population(
    episodes: Sequence[Episode],
    definitions: Sequence[PlaybookDefinition],
    epoch_starts: Mapping[str, int],
    same_rules: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Population:
    """Keep what may teach: live, learnable, and of the rules in force since their epoch began.

    Plans with their own rules follow no version, and are tested under their id. `same_rules` holds the hashes
    of the versions whose trades end alike, by playbook; else the one in force. An earlier version's trades
    suggested the change that made the present one; testing them again would count the same evidence twice.
    They stay in the descriptive part.
    """
    in_force = {
        definition.id: {definition.content_hash, *same_rules.get(definition.id, ())}
        for definition in definitions
    }
    excluded: Counter[str] = Counter()
    live, tested = [], []
    for item in by_exit(episodes):
        reason = _exclusion(item)
        if reason is not None:
            excluded[reason] += 1
            continue
        live.append(item)
        if item.playbook_hash and item.playbook_hash not in in_force.get(item.playbook_id, ()):
            excluded["earlier_version"] += 1
        elif item.entry_label < epoch_starts.get(item.playbook_id, item.entry_label):
            excluded["before_epoch"] += 1
        else:
            tested.append(item)
    return Population(tuple(live), tuple(tested), dict(sorted(excluded.items())))


def _exclusion(item: Episode) -> str | None:
    if item.ledger != "live":
        return "shadow"
    return "no_learn" if item.no_learn else None


def check_expectations(
    measures: Iterable[Measure], definitions: Mapping[str, PlaybookDefinition]
) -> tuple[ExpectationCheck, ...]:
    """One row per playbook that traded, in name order."""
    rows = []
    for measure in measures:
        cluster = measure.cluster
        definition = definitions.get(cluster.playbook_id)
        if cluster.regime is None and definition is not None and measure.sample.n:
            facts = describe(measure.episodes, definition)
            rows.append(_check(cluster.playbook_id, measure.sample.n, facts, definition.expectation))
    return tuple(sorted(rows, key=lambda row: row.playbook_id))


def miss_texts(checks: Sequence[ExpectationCheck]) -> tuple[str, ...]:
    """A readable line for everything that is off, sorted."""
    return tuple(sorted(_text(check, miss) for check in checks for miss in check.missed))


def _check(playbook_id: str, n: int, facts: Mapping[str, Any], expected: Expectation) -> ExpectationCheck:
    check = ExpectationCheck(
        playbook_id=playbook_id,
        n=n,
        source=expected.source,
        hold_p50_bars=facts["hold_p50_bars"],
        hold_p90_bars=facts["hold_p90_bars"],
        expected_hold_p50_bars=expected.hold_p50_bars,
        expected_hold_p90_bars=expected.hold_p90_bars,
        hold_calibration_z=facts["hold_calibration_z"],
        winner_mae_p80_r=facts["mae_p80_r"],
        expected_winner_mae_p80_r=expected.winner_mae_p80_r,
        mfe_p50_r=facts["mfe_p50_r"],
        expected_mfe_p50_r=expected.mfe_p50_r,
    )
    return check if n < MINIMUM_TRADES else check.model_copy(update={"missed": tuple(_find_misses(check))})


def _find_misses(check: ExpectationCheck) -> Iterable[Miss]:
    z, adverse = check.hold_calibration_z, check.winner_mae_p80_r
    if z is not None and abs(z) > HOLD_Z_LIMIT:
        yield "hold"
    if adverse is not None and adverse <= check.expected_winner_mae_p80_r - EXCURSION_DRIFT_R:
        yield "MAE"
    if check.mfe_p50_r <= check.expected_mfe_p50_r - EXCURSION_DRIFT_R:
        yield "MFE"


def _text(check: ExpectationCheck, miss: Miss) -> str:
    name = check.playbook_id
    if miss == "hold":
        return (
            f"hold {name}: P50 {check.hold_p50_bars:g} and P90 {check.hold_p90_bars:g} bars against "
            f"{check.expected_hold_p50_bars:g} and {check.expected_hold_p90_bars:g}, "
            f"z {check.hold_calibration_z:.2f}"
        )
    if miss == "MAE":
        against = f"{check.expected_winner_mae_p80_r:.2f}R"
        return f"MAE {name}: winners' P80 {check.winner_mae_p80_r:.2f}R against {against}"
    return f"MFE {name}: median {check.mfe_p50_r:.2f}R against {check.expected_mfe_p50_r:.2f}R"
