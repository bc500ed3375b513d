"""How long a claim takes that a forecast names: blocks named at the fortieth against blocks that it took.

`uv run python -m benchmarks.gate_worlds.forecasts --runs 60` prints a line a world: one trade a week, whose
mean and spread go on alike. Runs whose trades lean to the wrong side at the fortieth block, or have proven
the claim by then, are left out.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.gate_worlds.calendar import HOUR_NS, MONDAY_NS, WEEK_NS
from services.statistics.blocks import Floats, Trades
from services.statistics.power import blocks_to_prove
from services.statistics.sample import CLAIMS
from services.statistics.track import Bounds, Track

SEEN, WEEKS, ALPHA = 40, 800, 0.05 / 15.0
BOUNDS = Bounds(-3.0, 4.0)


def _normal(draw: np.random.Generator, mean: float) -> Floats:
    return draw.standard_normal(WEEKS) + mean


def _heavy(draw: np.random.Generator, mean: float) -> Floats:
    return np.asarray(draw.standard_t(3, WEEKS) / 3.0**0.5 + mean)


def _bracket(draw: np.random.Generator, mean: float) -> Floats:
    return np.where(draw.random(WEEKS) < (1.0 + mean) / 3.0, 2.0, -1.0)


WORLDS: dict[str, tuple[Callable[[np.random.Generator, float], Floats], float]] = {
    "normal -.4R": (_normal, -0.4),
    "normal -.6R": (_normal, -0.6),
    "normal +.4R": (_normal, 0.4),
    "t -.4R": (_heavy, -0.4),
    "+2/-1 at -.4R": (_bracket, -0.4),
    "+2/-1 at +.4R": (_bracket, 0.4),
}


class Came(NamedTuple):
    """Medians over runs: blocks that were named, blocks that it took, and how many runs."""

    named: float
    took: float
    runs: int


def came(world: str, runs: int, seed: int) -> Came:
    """What became of the forecasts of a world."""
    outcomes, mean = WORLDS[world]
    found = [_one(outcomes(np.random.default_rng([seed, run]), mean), mean) for run in range(runs)]
    kept = np.array([item for item in found if item is not None])
    return Came(float(np.median(kept[:, 0])), float(np.median(kept[:, 1])), len(kept))


def _one(r: Floats, mean: float) -> tuple[float, float] | None:
    entries = MONDAY_NS + WEEK_NS * np.arange(len(r))
    track = Track(Trades(entries, entries + HOUR_NS, r), "week", 0.0, BOUNDS)
    claim = CLAIMS[0 if mean < 0.0 else 1]
    ends = track.blocks.complete_at
    seen = track.at(int(ends[SEEN - 1]))
    if seen.leaning != claim or seen.e_value >= 1.0 / ALPHA:
        return None
    named = blocks_to_prove(track, seen, ALPHA)
    for block in range(SEEN, len(ends)):
        now = track.at(int(ends[block]))
        if now.leaning == claim and now.e_value >= 1.0 / ALPHA:
            return float("inf") if named is None else named, block + 1 - SEEN
    return float("inf") if named is None else named, float("inf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_worlds.forecasts")
    parser.add_argument("--runs", type=int, default=60, help="runs of each world")
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args(arguments)
    for world in WORLDS:
        named, took, runs = came(world, given.runs, given.seed)
        sys.stdout.write(
            f"{world:15s} named {named:5.0f}  took {took:5.0f} blocks ({took / named:.2f}), {runs} runs\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
