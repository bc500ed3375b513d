"""How often memory asks to revise a plan: where a loss is planted, around it, and where nothing is.

`uv run python -m benchmarks.memory_worlds [RUNS]` prints the table. A run has five rules with n cases each
and uniform ranks; the first loses in the region and earns nothing elsewhere, the others earn nothing. Plans
are drawn uniformly after the last case.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.memory.departures import Departures
from tools.docs_pages import table

SEED, RUNS, RULES, PLANS, RANKS = 20_261_127, 100, 5, 100, 5
Points = npt.NDArray[np.float64]
Region = Callable[[np.random.Generator, Points], npt.NDArray[np.bool_]]
REGIONS: dict[str, Region] = {
    "half": lambda rng, x: (x[:, rng.integers(RANKS)] > 0.5) == (rng.random() < 0.5),
    "third": lambda rng, x: x[:, rng.integers(RANKS)] > 2 / 3,
    "corner": lambda rng, x: (x[:, (k := rng.integers(RANKS))] > 0.45) & (x[:, k - 1] < 0.55),
}


@dataclass(frozen=True)
class World:
    """How R is drawn, in R.

    Attributes:
        kind: `t3` with a deviation of 1, or `bracket` of +2 and -1.
        departure: of the first rules in their region.
        region: where.
        mean: of everything else.
        together: trades that are open at the same time and share half of their variance.
    """

    kind: str
    departure: float
    region: Region = REGIONS["half"]
    mean: float = 0.0
    together: int = 1


@dataclass(frozen=True)
class Case:
    """What the estimate reads of an episode."""

    r: float
    entry_label: int
    exit_label: int
    known_at: int


@dataclass(frozen=True)
class Shares:
    """Of plans that were asked to be revised."""

    within: float
    outside: float


def draw_r(rng: np.random.Generator, world: World, expected: Any) -> Points:
    """R of trades with these means."""
    n = expected.size
    if world.kind == "bracket":
        return np.where(rng.random(n) < (1.0 + expected) / 3.0, 2.0, -1.0)
    alone: Points = rng.standard_t(3, n) / np.sqrt(3.0)
    if world.together == 1:
        one: Points = alone + expected
        return one
    shared: Points = (rng.standard_t(3, n) / np.sqrt(3.0)).repeat(world.together)[:n]
    both: Points = (alone + shared) / np.sqrt(2.0) + expected
    return both


def spoken_shares(world: World, n: int, runs: int = RUNS) -> Shares:
    """Shares of plans inside and outside of the region, over the runs, after n cases of each rules."""
    found = [_run(world, n, run) for run in range(runs)]
    return Shares(*(float(np.mean([run[side] for run in found])) for side in (0, 1)))


def _run(world: World, n: int, run: int) -> tuple[float, float]:
    rng, place = (np.random.default_rng([SEED, n, run, k]) for k in (0, 1))
    chosen = place.bit_generator.state

    def held(points: Points) -> npt.NDArray[np.bool_]:
        place.bit_generator.state = chosen  # the same region every time
        return world.region(place, points)

    known = Departures()
    points = rng.random((RULES, n, RANKS))
    results = [
        draw_r(rng, world, world.mean + world.departure * held(of) * (rules == 0))
        for rules, of in enumerate(points)
    ]
    for k in range(n):
        at = k // world.together * 2
        for rules in range(RULES):
            known.add(rules, points[rules, k], _case(float(results[rules][k]), at))
    plans = rng.random((PLANS, RANKS))
    spoken = np.array([any(item.contradicts for item in known.at(0, plan)) for plan in plans])
    inside = held(plans)
    return float(spoken[inside].mean()), float(spoken[~inside].mean())


def _case(r: float, at: int) -> Any:
    return Case(r, at, at + 1, at + 1)


ROWS = (
    ("t3, -.6R in a half", World("t3", -0.6), "60, 85"),
    ("t3, -.4R in a half", World("t3", -0.4), "35, 65"),
    ("bracket, -.6R in a half", World("bracket", -0.6), "25, 70"),
    ("t3, -.6R in a third of one rank", World("t3", -0.6, REGIONS["third"]), ""),
    ("t3, -.6R in a corner of .3", World("t3", -0.6, REGIONS["corner"]), ""),
    ("nothing, t3", World("t3", 0.0), "at most 5"),
    ("nothing, bracket", World("bracket", 0.0), "at most 5"),
    ("nothing, t3, mean +.1R", World("t3", 0.0, mean=0.1), "at most 5"),
    ("nothing, t3, five open together", World("t3", 0.0, together=5), "at most 5"),
)


def worlds_table(runs: int) -> str:
    """One line a world."""
    rows = []
    for name, world, goal in ROWS:
        found = [spoken_shares(world, n, runs) for n in (150, 300)]
        shown = [f"{100 * item.within:.1f} / {100 * item.outside:.1f}" for item in found]
        rows.append((name, *shown, goal))
    return table(("world", "150 cases: inside / outside, %", "300 cases", "goal inside, %"), rows)


if __name__ == "__main__":
    sys.stdout.write(worlds_table(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS) + "\n")
