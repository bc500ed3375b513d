"""The second opinion beside other tests on the same draws: other bounds, corrections for skewness, and looks.

`uv run python -m benchmarks.gate_worlds.other_tests --runs 100` prints a line a world, false or true claims
of losing in % under each (five minutes of one core).

* `fixed`: one look, the last. A test that equals it there and may be looked at before (Koning and van Meer,
  arXiv 2501.03982) is P(it will reject | what is known, nothing from now on); it rejects before the last look
  where that is certain only. `curtailed` rejects from .9 on, at .9 of the level.
* `Pocock` spends alike at each look.
* `Hall`, `Johnson`: their t alone (JRSS-B 1992; JASA 1978), or the smaller of t and Johnson's.
* `likelihood`: the signed root of the empirical likelihood ratio (Owen, Biometrika 1988).
* `bootstrap`: t scaled by the upper 2.5 % of 299 studentised resamples.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import copysign, inf, sqrt
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from benchmarks.gate_worlds.second_opinions import CASES, claims_of
from services.statistics import second_opinion
from services.statistics.blocks import Floats, resemblance
from services.statistics.calendar_units import Integers
from services.statistics.second_opinion import LARGEST_T, skew_corrected_t

Statistic = Callable[[Floats, Floats], float]
ENOUGH, PATHS, RESAMPLES, UPPER, SMALL_T = 0.9, 400_000, 299, 0.975, 1.5


def _parts(sums: Floats, sizes: Floats) -> tuple[float, float] | None:
    """The t over the root of the number of blocks, and skewness; None where all blocks are alike."""
    off = sums - sizes * float(sums.sum() / sizes.sum())
    spread = sqrt(float((off**2).sum()) / (len(sums) - 1))
    if spread * LARGEST_T * sqrt(len(sums)) <= abs(float(sums.sum())):
        return None
    skew = float((off**3).mean()) / float((off**2).mean()) ** 1.5
    return float(sums.mean()) / spread / resemblance(off), skew


def _expanded(cubic: float, *, smaller: bool) -> Statistic:
    """T corrected for skewness, Hall's with its cubic term; the smaller of it and t."""

    def statistic(sums: Floats, sizes: Floats) -> float:
        if (parts := _parts(sums, sizes)) is None:
            return copysign(LARGEST_T, float(sums.sum()))
        s, skew = parts
        corrected = s + skew * s**2 / 3.0 + cubic * skew**2 * s**3 / 27.0 + skew / (6.0 * len(sums))
        return sqrt(len(sums)) * (min(s, corrected) if smaller else corrected)

    return statistic


def _student(sums: Floats, sizes: Floats) -> float:
    parts = _parts(sums, sizes)
    return copysign(LARGEST_T, float(sums.sum())) if parts is None else sqrt(len(sums)) * parts[0]


def _likelihood(sums: Floats, sizes: Floats) -> float:
    if sums.min() >= 0.0 or sums.max() <= 0.0:
        return copysign(LARGEST_T, float(sums.sum()))
    low, high = -1.0 / float(sums.max()) + 1e-12, -1.0 / float(sums.min()) - 1e-12
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if (sums / (1.0 + middle * sums)).sum() > 0.0 else (low, middle)
    root = sqrt(max(2.0 * float(np.log1p(low * sums).sum()), 0.0))
    off = sums - sizes * float(sums.sum() / sizes.sum())
    return copysign(root, float(sums.mean())) / resemblance(off)


@lru_cache(maxsize=512)
def _picked(blocks: int) -> Integers:
    return np.random.default_rng(blocks).integers(blocks, size=(RESAMPLES, blocks))


def _bootstrap(sums: Floats, sizes: Floats) -> float:
    t = _student(sums, sizes)
    if t < SMALL_T:
        return t
    drawn, held = sums[_picked(len(sums))], sizes[_picked(len(sums))]
    means = drawn.sum(axis=1) / held.sum(axis=1)
    error = np.sqrt(((drawn - held * means[:, None]) ** 2).sum(axis=1) / (len(sums) - 1))
    off = (means - sums.sum() / sizes.sum()) * held.mean(axis=1) * sqrt(len(sums))
    reach = float(np.quantile(off / np.maximum(error, 1e-9), UPPER))
    return min(t, t * float(ndtri(UPPER)) / max(reach, 1e-9))


def _bounded(one_side: Callable[[int, int, float], float]) -> Callable[..., tuple[float, float]]:
    """P of one side at a look of so many, and its t, in place of O'Brien and Fleming's."""

    def bound(count: int, place: tuple[int, int], level: float) -> tuple[float, float]:
        p = one_side(*place, level)
        return (p, -float(stdtrit(count - 1, p))) if p else (1.0, inf)

    return bound


def _fixed(looks: int, look: int, level: float) -> float:
    return level if look == looks else 0.0


def _curtailed(looks: int, look: int, level: float) -> float:
    seen = look / looks
    z = -ndtri(level * ENOUGH) + ndtri(ENOUGH) * sqrt(1.0 - seen)
    return float(ndtr(-z / sqrt(seen)))


@lru_cache(maxsize=64)
def _walks(looks: int) -> Floats:
    steps = np.random.default_rng(0).standard_normal((PATHS, looks))
    return np.asarray((steps.cumsum(axis=1) / np.sqrt(np.arange(1, looks + 1))).max(axis=1))


def _pocock(looks: int, look: int, level: float) -> float:
    return float(ndtr(-np.quantile(_walks(looks), 1.0 - level)))


TESTS: dict[str, dict[str, Any]] = {
    "in use": {"skew_corrected_t": skew_corrected_t},
    "fixed": {"_bound": _bounded(_fixed)},
    "curtailed": {"_bound": _bounded(_curtailed)},
    "Pocock": {"_bound": _bounded(_pocock)},
    "t": {"skew_corrected_t": _student},
    "Hall": {"skew_corrected_t": _expanded(1.0, smaller=False)},
    "Johnson": {"skew_corrected_t": _expanded(0.0, smaller=True)},
    "likelihood": {"skew_corrected_t": _likelihood},
    "bootstrap": {"skew_corrected_t": _bootstrap},
    "4 blocks": {"LEAST_BLOCKS": 4},
    "6 blocks": {"LEAST_BLOCKS": 6},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_worlds.other_tests")
    parser.add_argument("--runs", type=int, default=100, help="runs of each world")
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args(arguments)
    sys.stdout.write(f"{'losing, %':32s}bound {''.join(f'{name:>11s}' for name in TESTS)}\n")
    for name, case in CASES.items():
        sys.stdout.write(f"{name:32s}{case.bound:5g} ")
        for changed in TESTS.values():
            with patch.multiple(second_opinion, **changed):
                sys.stdout.write(f"{claims_of(case, given.runs, given.seed)[0]:11.1f}")
                sys.stdout.flush()
        sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
