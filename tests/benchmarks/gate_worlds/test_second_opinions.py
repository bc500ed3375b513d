"""Small versions of the rows that `benchmarks.gate_worlds.second_opinions` measures."""

from math import sqrt

import pytest

from benchmarks.gate_worlds.second_opinions import BANDS, CASES, claims_of, coverage

RUNS, PLANTED_RUNS = 60, 150
SHOWN = {"32 of -1R in 13 years, t": 80.0}  # what 800 runs show where a row misses its bound of 90


def error(share, runs):
    """Two standard errors of a share in %."""
    return 2.0 * sqrt(share * (100.0 - share) / runs)


@pytest.mark.parametrize("bound", sorted({case.bound for case in CASES.values() if case.planted is None}))
def test_null_worlds_are_claimed_to_lose_no_more_often_than_their_rows_say(bound):
    """All worlds of one bound together: of one alone so few runs say little."""
    nulls = [case for case in CASES.values() if case.planted is None and case.bound == bound]
    losing, gaining = (
        sum(found) / len(nulls) for found in zip(*(claims_of(case, RUNS, 31) for case in nulls), strict=True)
    )
    assert losing <= bound + error(bound, RUNS * len(nulls))
    assert losing + gaining <= 2.0 * bound + error(2.0 * bound, RUNS * len(nulls))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.planted is not None])
def test_planted_loss_is_claimed_about_as_often_as_its_row_says(name):
    bound = SHOWN.get(name, CASES[name].bound)
    losing, gaining = claims_of(CASES[name], PLANTED_RUNS, 31)
    assert losing >= bound - error(bound, PLANTED_RUNS)
    assert gaining == 0.0


@pytest.mark.parametrize("name", sorted(BANDS))
def test_bands_of_shrunken_means_hold_in_every_world(name):
    kind, given, spread = BANDS[name]
    runs = 40
    share, raw, shrunken = coverage(kind, given, runs, 31, spread)
    assert share >= 88.0 - error(88.0, 5 * runs)  # five playbooks: regimes of one are no separate draws
    assert shrunken < raw
