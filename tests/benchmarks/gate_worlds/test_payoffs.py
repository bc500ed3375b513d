"""Every payoff has the mean that it is asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from benchmarks.gate_worlds.payoffs import Bracket, FatWinners, Lognormal, ManyZeros, StudentT
from tests.each_case import check_each

QUANTILES = ndtri((np.arange(400_000) + 0.5) / 400_000)
PAYOFFS = [
    StudentT(), Bracket(0.5), Bracket(2.0), Bracket(5.0), Bracket(1.7, 1.3), Lognormal(1.0), FatWinners(5.0),
    ManyZeros(),
]  # fmt: skip


@check_each("payoff", PAYOFFS, ids=str)
@check_each("edge", [-0.2, 0.0, 0.1])
def test_mean_of_a_payoff_is_its_edge(payoff, edge):
    r = payoff.outcomes(QUANTILES, np.full(len(QUANTILES), edge))
    assert r.mean() == pytest.approx(edge, abs=2e-3)


@given(st.sampled_from(PAYOFFS), st.floats(-0.25, 0.25))
def test_payoff_rises_with_its_driver(payoff, edge):
    r = payoff.outcomes(np.linspace(-4.0, 4.0, 200), np.full(200, edge))
    assert np.all(np.diff(r) >= 0.0)


def test_payoffs_have_the_shapes_that_they_are_named_after():
    none = np.zeros(len(QUANTILES))
    assert set(np.unique(Bracket(3.0).outcomes(QUANTILES, none))) == {-1.0, 3.0}
    assert np.mean(ManyZeros().outcomes(QUANTILES, none) == 0.0) == pytest.approx(0.6, abs=1e-3)
    assert np.mean(FatWinners(2.2).outcomes(QUANTILES, none) == -1.0) == pytest.approx(0.7, abs=1e-3)
    assert Lognormal(1.0).outcomes(QUANTILES, none).min() > -1.0
    assert StudentT().outcomes(QUANTILES, none).std() == pytest.approx(1.0, abs=0.02)


def test_tail_of_fat_winners_is_that_of_lomax():
    r = FatWinners(2.0).outcomes(QUANTILES, np.zeros(len(QUANTILES)))
    far, farther = np.mean(r > 10.0), np.mean(r > 40.0)
    scale = 0.7 / 0.3
    assert far / farther == pytest.approx(((scale + 40.0) / (scale + 10.0)) ** 2.0, rel=0.02)
