from itertools import product

import numpy as np
import pytest

from services.statistics.drift import decay_path, detect_decay, hold_calibration_z
from services.statistics.expectancy import Floats


def flat(values) -> tuple[Floats, Floats, Floats]:
    values = np.asarray(values, dtype=float)
    return values, np.full_like(values, -3.0), np.full_like(values, 4.0)


def test_detector_over_every_null_world_averages_the_number_of_observations():
    worlds = np.array(list(product([0, 1], repeat=9)))
    weight = ((1 / 3) ** worlds * (2 / 3) ** (1 - worlds)).prod(axis=1)
    path = decay_path(*flat(np.where(worlds == 1, 2.0, -1.0)), 0.0)
    np.testing.assert_allclose(weight @ path, np.arange(1, 10), rtol=1e-9)


def test_detector_finds_a_planted_decay_soon_and_stays_quiet_before():
    draw = np.random.default_rng(2)
    delays, false = [], 0
    for _ in range(60):
        noise = draw.standard_t(3, 520) / np.sqrt(3)
        values = np.clip(noise + np.where(np.arange(520) < 260, 0.2, -0.3), -3.0, 4.0)
        alarm = detect_decay(*flat(values), 0.2).alarm_index
        false += alarm is not None and alarm < 260
        delays.append(520 if alarm is None else alarm - 260)
    assert false <= 3
    assert np.median(delays) <= 90


def test_detector_without_observations_has_no_alarm():
    assert detect_decay(*flat([]), 0.0).alarm_index is None


def test_detector_of_a_long_loss_stays_finite():
    assert np.isfinite(detect_decay(*flat(np.full(20_000, -1.0)), 0.0).level)


def test_hold_calibration_by_hand():
    assert hold_calibration_z(np.array([10.0, 14.0]), 8.0, 12.0) == pytest.approx((12 - 8) / (4 / 1.28))
    assert hold_calibration_z(np.array([]), 8.0, 12.0) is None
    assert hold_calibration_z(np.array([1.0]), 8.0, 8.0) is None
