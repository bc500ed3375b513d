"""Long curves are drawn by some of their rows: which ones."""

import numpy as np
import pytest

from worker.pages.run_picture import drawn_rows


@pytest.mark.parametrize("pieces", [1, 7, 100])
def test_rows_drawn_of_several_curves_keep_the_peaks_and_falls_of_each(pieces):
    one, other = np.random.default_rng(1).normal(size=(2, 1_000)).cumsum(axis=1)
    other[:200] = np.nan
    rows = drawn_rows((one, other), pieces)
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert rows[-1] == 999
    assert len(rows) <= 4 * pieces + 1
    for curve in (one, other):
        for stretch in np.array_split(np.arange(1_000), pieces):
            drawn = rows[(rows >= stretch[0]) & (rows <= stretch[-1])]
            known = curve[stretch][np.isfinite(curve[stretch])]
            if known.size:
                assert (np.nanmin(curve[drawn]), np.nanmax(curve[drawn])) == (known.min(), known.max())


def test_short_curve_is_drawn_whole():
    assert drawn_rows([np.arange(5.0)], 100).tolist() == [0, 1, 2, 3, 4]
