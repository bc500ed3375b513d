"""One cluster's blocks, and what they have shown after each of them.

Everything is computed once, over all blocks; a look reads what stood there at its time. The slow loop,
`thinktwice gate` and the worlds all measure here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor
from typing import Literal

import numpy as np

from schemas.errors import DataError
from services.statistics.blocks import GAINING, LOSING, Blocks, Floats, Trades, blocks_of
from services.statistics.calendar_units import BlockUnit, Integers, unit_numbers
from services.statistics.claim_path import (
    ADVERSE,
    DETECTOR,
    PLAIN,
    ROWS,
    SPREAD,
    WITH_RESTARTS,
    ClaimBlocks,
    Looks,
    Terms,
    edge,
    second_largest,
    walk,
)
from services.statistics.group_length import LENGTHS, Judge, agreeing, groups_over
from services.statistics.sample import INTERVAL_ALPHA, PROVEN_E, Sample

FIXED_TIME_BLOCKS = 10
TOGETHER = 4  # periods of a sum that PSR reads beside single ones
LARGEST_ROW_R = 10.0
GRAIN = 1e-6
PRIOR_BLOCKS, MANY_PRIOR_BLOCKS = 4.0, 16.0
MANY_HYPOTHESES = 60  # beyond, one bet of several rows is given up later: so many have more chances to err

IntervalKind = Literal["anytime", "open", "open below", "open above", "moved", "none"]


@dataclass(frozen=True)
class Bounds:
    """What is known of a row of R before it is seen.

    Attributes:
        low, high: winsor bounds.
        target: R that the playbook takes as its profit; None: `high`. What is seen beyond it widens it.
        most_trades: rows of a block that the account allows; 0 where nothing is declared.
        strict: whether the rows of a block count as one bet, see `claim_path`.
        registered: hypotheses that are tested together.
    """

    low: float
    high: float
    target: float | None = None
    most_trades: int = 0
    strict: bool = False
    registered: int = 0

    def terms(self, claim: int) -> Terms:
        """On what terms a claim is bet on."""
        prior = PRIOR_BLOCKS if self.registered <= MANY_HYPOTHESES else MANY_PRIOR_BLOCKS
        return Terms(1.0 if claim == GAINING else -1.0, float(self.most_trades), self.strict, prior)

    def usual(self, claim: int) -> float:
        """The largest R against a claim that a row is believed to bring before anything is seen."""
        target = self.high if self.target is None else self.target
        return -self.low if claim == GAINING else target


@dataclass(frozen=True)
class Interval:
    """Means in R that are not refuted, the one that was seen among them; None where a side is open."""

    lower: float | None
    upper: float | None
    kind: IntervalKind


@dataclass(frozen=True)
class Company:
    """Whose trades a cluster's belong to, in blocks of the same unit.

    Attributes:
        account: blocks of all trades, the cluster's among them; None where there are no others.
        playbook: the track of its playbook, which shows how large a row may be; None where that is itself.
    """

    account: Blocks | None = None
    playbook: "Track | None" = None


ALONE = Company()


class Track:
    """The blocks of one cluster and the path of its evidence."""

    def __init__(
        self,
        trades: Trades,
        unit: BlockUnit,
        reference: float,
        bounds: Bounds,
        open_since: int | None = None,
        company: Company = ALONE,
        otherwise: "Track | None" = None,
    ) -> None:
        """Take trades in any order; see `blocks_of` for `open_since`.

        `otherwise` holds the same rows, where they may be one trade or several, read the other way, in the
        same blocks.

        Raises:
            DataError: the reference does not lie strictly between the winsor bounds.
        """
        if not bounds.low < reference < bounds.high:
            raise DataError(
                f"reference {reference!r} must lie strictly between the winsor bounds {bounds.low!r} and "
                f"{bounds.high!r}"
            )
        self.unit, self.reference, self.bounds = unit, reference, bounds
        self.blocks = blocks_of(trades, unit, bounds.low, bounds.high, open_since)
        self._trades, self._open_since, self.otherwise = trades, open_since, otherwise
        self._exits = np.sort(trades.exit_ns)
        self._company = company
        self._grouped: dict[int, list[ClaimBlocks]] = {}
        self._walked: dict[int, list[Floats]] = {}
        self._teacher = self.blocks if company.playbook is None else company.playbook.blocks

    @cached_property
    def monthly(self) -> Blocks:
        """The same trades in blocks of a month, or of its own unit where that is longer."""
        if self.unit in ("month", "quarter"):
            return self.blocks
        return blocks_of(self._trades, "month", self.bounds.low, self.bounds.high, self._open_since)

    def complete(self, at_ns: int) -> int:
        """Blocks that count at a time."""
        return int(np.searchsorted(self.blocks.complete_at, at_ns, side="right"))

    def at(self, at_ns: int) -> Sample:
        """What is known at a time, ns."""
        blocks = self.complete(at_ns)
        n = int(np.searchsorted(self._exits, at_ns, side="right"))
        if not blocks:
            return Sample(n, 0, 0, self.unit, self.reference, None, None, (1.0, 1.0), (1.0, 1.0), 1)
        last = blocks - 1
        lengths = int(self._looks.agree[last])
        winsorised, raw = (round(float(mean), 9) for mean in self._means[:, last])
        restarted, plain = (
            (self._evidence(LOSING, row, last, lengths), self._evidence(GAINING, row, last, lengths))
            for row in (WITH_RESTARTS, PLAIN)
        )
        return Sample(
            n,
            int(self._counted[last]),
            blocks,
            self.unit,
            self.reference,
            winsorised,
            raw,
            restarted,
            plain,
            LENGTHS[lengths - 1],
            None if self.otherwise is None else self.otherwise.at(at_ns),
        )

    def log_e_at(self, looks: Integers) -> Floats:
        """Log of the e-values of losing and gaining at each look, shape (looks, 2).

        -inf on the wrong side, and where the other claim is proven; the smaller one of two readings.
        """
        blocks = np.searchsorted(self.blocks.complete_at, looks, side="right")
        with np.errstate(divide="ignore"):
            logs = np.log(self._paths[0])
        below, above = (
            np.all(sides, axis=0) for sides in (self._means < self.reference, self._means > self.reference)
        )
        stands = np.stack((below, above)) & (self._paths[0][::-1] < PROVEN_E)
        logs = np.where(stands, logs, -np.inf)
        before = np.concatenate((np.zeros((2, 1)), logs), axis=1)
        found: Floats = before[:, blocks].T
        return found if self.otherwise is None else np.minimum(found, self.otherwise.log_e_at(looks))

    def interval(self, blocks: int, alpha: float = INTERVAL_ALPHA) -> Interval:
        """The trade-weighted mean of winsorised R after so many blocks, valid at every look up to there.

        `moved` where those looks together exclude every mean, or the one that was seen: then it is that of
        the last look alone. `none` where even that one excludes the mean: no side has an edge.
        """
        if not blocks:
            return Interval(None, None, "open")
        kind: IntervalKind = "anytime"
        mean = float(self._means[0, blocks - 1])
        lower, upper = self._edges(blocks, 2.0 / alpha, 0)
        if not lower <= mean <= upper:
            kind = "moved"
            lower, upper = self._edges(blocks, 2.0 / alpha, blocks - 1)
            if not lower <= mean <= upper:
                return Interval(None, None, "none")
        shown = (
            None if lower <= self.bounds.low else round(floor(lower / GRAIN) * GRAIN, 6),
            None if upper >= self.bounds.high else round(ceil(upper / GRAIN) * GRAIN, 6),
        )
        if kind == "anytime" and None in shown:
            kind = "open" if shown == (None, None) else "open below" if shown[0] is None else "open above"
        return Interval(*shown, kind)

    def fixed_time(self, blocks: int, alpha: float = INTERVAL_ALPHA) -> tuple[float, float] | None:
        """Student's t over blocks for one declared look at the same mean; None below ten blocks."""
        if blocks < FIXED_TIME_BLOCKS:
            return None
        from scipy.special import stdtrit  # costs a tenth of a second, and short runs never ask

        sizes, sums = self.blocks.sizes[:blocks], self.blocks.winsorised[:blocks]
        mean = float(sums.sum() / sizes.sum())
        error = float(np.sqrt(blocks / (blocks - 1) * ((sums - sizes * mean) ** 2).sum()) / sizes.sum())
        reach = float(stdtrit(blocks - 1, 1.0 - alpha / 2.0)) * error
        return round(mean - reach, 9), round(mean + reach, 9)

    def outcomes(self, blocks: int, *, together: bool = False) -> Floats:
        """Sums of R above the reference of each of so many blocks, (b,), or of four periods at a time."""
        sums = self.blocks.raw[:blocks] - self.reference * self.blocks.sizes[:blocks]
        if not together:
            return sums
        group = self.blocks.numbers[:blocks] // TOGETHER
        starts = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
        return np.asarray(np.add.reduceat(sums, starts))

    @property
    def decay(self) -> Floats:
        """Level of the e-detector for a loss after each block, the smaller of two readings, shape (b,)."""
        found: Floats = self._walks[LOSING][DETECTOR]
        return found if self.otherwise is None else np.minimum(found, self.otherwise.decay)

    def stakes(self, claim: int, blocks: int) -> tuple[float, float]:
        """Spread of a block's sum and the largest adverse sum behind the bet on block `blocks` (from 1)."""
        path = self._walks[claim]
        return float(path[SPREAD, blocks - 1]), float(path[ADVERSE, blocks - 1])

    def bets(self, claim: int, blocks: int) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Rows, spread and largest adverse sum of each bet up to a block, of every length that counts."""
        for place in range(int(self._looks.agree[blocks - 1])):
            over = self._looks.over[place, blocks - 1]
            path = self._walks_of(place)[claim]
            yield self._groups(place)[claim].sizes[:over], path[SPREAD, :over], path[ADVERSE, :over]

    @cached_property
    def _walks(self) -> list[Floats]:
        return self._walks_of(0)

    def _walks_of(self, place: int) -> list[Floats]:
        """What both claims' wealth did over groups of a length."""
        if place not in self._walked:
            found = [np.empty((ROWS, len(seen.sizes))) for seen in self._groups(place)]
            for claim, seen in enumerate(self._groups(place)):
                walk(seen, self.bounds.terms(claim), self.reference, found[claim])
            self._walked[place] = found
        return self._walked[place]

    def _evidence(self, claim: int, row: int, last: int, lengths: int) -> float:
        """E-value of a claim after block `last`, as it is printed."""
        over = enumerate(self._looks.over[:lengths, last].tolist())
        e = min(
            float(self._walks_of(place)[claim][row, ended - 1]) if ended else 1.0 for place, ended in over
        )
        return float(f"{e:.9g}")

    def _path(self, claim: int, row: int, place: int) -> Floats:
        """E-value of the groups of a length that are over at each block, (b,)."""
        path = np.concatenate(([1.0], self._walks_of(place)[claim][row]))
        return np.asarray(path[self._looks.over[place]])

    @cached_property
    def _paths(self) -> tuple[Floats, Floats]:
        """E-values of both claims after each block, with and without restarts, each (2, b)."""
        agree, found = self._looks.agree, []
        for row in (WITH_RESTARTS, PLAIN):
            least = np.stack([path[row] for path in self._walks])
            for place in range(1, int(agree.max(initial=1))):
                together = np.stack([self._path(claim, row, place) for claim in (LOSING, GAINING)])
                least = np.where(agree > place, np.minimum(least, together), least)
            found.append(least)
        return found[0], found[1]

    @cached_property
    def judge(self) -> Judge:
        """How much its blocks resemble their neighbours."""
        return Judge.of(self.blocks)

    @cached_property
    def _looks(self) -> Looks:
        """How many groups of each length are over at each block, and how many lengths have to agree."""
        playbook, account = self._company.playbook, self._company.account
        outside = None if account is None else Judge.outside(account, self.blocks)
        agree = agreeing(self.judge, None if playbook is None else playbook.judge, outside, self._late())
        over = [groups_over(self.blocks.numbers, length) for length in LENGTHS[: agree.max(initial=1)]]
        return Looks(np.stack(over), agree)

    def _late(self) -> Iterator[Integers]:
        """Of each length but the last, how many trades of each block end after the group they began in."""
        trades, numbers = self._trades, self.blocks.numbers
        began, ended = unit_numbers(trades.entry_ns, self.unit), unit_numbers(trades.exit_ns - 1, self.unit)
        late = ended > began
        places, began, ended = np.searchsorted(numbers, began[late]), began[late], ended[late]
        for length in LENGTHS[:-1]:
            yield np.bincount(places[ended // length > began // length], minlength=len(numbers))

    def _groups(self, place: int) -> list[ClaimBlocks]:
        """Blocks as both claims see them, held together by one of the lengths."""
        if place not in self._grouped:
            length = LENGTHS[place]
            blocks = self.blocks
            if length > 1:
                bounds = self.bounds
                blocks = blocks_of(self._trades, self.unit, bounds.low, bounds.high, together=length)
            sizes = blocks.sizes.astype(np.float64)
            self._grouped[place] = [
                ClaimBlocks(
                    sizes, blocks.sums[claim], blocks.squares[claim], self._rows(blocks, claim, length)
                )
                for claim in (LOSING, GAINING)
            ]
        return self._grouped[place]

    def _rows(self, blocks: Blocks, claim: int, together: int = 1) -> Floats:
        """The largest R against a claim that a row of each block is believed to bring, (b,).

        From what was known before it: what is usual, or what two rows of the teacher's complete blocks have
        reached, up to 10R. Once may be an outlier; the target of a bracket order comes again and again. Of
        the teacher only earlier periods count: one trade held for long completes several of them at once.
        """
        usual = self.bounds.usual(claim)
        twice = np.empty(len(self._teacher))
        second_largest(self._teacher.worst[claim], twice)
        before = np.searchsorted(self._teacher.complete_at, blocks.complete_at[:-1], side="right")
        earlier = np.searchsorted(self._teacher.numbers, blocks.numbers * together)
        known = np.minimum(np.concatenate(([0], before))[: len(blocks)], earlier)
        return np.maximum(usual, np.minimum(np.concatenate(([usual], twice))[known], LARGEST_ROW_R))

    @cached_property
    def _counted(self) -> Integers:
        return np.asarray(self.blocks.sizes.cumsum(), dtype=np.int64)

    @cached_property
    def _means(self) -> Floats:
        """Winsorised and raw mean of the trades so far after each block, (2, b)."""
        sums = np.stack((self.blocks.winsorised, self.blocks.raw)).cumsum(axis=1)
        return np.asarray(sums / self._counted)

    def _edges(self, blocks: int, limit: float, since: int) -> tuple[float, float]:
        low, high = self.bounds.low, self.bounds.high
        first = self._edge(GAINING, blocks, low, high, limit, since)
        return first, self._edge(LOSING, blocks, high, low, limit, since)

    def _edge(
        self, claim: int, blocks: int, outside: float, inside: float, limit: float, since: int
    ) -> float:
        over, agree = self._looks
        known = Looks(np.ascontiguousarray(over[:, :blocks]), agree[:blocks])
        # Always as many, the last one again: each other number of them would be compiled anew in the run.
        groups = tuple(self._groups(min(place, len(over) - 1))[claim] for place in range(len(LENGTHS)))
        return float(edge(groups, known, self.bounds.terms(claim), outside, inside, limit, since))
