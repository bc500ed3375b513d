"""What the guard says of its refusals where the truth is known: how often "helped" is wrong, and found.

Refused orders that are no worse than others of the same time, read once after 300 orders and every month of
a year; and refusals that are worth .3R each, by how many orders there are. `uv run python -m
benchmarks.guard_worth` writes them to docs/reference/guards.md; `--print` leaves the page alone, and
`--worlds 20` is a quick look.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks.gate_worlds.payoffs import Bracket, FatWinners, Payoff, StudentT
from benchmarks.guards.section import write_section
from schemas.guard import Order, Verdict
from services.guard.ledger import CheckedOrder, Ledger
from services.guard.worth import weigh_refusals, worth_of
from services.statistics.blocks import Floats
from tools.docs_pages import table
from trading_core.bars import BoolArray

WORLDS, ORDERS, A_DAY, MONTHS = 200, 300, 3, 12
EDGE, WORTH = 0.1, 0.3
TARGET, FOUND, Z = 0.05, 0.8, 1.96
BRACKET, SPREAD_OF_ONE = Bracket(2.0), StudentT()
SHARES, LENGTHS = (0.2, 0.3, 0.5), (150, 300, 450, 600, 900, 1_200)
TIMES, BREAK = np.arange(ORDERS) / ORDERS, 0.4

Draw = np.random.Generator
Refusals = Callable[[Draw, float], BoolArray]


@dataclass(frozen=True)
class World:
    """Outcomes and refusals that have nothing to do with each other, unless `gap` says so.

    Attributes:
        payoff: shape of an outcome.
        of_refused: the same of a refused order, where it is another.
        best: target of refused orders in R; None: they have none.
        trend: how far the mean of all orders lies from `EDGE`, by time from 0 to 1.
        retries: refused orders that are one bet, with one outcome.
        refusals: which orders are refused, by share.
        shared: part of an outcome's variance that its day has; days lean on the day before by `phi`.
        wild: how much wider outcomes of refused orders are.
        gap: by how much refused orders are better, in R.
    """

    payoff: Payoff
    refusals: Refusals
    of_refused: Payoff | None = None
    best: float | None = None
    trend: Callable[[Floats], Floats] = np.zeros_like
    retries: int = 1
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
        driver[refused] = driver[refused][np.arange(refused.sum()) // self.retries * self.retries]
        edge = EDGE + self.trend(TIMES) + self.gap * refused
        r = self.payoff.outcomes(driver, edge)
        r = np.where(refused, (self.of_refused or self.payoff).outcomes(driver, edge), r)
        return EDGE + (r - EDGE) * np.where(refused, self.wild, 1.0), refused

    def answer(self, r: Floats, refused: BoolArray) -> str:
        """What the guard says of outcomes of this world."""
        if self.retries == 1:
            return str(weigh_refusals(r, refused, self.best)["answer"])
        return str(worth_of(_ledger_of(r, refused, self.retries))["answer"])


def _ledger_of(r: Floats, refused: BoolArray, retries: int) -> Ledger:
    """Settled orders of one strategy; a bet of retries is open until the last of them."""
    order, ledger, places = (
        Order(symbol="UP", side="buy", quantity=1.0, stop=1.0),
        Ledger(),
        refused.nonzero()[0],
    )
    ends = 2 * np.arange(len(r)) + 1
    for first in range(0, len(places), retries):
        bet = places[first : first + retries]
        ends[bet] = ends[bet[-1]]
    for place, end in enumerate(ends.tolist()):
        status, at = "block" if refused[place] else "pass", 2 * place
        named = {"id": f"tt{place}", "order_hash": order.content_hash, "at": at, "expires_at": at}
        verdict = Verdict.model_validate({**named, "status": status, "reply": "", "mode": "shadow"})
        ledger.orders[verdict.id] = CheckedOrder(order, verdict)
        ledger.settled[verdict.id] = {"r": float(r[place]), "closed_at": end}
    return ledger


def single(draw: Draw, share: float) -> BoolArray:
    """Each order by itself."""
    return np.asarray(draw.random(ORDERS) < share)


def in_runs(draw: Draw, share: float) -> BoolArray:
    """Twelve refusals in a row, on average."""
    return _runs(draw, share, 12, ORDERS)


def whole_days(draw: Draw, share: float) -> BoolArray:
    """Every order of some days; four days in a row, on average."""
    return np.repeat(_runs(draw, share, 4, -(-ORDERS // A_DAY)), A_DAY)[:ORDERS]


def more_and_more(draw: Draw, share: float) -> BoolArray:
    """None at first, twice the share at last."""
    return np.asarray(draw.random(ORDERS) < 2.0 * share * TIMES)


def after_the_break(draw: Draw, share: float) -> BoolArray:
    """A fifth of the share before the break, and one and a half of it after."""
    return np.asarray(draw.random(ORDERS) < share * np.where(TIMES < BREAK, 0.2, 1.5))


def falling(times: Floats) -> Floats:
    """A mean that loses 1R from the first order to the last."""
    return 0.5 - times


def broken(times: Floats) -> Floats:
    """A mean that loses .8R in a day."""
    return np.where(times < BREAK, 0.4, -0.4)


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
    "refused orders win 8R, seldom": World(BRACKET, single, Bracket(8.0), best=8.0),
    "the same, without a target": World(BRACKET, single, Bracket(8.0)),
    "refused orders win 32R, very seldom": World(BRACKET, single, Bracket(32.0), best=32.0),
    "the same lottery, without a target": World(BRACKET, single, Bracket(32.0)),
    "refused orders are 20 retries of one": World(BRACKET, in_runs, retries=20),
    "all orders drift, more are refused": World(BRACKET, more_and_more, trend=falling),
    "a break, more are refused after it": World(BRACKET, after_the_break, trend=broken),
    "refused orders are better by .2R": World(BRACKET, in_runs, gap=0.2),
}


def read_once(world: World, share: float, worlds: int, seed: int) -> list[str]:
    """What is said of each world after all orders."""
    return [world.answer(*world.outcomes(draw, share)) for draw in _draws(seed, worlds)]


def read_monthly(world: World, share: float, worlds: int, seed: int) -> list[bool]:
    """Whether any of twelve readings of a growing record says "helped"."""
    ends = [ORDERS * month // MONTHS for month in range(1, MONTHS + 1)]
    found = []
    for draw in _draws(seed, worlds):
        r, refused = world.outcomes(draw, share)
        found.append(any(world.answer(r[:end], refused[:end]) == "helped" for end in ends))
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
            reply = read_once(world, share, worlds, number)
            monthly = sum(read_monthly(world, share, worlds, number))
            once = reply.count("helped")
            kept = "" if once <= TARGET * worlds else " (MISSED)"
            row = (name, f"{share:g}", rate(once, worlds) + kept, rate(reply.count("hurt"), worlds))
            rows.append((*row, rate(monthly, worlds)))
    return rows


def found_rows(worlds: int) -> list[tuple[str, ...]]:
    """Worlds in which a refusal is worth `WORTH`: refused orders are that much below the mean of all.

    Beside what is found stands what a z-test finds that is told the spread of outcomes, and how many orders
    `orders_needed` says it takes at that worth, the median of records of `ORDERS`.
    """
    rows = list[tuple[str, ...]]()
    for name, payoff in (("brackets of +2R and -1R", BRACKET), ("spread of 1R", SPREAD_OF_ONE)):
        for share in SHARES:
            found = {length: _read_worth(payoff, share, length, worlds) for length in LENGTHS}
            shown = (
                f"{sum(answer['answer'] == 'helped' for answer in read) / worlds:.0%}"
                for read in found.values()
            )
            error = sqrt(variance(payoff) * (1.0 - share) / share / ORDERS)
            needed = np.median([ORDERS * (answer["finds_r"] / WORTH) ** 2 for answer in found[ORDERS]])
            rows.append(
                (name, f"{share:g}", *shown, f"{NormalDist().cdf(WORTH / error - Z):.0%}", f"{needed:.0f}")
            )
    return rows


def _read_worth(payoff: Payoff, share: float, orders: int, worlds: int) -> list[Mapping[str, Any]]:
    found = list[Mapping[str, Any]]()
    for draw in _draws(100 * orders + round(100 * share), worlds):
        refused = draw.random(orders) < share
        edge = np.where(refused, EDGE - WORTH / (1.0 - share), EDGE)
        r = payoff.outcomes(draw.standard_normal(orders), edge)
        found.append(weigh_refusals(r, refused))
    return found


def variance(payoff: Payoff) -> float:
    """Of an outcome."""
    many = np.random.default_rng(0).standard_normal(100_000)
    return float(payoff.outcomes(many, np.full(len(many), EDGE)).var())


def section(worlds: int) -> str:
    """Both tables with what they mean."""
    head = ("refused orders are no worse", "share refused", "helped, one reading", "hurt, one reading")
    no_worse = table((*head, "helped ever, monthly readings"), no_worse_rows(worlds))
    lengths = (f"{length} orders" for length in LENGTHS)
    columns = ("outcomes", "share refused", *lengths, f"z-test, {ORDERS} orders", f"orders for {FOUND:.0%}")
    found = table(columns, found_rows(worlds))
    return f"""{worlds} worlds a row, {ORDERS} orders each, {A_DAY} a day. *Monthly* is the share of worlds in
which at least one of {MONTHS} readings of the growing record says helped: a reading holds its error once, a
habit of reading does not.

{no_worse}

A refusal is worth {WORTH:g}R: refused orders are that much below the mean of all. Shown is in how many worlds
`helped` is said, by the number of orders. *z-test* is what a test of the means as seldom wrong finds in
{ORDERS} orders where it is told the spread of outcomes: where that is below {FOUND:.0%}, no way to compare
means reaches {FOUND:.0%}. The last column is what `finds_r` and `orders_needed` come to at this worth.

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
