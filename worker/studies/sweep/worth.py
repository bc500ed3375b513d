"""What a search over parameter sets is worth: read this before any set's own figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from schemas.errors import ConfigError, DataError
from services.statistics.folds import (
    EMBARGO,
    Fold,
    Log,
    Scheme,
    bets_of,
    choose_and_look,
    scores,
    splits_of,
)
from services.statistics.selection import (
    deflated_sharpe,
    overfitting_probability,
    sharpe_ratios,
    superior_ability,
)
from services.statistics.sharpe import moments, probabilistic_sharpe
from trading_core.bars import BarSeries
from trading_core.research.sweep import SetRow

Verdict = Literal["real", "not shown"]
LEVEL, EVEN = 0.05, 0.5
LEAST_BETS = 30  # fewer have no moments to speak of: a stop that was not met yet looks like an edge


@dataclass(frozen=True)
class Looking:
    """How a search is looked at out of sample; see `splits_of`."""

    folds: int = 5
    scheme: Scheme = "anchored"
    embargo: float = EMBARGO
    seed: int = 0

    def __post_init__(self) -> None:
        if self.scheme not in ("anchored", "rolling", "combinatorial"):
            raise ConfigError(f"scheme {self.scheme!r} is none of anchored, rolling, combinatorial")
        if not isinstance(self.embargo, int | float) or not 0.0 <= self.embargo < 0.5:
            raise ConfigError(f"embargo {self.embargo!r} must be a share of the bars from 0 to below 0.5")


@dataclass(frozen=True)
class Worth:
    """What a search is worth.

    Returns are those of a period, less holding for the same share of time (`SetRow.exposure`): a rule that is
    long a third of the time has to beat a third of holding.

    Attributes:
        sets_tried: sets that could be traded, and of a stored family what was tried on these bars before.
        pbo: probability that the best in sample ranks below the median out of sample; None: not to be had.
        deflated_sharpe: probability that the best set's Sharpe ratio exceeds what luck gives so many sets.
        spa_p: p-value of "no set of the family earns more than holding".
        out_of_sample: mean R a trade, after costs, of what was best in sample where it was not chosen on.
        out_of_sample_p: p-value of "that mean is not above 0", by the probabilistic Sharpe ratio of its bets
            (`bets_of`); None below 30 of them.
        in_sample: mean R a trade where it was.
        trades: out of sample.
        folds: each split.
        notes: what could not be computed, and why.
    """

    sets_tried: int
    pbo: float | None
    deflated_sharpe: float | None
    spa_p: float | None
    out_of_sample: float | None
    out_of_sample_p: float | None
    in_sample: float | None
    trades: int
    folds: tuple[Fold, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """`real`: the family beats holding, the choice ranks high, and more than luck earns out of sample."""
        beats, earns = (p is not None and p <= LEVEL for p in (self.spa_p, self.out_of_sample_p))
        holds = self.pbo is not None and self.pbo < EVEN
        return "real" if beats and holds and earns and (self.out_of_sample or 0.0) > 0.0 else "not shown"

    def document(self) -> dict[str, Any]:
        """For machines."""
        names = ("pbo", "deflated_sharpe", "spa_p", "out_of_sample", "out_of_sample_p", "in_sample")
        found = {name: getattr(self, name) for name in names}
        figures = {name: None if value is None else round(value, 9) for name, value in found.items()}
        return {
            "verdict": self.verdict,
            "sets_tried": self.sets_tried,
            **figures,
            "trades": self.trades,
            "folds": [_fold_document(fold) for fold in self.folds],
            "notes": list(self.notes),
        }

    def lines(self, hold: float) -> list[str]:
        """What it says, the verdict first; `hold` is what holding returned."""
        inside, outside = (
            "no trade" if mean is None else f"{mean:+.2f} R a trade"
            for mean in (self.in_sample, self.out_of_sample)
        )
        shown = {
            "SPA p": self.spa_p,
            "out of sample p": self.out_of_sample_p,
            "probability of overfitting": self.pbo,
            "deflated Sharpe": self.deflated_sharpe,
        }
        figures = "; ".join(
            f"{name} {'-' if value is None else f'{value:.2f}'}" for name, value in shown.items()
        )
        lines = [
            f"{self.sets_tried:,} sets tried: {self.verdict}",
            f"out of sample {outside} on {self.trades:,} trades, by what was best in sample ({inside} there)",
            figures,
        ]
        if self.spa_p is not None and self.spa_p > LEVEL:
            lines.append(
                f"nothing here beats holding for the same share of time; holding returned {100 * hold:+.1f} %"
            )
        return [*lines, *self.notes]


def worth_of(bars: BarSeries, rows: Sequence[SetRow], looking: Looking, before: int = 0) -> Worth:
    """What a search is worth.

    Args:
        bars: that the sets traded.
        rows: of `run_sets`, sets with a problem among them.
        looking: how it is looked at out of sample.
        before: hypotheses that a store knows of on these bars.
    """
    tried = [row for row in rows if row.problem is None]
    notes: list[str] = []
    if not tried:
        return Worth(before, None, None, None, None, None, None, 0, (), ("no set could be traded",))
    excess = np.column_stack([row.excess for row in tried])
    pbo = p = None
    try:
        pbo = overfitting_probability(excess).pbo
    except DataError as error:
        notes.append(f"no probability of overfitting: {error}")
    try:
        p = superior_ability(excess, np.zeros(len(excess)), seed=looking.seed).p
    except (ConfigError, DataError) as error:
        notes.append(f"no SPA: {error}")
    sharpes = sharpe_ratios(excess)
    dsr = deflated_sharpe(excess[:, int(np.argmax(sharpes))], sharpes, len(sharpes) + before)
    log = log_of(rows)
    splits = splits_of(bars.shape[0], looking.folds, looking.scheme)
    folds = choose_and_look(log, splits, int(looking.embargo * bars.shape[0]))
    (inside, _), (outside, trades) = (
        _pool([(getattr(fold, side), getattr(fold, f"trades_{side}")) for fold in folds])
        for side in ("inside", "outside")
    )
    bets = bets_of(log, folds)
    luck = None
    if len(bets) < LEAST_BETS:
        notes.append(
            f"out of sample {len(bets)} bets, apart in time: {LEAST_BETS} are needed to tell from luck"
        )
    elif (found := moments(bets)) is not None:
        luck = 1.0 - probabilistic_sharpe(found)
    return Worth(len(tried) + before, pbo, dsr, p, outside, luck, inside, trades, folds, tuple(notes))


def best_of(rows: Sequence[SetRow]) -> int | None:
    """The set that the whole of the bars would choose, by `scores`; None without a trade."""
    log = log_of(rows)
    found = scores(log, np.ones(len(log.r), dtype=np.bool_))
    return int(np.argmax(found)) if np.isfinite(found).any() else None


def log_of(rows: Sequence[SetRow]) -> Log:
    """The trades of all sets."""
    joined: dict[str, npt.NDArray[Any]] = {
        name: np.concatenate([getattr(row, name) for row in rows]) if rows else np.empty(0)
        for name in ("entry_rows", "exit_rows", "r")
    }
    member = np.repeat(np.arange(len(rows)), [row.trades for row in rows])
    return Log(len(rows), member, joined["entry_rows"], joined["exit_rows"], joined["r"])


def _pool(parts: Sequence[tuple[float | None, int]]) -> tuple[float | None, int]:
    count = sum(n for _, n in parts)
    return (sum((mean or 0.0) * n for mean, n in parts) / count if count else None), count


def _fold_document(fold: Fold) -> dict[str, Any]:
    fields = ("chosen", "inside", "outside", "trades_inside", "trades_outside")
    shown = {name: getattr(fold, name) for name in fields}
    return {"looked_at": [list(span) for span in fold.split.looked_at], **shown}
