"""The exact interval of a share."""

import pytest
from scipy.stats import binomtest

from services.statistics.shares import share_interval


@pytest.mark.parametrize(("hits", "trials"), [(0, 40), (1, 3), (17, 40), (39, 40), (40, 40)])
def test_share_interval_is_that_of_clopper_and_pearson(hits, trials):
    exact = binomtest(hits, trials).proportion_ci(0.95, method="exact")
    assert share_interval(hits, trials) == pytest.approx((exact.low, exact.high))


def test_share_of_no_trial_has_no_interval():
    assert share_interval(0, 0) is None
