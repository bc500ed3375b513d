from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.statistics.blocks import LOSING
from services.statistics.claim_path import DETECTOR
from services.statistics.drift import ARL, detect_decay, hold_calibration_z
from tests.services.statistics.laid_out import BOUNDS, t3, weekly_track


def test_detector_finds_a_planted_decay_within_a_year_and_stays_quiet_before():
    """From +.2 to -.3R at week 52 of 104, five trades a week: found in at least 85 % less two errors."""
    runs = 150
    draw = np.random.default_rng(2)
    edge = np.where(np.arange(104) < 52, 0.2, -0.3)[:, None]
    found = false = 0
    for _ in range(runs):
        alarm = detect_decay(weekly_track(t3(draw, (104, 5)) + edge, 0.2).decay).alarm_index
        false += alarm is not None and alarm < 52
        found += alarm is not None
    assert false <= 0.05 * runs
    assert found / runs >= 0.85 - 2.0 * sqrt(0.85 * 0.15 / runs)


def test_detector_of_an_edge_that_holds_is_hardly_ever_heard():
    draw = np.random.default_rng(3)
    alarms = [detect_decay(weekly_track(t3(draw, (104, 5)) + 0.2, 0.2).decay).alarm_index for _ in range(150)]
    assert sum(alarm is not None for alarm in alarms) <= 0.05 * len(alarms)


@given(st.lists(st.floats(0.0, 2.0 * ARL), max_size=30))
def test_alarm_is_the_first_level_that_reaches_the_threshold(levels):
    state = detect_decay(np.array(levels))
    over = [index for index, level in enumerate(levels) if level >= ARL]
    assert state.alarm_index == (over[0] if over else None)
    assert (state.level, state.highest) == ((levels[-1], max(levels)) if levels else (0.0, 0.0))


def test_detector_is_that_of_the_claim_of_losing():
    one = weekly_track(t3(np.random.default_rng(4), (30, 5)))
    assert one.decay.tobytes() == one._walks[LOSING][DETECTOR].tobytes()


def test_detector_of_a_long_loss_stays_finite():
    one = weekly_track(np.full((5_000, 1), -1.0), bounds=BOUNDS)
    assert np.isfinite(detect_decay(one.decay).level)


def test_hold_calibration_by_hand():
    # Median 12 against 8, the spread of holds (12 - 8) / 1.28, of a median of two 1.2533 of that over sqrt 2.
    error = sqrt(np.pi / 2.0) * (4 / 1.28) / sqrt(2)
    assert hold_calibration_z(np.array([10.0, 14.0]), 8.0, 12.0) == pytest.approx((12 - 8) / error)
    assert hold_calibration_z(np.array([]), 8.0, 12.0) is None
    assert hold_calibration_z(np.array([1.0]), 8.0, 8.0) is None


@pytest.mark.parametrize("n", [20, 80])
def test_hold_calibration_of_holds_that_are_as_expected_lies_beyond_two_in_few_samples(n):
    """Like with like: the z of a median is one of a standard normal, whatever the number of holds."""
    draw = np.random.default_rng(n)
    z = [hold_calibration_z(holds, 8.0, 12.0) or 0.0 for holds in draw.normal(8.0, 4 / 1.28, (4_000, n))]
    assert np.std(z) == pytest.approx(1.0, abs=0.06)
    assert np.mean(np.abs(z) > 2.0) == pytest.approx(0.0455, abs=0.015)
