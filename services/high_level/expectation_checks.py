"""Expectation checks: holds and excursions of each playbook beside what its file expects.

Every playbook with trades is listed with its numbers; one with too few of them misses nothing yet. Shown,
never tested.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from schemas.playbook import Expectation, PlaybookDefinition
from schemas.slow_reflection import ExpectationCheck
from services.high_level.clusters import Measure, describe

HOLD_Z_LIMIT = 2.0
EXCURSION_DRIFT_R = 0.25
MINIMUM_TRADES = 5

Miss = Literal["hold", "MAE", "MFE"]


def check_expectations(
    measures: Iterable[Measure], definitions: Mapping[str, PlaybookDefinition]
) -> tuple[ExpectationCheck, ...]:
    """One row per playbook that traded, in name order."""
    rows = []
    for measure in measures:
        cluster = measure.cluster
        definition = definitions.get(cluster.playbook_id)
        if cluster.regime is None and definition is not None and measure.n:
            facts = describe(cluster.episodes, definition)
            rows.append(_check(cluster.playbook_id, measure.n, facts, definition.expectation))
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
    return check if n < MINIMUM_TRADES else check.model_copy(update={"missed": tuple(_missed(check))})


def _missed(check: ExpectationCheck) -> Iterable[Miss]:
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
