import numpy as np
import pytest

from services.statistics.energy_distance import correlation_time, distances, energy, shift_between_halves


def fingerprints(seed, n, phi, moved=0.0):
    """Five autoregressive ranks; the newer half is moved by a number of standard deviations."""
    draw = np.random.default_rng(seed)
    rows, state = np.empty((n, 5)), draw.standard_normal(5)
    for t in range(n):
        state = phi * state + np.sqrt(1 - phi**2) * draw.standard_normal(5)
        rows[t] = state
    rows[n // 2 :] += moved
    return rows


def test_energy_is_that_of_the_definition():
    draw = np.random.default_rng(1)
    x, y = draw.standard_normal((7, 5)), draw.standard_normal((9, 5)) + 1.0
    by_hand = (
        2 * np.mean([np.linalg.norm(a - b) for a in x for b in y])
        - np.mean([np.linalg.norm(a - b) for a in x for b in x])
        - np.mean([np.linalg.norm(a - b) for a in y for b in y])
    )
    newer = np.arange(16) >= 7
    assert energy(distances(np.concatenate((x, y))), newer[None, :])[0] == pytest.approx(by_hand)


def test_energy_of_equal_halves_is_zero():
    rows = np.random.default_rng(2).standard_normal((20, 5))
    both = np.concatenate((rows, rows))
    assert energy(distances(both), (np.arange(40) >= 20)[None, :])[0] == pytest.approx(0.0, abs=1e-9)


def test_blocks_are_at_least_three_correlation_times():
    rows = fingerprints(3, 400, 0.6)
    found = shift_between_halves(rows)
    assert found.block >= 3 * correlation_time(rows) > 3 * 2.0


@pytest.mark.parametrize(("phi", "limit"), [(0.0, 0.12), (0.6, 0.12)])
def test_false_alarms_without_drift_stay_near_the_level_in_spite_of_autocorrelation(phi, limit):
    found = [shift_between_halves(fingerprints(seed, 200, phi)).p_value for seed in range(100)]
    known = [p for p in found if p is not None]
    assert len(known) > 60
    assert np.mean([p <= 0.05 for p in known]) <= limit


def test_moved_fingerprints_are_found():
    found = [shift_between_halves(fingerprints(seed, 200, 0.3, moved=1.0)).p_value for seed in range(20)]
    assert np.mean([p is not None and p <= 0.05 for p in found]) >= 0.9


def test_same_rows_give_the_same_answer_and_other_rows_other_permutations():
    rows = fingerprints(4, 200, 0.2)
    assert shift_between_halves(rows) == shift_between_halves(rows.copy())
    p_values = {shift_between_halves(fingerprints(seed, 200, 0.2)).p_value for seed in range(8)}
    assert len(p_values) > 4


def test_slow_rows_have_too_few_blocks_to_say_anything():
    assert shift_between_halves(fingerprints(5, 40, 0.98)).p_value is None
