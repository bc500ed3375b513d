"""What one run of a world says about the gate: one function a question, each a few named numbers.

A number is 1 or 0 where it counts (a flag, a covered mean), a quantity where it is one (blocks, a width), and
None where the run cannot say.

Two rules that are often used instead of a gate, on the same trades: would they have recommended anything?

A count with a win-rate cut: at least 20 trades and fewer than 40 % winners. Weekly t-tests: from 20 trades
on, two-sided, 5 %, at every look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmarks.gate_worlds.calendar import YEAR_WEEKS, CellTrades, week_ends
from benchmarks.gate_worlds.catalogue import REGIMES, World
from schemas.settings import GateSettings
from services.high_level.grading import MOVED
from services.statistics.blocks import GAINING, LOSING, Floats, Trades, blocks_of
from services.statistics.calendar_units import Integers
from services.statistics.drift import ARL
from services.statistics.multiplicity import e_bh_rows, register_family
from services.statistics.track import Bounds, Company, Track

Flagged = NDArray[np.bool_]


@dataclass(frozen=True)
class Hypotheses:
    """The clusters of a world in name order, which cells each pools, and its true mean in every week.

    Attributes:
        names: `playbook` and `playbook|regime`.
        cells: indices of the cells of each.
        truth: (hypotheses, weeks), R; a parent's is the plain mean of its cells.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    truth: Floats


def hypotheses_of(world: World) -> Hypotheses:
    """Parents and cells; a playbook with a single cell is a parent alone."""
    truth = world.truth()
    named: dict[str, tuple[int, ...]] = {}
    for book in range(world.playbooks):
        cells = tuple(range(book * world.regimes, (book + 1) * world.regimes))
        named[f"playbook_{book:02d}"] = cells
        if world.regimes > 1:
            named |= {f"playbook_{book:02d}|{REGIMES[k]}": (cell,) for k, cell in enumerate(cells)}
    ordered = sorted(named.items())
    means = np.stack([truth[list(cells)].mean(axis=0) for _, cells in ordered])
    return Hypotheses(tuple(name for name, _ in ordered), tuple(cells for _, cells in ordered), means)


@dataclass(frozen=True)
class Selections:
    """One run of a world under the gate.

    Attributes:
        world: what was drawn.
        gate: settings; the unit of a block is the week.
        drawn: the trades of each cell.
        bounds: what is known of a trade.
    """

    world: World
    gate: GateSettings
    drawn: Sequence[CellTrades]
    bounds: Bounds

    @cached_property
    def looks(self) -> NDArray[np.int64]:
        """Week ends, ns."""
        return np.array(week_ends(self.world.weeks), dtype=np.int64)

    @cached_property
    def hypotheses(self) -> Hypotheses:
        """What is tested."""
        return hypotheses_of(self.world)

    @cached_property
    def tracks(self) -> list[Track]:
        """The evidence of each hypothesis, as `build_clusters` lays it out."""
        found: list[Track] = []
        parent: Track | None = None
        account = blocks_of(pool(self.drawn), "week", self.bounds.low, self.bounds.high)
        bounds = replace(self.bounds, registered=len(self.hypotheses.names))
        for name, cells in zip(self.hypotheses.names, self.hypotheses.cells, strict=True):
            trades = pool([self.drawn[cell] for cell in cells])
            company = Company(account, parent if "|" in name else None)
            otherwise = None
            if self.world.kind == "equal_rows":  # nobody knows which rows are one trade
                other = distinct(trades)
                otherwise = Track(other, "week", self.gate.reference_r, bounds, company=company)
            found.append(
                Track(trades, "week", self.gate.reference_r, bounds, company=company, otherwise=otherwise)
            )
            parent = found[-1] if company.playbook is None else parent
        return found

    @property
    def first(self) -> int:
        """The place of the hypothesis that is the first cell alone."""
        return self.hypotheses.cells.index((0,))

    @property
    def track_of_first(self) -> Track:
        """Its evidence."""
        return self.tracks[self.first]

    @cached_property
    def selected(self) -> Flagged:
        """Claims that weighted e-BH selects, (looks, hypotheses, claims)."""
        family = register_family(self.hypotheses.names, self.gate.q)
        log_e = np.stack([track.log_e_at(self.looks) for track in self.tracks], axis=1)
        scaled = log_e + np.log(family.charged)[:, None]
        return e_bh_rows(scaled.reshape(len(scaled), -1), family.q).reshape(log_e.shape)

    @cached_property
    def false(self) -> Flagged:
        """Selections that contradict the truth of every week so far, (looks, hypotheses, claims).

        "Losing" is false while no week had a mean below the reference, "gaining" while none had one above.
        """
        off = self.hypotheses.truth.T - self.gate.reference_r
        lowest, highest = np.minimum.accumulate(off), np.maximum.accumulate(off)
        wrong = np.zeros(self.selected.shape, dtype=np.bool_)
        wrong[..., LOSING], wrong[..., GAINING] = lowest >= 0.0, highest <= 0.0
        return np.asarray(self.selected & wrong)


def pool(parts: Sequence[CellTrades]) -> Trades:
    """Trades of several cells."""
    return Trades(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("entry_ns", "exit_ns", "r"))
    )


def distinct(trades: Trades) -> Trades:
    """Rows that are equal in every column, once."""
    rows = np.stack((trades.entry_ns, trades.exit_ns, trades.r.view(np.int64)), axis=1)
    _, kept = np.unique(rows, axis=0, return_index=True)
    return Trades(trades.entry_ns[kept], trades.exit_ns[kept], trades.r[kept])


Outcome = dict[str, float | None]
PROMOTION_E = 40.0
DECAY_E = 20.0
HORIZONS = (52, 104, 260)
MINIMUM = 20
WIN_RATE = 0.4
LEVEL = 0.05


def other_rules(run: Selections) -> dict[str, float | None]:
    """Whether either rule calls any cell losing at any look."""
    verdicts = [
        _cell(cell.exit_ns, cell.r - run.gate.reference_r, cell.r > 0.0, run.looks) for cell in run.drawn
    ]
    rate, test = np.any(verdicts, axis=0)
    return {"count and win rate": float(rate), "weekly t-tests": float(test)}


def _cell(exit_ns: Integers, off: Floats, won: Flagged, looks: Integers) -> tuple[bool, bool]:
    order = np.argsort(exit_ns, kind="stable")
    n = np.unique(np.searchsorted(exit_ns[order], looks, side="right"))
    n = n[n >= MINIMUM]
    if not len(n):
        return False, False
    sums, squares, wins = (values[order].cumsum()[n - 1] for values in (off, off**2, won.astype(np.float64)))
    variance = np.maximum(squares - sums**2 / n, 1e-12) / (n - 1)
    t = sums / np.sqrt(n * variance)
    return bool((wins / n < WIN_RATE).any()), bool((t < -stdtrit(n - 1, 1.0 - LEVEL / 2.0)).any())


def bounds_of(gate: GateSettings) -> Bounds:
    """What the gate knows of a trade of which nothing is declared."""
    return Bounds(gate.winsor_low, gate.winsor_high, strict=gate.strict)


def draw_run(world: World, gate: GateSettings, key: list[int]) -> Selections:
    """One run; the key makes the draw."""
    draw = np.random.Generator(np.random.PCG64(key))
    return Selections(world, gate, world.draw(draw), bounds_of(gate))


def flags(world: World, gate: GateSettings, key: list[int]) -> Outcome:
    """False flags of a run: of any claim, of each, and of two other rules on the same trades."""
    run = draw_run(world, gate, key)
    false = run.false
    return {
        "any": float(false.any()),
        "losing": float(false[..., LOSING].any()),
        "gaining": float(false[..., GAINING].any()),
        **other_rules(run),
    }


def power(world: World, gate: GateSettings, key: list[int]) -> Outcome:
    """The first cell's loss: found by each horizon, at which block, and whether a flag was false."""
    run = draw_run(world, gate, key)
    planted = run.first
    found = run.selected[:, planted, LOSING]
    blocks = run.tracks[planted].complete(int(run.looks[found.argmax()])) if found.any() else None
    counted: Outcome = {
        f"by {weeks}": float(found[:weeks].any()) for weeks in HORIZONS if weeks <= world.weeks
    }
    return counted | {"blocks": None if blocks is None else float(blocks), "false": float(run.false.any())}


def promotion(world: World, gate: GateSettings, key: list[int]) -> Outcome:
    """A single losing cluster at the level of a promotion, without restarts; None where it did not lose.

    The last two with the account's limit of trades a block declared.
    """
    run = draw_run(world, gate, key)
    trades = run.drawn[0]
    if trades.r.mean() >= gate.reference_r:
        return dict.fromkeys(("at the end", "ever", "at the end, limited", "ever, limited"))
    most = int(run.tracks[0].blocks.sizes.max())
    limited = replace(run, bounds=replace(run.bounds, most_trades=max(most, world.given.crash_trades)))
    plain, known = (_proof(measured.tracks[0]) >= PROMOTION_E for measured in (run, limited))
    return {
        "at the end": float(plain[-1]),
        "ever": float(plain.any()),
        "at the end, limited": float(known[-1]),
        "ever, limited": float(known.any()),
    }


def _proof(track: Track) -> Floats:
    """Evidence without restarts for "gaining" after each block, (b,)."""
    return np.array([track.at(int(at)).proof_of("gaining") for at in track.blocks.complete_at])


def decay(world: World, gate: GateSettings, key: list[int]) -> Outcome:
    """One cell whose mean turns at half: what evidence and detector say before, and within 52 blocks.

    The detector of a run holds a playbook against the edge that it declares, here its first one; against the
    gate's reference it is given as well.
    """
    run = draw_run(world, gate, key)
    track, half = run.track_of_first, world.weeks // 2
    e = np.array([track.at(int(at)).e_values[LOSING] for at in run.looks])
    checked = np.exp(track.log_e_at(run.looks)[:, LOSING])
    declared = gate.model_copy(update={"reference_r": world.first or 0.0})
    own = _detector(replace(run, gate=declared))
    plain = _detector(run)
    after = slice(half, half + YEAR_WEEKS)
    return {
        "E of 20 before": float((e[:half] >= DECAY_E).any()),
        "E of 20": float((e[after] >= DECAY_E).any()),
        "E of 20, means agree": float((checked[after] >= DECAY_E).any()),
        "detector before": float(own[:half].any()),
        "detector": float(own[after].any()),
        "detector at the reference": float(plain[after].any()),
        "blocks to the detector": float(own[after].argmax() + 1) if own[after].any() else None,
    }


def _detector(run: Selections) -> Flagged:
    """Whether the e-detector of the first cluster stands at its limit, at each look."""
    track = run.track_of_first
    blocks = np.searchsorted(track.blocks.complete_at, run.looks, side="right")
    return np.asarray(np.append(track.decay, 0.0)[blocks - 1] >= ARL)


def interval(world: World, gate: GateSettings, key: list[int]) -> Outcome:
    """Whether the first cell's interval covers its mean at every look, and how wide it ends.

    The mean that it names is that of winsorised R; the mean of R as it is stands beside it. Each look holds
    those before it, so one in eight is asked.
    """
    run = draw_run(world, gate, key)
    track = run.track_of_first
    named, plain = world.winsorised_mean(gate.winsor_low, gate.winsor_high), float(world.truth().mean())
    last = track.complete(int(run.looks[-1]))
    shown = [track.interval(blocks) for blocks in sorted({*range(8, last, 8), last})]
    lower = max((seen.lower for seen in shown if seen.lower is not None), default=-np.inf)
    upper = min((seen.upper for seen in shown if seen.upper is not None), default=np.inf)
    return {
        "covered": float(lower <= named <= upper and not any(seen.kind == "none" for seen in shown)),
        "mean as it is covered": float(lower <= plain <= upper),
        "moved": float(any(seen.kind in MOVED for seen in shown)),
        "half-width": None if np.isinf(upper - lower) else (upper - lower) / 2.0,
    }


MEASURES: dict[str, Callable[[World, GateSettings, list[int]], Outcome]] = {
    "flags": flags,
    "power": power,
    "promotion": promotion,
    "decay": decay,
    "interval": interval,
}
