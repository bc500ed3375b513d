"""Two rules that are often used instead of a gate, on the same trades: would they have recommended anything?

A count with a win-rate cut: at least 20 trades and fewer than 40 % winners. Weekly t-tests: from 20 trades
on, two-sided, 5 %, at every look.
"""

import numpy as np
from scipy.special import stdtrit

from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers
from worker.studies.worlds.selections import Flagged, Selections

MINIMUM = 20
WIN_RATE = 0.4
LEVEL = 0.05


def other_rules(run: Selections) -> dict[str, float | None]:
    """Whether either rule calls any cell losing at any look."""
    verdicts = [
        _cell(cell.exit_ns, cell.r - run.gate.reference_r, cell.r > 0.0, run.looks) for cell in run.drawn
    ]
    rate, test = np.any(verdicts, axis=0)
    return {"count and win rate": float(rate), "weekly t-tests": float(test)}


def _cell(exit_ns: Integers, off: Floats, won: Flagged, looks: Integers) -> tuple[bool, bool]:
    order = np.argsort(exit_ns, kind="stable")
    n = np.unique(np.searchsorted(exit_ns[order], looks, side="right"))
    n = n[n >= MINIMUM]
    if not len(n):
        return False, False
    sums, squares, wins = (values[order].cumsum()[n - 1] for values in (off, off**2, won.astype(np.float64)))
    variance = np.maximum(squares - sums**2 / n, 1e-12) / (n - 1)
    t = sums / np.sqrt(n * variance)
    return bool((wins / n < WIN_RATE).any()), bool((t < -stdtrit(n - 1, 1.0 - LEVEL / 2.0)).any())
