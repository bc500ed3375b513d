"""What the gate selects in one drawn world, at every weekly look at once.

The paths of evidence are those of `services.statistics.track`, which the slow loop and `thinktwice gate`
read look by look; here weighted e-BH runs over all looks in one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from schemas.settings import GateSettings
from services.statistics.blocks import GAINING, LOSING, Floats, Trades
from services.statistics.multiplicity import e_bh_rows, register_family
from services.statistics.track import Bounds, Track
from worker.studies.worlds.calendar import CellTrades, week_ends
from worker.studies.worlds.catalogue import REGIMES, World

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
        """The evidence of each hypothesis; a cell learns from its playbook how large a row may be."""
        found: list[Track] = []
        parent: Track | None = None
        for name, cells in zip(self.hypotheses.names, self.hypotheses.cells, strict=True):
            trades = pooled([self.drawn[cell] for cell in cells])
            teacher = None if "|" not in name or parent is None else parent.blocks
            found.append(Track(trades, "week", self.gate.reference_r, self.bounds, teacher=teacher))
            parent = found[-1] if teacher is None else parent
        return found

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


def pooled(parts: Sequence[CellTrades]) -> Trades:
    """Trades of several cells."""
    return Trades(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("entry_ns", "exit_ns", "r"))
    )
