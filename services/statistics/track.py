"""One cluster's blocks, and what they have shown after each of them.

Everything is computed once, over all blocks; a look reads what stood there at its time. The slow loop,
`thinktwice gate` and the worlds all measure here.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, isnan
from typing import Literal

import numpy as np

from schemas.errors import DataError
from schemas.vocabulary import Claim
from services.statistics.blocks import GAINING, LOSING, Blocks, Floats, Trades, blocks_of
from services.statistics.calendar_units import BlockUnit, Integers
from services.statistics.claim_path import (
    ADVERSE,
    DETECTOR,
    PLAIN,
    ROWS,
    SPREAD,
    UNKNOWN,
    WITH_RESTARTS,
    YES,
    ClaimBlocks,
    Terms,
    Widening,
    all_resembling,
    edge,
    resembling,
    second_largest,
    walk,
)

CLAIMS: tuple[Claim, Claim] = ("losing", "gaining")
INTERVAL_ALPHA = 0.05
PROVEN_E = 2.0 / INTERVAL_ALPHA  # for one claim of two: what the interval excludes
FIXED_TIME_BLOCKS = 10
TOGETHER = 4
LARGEST_ROW_R = 10.0
GRAIN = 1e-6
NOTHING = ClaimBlocks(*(np.zeros(0) for _ in ClaimBlocks._fields))

IntervalKind = Literal["anytime", "open", "open below", "open above", "moved", "none"]


@dataclass(frozen=True)
class Bounds:
    """What is known of a row of R before it is seen.

    Attributes:
        low, high: winsor bounds.
        target: R that the playbook takes as its profit; None: `high`. What is seen beyond it widens it.
        most_trades: rows of a block that the account allows; 0 where nothing is declared.
        strict: whether the rows of a block count as one bet, see `claim_path`.
    """

    low: float
    high: float
    target: float | None = None
    most_trades: int = 0
    strict: bool = False

    def terms(self, claim: int) -> Terms:
        """On what terms a claim is bet on."""
        return Terms(1.0 if claim == GAINING else -1.0, float(self.most_trades), self.strict)

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
class Sample:
    """What one cluster has shown at one look.

    Attributes:
        n: resolved trades.
        counted: those of complete blocks; the means and the evidence are theirs.
        blocks: complete ones.
        unit: what one block is.
        reference: the mean R under both hypotheses.
        mean_r, mean_raw: over the counted trades, winsorised and as it is; None without a block.
        e_values: of losing and gaining, with restarts.
        plain: the same without restarts.
        widened: whether single blocks resemble each other, so that four of them have to agree.
        otherwise: the other reading, where rows may be one trade or several; a claim has to stand in both.
    """

    n: int
    counted: int
    blocks: int
    unit: BlockUnit
    reference: float
    mean_r: float | None
    mean_raw: float | None
    e_values: tuple[float, float]
    plain: tuple[float, float]
    widened: bool
    otherwise: "Sample | None" = None

    @property
    def readings(self) -> tuple["Sample", ...]:
        """This reading of the rows, and the other one, if there is one."""
        return (self,) if self.otherwise is None else (self, self.otherwise)

    @cached_property
    def side(self) -> Claim | None:
        """The claim on whose side all means of all readings lie."""
        sides = {reading._own_side for reading in self.readings}
        return sides.pop() if len(sides) == 1 else None

    @property
    def _own_side(self) -> Claim | None:
        if self.mean_r is None or self.mean_raw is None:
            return None
        if max(self.mean_r, self.mean_raw) < self.reference:
            return "losing"
        return "gaining" if min(self.mean_r, self.mean_raw) > self.reference else None

    @property
    def contested(self) -> bool:
        """Whether the other claim is proven by some stretch: then the means of all trades say nothing."""
        return self._against >= PROVEN_E

    @property
    def _against(self) -> float:
        """The largest evidence of a reading for the claim that the means do not lie on the side of."""
        if self.side is None:
            return 1.0
        return max(reading.e_values[1 - CLAIMS.index(self.side)] for reading in self.readings)

    @property
    def leaning(self) -> Claim | None:
        """The claim on whose side both means lie, unless the other one is proven by some stretch."""
        return None if self.contested else self.side

    @property
    def e_value(self) -> float:
        """Evidence for what the cluster leans to, the smaller of both readings; 1 while that is nothing."""
        if self.leaning is None:
            return 1.0
        return min(reading.e_values[CLAIMS.index(self.leaning)] for reading in self.readings)

    def proof_of(self, claim: Claim) -> float:
        """Evidence for a claim without restarts; 1 where the means do not lie on its side."""
        if self.leaning != claim:
            return 1.0
        return min(reading.plain[CLAIMS.index(claim)] for reading in self.readings)

    def _torn_by_readings(self) -> list[str]:
        """That the other reading lies elsewhere, or proves less; nothing where this one has no claim."""
        own, other = self._own_side, self.otherwise
        if own is None or other is None or other.mean_r is None or other.mean_raw is None:
            return []
        nearest = (min if own == "gaining" else max)(other.mean_r, other.mean_raw)
        both = f"the mean is {self.mean_r:+.3g}R or {nearest:+.3g}R, by which rows are a trade"
        step = "name trades by a column position_id"
        if self.side is None:
            return [f"{both}: its side depends on that, and no claim stands; {step}"]
        here, there = (reading.e_values[CLAIMS.index(own)] for reading in self.readings)
        text = f"{both}, and E {here:.4g} or {there:.4g}: the smaller one counts; {step}"
        return [text] if there < here else []

    @property
    def note(self) -> str:
        """What was odd about the blocks: a mean that turned, four that were held together; mostly empty."""
        found = []
        if self.side is not None and self.contested:
            other = 1 - CLAIMS.index(self.side)
            found.append(
                f"the means of all trades lie on the {self.side} side, but a stretch of blocks proves "
                f"{CLAIMS[other]} (E {self._against:.4g}, at least {PROVEN_E:g}): the mean has "
                "turned, and no claim stands"
            )
        found += self._torn_by_readings()
        if any(reading.widened for reading in self.readings):
            found.append(
                f"{self.unit}s resemble each other: what four of them show together counts where it is less"
            )
        return "; ".join(found)


class Track:
    """The blocks of one cluster and the path of its evidence."""

    def __init__(
        self,
        trades: Trades,
        unit: BlockUnit,
        reference: float,
        bounds: Bounds,
        open_since: int | None = None,
        teacher: Blocks | None = None,
        otherwise: "Track | None" = None,
    ) -> None:
        """Take trades in any order; see `blocks_of` for `open_since`.

        `teacher` holds more trades of the same playbook, whose rows show how large a row may be. `otherwise`
        holds the same rows, where they may be one trade or several, read the other way, in the same blocks.

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
        self._trades, self._otherwise = trades, otherwise
        self._exits = np.sort(trades.exit_ns)
        self._teacher = self.blocks if teacher is None else teacher
        self._seen = self._claim_blocks(self.blocks)

    def complete(self, at_ns: int) -> int:
        """Blocks that count at a time."""
        return int(np.searchsorted(self.blocks.complete_at, at_ns, side="right"))

    def at(self, at_ns: int) -> Sample:
        """What is known at a time, ns."""
        blocks = self.complete(at_ns)
        n = int(np.searchsorted(self._exits, at_ns, side="right"))
        if not blocks:
            return Sample(n, 0, 0, self.unit, self.reference, None, None, (1.0, 1.0), (1.0, 1.0), False)
        last = blocks - 1
        widened = self._resembling(last)
        winsorised, raw = (round(float(mean), 9) for mean in self._means[:, last])
        restarted, plain = (
            (self._evidence(LOSING, row, last, widened), self._evidence(GAINING, row, last, widened))
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
            widened,
            None if self._otherwise is None else self._otherwise.at(at_ns),
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
        return found if self._otherwise is None else np.minimum(found, self._otherwise.log_e_at(looks))

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
        return found if self._otherwise is None else np.minimum(found, self._otherwise.decay)

    def stakes(self, claim: int, blocks: int) -> tuple[float, float]:
        """Spread of a block's sum and the largest adverse sum behind the bet on block `blocks` (from 1)."""
        path = self._walks[claim]
        return float(path[SPREAD, blocks - 1]), float(path[ADVERSE, blocks - 1])

    @cached_property
    def _walks(self) -> list[Floats]:
        return [self._walk(seen, claim) for claim, seen in enumerate(self._seen)]

    def _walk(self, seen: ClaimBlocks, claim: int) -> Floats:
        out = np.empty((ROWS, len(seen.sizes)))
        walk(seen, self.bounds.terms(claim), self.reference, out)
        return out

    def _evidence(self, claim: int, row: int, last: int, widened: bool) -> float:
        """E-value of a claim after block `last`, as it is printed."""
        own = float(self._walks[claim][row, last])
        return _round_printed(min(own, float(self._together(claim, row)[last])) if widened else own)

    def _together(self, claim: int, row: int) -> Floats:
        """E-value of the groups of four periods that are over at each block, (b,)."""
        path = np.concatenate(([1.0], self._group_walks[claim][row]))
        return path[self._widening.groups]

    @cached_property
    def _group_walks(self) -> list[Floats]:
        return [self._walk(seen, claim) for claim, seen in enumerate(self._grouped)]

    @cached_property
    def _paths(self) -> tuple[Floats, Floats]:
        """E-values of both claims after each block, with and without restarts, each (2, b)."""
        all_resembling(self._seen[LOSING], self._seen[GAINING], self._widening)
        flagged = self._widening.flagged == YES
        found = []
        for row in (WITH_RESTARTS, PLAIN):
            alone = np.stack([path[row] for path in self._walks])
            if flagged.any():
                together = np.stack([self._together(claim, row) for claim in (LOSING, GAINING)])
                alone = np.where(flagged, np.minimum(alone, together), alone)
            found.append(alone)
        return found[0], found[1]

    def _resembling(self, last: int) -> bool:
        """Whether four periods have to agree at block `last`."""
        return bool(resembling(self._seen[LOSING], self._seen[GAINING], self._widening, last))

    @cached_property
    def _widening(self) -> Widening:
        """Where four periods have to agree, as far as it was asked, and how many groups of four are over."""
        numbers = self.blocks.numbers
        group = numbers // TOGETHER
        distinct = np.cumsum(np.concatenate(([True], group[1:] != group[:-1]))[: len(group)])
        over = distinct - (numbers % TOGETHER != TOGETHER - 1)
        unknown = np.full(len(numbers), UNKNOWN, dtype=np.int8)
        return Widening(unknown, over.astype(np.int64))

    @cached_property
    def _grouped(self) -> list[ClaimBlocks]:
        bounds = self.bounds
        groups = blocks_of(self._trades, self.unit, bounds.low, bounds.high, together=TOGETHER)
        return self._claim_blocks(groups, TOGETHER)

    def _claim_blocks(self, blocks: Blocks, together: int = 1) -> list[ClaimBlocks]:
        sizes = blocks.sizes.astype(np.float64)
        return [
            ClaimBlocks(
                sizes,
                blocks.sums[claim],
                blocks.squares[claim],
                self._rows(blocks, claim, together),
            )
            for claim in (LOSING, GAINING)
        ]

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
        """Groups of four are put together only where the answer depends on them."""
        flagged, groups = self._widening
        known = Widening(flagged[:blocks], groups[:blocks])
        seen = self._seen[claim], self._seen[LOSING], self._seen[GAINING]
        terms = self.bounds.terms(claim)
        found = float(edge(seen, NOTHING, known, terms, outside, inside, limit, since))
        if isnan(found):
            grouped = self._grouped[claim]
            found = float(edge(seen, grouped, known, terms, outside, inside, limit, since))
        return found


def _round_printed(e_value: float) -> float:
    """Nine significant digits: what reports print and hashes keep."""
    return float(f"{float(e_value):.9g}")
