"""Which rows of long curves are drawn: no peak and no fall of any of them is thinned away."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def drawn_rows(curves: Iterable[npt.NDArray[np.float64]], pieces: int) -> npt.NDArray[np.int64]:
    """Rows of curves over one axis, ascending: where each is lowest and highest in every piece, and the last.

    Args:
        curves: each (T,), NaN where undefined.
        pieces: stretches of about equal length.
    """
    kept: set[int] = set()
    for curve in curves:
        stretches = np.array_split(np.arange(len(curve)), min(len(curve), pieces))
        low, high = np.where(np.isnan(curve), np.inf, curve), np.where(np.isnan(curve), -np.inf, curve)
        kept |= {int(s[np.argmin(low[s])]) for s in stretches} | {
            int(s[np.argmax(high[s])]) for s in stretches
        }
        kept.add(len(curve) - 1)
    return np.array(sorted(kept), dtype=np.int64)
