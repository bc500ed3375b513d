"""The quantile without arrays is numpy's, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.statistics.quantiles import quantile

VALUES = st.lists(st.floats(-1e6, 1e6) | st.integers(0, 300).map(float), min_size=1, max_size=60)


@given(values=VALUES, share=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]) | st.floats(0.0, 1.0))
def test_quantile_of_numbers_equals_that_of_numpy(values, share):
    assert quantile(values, share) == float(np.quantile(np.array(values), share))


def test_quantile_of_nothing_is_zero():
    assert quantile([], 0.5) == 0.0
