import numpy as np
import pytest

from services.statistics.eprocess import log_e_two_sided
from services.statistics.expectancy import DAY_NS, Trades, observe
from services.statistics.power import smallest_detectable_effect


def observed(values):
    return observe(
        Trades.of([(k * DAY_NS, k * DAY_NS, float(v)) for k, v in enumerate(values)]), "trade", -3.0, 4.0
    )


def effect_of(values, alpha) -> float:
    effect = smallest_detectable_effect(observed(values), alpha)
    assert effect is not None
    return effect


@pytest.mark.parametrize("n", [100, 300])
def test_smallest_detectable_effect_is_found_about_as_often_as_promised(n):
    draw = np.random.default_rng(n)
    noise = draw.standard_normal((400, n))
    effect = effect_of(noise[0], 0.05)
    values = np.clip(noise - effect, -3.0, 4.0)
    found = log_e_two_sided(
        values, np.full_like(values, -3.0), np.full_like(values, 4.0), np.zeros(400)
    ) >= np.log(20)
    assert 0.7 <= found.mean() <= 0.99


def test_smallest_detectable_effect_shrinks_with_blocks_and_grows_with_the_family():
    values = np.random.default_rng(5).standard_normal(400)
    effects = [effect_of(values[:n], 0.05) for n in (60, 120, 400)]
    assert effects == sorted(effects, reverse=True)
    assert effect_of(values, 0.05 / 24) > effects[-1]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_blocks_can_show_nothing(n):
    assert smallest_detectable_effect(observed(np.zeros(n)), 0.004) is None
