"""How often the second opinion claims what is true and what is not, and how often a shrunken band holds.

`uv run python -m benchmarks.gate_worlds.second_opinions --runs 200` prints one line a world: five playbooks
share the level, of which the first is planted where a mean is given. A claim of a planted world stands at the
last look; one of a null world counts whenever it stood at the end of a year.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.gate_worlds.calendar import MONDAY_NS, WEEK_NS, YEAR_WEEKS, CellTrades
from benchmarks.gate_worlds.catalogue import World, world_of
from services.statistics.blocks import Trades, winsorise
from services.statistics.calendar_units import unit_numbers
from services.statistics.second_opinion import second_opinion
from services.statistics.shrinkage import shrunken_means
from services.statistics.track import Bounds, Track

PLAYBOOKS, REGIMES, LOOKS = 5, 4, 5
SETTLED_WEEKS = 26  # first trades come late and looks are put off, so the fifth one follows the last trade
BOUNDS = Bounds(-3.0, 4.0)


@dataclass(frozen=True)
class Case:
    """A world and the most, or of a planted one the least, of its runs that may claim, in %."""

    kind: str
    bound: float
    given: Mapping[str, Any]
    years: int = 5
    planted: float | None = None

    @property
    def world(self) -> World:
        """One regime of each playbook."""
        return world_of(self.kind, self.given, years=self.years, first=self.planted, playbooks=5, regimes=1)


def a_year(trades: float, **given: float) -> dict[str, float]:
    """So many trades a year at random times."""
    return {"per_week": trades / YEAR_WEEKS, **given}


CASES: dict[str, Case] = {
    "-.6R, 12 a year, t": Case("counts", 90.0, a_year(12), planted=-0.6),
    "-.3R, 48 a year, t": Case("counts", 70.0, a_year(48), planted=-0.3),
    "-.3R, 48 a year, +2/-1": Case("counts", 70.0, a_year(48, target=2.0), planted=-0.3),
    "46 of -.5R in 13 years, t": Case("counts", 60.0, a_year(46 / 13), 13, -0.5),
    "32 of -1R in 13 years, t": Case("counts", 90.0, a_year(32 / 13), 13, -1.0),
    "null, 12 a year, t": Case("counts", 2.0, a_year(12)),
    "null, 12 a year, +2/-1": Case("counts", 2.0, a_year(12, target=2.0)),
    "null, 48 a year, +4/-1": Case("counts", 2.0, a_year(48, target=4.0)),
    "null, 20 symbols rho .9, +4/-1": Case("symbols", 2.0, {"symbols": 20, "target": 4.0}),
    "null, shock of 6 weeks, +3/-1": Case("shock", 8.0, {"span": 6, "target": 3.0}),
    "null, shock of 8 weeks, t": Case("shock", 8.0, {"span": 8, "share": 0.6}),
    "null, paths of 20 to 60 days": Case("paths", 8.0, {"per_week": 1.0}),
    "null, factor of AR .8": Case("persistent", 15.0, {"per_week": 1.0, "phi": 0.8, "share": 0.5}),
    "null, 12 a year, Lomax 2.2": Case("trend", 8.0, a_year(12)),
    "null, 48 a year, Lomax 2.2": Case("trend", 8.0, a_year(48)),
}


def claims_of(case: Case, runs: int, seed: int) -> tuple[float, float]:
    """Share of runs with a claim of losing and of gaining, in %."""
    world = case.world
    ends = [MONDAY_NS + (YEAR_WEEKS * (year + 1) + SETTLED_WEEKS) * WEEK_NS for year in range(world.years)]
    found = np.zeros(2)
    for run in range(runs):
        cells = world.draw(np.random.default_rng([seed, run]))
        planted = case.planted is not None
        claims = {
            opinion.claim
            for cell in (cells[:1] if planted else cells)
            if len(cell.r)
            for opinion in _opinions(cell, ends[-1:] if planted else ends)
        }
        found += ["losing" in claims, "gaining" in claims]
    return float(100.0 * found[0] / runs), float(100.0 * found[1] / runs)


def _opinions(cell: CellTrades, ends: Sequence[int]) -> list[Any]:
    track = Track(Trades(cell.entry_ns, cell.exit_ns, cell.r), "week", 0.0, BOUNDS)
    made = (second_opinion(track, at, LOOKS, PLAYBOOKS) for at in ends)
    return [opinion for opinion in made if opinion is not None]


def coverage(
    kind: str, given: Mapping[str, Any], runs: int, seed: int, spread: float = 0.0
) -> tuple[float, float, float]:
    """Share of cells whose band of 90 % holds the true mean, in %; root mean square errors raw, shrunken.

    In R, of winsorised means, in a year of five playbooks x four regimes. True means spread by so much on
    both levels; a difference shifts every trade of its cell.
    """
    world = world_of(kind, given, playbooks=PLAYBOOKS, regimes=REGIMES)
    usual = world.winsorised_mean(BOUNDS.low, BOUNDS.high)
    inside, raw, shrunken = [], [], []
    for run in range(runs):
        draw = np.random.default_rng([seed, run])
        shift = spread * (draw.standard_normal((PLAYBOOKS, 1)) + draw.standard_normal((PLAYBOOKS, REGIMES)))
        cells = world.draw(draw)
        sizes = [len(cell.r) for cell in cells]
        code = np.repeat(np.arange(len(cells)), sizes)
        r = winsorise(np.concatenate([cell.r for cell in cells]), BOUNDS.low, BOUNDS.high)
        r = r + shift.ravel()[code]
        months = unit_numbers(np.concatenate([cell.entry_ns for cell in cells]), "month")
        for group, band in shrunken_means(r, months, [code // REGIMES, code % REGIMES]).items():
            if len(group) == 2:
                truth = usual + float(shift[group])
                inside.append(band.lower <= truth <= band.upper)
                raw.append((band.alone - truth) ** 2)
                shrunken.append((band.mean - truth) ** 2)
    return float(100.0 * np.mean(inside)), float(np.mean(raw) ** 0.5), float(np.mean(shrunken) ** 0.5)


BANDS: dict[str, tuple[str, Mapping[str, Any], float]] = {
    "12 a year, t": ("counts", a_year(12), 0.0),
    "12 a year, t, spread .2": ("counts", a_year(12), 0.2),
    "24 a year, +2/-1, spread .2": ("counts", a_year(24, target=2.0), 0.2),
    "12 a year, +4/-1, spread .3": ("counts", a_year(12, target=4.0), 0.3),
    "8 symbols rho .9, +3/-1": ("symbols", {"target": 3.0}, 0.0),
    "shock of 6 weeks, +3/-1": ("shock", {"span": 6, "target": 3.0}, 0.0),
    "shock of 8 weeks, t": ("shock", {"span": 8, "share": 0.6}, 0.0),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_worlds.second_opinions")
    parser.add_argument("--runs", type=int, default=200, help="runs of each world")
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args(arguments)
    for name, case in CASES.items():
        losing, gaining = claims_of(case, given.runs, given.seed)
        bound = f"at least {case.bound:g}" if case.planted else f"at most {case.bound:g}"
        sys.stdout.write(f"{name:32s} losing {losing:5.1f} gaining {gaining:5.1f}  {bound} %\n")
        sys.stdout.flush()
    for name, (kind, parameters, spread) in BANDS.items():
        share, raw, shrunken = coverage(kind, parameters, given.runs // 4, given.seed, spread)
        sys.stdout.write(f"{name:32s} band holds {share:5.1f} %  error {raw:.2f}R -> {shrunken:.2f}R\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
