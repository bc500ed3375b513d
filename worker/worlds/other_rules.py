"""Two rules that are often used instead of a gate, on the same draws: what they would have recommended.

A count with a win-rate cut: at least 20 trades and fewer than 40 % winners. Weekly t-tests: from 20 trades
on, two-sided, 5 %, at every look.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from worker.worlds.draws import PER_WEEK, Floats

Flagged = NDArray[np.bool_]

MINIMUM = 20
WIN_RATE = 0.4
LEVEL = 0.05


@dataclass
class RuleCounts:
    """How often one rule spoke, over runs (any losing cell) and over single cells (either direction)."""

    runs: int = 0
    any_structural: int = 0
    first_report: int = 0
    cells: int = 0
    cells_flagged: int = 0

    def rates(self) -> dict[str, float]:
        """Shares; `first_report_rate` counts runs in which the first look, at 20 trades a cell, speaks."""
        return {
            "any_structural_rate": round(self.any_structural / self.runs, 6),
            "first_report_rate": round(self.first_report / self.runs, 6),
            "cell_rate": round(self.cells_flagged / self.cells, 6),
        }

    def add(self, losing: Flagged, flagged: Flagged) -> None:
        """Count a batch: what is flagged as losing, and at all, shape (runs, cells, looks)."""
        self.runs += len(losing)
        self.any_structural += int(losing.any(axis=(1, 2)).sum())
        self.first_report += int(losing[..., 0].any(axis=1).sum())
        self.cells += flagged.shape[0] * flagged.shape[1]
        self.cells_flagged += int(flagged.any(axis=2).sum())


def win_rate_cut(r: Floats) -> Flagged:
    """Where the count and win-rate rule calls a cell losing, shape (runs, cells, looks)."""
    n = np.arange(1, r.shape[-1] + 1)
    wins = (r > 0).cumsum(axis=-1) / n
    return np.asarray((wins < WIN_RATE)[..., _looks(r)])


def t_tests(r: Floats, reference: float) -> tuple[Flagged, Flagged]:
    """Where weekly t-tests find a loss, and a deviation in either direction, shape (runs, cells, looks)."""
    n = np.arange(1, r.shape[-1] + 1)
    sums, squares = (r - reference).cumsum(axis=-1), ((r - reference) ** 2).cumsum(axis=-1)
    looks = _looks(r)
    n, sums, squares = n[looks], sums[..., looks], squares[..., looks]
    variance = np.maximum(squares - sums**2 / n, 1e-12) / (n - 1)
    t = sums / np.sqrt(n * variance)
    limit = stdtrit(n - 1, 1.0 - LEVEL / 2.0)
    return np.asarray(t < -limit), np.asarray(np.abs(t) > limit)


def _looks(r: Floats) -> slice:
    """Positions of the last trade of each week from 20 trades on."""
    return slice(MINIMUM - 1, r.shape[-1], PER_WEEK)
