"""Choosing on one stretch of bars and looking on another: walk-forward and combinatorial cross-validation.

A trade belongs to the stretch in which it entered. In sample it counts only where it was closed before the
stretch ends (purge) and did not enter within the embargo behind a stretch that is looked at. Source: Lopez de
Prado, "Advances in Financial Machine Learning" (2018), chapters 7 and 12.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from schemas.errors import ConfigError
from services.statistics.blocks import Floats

Rows = npt.NDArray[np.int64]
Span = tuple[int, int]  # first row, and the row behind the last
Scheme = Literal["anchored", "rolling", "combinatorial"]
EMBARGO = 0.01  # of the rows, as the source has it
TESTED_TOGETHER = 2  # groups that a combinatorial split looks at


@dataclass(frozen=True)
class Split:
    """Spans of rows to choose on and to look at."""

    chosen_on: tuple[Span, ...]
    looked_at: tuple[Span, ...]


@dataclass(frozen=True, eq=False)
class Log:
    """Trades of N sets, in any order.

    Attributes:
        sets: N.
        member: int64 (n,), set of each.
        entered, left: int64 (n,), rows.
        r: float64 (n,).
    """

    sets: int
    member: Rows
    entered: Rows
    left: Rows
    r: Floats


@dataclass(frozen=True)
class Fold:
    """What one split showed; sums are of R.

    Attributes:
        split: where.
        chosen: the set that was best there, the first of several; None: nothing traded.
        inside, outside: mean R of its trades on either side; None without a trade.
        trades_inside, trades_outside: their numbers.
        looked: places in the log of those outside.
    """

    split: Split
    chosen: int | None = None
    inside: float | None = None
    outside: float | None = None
    trades_inside: int = 0
    trades_outside: int = 0
    looked: Rows = field(default_factory=lambda: np.empty(0, dtype=np.int64), compare=False, repr=False)


def splits_of(rows: int, folds: int, scheme: Scheme) -> tuple[Split, ...]:
    """The splits of a scheme.

    Args:
        rows: of the bars.
        folds: stretches that are looked at: of walk-forward those of the second half, of the combinatorial
            scheme all, every pair of them once.
        scheme: `anchored` chooses on all rows before a stretch, `rolling` on as many as half of the rows,
            `combinatorial` on all others.

    Raises:
        ConfigError: too many or too few stretches for the rows.
    """
    least = 4 if scheme == "combinatorial" else 1
    if not isinstance(folds, int) or not least <= folds <= 20 or rows < 4 * folds:
        raise ConfigError(f"folds {folds!r} of {rows:,} bars: give {least} to 20 of at least 4 bars each")
    if scheme == "combinatorial":
        spans = _spans(0, rows, folds)
        pairs = combinations(range(folds), TESTED_TOGETHER)
        return tuple(
            Split(tuple(span for k, span in enumerate(spans) if k not in pair), tuple(spans[k] for k in pair))
            for pair in pairs
        )
    half = rows // 2
    return tuple(
        Split(((0 if scheme == "anchored" else start - half, start),), ((start, stop),))
        for start, stop in _spans(half, rows, folds)
    )


def _spans(first: int, stop: int, count: int) -> list[Span]:
    edges = np.linspace(first, stop, count + 1).astype(np.int64).tolist()
    return list(zip(edges[:-1], edges[1:], strict=True))


def choose_and_look(log: Log, splits: Sequence[Split], embargo: int) -> tuple[Fold, ...]:
    """In each split the set that is best where it is chosen on, and what it made where it is looked at.

    Args:
        log: trades of all sets.
        splits: of `splits_of`.
        embargo: rows around what is looked at in which no trade counts to choose.
    """
    return tuple(_fold(log, split, embargo) for split in splits)


def scores(log: Log, counted: npt.NDArray[np.bool_]) -> Floats:
    """float64 (N,): sum of R over the root of its sum of squares; -inf without a trade that counts.

    It ranks as the t-statistic does, and a few lucky trades cannot make it large: of n it is at most sqrt(n).
    """
    member, r = log.member[counted], log.r[counted]
    total = np.bincount(member, r, log.sets)
    square = np.bincount(member, r**2, log.sets)
    return np.where(square > 0.0, total / np.sqrt(np.where(square > 0.0, square, 1.0)), -np.inf)


def _fold(log: Log, split: Split, embargo: int) -> Fold:
    inside = np.zeros(len(log.r), dtype=np.bool_)
    for start, stop in split.chosen_on:
        inside |= (log.entered >= start) & (log.left < stop)
    outside = np.zeros(len(log.r), dtype=np.bool_)
    for start, stop in split.looked_at:
        outside |= (log.entered >= start) & (log.entered < stop)
        inside &= (log.left < start - embargo) | (log.entered >= stop + embargo)
    found = scores(log, inside)
    if not np.isfinite(found).any():
        return Fold(split)
    best = int(np.argmax(found))
    own = log.member == best
    sides = [np.flatnonzero(own & side) for side in (inside, outside)]
    means = [float(log.r[side].mean()) if len(side) else None for side in sides]
    return Fold(split, best, means[0], means[1], len(sides[0]), len(sides[1]), sides[1])


def bets_of(log: Log, folds: Sequence[Fold]) -> Floats:
    """Sums of R of the trades that folds looked at, each once; trades that are open together are one bet.

    A bet takes every trade that enters before its first one is closed: what many symbols do in one week is
    not many observations.
    """
    places = np.unique(np.concatenate([fold.looked for fold in folds]))
    order = places[np.lexsort((log.member[places], log.left[places], log.entered[places]))]
    sums: list[float] = []
    since = until = -1
    for entered, left, r in zip(log.entered[order], log.left[order], log.r[order], strict=True):
        if entered > since and entered >= until:
            since, until = entered, left
            sums.append(0.0)
        sums[-1] += float(r)
    return np.array(sums)
