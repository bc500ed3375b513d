"""Whether stated confidence came true: the Brier score with its parts, and the calibration error.

    Brier       = reliability - resolution + uncertainty + within_bin
    reliability = sum of n_k (f_k - o_k)^2, over n
    resolution  = sum of n_k (o_k - o)^2, over n
    uncertainty = o (1 - o)
    within_bin  = sum of (f - f_k)^2 - 2 (f - f_k) (y - o_k), over n

with f a forecast, y what came of it (0 or 1), f_k and o_k the means of its bin k of n_k labels, o of all. The
first three are Murphy's (Journal of Applied Meteorology 12, 1973) and add up to the score only where all
forecasts of a bin are equal; the last is what Stephenson, Coelho and Jolliffe added for wide bins (Weather
and Forecasting 23, 2008). The expected calibration error is the sum of n_k |f_k - o_k|, over n. It is above
zero for a forecaster without any fault, so its level by chance stands beside it; below 200 labels that level
hides whatever there is, and neither is given. Labels count as independent: those that overlap in time say
less than their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataError
from services.statistics.blocks import Floats

BINS = 10
MINIMUM_FOR_ECE = 200
DRAWS, SEED = 2_000, 17
UPPER = 0.95
BEYOND_CHANCE = 1.96  # standard errors: a two-sided level of 5 %
CHUNK = 1_000_000  # uniform numbers held at a time


@dataclass(frozen=True)
class CalibrationBin:
    """Neighbouring forecasts, from `lower` to `upper`, with what came of them."""

    lower: float
    upper: float
    n: int
    mean_forecast: float
    base_rate: float


@dataclass(frozen=True)
class CalibrationError:
    """The error, and what a calibrated forecaster of the same forecasts shows: mean and 95th percentile."""

    ece: float
    by_chance: float
    by_chance_p95: float


@dataclass(frozen=True)
class Calibration:
    """What the labels say of their forecasts.

    Attributes:
        error: None below 200 labels.
        excess: promised beyond what came true, in standard errors of a calibrated forecaster.
        association: of forecast and outcome, in standard errors of labels in random order.
    """

    n: int
    mean_forecast: float
    base_rate: float
    brier: float
    uncertainty: float
    resolution: float
    reliability: float
    within_bin: float
    error: CalibrationError | None
    excess: float
    association: float
    bins: tuple[CalibrationBin, ...]


def calibrate(forecasts: Sequence[float], outcomes: Sequence[bool]) -> Calibration | None:
    """The figures of labels in any order; None without a label.

    Args:
        forecasts: probabilities that were stated, in [0, 1].
        outcomes: whether each came true.

    Raises:
        DataError: a forecast is no probability, or there are not as many outcomes.
    """
    stated, came = _sort_pairs(forecasts, outcomes)
    if not len(stated):
        return None
    starts = _starts(stated)
    sizes = np.diff([*starts, len(stated)])
    means = np.add.reduceat(stated, starts) / sizes
    rates = np.add.reduceat(came, starts) / sizes
    rate = float(came.mean())
    apart, off = stated - np.repeat(means, sizes), came - np.repeat(rates, sizes)
    return Calibration(
        n=len(stated),
        mean_forecast=float(stated.mean()),
        base_rate=rate,
        brier=float(((stated - came) ** 2).mean()),
        uncertainty=rate * (1.0 - rate),
        resolution=float((sizes * (rates - rate) ** 2).sum() / len(stated)),
        reliability=float((sizes * (means - rates) ** 2).sum() / len(stated)),
        within_bin=float((apart**2 - 2.0 * apart * off).mean()),
        error=_error(stated, came, starts) if len(stated) >= MINIMUM_FOR_ECE else None,
        excess=_excess(stated, came),
        association=_association(stated, came),
        bins=_bins(stated, starts, sizes, means, rates),
    )


def _sort_pairs(forecasts: Sequence[float], outcomes: Sequence[bool]) -> tuple[Floats, Floats]:
    """Both by forecast, then outcome: nothing that follows depends on the order in which labels came."""
    stated, came = np.asarray(forecasts, np.float64), np.asarray(outcomes, np.float64)
    if stated.shape != came.shape:
        raise DataError(f"{len(stated)} forecasts have {len(came)} outcomes: give one for each")
    wrong = ~((stated >= 0.0) & (stated <= 1.0))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise DataError(f"forecast {first} is {float(stated[first])!r}: a probability lies in [0, 1]")
    order = np.lexsort((came, stated))
    return stated[order], came[order]


def _starts(stated: Floats) -> NDArray[np.intp]:
    """Where each of ten bins of equal mass begins; equal forecasts stay together, by their mid-rank."""
    first = np.searchsorted(stated, stated, side="left")
    last = np.searchsorted(stated, stated, side="right") - 1
    numbers = (first + last) * BINS // (2 * len(stated))
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _bins(
    stated: Floats, starts: NDArray[np.intp], sizes: NDArray[np.intp], means: Floats, rates: Floats
) -> tuple[CalibrationBin, ...]:
    return tuple(
        CalibrationBin(
            lower=float(stated[start]),
            upper=float(stated[start + size - 1]),
            n=int(size),
            mean_forecast=float(mean),
            base_rate=float(rate),
        )
        for start, size, mean, rate in zip(starts, sizes, means, rates, strict=True)
    )


def _error(stated: Floats, came: Floats, starts: NDArray[np.intp]) -> CalibrationError:
    """The error of the labels, and of labels drawn as if every forecast were the true probability."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    at_once = max(1, CHUNK // len(stated))
    drawn = [
        _ece(stated, generator.random((min(at_once, DRAWS - begun), len(stated))) < stated, starts)
        for begun in range(0, DRAWS, at_once)
    ]
    by_chance = np.concatenate(drawn)
    return CalibrationError(
        ece=float(_ece(stated, came[None, :], starts)[0]),
        by_chance=float(by_chance.mean()),
        by_chance_p95=float(np.quantile(by_chance, UPPER)),
    )


def _ece(stated: Floats, came: NDArray[np.bool_] | Floats, starts: NDArray[np.intp]) -> Floats:
    """The error of each row of labels (draws, n); a bin weighs n_k / n, so sums are enough."""
    found: Floats = np.abs(np.add.reduceat(stated - came, starts, axis=1)).sum(axis=1) / len(stated)
    return found


def _excess(stated: Floats, came: Floats) -> float:
    """What was promised less what came true, corrected for continuity; 0 where that is all of it."""
    beyond, spread = float((stated - came).sum()), sqrt(float((stated * (1.0 - stated)).sum()))
    if spread > 0.0:
        return copysign(max(0.0, abs(beyond) - 0.5), beyond) / spread
    return inf * beyond if beyond else 0.0


def _association(stated: Floats, came: Floats) -> float:
    """Correlation times sqrt(n - 1): its variance is 1 over all orders of the labels. 0 without spread."""
    apart, off = stated - stated.mean(), came - came.mean()
    spread = sqrt(float((apart**2).sum())) * sqrt(float((off**2).sum()))
    if spread == 0.0:
        return 0.0
    return float((apart * off).sum()) / spread * sqrt(len(stated) - 1)
