"""How long a claim takes that a forecast names: blocks named at the fortieth against blocks that it took.

`uv run python -m benchmarks.gate_worlds.forecasts --runs 60` prints a line a world: one trade a week, whose
mean and spread go on alike. Runs whose trades lean to the wrong side at the fortieth block, or have proven
the claim by then, are left out. Then a line a world of how often a loss and a gain of the size that
`detectable` names, nominal 80 %, are found: at the last block, and at it or before.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.gate_worlds.calendar import HOUR_NS, MONDAY_NS, WEEK_NS
from services.statistics.blocks import Floats, Trades
from services.statistics.power import blocks_to_prove, smallest_detectable_effect
from services.statistics.sample import CLAIMS
from services.statistics.track import Bounds, Track

SEEN, WEEKS, ALPHA = 40, 800, 0.05 / 15.0
BOUNDS = Bounds(-3.0, 4.0)


Outcomes = Callable[[np.random.Generator, float, int], Floats]


def _normal(draw: np.random.Generator, mean: float, trades: int) -> Floats:
    return draw.standard_normal(trades) + mean


def _heavy(draw: np.random.Generator, mean: float, trades: int) -> Floats:
    return np.asarray(draw.standard_t(3, trades) / 3.0**0.5 + mean)


def _bracket(draw: np.random.Generator, mean: float, trades: int) -> Floats:
    return np.where(draw.random(trades) < (1.0 + mean) / 3.0, 2.0, -1.0)


def _lottery(draw: np.random.Generator, mean: float, trades: int) -> Floats:
    return np.where(draw.random(trades) < (1.0 + mean) / 5.0, 4.0, -1.0)


SHAPES: dict[str, Outcomes] = {"normal": _normal, "t": _heavy, "+2/-1": _bracket, "+4/-1": _lottery}
SIZES = ((52, 5, ALPHA), (104, 5, ALPHA), (104, 1, ALPHA), (104, 5, 0.05))  # blocks, trades of each, level
LEVELS = 40  # draws at a mean of 0, whose median effect is planted
WORLDS: dict[str, tuple[Outcomes, float]] = {
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
    found = [_one(outcomes(np.random.default_rng([seed, run]), mean, WEEKS), mean) for run in range(runs)]
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


class Detected(NamedTuple):
    """Median effect in R that could have been shown; shares found at the end and ever, losing and gaining."""

    effect: float
    losing: tuple[float, float]
    gaining: tuple[float, float]


def detected(shape: str, size: tuple[int, int, float], runs: int, seed: int) -> Detected:
    """What becomes of planted effects of the size that `detectable` names, in %."""
    draw, (blocks, trades, alpha) = np.random.default_rng(seed), size

    def drawn(mean: float) -> Track:
        week = np.arange(blocks * trades) // trades
        entries = MONDAY_NS + WEEK_NS * week + 2 * HOUR_NS * (np.arange(blocks * trades) % trades)
        r = SHAPES[shape](draw, mean, len(week))
        return Track(Trades(entries, entries + HOUR_NS, r), "week", 0.0, BOUNDS)

    named = [smallest_detectable_effect(drawn(0.0), blocks, alpha) for _ in range(LEVELS)]
    effect = float(np.median([np.inf if found is None else found for found in named]))
    shares = []
    for claim, mean in enumerate((-effect, effect)):
        tracks = [drawn(mean) for _ in range(runs)]
        found = np.stack([track.log_e_at(track.blocks.complete_at)[:, claim] for track in tracks])
        hits = found >= -np.log(alpha)
        shares.append((float(100.0 * hits[:, -1].mean()), float(100.0 * hits.any(axis=1).mean())))
    return Detected(effect, *shares)


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
    for shape in SHAPES:
        for size in SIZES:
            found = detected(shape, size, given.runs, given.seed)
            shares = (
                f"{name} {end:.0f} ({ever:.0f})" for name, (end, ever) in zip(CLAIMS, found[1:], strict=True)
            )
            head = f"{shape:7s}{size[0]:4d} blocks of {size[1]}, level {size[2]:.4f}"
            sys.stdout.write(f"{head}: detectable {found.effect:.2f}R, found {', '.join(shares)} %\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
