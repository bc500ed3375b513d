"""What the guard says of its refusals where the truth is known: how often "helped" is wrong, and found.

Three tables: refused orders that are no worse than the others, read once after 300 orders; the same worlds
read every month of a year; and refusals that are worth .3R each. `uv run python -m benchmarks.guard_worth`
writes them to docs/reference/guards.md; `--print` leaves the page alone, `--worlds 20` is a quick look.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from benchmarks.gate_worlds.payoffs import Bracket, FatWinners, Payoff, StudentT
from benchmarks.guards.section import write_section
from schemas.settings import GateSettings
from services.guard.worth import weigh_refusals
from services.statistics.blocks import Floats, winsorise
from tools.docs_pages import table
from trading_core.bars import BoolArray

WORLDS, ORDERS, A_DAY, MONTHS = 200, 300, 3, 12
EDGE, WORTH = 0.1, 0.3
Z_BOTH = 1.96 + 0.84  # of an interval of 95 % that leaves out 0 four times of five
TARGET, FOUND = 0.05, 0.8
BRACKET, SPREAD_OF_ONE = Bracket(2.0), StudentT()
SHARES = (0.2, 0.3, 0.5)

Draw = np.random.Generator
Refusals = Callable[[Draw, float], BoolArray]


@dataclass(frozen=True)
class World:
    """Outcomes and refusals that have nothing to do with each other, unless `gap` says so.

    Attributes:
        payoff: shape of an outcome.
        refusals: which orders are refused, by share.
        shared: part of an outcome's variance that its day has; days lean on the day before by `phi`.
        wild: how much wider outcomes of refused orders are.
        gap: by how much refused orders are better, in R.
    """

    payoff: Payoff
    refusals: Refusals
    shared: float = 0.0
    phi: float = 0.0
    wild: float = 1.0
    gap: float = 0.0

    def outcomes(self, draw: Draw, share: float) -> tuple[Floats, BoolArray]:
        """R of each order and whether it is refused, in order of time."""
        refused = self.refusals(draw, share)
        days = _autocorrelated(draw, -(-ORDERS // A_DAY), self.phi)
        driver = sqrt(1.0 - self.shared) * draw.standard_normal(ORDERS)
        driver += sqrt(self.shared) * np.repeat(days, A_DAY)[:ORDERS]
        r = self.payoff.outcomes(driver, np.full(ORDERS, EDGE) + self.gap * refused)
        return EDGE + (r - EDGE) * np.where(refused, self.wild, 1.0), refused


def single(draw: Draw, share: float) -> BoolArray:
    """Each order by itself."""
    return np.asarray(draw.random(ORDERS) < share)


def in_runs(draw: Draw, share: float) -> BoolArray:
    """Twelve refusals in a row, on average."""
    return _runs(draw, share, 12, ORDERS)


def whole_days(draw: Draw, share: float) -> BoolArray:
    """Every order of some days; four days in a row, on average."""
    return np.repeat(_runs(draw, share, 4, -(-ORDERS // A_DAY)), A_DAY)[:ORDERS]


def _runs(draw: Draw, share: float, length: int, count: int) -> BoolArray:
    ends, begins = 1.0 / length, share / (1.0 - share) / length
    found = np.zeros(count, dtype=bool)
    for place, chance in enumerate(draw.random(count)):
        before = found[place - 1] if place else draw.random() < share
        found[place] = chance >= ends if before else chance < begins
    return found


def _autocorrelated(draw: Draw, count: int, phi: float) -> Floats:
    found = draw.standard_normal(count)
    for place in range(1, count):
        found[place] = phi * found[place - 1] + sqrt(1.0 - phi**2) * found[place]
    return found


NO_WORSE: Mapping[str, World] = {
    "independent": World(SPREAD_OF_ONE, single),
    "brackets of +2R and -1R": World(BRACKET, single),
    "refusals in runs": World(BRACKET, in_runs),
    "days that lean on the day before": World(BRACKET, whole_days, shared=0.36, phi=0.6),
    "volatile days only": World(SPREAD_OF_ONE, whole_days, shared=0.2, phi=0.6, wild=2.5),
    "fat winners": World(FatWinners(2.5), single),
    "refused orders are better by .2R": World(BRACKET, in_runs, gap=0.2),
}


def read_once(world: World, share: float, worlds: int, seed: int) -> list[str]:
    """What is said of each world after all orders."""
    return [weigh_refusals(*world.outcomes(draw, share))["answer"] for draw in _draws(seed, worlds)]


def read_monthly(world: World, share: float, worlds: int, seed: int) -> list[bool]:
    """Whether any of twelve readings of a growing record says "helped"."""
    ends = [ORDERS * month // MONTHS for month in range(1, MONTHS + 1)]
    found = []
    for draw in _draws(seed, worlds):
        r, refused = world.outcomes(draw, share)
        found.append(any(weigh_refusals(r[:end], refused[:end])["answer"] == "helped" for end in ends))
    return found


def _draws(seed: int, worlds: int) -> Iterator[Draw]:
    return (np.random.Generator(np.random.PCG64([seed, number])) for number in range(worlds))


def rate(hits: int, of: int) -> str:
    """A share with its standard error, in percent."""
    share = hits / of
    return f"{100.0 * share:.1f} ± {100.0 * sqrt(share * (1.0 - share) / of):.1f} %"


def no_worse_rows(worlds: int) -> list[tuple[str, ...]]:
    """Worlds in which no refusal is worth anything."""
    rows = list[tuple[str, ...]]()
    for number, (name, world) in enumerate(NO_WORSE.items()):
        for share in (0.2, 0.5):
            said = read_once(world, share, worlds, number)
            monthly = sum(read_monthly(world, share, worlds, number))
            once = said.count("helped")
            kept = "" if once <= TARGET * worlds else " (MISSED)"
            row = (name, f"{share:g}", rate(once, worlds) + kept, rate(said.count("hurt"), worlds))
            rows.append((*row, rate(monthly, worlds)))
    return rows


def found_rows(worlds: int) -> list[tuple[str, ...]]:
    """Worlds in which a refusal is worth `WORTH`: refused orders are that much below the mean of all."""
    rows = list[tuple[str, ...]]()
    for name, payoff in (("brackets of +2R and -1R", BRACKET), ("spread of 1R", SPREAD_OF_ONE)):
        for share in SHARES:
            world = World(payoff, single, gap=-WORTH / (1.0 - share))
            said = read_once(world, share, worlds, int(100 * share))
            kept = "reached" if said.count("helped") >= FOUND * worlds else "not reached"
            needed = Z_BOTH**2 * variance(payoff) * (1.0 - share) / share / WORTH**2
            rows.append((name, f"{share:g}", rate(said.count("helped"), worlds), kept, f"{needed:.0f}"))
    return rows


def variance(payoff: Payoff) -> float:
    """Of an outcome within the bounds that the worth counts it in."""
    many, bounds = np.random.default_rng(0).standard_normal(100_000), GateSettings()
    r = payoff.outcomes(many, np.full(len(many), EDGE))
    return float(winsorise(r, bounds.winsor_low, bounds.winsor_high).var())


def section(worlds: int) -> str:
    """Both tables with what they mean."""
    head = ("refused orders are no worse", "share refused", "helped, one reading", "hurt, one reading")
    no_worse = table((*head, "helped ever, monthly readings"), no_worse_rows(worlds))
    columns = ("outcomes", "share refused", "helped, one reading", f"{FOUND:.0%}", f"orders for {FOUND:.0%}")
    found = table(columns, found_rows(worlds))
    return f"""{worlds} worlds a row, {ORDERS} orders each, {A_DAY} a day. *Monthly* is the share of worlds in
which at least one of {MONTHS} readings of the growing record says helped: a reading holds its error once, a
habit of reading does not.

{no_worse}

A refusal is worth {WORTH:g}R: refused orders are that much below the mean of all. Whether {FOUND:.0%} are
found depends on the spread of outcomes and on how many are refused; the last column is what independent
orders would take.

{found}"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard_worth", description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS, help="worlds a row")
    parser.add_argument("--print", action="store_true", help="leave the page alone")
    given = parser.parse_args(arguments)
    text = section(given.worlds)
    if not given.print:
        write_section("worth", text)
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
