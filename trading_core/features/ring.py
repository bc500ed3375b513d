"""The window of a recurrence: the last n known values as a ring inside the saved state.

A state begins with HEADER cells, how many values are known and where the next one goes, then two of the
recurrence's own; the ring follows. One step for every recurrence with a window, in blocks and single bars.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

FloatArray = npt.NDArray[np.float64]
HEADER = 4


@njit(error_model="numpy")
def pushed(state: FloatArray, count: int, position: int, n: int, value: float) -> tuple[int, int]:
    """Put a value in place of the oldest of n; the known values, at most n, and where the next one goes."""
    state[HEADER + position] = value
    return min(count + 1, n), position + 1 if position + 1 < n else 0
