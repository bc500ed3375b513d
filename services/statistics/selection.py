"""Whether the best of many configurations is more than the luck of having tried many; no decision reads it.

Combinatorially symmetric cross-validation splits the rows into groups, chooses the best Sharpe ratio on every
half of them, and looks where the chosen one ranks on the other half. Source: Bailey, Borwein, Lopez de Prado
and Zhu, "The probability of backtest overfitting" (Journal of Computational Finance 2017).

Superior predictive ability asks whether any configuration earns more than a benchmark, and StepM which ones.
Sources: Hansen (JBES 2005) and Romano and Wolf (Econometrica 2005), by `arch` with the stationary bootstrap.
"""

from dataclasses import dataclass
from itertools import combinations
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from schemas.errors import ConfigError, DataError
from services.statistics.blocks import Floats
from services.statistics.sharpe import expected_best_sharpe, moments, probabilistic_sharpe

GROUPS = 16
SPLITS_AT_ONCE = 64  # keeps what is gathered in the cache
NO_SPREAD = 1e-12  # share of the mean square below which a variance is rounding
LEVEL = 0.05
INSTALL = (
    "the superior-ability test needs arch, which is not installed: run pip install 'thinktwice[research]'"
)


@dataclass(frozen=True)
class Overfitting:
    """What choosing the best in sample is worth out of sample.

    Attributes:
        pbo: probability that the chosen one ranks below the median out of sample; at the median counts half.
        logits: ln(rank / (N + 1 - rank)) of the chosen one out of sample, (splits,), N the best rank.
    """

    pbo: float
    logits: Floats


@dataclass(frozen=True)
class SuperiorAbility:
    """Whether any configuration earns more than the benchmark.

    Attributes:
        p: consistent p-value of "none does"; (1 + resamples beyond) / (1 + resamples), so never 0.
        better: columns that do, all of them together wrong at most with probability `LEVEL`, ascending.
        block: mean rows of a resampled block.
    """

    p: float
    better: tuple[int, ...]
    block: int


def overfitting_probability(returns: Floats, *, groups: int = GROUPS) -> Overfitting:
    """Cross-validate the choice of the best Sharpe ratio over every half of the groups.

    Configurations that are equally good count by their mid rank, so their order reaches no figure. Where one
    stands still on one side of a split, its Sharpe ratio there is 0.

    Args:
        returns: of each configuration, (T, N), rows in order of time; 0 where it holds nothing.
        groups: even; 16 give 12,870 splits.

    Raises:
        DataError: fewer than two configurations trade, too few rows for the groups, or a value is not finite.
    """
    values = _check(returns)
    if groups < 2 or groups % 2:
        raise ConfigError(f"groups is {groups!r}: give an even number from 2 on")
    values = values[:, np.any(values != 0.0, axis=0)]
    rows, traded = values.shape
    if traded < 2:
        raise DataError(f"{traded} of {returns.shape[1]} configurations trade: two are needed to choose from")
    if rows < 2 * groups:
        raise DataError(f"{rows} rows for {groups} groups: {2 * groups} are needed, or take fewer groups")
    inside = _sharpes_of_halves(values, groups)
    outside = inside[::-1]  # combinations come in the order in which the last is what the first leaves out
    best = inside == inside.max(axis=1)[:, None]
    shown = (np.where(best, outside, -np.inf).max(axis=1) + np.where(best, outside, np.inf).min(axis=1)) / 2.0
    below, equal = (found.sum(axis=1) for found in (outside < shown[:, None], outside == shown[:, None]))
    rank = below + (equal + 1.0) / 2.0
    logits = np.log(rank / (traded + 1.0 - rank))
    return Overfitting(float((logits < 0.0).mean() + (logits == 0.0).mean() / 2.0), logits)


def _sharpes_of_halves(values: Floats, groups: int) -> Floats:
    """Sharpe ratio of each configuration in each half of the groups, (splits, N)."""
    edges = np.linspace(0, len(values), groups + 1).astype(np.int64)
    sizes, starts = np.diff(edges), edges[:-1]
    sums, squares = (np.add.reduceat(table, starts, axis=0) for table in (values, values**2))
    halves = np.array(list(combinations(range(groups), groups // 2)))
    picks = (halves[at : at + SPLITS_AT_ONCE] for at in range(0, len(halves), SPLITS_AT_ONCE))
    return np.concatenate(
        [
            _sharpe(sizes[pick].sum(axis=1)[:, None], sums[pick].sum(axis=1), squares[pick].sum(axis=1))
            for pick in picks
        ]
    )


def _sharpe(rows: NDArray[np.int64], sums: Floats, squares: Floats) -> Floats:
    """Sharpe ratio of a row from sums; 0 without any spread."""
    variance = squares - sums**2 / rows
    moves = variance > NO_SPREAD * squares
    scale = np.sqrt(np.where(moves, variance, 1.0) * rows**2 / (rows - 1))
    return np.where(moves, sums / scale, 0.0)


def superior_ability(returns: Floats, benchmark: Floats, *, seed: int, reps: int = 1_000) -> SuperiorAbility:
    """Test whether any configuration earns more than the benchmark, and name those that do.

    Differences are divided by their standard deviation first: the `studentize` of arch 8.0 reaches no
    statistic. The benchmark joins as a configuration, as in Hansen's max(., 0); without it StepM of arch
    fails where every configuration is better.

    Args:
        returns: of each configuration, (T, N), rows in order of time.
        benchmark: what they are held against, (T,).
        seed: of the resampling.
        reps: resamples.

    Raises:
        ConfigError: arch is not installed.
        DataError: no configuration, lengths that differ, fewer than 20 rows, or a value that is not finite.
    """
    values, against = _check(returns), np.asarray(benchmark, dtype=np.float64)
    if against.shape != values.shape[:1] or not np.isfinite(against).all():
        raise DataError(f"a benchmark {against.shape} for {len(values)} rows: give one finite value a row")
    if len(values) < 20:
        raise DataError(f"{len(values)} rows: 20 are needed to resample blocks of them")
    try:
        from arch.bootstrap import StepM
    except ModuleNotFoundError as error:
        raise ConfigError(INSTALL) from error
    more = values - against[:, None]
    deviation = more.std(axis=0)
    more = np.column_stack((more / np.where(deviation > 0.0, deviation, 1.0), np.zeros(len(more))))
    block = isqrt(len(more))
    steps = StepM(np.zeros(len(more)), -more, size=LEVEL, block_size=block, reps=reps, seed=seed)
    steps.compute()
    better = tuple(np.asarray(steps.superior_models, dtype=np.int64).tolist())
    steps.spa.compute()
    any_gain = bool((more.mean(axis=0) > 0.0).any())  # without, both statistics are 0: a tie, not evidence
    beyond = round(float(steps.spa.pvalues["consistent"]) * reps) if any_gain else reps
    return SuperiorAbility((1 + beyond) / (1 + reps), better, block)


def deflated_sharpe(chosen: Floats, tried: Floats, number: int | None = None) -> float | None:
    """Probability that the Sharpe ratio of a row of `chosen` (T,) exceeds what luck gives the best tried.

    Args:
        chosen: returns of the best.
        tried: Sharpe ratios of a row of what was tried and measured, the chosen one among them.
        number: how many were tried, also those that nobody measured; None: as many as `tried`.

    Returns:
        None where the returns have no spread, and where several were tried whose ratios have none.
    """
    found, spread = moments(chosen), float(np.var(tried, ddof=1)) if len(tried) > 1 else 0.0
    number = max(number or 0, len(tried))
    if found is None or (number > 1 and spread == 0.0):
        return None
    return probabilistic_sharpe(found, expected_best_sharpe(number, spread))


def sharpe_ratios(returns: Floats) -> Floats:
    """Sharpe ratio of a row of each configuration, (N,) of (T, N); 0 without any spread."""
    rows = np.array([[len(returns)]])
    ratios: Floats = _sharpe(rows, returns.sum(axis=0)[None], (returns**2).sum(axis=0)[None])[0]
    return ratios


def _check(returns: Floats) -> Floats:
    values = np.ascontiguousarray(returns, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise DataError(f"returns of shape {values.shape}: give a row for each bar, a column for each run")
    odd = np.argwhere(~np.isfinite(values))
    if len(odd):
        row, column = (int(place) for place in odd[0])
        raise DataError(f"row {row}, column {column}: {float(values[row, column])!r} is not finite")
    return values
