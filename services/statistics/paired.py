"""Whether one run earned more than another on the same bars, block by block: yes, no, or unknown.

Blocks are calendar periods, and the observation is the difference of what two runs made in one of them. The
interval is a symmetric studentised bootstrap of the mean difference (Hall, "The Bootstrap and Edgeworth
Expansion", 1992, section 3.6): with t*_j = (mean*_j - mean) / se*_j of resampled blocks, it is mean +- q se,
where q is the quantile of |t*|. It is one look at a declared comparison; levels are shared over all of them
by Holm's step-down rule (Scandinavian Journal of Statistics 1979). Blocks that depend on their neighbours are
widened to the next coarser unit first, as those of the gate are.

Whether the blocks of a cluster still depend on each other: lag-1 autocorrelation and Ljung-Box.

    r_k = sum_t (x_t - mean)(x_{t-k} - mean) / sum_t (x_t - mean)^2
    Q = b (b + 2) sum_{k=1..h} r_k^2 / (b - k)

Q is chi-square with h degrees of freedom when blocks are independent.

Source: Ljung and Box, "On a measure of lack of fit in time series models" (Biometrika 1978). Only positive
dependence makes a bettor's wealth grow by chance, so only that is flagged. A mean that moved once is a
finding and no dependence: the levels before and after the best split are taken out first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

from services.statistics.blocks import Floats
from services.statistics.calendar_units import COARSER, BlockUnit

DRAWS = 9_999
CHUNK = 500
MINIMUM_DIFFERING = 20
ALPHA = 0.05
UNITS_A_YEAR: dict[BlockUnit, float] = {"day": 365.25, "week": 365.25 / 7, "month": 12.0, "quarter": 4.0}

Answer = Literal["higher", "lower", "unknown"]
Blocks = Callable[[BlockUnit], Floats]
MINIMUM_BLOCKS = 20
LAGS = 5
LEVEL = 0.025
LAG_ONE_LIMIT = 1.96  # standard deviations of r_1 under independence, 1/sqrt(b) each


@dataclass(frozen=True)
class Dependence:
    """Diagnosis of one sequence of blocks; the numbers are None below `MINIMUM_BLOCKS` blocks."""

    blocks: int
    lag_one: float | None
    ljung_box_p: float | None

    @property
    def flagged(self) -> bool:
        """Whether the blocks are too alike to their neighbours to be bet on one by one."""
        if self.lag_one is None or self.ljung_box_p is None or self.lag_one <= 0.0:
            return False
        return self.ljung_box_p < LEVEL or self.lag_one * self.blocks**0.5 > LAG_ONE_LIMIT


def autocorrelations(values: Floats, lags: int) -> Floats:
    """r_1 .. r_lags along the last axis, shape (..., lags); 0 for a constant sequence."""
    centred = values - values.mean(axis=-1, keepdims=True)
    total = (centred**2).sum(axis=-1)
    products = [(centred[..., lag:] * centred[..., :-lag]).sum(axis=-1) for lag in range(1, lags + 1)]
    safe = np.where(total > 0.0, total, 1.0)
    return np.stack([np.where(total > 0.0, product / safe, 0.0) for product in products], axis=-1)


def ljung_box(values: Floats, lags: int = LAGS) -> tuple[Floats, Floats]:
    """Q and its p-value along the last axis; needs more observations than lags."""
    from scipy.special import gammaincc  # loaded where it is used, see `Track.fixed_time`

    n = values.shape[-1]
    weights = 1.0 / (n - np.arange(1, lags + 1))
    q = n * (n + 2.0) * (autocorrelations(values, lags) ** 2 * weights).sum(axis=-1)
    return q, gammaincc(lags / 2.0, q / 2.0)


def without_levels(values: Floats) -> Floats:
    """Outcomes (n,) less the means of the two stretches whose means differ most for their lengths.

    The split is that of least squares; either stretch holds at least a tenth.
    """
    n = len(values)
    ends = np.arange(n // 10 + 1, n - n // 10)
    sums = values.cumsum()
    gained = (sums[ends - 1] - ends * values.mean()) ** 2 / (ends * (n - ends))
    split = int(ends[np.argmax(gained)])
    return np.concatenate([part - part.mean() for part in (values[:split], values[split:])])


def diagnose(values: Floats) -> Dependence:
    """The diagnosis of one sequence of block outcomes (b,) in order."""
    blocks = len(values)
    if blocks < MINIMUM_BLOCKS:
        return Dependence(blocks, None, None)
    centred = without_levels(values)
    return Dependence(blocks, float(autocorrelations(centred, 1)[0]), float(ljung_box(centred)[1]))


@dataclass(frozen=True)
class PairedResult:
    """One comparison.

    Attributes:
        unit: calendar period of a block, after widening.
        blocks: in the unit in force.
        differing: blocks in which the two sides differ at all.
        mean, lower, upper: of the difference per block; the edges at `level`.
        p_value: two-sided, before the correction.
        level: what this comparison was given of the shared level.
        answer: `higher` or `lower` only where the interval excludes zero.
        reason: why it is unknown, or what was odd; may be empty.
    """

    unit: BlockUnit
    blocks: int
    differing: int
    mean: float
    lower: float
    upper: float
    p_value: float
    level: float
    answer: Answer
    reason: str

    @property
    def a_year(self) -> float:
        """Blocks in a year: what turns the mean of a block into that of a year."""
        return UNITS_A_YEAR[self.unit]


@dataclass(frozen=True)
class _Sampled:
    """Differences in the unit in force, with the sorted |t*| of their bootstrap."""

    values: Floats
    unit: BlockUnit
    spread: Floats
    note: str

    @property
    def mean(self) -> float:
        return float(self.values.mean()) if len(self.values) else 0.0

    @property
    def error(self) -> float:
        return _standard_error(self.values)

    @property
    def differing(self) -> int:
        return int(np.count_nonzero(self.values))

    def p_value(self) -> float:
        if self.error == 0.0:
            return 1.0
        beyond = len(self.spread) - int(np.searchsorted(self.spread, abs(self.mean) / self.error))
        return (1 + beyond) / (len(self.spread) + 1)

    def edges(self, level: float) -> tuple[float, float]:
        if self.error == 0.0:
            return self.mean, self.mean
        place = min(ceil((1.0 - level) * (len(self.spread) + 1)), len(self.spread)) - 1
        reach = float(self.spread[place]) * self.error
        return self.mean - reach, self.mean + reach


def compare_pairs(
    cases: Mapping[str, Blocks], unit: BlockUnit, seed: int, alpha: float = ALPHA
) -> dict[str, PairedResult]:
    """Every comparison by its name, all of them together wrong at most with probability `alpha`.

    Args:
        cases: differences per block (b,), for any unit asked for.
        unit: declared before the outcomes; coarser where blocks depend on each other.
        seed: of the resampling.
        alpha: shared by all comparisons, also by those that have too few blocks to be tested.
    """
    sampled = {
        name: _sample(blocks, unit, np.random.Generator(np.random.PCG64([seed, number])))
        for number, (name, blocks) in enumerate(sorted(cases.items()))
    }
    tested = {name: sample for name, sample in sampled.items() if sample.differing >= MINIMUM_DIFFERING}
    levels = _holm(tested, len(cases), alpha)
    return {name: _result(sample, levels.get(name), alpha / len(cases)) for name, sample in sampled.items()}


def _holm(tested: Mapping[str, _Sampled], size: int, alpha: float) -> dict[str, float]:
    """The level of every comparison whose interval excludes zero there, in order of its p-value."""
    found: dict[str, float] = {}
    for name, sample in sorted(tested.items(), key=lambda item: (item[1].p_value(), item[0])):
        level = alpha / (size - len(found))
        lower, upper = sample.edges(level)
        if lower <= 0.0 <= upper:
            break
        found[name] = level
    return found


def _result(one: _Sampled, level: float | None, least: float) -> PairedResult:
    lower, upper = one.edges(least if level is None else level)
    answer: Answer = "unknown" if level is None else "higher" if one.mean > 0.0 else "lower"
    reasons = [one.note]
    if one.differing == 0:
        reasons = ["the two never differ"]
    elif one.differing < MINIMUM_DIFFERING:
        reasons.insert(0, f"{one.differing} {one.unit}s differ, {MINIMUM_DIFFERING} are needed")
    elif level is None:
        reasons.insert(0, "the interval holds 0")
    return PairedResult(
        one.unit,
        len(one.values),
        one.differing,
        one.mean,
        lower,
        upper,
        one.p_value(),
        least if level is None else level,
        answer,
        "; ".join(reason for reason in reasons if reason),
    )


def _sample(blocks: Blocks, unit: BlockUnit, generator: np.random.Generator) -> _Sampled:
    """Blocks in a unit that carries them, and their bootstrap."""
    values, notes = blocks(unit), []
    while unit in COARSER and COARSER[unit] in UNITS_A_YEAR and diagnose(values).flagged:
        notes.append(f"{unit}s depend on each other: widened to {COARSER[unit]}s")
        unit = COARSER[unit]
        values = blocks(unit)
    return _Sampled(values, unit, _spread(values, generator), "; ".join(notes))


def _spread(values: Floats, generator: np.random.Generator) -> Floats:
    """Sorted |t*| of resampled blocks; a sample without any spread counts as infinitely far away."""
    n, mean = len(values), float(values.mean()) if len(values) else 0.0
    if n < 2 or _standard_error(values) == 0.0:
        return np.zeros(0)
    found = []
    for start in range(0, DRAWS, CHUNK):
        drawn = values[generator.integers(0, n, size=(min(CHUNK, DRAWS - start), n))]
        error = drawn.std(axis=1, ddof=1) / np.sqrt(n)
        distance = np.abs(drawn.mean(axis=1) - mean)
        found.append(np.where(error > 0.0, distance / np.where(error > 0.0, error, 1.0), np.inf))
    return np.sort(np.concatenate(found))


def _standard_error(values: Floats) -> float:
    if len(values) < 2 or values.min() == values.max():
        return 0.0
    return float(values.std(ddof=1) / np.sqrt(len(values)))
