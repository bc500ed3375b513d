"""Whether one run earned more than another on the same bars, block by block: yes, no, or unknown.

Blocks are calendar periods, and the observation is the difference of what two runs made in one of them. The
interval is a symmetric studentised bootstrap of the mean difference (Hall, "The Bootstrap and Edgeworth
Expansion", 1992, section 3.6): with t*_j = (mean*_j - mean) / se*_j of resampled blocks, it is mean +- q se,
where q is the quantile of |t*|. It is one look at a declared comparison; levels are shared over all of them
by Holm's step-down rule (Scandinavian Journal of Statistics 1979). Blocks that depend on their neighbours are
widened to the next coarser unit first, as those of the gate are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

from services.statistics.blocks import Floats
from services.statistics.calendar_units import COARSER, BlockUnit
from services.statistics.dependence import diagnose

DRAWS = 9_999
CHUNK = 500
MINIMUM_DIFFERING = 20
ALPHA = 0.05
UNITS_A_YEAR: dict[BlockUnit, float] = {"day": 365.25, "week": 365.25 / 7, "month": 12.0, "quarter": 4.0}

Answer = Literal["higher", "lower", "unknown"]
Blocks = Callable[[BlockUnit], Floats]


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
