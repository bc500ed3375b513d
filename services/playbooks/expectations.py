"""What trades of a playbook are like, as known at a time: design prior and resolved trades, blended.

A figure is (prior * weight + measured * n) / (weight + n), n being the trades it was measured on; for the
winners' excursion these are the winners. Live episodes of every version whose trades end alike count; those
of other rules, no-learn and shadow episodes do not.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from schemas.episode import WIN_R, Episode
from schemas.errors import InvariantViolation
from schemas.playbook import LONGEST_HORIZON, Expectation, PlaybookDefinition
from schemas.settings import GateSettings
from schemas.snapshot import ExpectationSummary, PolicySnapshot
from schemas.state import Stateful
from services.statistics.blocks import winsorise
from services.statistics.calendar_units import unit_numbers
from services.statistics.quantiles import quantile
from services.statistics.shrinkage import shrunken_means
from trading_core.clock import SimulatedClock

Kept = tuple[str, str]
GATE = GateSettings()
DIGITS = 6
EVERY_TRADE_UNTIL = 50


@dataclass(frozen=True, slots=True)
class ExpectationView:
    """Read-only expectations for the fast path."""

    _summary: Callable[[PlaybookDefinition, int], ExpectationSummary]
    _own: Callable[[int], tuple[ExpectationSummary, ...]]

    def summary(self, definition: PlaybookDefinition, known_at: int) -> ExpectationSummary:
        """See `ExpectationBook.summary`."""
        return self._summary(definition, known_at)

    def own(self, known_at: int) -> tuple[ExpectationSummary, ...]:
        """See `ExpectationBook.own`."""
        return self._own(known_at)


@dataclass(slots=True)
class TradeOutcomes:
    """What is measured of trades, taken in one by one; each figure in ascending order."""

    r: list[float] = field(default_factory=list)
    holds: list[float] = field(default_factory=list)
    mfe: list[float] = field(default_factory=list)
    mae_of_winners: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, trades: Iterable[Episode]) -> Self:
        """The figures of several trades."""
        measured = cls()
        for episode in trades:
            measured.add(episode)
        return measured

    def add(self, episode: Episode) -> None:
        """Take one trade in."""
        insort(self.r, episode.r)
        insort(self.holds, float(episode.hold_bars))
        insort(self.mfe, episode.mfe_r)
        if episode.outcome == "win":
            insort(self.mae_of_winners, episode.mae_r)

    def take(self, trades: npt.NDArray[Any]) -> None:
        """Take many TRADE records in."""
        winners = trades["mae_r"][trades["r"] > WIN_R]
        columns = trades["r"], trades["bars_held"].astype(np.float64), trades["mfe_r"], winners
        for kept, new in zip((self.r, self.holds, self.mfe, self.mae_of_winners), columns, strict=True):
            kept += new.tolist()
            kept.sort()


class ExpectationBook(Stateful):
    """Resolved trades by playbook and rules, in the order in which they became known."""

    STATE: ClassVar = {"by_kernel": dict[str, Expectation]}
    REBUILT = frozenset(
        {"_clock", "_rules_of", "_trades", "_ordered", "_pooled", "_measured", "_ids", "_cache", "ignored"}
    )

    def __init__(
        self, clock: SimulatedClock, rules_of: Callable[[str], str] = lambda version_hash: ""
    ) -> None:
        """Begin without a trade; `rules_of` tells what decides how trades of the version with a hash end."""
        self._clock = clock
        self._rules_of = rules_of
        self._trades: dict[tuple[str, str], list[Episode]] = {}
        self._ordered: list[tuple[int, str, Kept, Episode]] = []
        self._pooled: tuple[int, dict[Kept | None, float]] = 0, {}
        self._measured: dict[tuple[str, str], TradeOutcomes] = {}
        self._ids: set[str] = set()
        self._cache: dict[tuple[str, str], dict[tuple[str, int, int], ExpectationSummary]] = {}
        self.ignored = 0
        self.by_kernel: dict[str, Expectation] = {}  # by rules, of playbooks that leave theirs to be measured

    def record(self, episode: Episode) -> bool:
        """Take one resolved trade in; False, and counted in `ignored`, if it may not teach.

        Raises:
            InvariantViolation: the episode was recorded already.
        """
        if episode.no_learn or episode.ledger == "shadow":
            self.ignored += 1
            return False
        if episode.episode_id in self._ids:
            raise InvariantViolation(
                f"episode {episode.episode_id!r} was recorded already", episode_id=episode.episode_id
            )
        self._ids.add(episode.episode_id)
        kept = episode.playbook_id, self._rules_of(episode.playbook_hash)
        insort(self._trades.setdefault(kept, []), episode, key=_order)
        row = (episode.known_at, episode.episode_id, kept, episode)
        if bisect_right(self._ordered, row) < self._pooled[0]:
            self._pooled = 0, {}
        insort(self._ordered, row)
        self._measured.setdefault(kept, TradeOutcomes()).add(episode)
        self._cache.pop(kept, None)
        return True

    def reader(self) -> ExpectationView:
        """The reading side, without a way to record."""
        return ExpectationView(self.summary, self.own)

    def own(self, known_at: int) -> tuple[ExpectationSummary, ...]:
        """Expectations of plans with their own rules whose trades are known at `known_at`, by id."""
        names = {name for (name, _), trades in self._trades.items() if not trades[0].playbook_hash}
        priors = ((name, Expectation.by_default(LONGEST_HORIZON)) for name in sorted(names))
        found = (self._of(name, prior, "", 1, known_at) for name, prior in priors)
        return tuple(summary for summary in found if summary.n)

    def summary(self, definition: PlaybookDefinition, known_at: int) -> ExpectationSummary:
        """Expectation of one playbook version from its prior and the trades known at `known_at`.

        Raises:
            InvariantViolation: `known_at` lies after the clock.
        """
        prior, version_hash = definition.expectation, definition.content_hash
        if prior.source == "prior":
            prior = self.by_kernel.get(self._rules_of(version_hash), prior)
        return self._of(definition.id, prior, version_hash, definition.version, known_at)

    def measure(self, definition: PlaybookDefinition, found: Expectation) -> bool:
        """Take what was measured of a version as its prior; False where that is known.

        Raises:
            InvariantViolation: it is known after the clock.
        """
        self._clock.check(found.known_at or 0)
        rules = self._rules_of(definition.content_hash)
        if rules in self.by_kernel and self.by_kernel[rules].trades == found.trades:
            return False
        self.by_kernel[rules] = found
        self._cache.clear()
        return True

    def _of(
        self, name: str, prior: Expectation, version_hash: str, version: int, known_at: int
    ) -> ExpectationSummary:
        self._clock.check(known_at)
        kept = name, self._rules_of(version_hash)
        trades = self._trades.get(kept, [])
        n = bisect_right(trades, known_at, key=lambda episode: episode.known_at)
        cache = self._cache.setdefault(kept, {})
        known, shrunken = self.shrunken_mean(kept, known_at)
        key = (version_hash, n, known)
        if key not in cache:
            is_all = kept in self._measured and n == len(trades)
            measured = self._measured[kept] if is_all else TradeOutcomes.of(trades[:n])
            left = prior.expectancy_r * prior.weight_trades / (prior.weight_trades + n)
            made = summarise(name, version, prior, measured)
            cache[key] = made.model_copy(update={"shrunken_r": round(shrunken + left, DIGITS)})
        return cache[key]

    def shrunken_mean(self, kept: Kept, known_at: int) -> tuple[int, float]:
        """How many trades of all rules it was measured on, and the shrunken mean R of one playbook's rules.

        As of `known_at`; rules without a trade have the mean of all. It is measured again when another two
        in a hundred trades are known, so that a long run does not grow with its square.
        """
        count = bisect_right(self._ordered, known_at, key=itemgetter(0))
        before = self._pooled[0]
        used = before if EVERY_TRADE_UNTIL <= before <= count else min(count, EVERY_TRADE_UNTIL)
        while used + used // EVERY_TRADE_UNTIL <= count and used >= EVERY_TRADE_UNTIL:
            used += used // EVERY_TRADE_UNTIL
        if self._pooled[0] != used:
            self._pooled = used, _pool(self._ordered[:used])
        means = self._pooled[1]
        return used, means.get(kept, means.get(None, 0.0))


def _pool(ordered: Sequence[tuple[int, str, Kept, Episode]]) -> dict[Kept | None, float]:
    """Shrunken mean R by playbook and rules, and of all under None, from trades in each regime."""
    episodes = [row[3] for row in ordered]
    books, regimes = sorted({row[2] for row in ordered}), sorted({item.regime for item in episodes})
    keys = [[books.index(row[2]) for row in ordered], [regimes.index(item.regime) for item in episodes]]
    r = winsorise([item.r for item in episodes], GATE.winsor_low, GATE.winsor_high)
    months = unit_numbers([item.entry_label for item in episodes], "month")
    found = shrunken_means(r, months, [np.array(key, dtype=np.int64) for key in keys])
    return {books[name[0]] if name else None: band.mean for name, band in found.items() if len(name) < 2}


def summarise(
    playbook_id: str, version: int, prior: Expectation, measured: TradeOutcomes
) -> ExpectationSummary:
    """Shrink the measured figures of trades of a playbook version towards its prior.

    Measured: mean R, share of wins (`Episode.outcome`), 50 % and 90 % quantiles of the hold in bars, 20 %
    quantile of the winners' MAE (80 % of them stay above it) and the median MFE; quantiles interpolate
    linearly.
    """
    n, winners = len(measured.r), len(measured.mae_of_winners)

    def blend(design: float, found: float, n: int) -> float:
        return (design * prior.weight_trades + found * n) / (prior.weight_trades + n)

    return ExpectationSummary(
        playbook_id=playbook_id,
        playbook_version=version,
        n=n,
        prior=prior,
        expectancy_r=blend(prior.expectancy_r, _mean(measured.r), n),
        hit_rate=blend(prior.hit_rate, winners / n if n else 0.0, n),
        hold_p50_bars=blend(prior.hold_p50_bars, quantile(measured.holds, 0.5), n),
        hold_p90_bars=blend(prior.hold_p90_bars, quantile(measured.holds, 0.9), n),
        winner_mae_p80_r=blend(prior.winner_mae_p80_r, quantile(measured.mae_of_winners, 0.2), winners),
        mfe_p50_r=blend(prior.mfe_p50_r, quantile(measured.mfe, 0.5), n),
    )


def expectation_in(snapshot: PolicySnapshot, playbook: PlaybookDefinition) -> ExpectationSummary:
    """The snapshot's summary of exactly this playbook version, else the design of the playbook itself."""
    for summary in snapshot.expectations:
        if (summary.playbook_id, summary.playbook_version) == (playbook.id, playbook.version):
            return summary
    prior = playbook.expectation
    figures = ExpectationSummary.model_fields.keys() & Expectation.model_fields.keys()
    return ExpectationSummary(
        playbook_id=playbook.id,
        playbook_version=playbook.version,
        n=0,
        prior=prior,
        **{name: getattr(prior, name) for name in figures},
    )


def _order(episode: Episode) -> tuple[int, str]:
    return episode.known_at, episode.episode_id


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values) if values else 0.0
