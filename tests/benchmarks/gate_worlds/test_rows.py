"""A small version of every row of the figures: fixed seeds, bounds with room for their standard error.

`make worlds` measures the same with 400 runs; these few can only see a gate that is far off.
"""

import numpy as np

from benchmarks.gate_worlds.catalogue import world_of
from benchmarks.gate_worlds.figures import QUANTITIES
from benchmarks.gate_worlds.runs import KeptParts, measure_rows
from benchmarks.gate_worlds.table import GROUPS, QUICK, Row, rows
from schemas.settings import GateSettings
from tests.each_case import check_each

RUNS, SEED = 40, 11
ALLOWED_ERRORS = 2.5

TABLE = [row for row in rows() if row.quick]


def rates_of(row: Row, runs: int = RUNS) -> dict[str, float]:
    gate = GateSettings()
    (columns,) = measure_rows(
        [row], runs, SEED, gate, 1, KeptParts(None, SEED, gate), lambda done, total: None
    )
    return {
        name: float(np.mean([value for value in column if value is not None]))
        for name, column in columns.items()
        if name not in QUANTITIES
    }


@check_each("row", TABLE, ids=lambda row: f"{row.group}: {row.world.label}")
def test_row_of_the_figures_holds_within_its_standard_error(row):
    found = rates_of(row)
    for target in row.targets:
        # The spread that a rate on its target would have: at nought none is allowed.
        reach = ALLOWED_ERRORS * np.sqrt(target.bound * (1.0 - target.bound) / RUNS)
        rate = found[target.rate]
        assert rate >= target.bound - reach if target.at_least else rate <= target.bound + reach, (
            target,
            rate,
        )


def test_every_group_of_the_figures_has_a_small_version():
    assert {row.group for row in TABLE} == set(GROUPS) == set(QUICK)


def test_other_rules_on_the_same_null_draws_recommend_nearly_always():
    row = next(row for row in TABLE if row.world.label == "independent, t3, 5 a week")
    found = rates_of(row)
    assert found["count and win rate"] >= 0.7
    assert found["weekly t-tests"] >= 0.5
    assert found["any"] <= 0.05


def test_strict_gate_flags_nothing_where_twenty_symbols_are_one_bet():
    world = world_of("symbols", {"symbols": 20, "target": 4.0})
    gate = GateSettings(strict=True)
    row = Row("null", "flags", world, ())
    (columns,) = measure_rows(
        [row], RUNS, SEED, gate, 1, KeptParts(None, SEED, gate), lambda done, total: None
    )
    assert not any(columns["any"])
