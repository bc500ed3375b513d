"""Kinds of worlds by name, what can be set about each, and one world's cells with their true means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.gate_worlds.calendar import (
    HOUR_NS,
    MONDAY_NS,
    WEEK_NS,
    YEAR_WEEKS,
    CellTrades,
    spread_over_week,
    times_in_week,
)
from benchmarks.gate_worlds.lasting import paths, persistent, swinging
from benchmarks.gate_worlds.payoffs import FatWinners, Lognormal, ManyZeros, Parameters, Payoff, StudentT
from benchmarks.gate_worlds.plain import (
    autocorrelated,
    cost_bracket,
    counted,
    crowded,
    fat_winners,
    garch,
    heavy_costs,
    holidays,
    hourly,
    independent,
    lognormal,
    many_zeros,
    shocked,
    volatile,
)
from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers

MINUTE_NS = HOUR_NS // 60
DOMINATING, OTHERS = 10, 4
PAUSE_HOURS = 1.0


def same_bar(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Each bet is taken in `symbols` symbols at once; their drivers are correlated by `rho`."""
    return _together(draw, edge, given, given.payoff)


def equal_rows(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """The same where losers are -1R to the last digit: those of one bet are equal rows, winners are not."""
    return _together(draw, edge, given, FatWinners(given.tail))


def _together(draw: np.random.Generator, edge: Floats, given: Parameters, payoff: Payoff) -> list[CellTrades]:
    week, entry = spread_over_week(edge.shape[1], given.count)
    week, entry = np.repeat(week, given.symbols), np.repeat(entry, given.symbols)
    driver = in_groups(draw, len(edge), np.arange(len(week)) // given.symbols, given.rho)
    return hourly(payoff, driver, edge, week, entry)


def in_groups(draw: np.random.Generator, cells: int, group: Integers, rho: float) -> Floats:
    """Drivers (cells, n) correlated by `rho` within each group of trades, separate between cells."""
    common = draw.standard_normal((cells, int(group.max(initial=-1)) + 1))[:, group]
    return np.asarray(np.sqrt(rho) * common + np.sqrt(1.0 - rho) * draw.standard_normal((cells, len(group))))


def copies(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Each bet is `rows_low` to `rows_high` rows with the same outcome, a minute apart."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    found = []
    for row in edge:
        bets = draw.integers(given.rows_low, given.rows_high, endpoint=True, size=len(week))
        bet = np.repeat(np.arange(len(week)), bets)
        fill = np.arange(len(bet)) - np.repeat(bets.cumsum() - bets, bets)
        begin = entry[bet] + fill * MINUTE_NS
        r = given.payoff.outcomes(draw.standard_normal(len(week)), row[week])
        found.append(CellTrades(begin, begin + HOUR_NS, r[bet]))
    return found


def common_factor(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """`symbols` trades a week that do not overlap and share one factor of the week."""
    week, entry = spread_over_week(edge.shape[1], given.symbols)
    return hourly(given.payoff, in_groups(draw, len(edge), week, given.rho), edge, week, entry)


def dominated(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """One symbol makes ten of fourteen trades a week, all on one view of it; four others go their own way."""
    weeks = edge.shape[1]
    week, place = np.divmod(np.arange(weeks * (DOMINATING + OTHERS)), DOMINATING + OTHERS)
    # The view is a group of its own each week; every other trade stands alone.
    alone = weeks + np.arange(len(week))
    group = np.where(place < DOMINATING, week, alone)
    driver = in_groups(draw, len(edge), group, given.rho)
    entry = times_in_week(week, (place + 0.5) * 120.0 / (DOMINATING + OTHERS))
    return hourly(given.payoff, driver, edge, week, entry)


def sequential(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """A cell enters an hour after its last exit; winners take `win_hours`, losers `loss_hours`.

    The edge is that of the first week: one position after the other has no week to change in.
    """
    return [_one_after_the_other(draw, row, given) for row in edge]


def _one_after_the_other(draw: np.random.Generator, edge: Floats, given: Parameters) -> CellTrades:
    hours = len(edge) * WEEK_NS / HOUR_NS
    most = int(hours / (min(given.win_hours, given.loss_hours) + PAUSE_HOURS)) + 1
    r = given.payoff.outcomes(draw.standard_normal(most), edge[:1])
    held = np.where(r > 0.0, given.win_hours, given.loss_hours)
    exits = (held + PAUSE_HOURS).cumsum()
    entries = exits - held
    kept = entries < hours
    begin = MONDAY_NS + (entries[kept] * HOUR_NS).astype(np.int64)
    return CellTrades(begin, begin + (held[kept] * HOUR_NS).astype(np.int64), r[kept])


def bursts(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Two trades in a calm week at `calm` on average; in a crash week only `crash_trades` trades at -1R.

    Crashes come by chance, one week in `crash_every`. `edge` is added to calm weeks.
    """
    return [_bursting(draw, row, given) for row in edge]


def _bursting(draw: np.random.Generator, edge: Floats, given: Parameters) -> CellTrades:
    crash = draw.random(len(edge)) < 1.0 / given.crash_every
    week = np.repeat(np.arange(len(edge)), np.where(crash, given.crash_trades, 2))
    calm = StudentT().outcomes(draw.standard_normal(len(week)), given.calm + edge[week])
    entry = times_in_week(week, np.sort(draw.random(len(week))) * 100.0)
    return CellTrades(entry, entry + HOUR_NS, np.where(crash[week], -1.0, calm))


def burst_mean(given: Parameters) -> float:
    """The true mean a trade of `bursts`, R."""
    calm_weeks = given.crash_every - 1.0
    trades = 2.0 * calm_weeks + given.crash_trades
    return (2.0 * calm_weeks * given.calm - given.crash_trades) / trades


def weekends(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Entered on Friday, out on Monday: the trades of a week share its weekend and exit in the next block."""
    week, _ = spread_over_week(edge.shape[1], given.count)
    entry = times_in_week(week, np.full(len(week), 110.0))
    driver = in_groups(draw, len(edge), week, given.rho)
    r = given.payoff.outcomes(driver, edge[:, week])
    return [CellTrades(entry, entry + 62 * HOUR_NS, row) for row in r]


Maker = Callable[[np.random.Generator, Floats, Parameters], list[CellTrades]]
REGIMES = ("sideways/low", "sideways/mid", "up/low", "up/mid")
QUANTILES = 200_001
MANY = 15  # hypotheses of most worlds
NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Kind:
    """How trades of a kind of world are made, the parameters it reads, and its own defaults."""

    make: Maker
    takes: frozenset[str]
    meaning: str
    defaults: Mapping[str, Any] = field(default_factory=lambda: NONE)


def _kind(make: Maker, takes: str, meaning: str, **defaults: Any) -> Kind:
    return Kind(make, frozenset(takes.split()), meaning, defaults)


KINDS: dict[str, Kind] = {
    "independent": _kind(independent, "per_week target", "separate outcomes"),
    "autocorrelated": _kind(autocorrelated, "per_week target phi", "each outcome leans on the one before"),
    "shock": _kind(shocked, "per_week target share span", "all cells share a shock for some weeks"),
    "persistent": _kind(
        persistent, "per_week target phi share", "all cells share a weekly factor that leans on the last"
    ),
    "swinging": _kind(
        swinging, "per_week target span swing", "the mean of each cell swings about its edge", span=10
    ),
    "paths": _kind(
        paths, "per_week symbols rho hold_low hold_high", "daily prices held long", symbols=6, rho=0.6
    ),
    "equal_rows": _kind(
        equal_rows,
        "per_week symbols rho tail",
        "one bet in several rows without a symbol, losers alike",
        per_week=1.0,
        tail=4.0,
    ),
    "volatility": _kind(volatile, "per_week target", "calm and wild weeks"),
    "counts": _kind(counted, "per_week target", "Poisson counts; few a week make tiny cells"),
    "holidays": _kind(holidays, "per_week target", "Poisson counts and months without a trade"),
    "crowded": _kind(crowded, "target", "many trades in bad weeks, few in good ones, fair in sum"),
    "symbols": _kind(same_bar, "per_week target symbols rho", "one bet in several symbols", per_week=1.0),
    "copies": _kind(
        copies, "per_week target rows_low rows_high", "one bet as several rows", per_week=1.0, target=3.0
    ),
    "factor": _kind(
        common_factor, "target symbols rho", "trades of a week share a factor, none overlap", target=3.0
    ),
    "dominated": _kind(dominated, "target rho", "one symbol makes ten of fourteen trades, all on one view"),
    "sequential": _kind(
        sequential, "target win_hours loss_hours", "one position at a time, winners slow", target=3.0
    ),
    "bursts": _kind(bursts, "calm crash_every crash_trades", "calm weeks, and crashes of many trades"),
    "weekends": _kind(weekends, "per_week target rho", "entered on Friday, out on Monday", rho=0.6),
    "trend": _kind(fat_winners, "per_week tail", "many small losses, Lomax winners"),
    "lognormal": _kind(lognormal, "per_week sigma", "multiples of the stake"),
    "zeros": _kind(many_zeros, "per_week", "six in ten trades come out at nothing"),
    "costs": _kind(heavy_costs, "per_week target cost", "a bracket with heavy costs", target=2.0),
    "decay": _kind(independent, "per_week target", "one cell whose edge is lost at half"),
    "turn": _kind(independent, "per_week target", "the edge of a regime turns at half in every playbook"),
    "garch": _kind(garch, "per_week", "GARCH with leverage, t(5)"),
}


_PAYOFFS: dict[str, Callable[[Parameters], Payoff]] = {
    "trend": lambda given: FatWinners(given.tail),
    "equal_rows": lambda given: FatWinners(given.tail),
    "lognormal": lambda given: Lognormal(given.sigma),
    "zeros": lambda given: ManyZeros(),
    "costs": cost_bracket,
}


@dataclass(frozen=True)
class World:
    """One world: its kind, parameters, length, cells and their true means.

    Attributes:
        kind: a name of `KINDS`.
        given: parameters.
        edge: true mean R of every cell, but for those below.
        first: that of the first regime's cells in the first half, in `changed` playbooks; None: `edge`.
        later: the same in the second half; None: as in the first.
        changed: playbooks concerned.
        years: length, of 52 weeks each.
        playbooks: number of them.
        regimes: cells of each playbook.
    """

    kind: str
    given: Parameters
    edge: float = 0.0
    first: float | None = None
    later: float | None = None
    changed: int = 1
    years: int = 1
    playbooks: int = 3
    regimes: int = 4

    @property
    def weeks(self) -> int:
        """Weeks in all."""
        return self.years * YEAR_WEEKS

    @property
    def hypotheses(self) -> int:
        """Playbooks and cells; a playbook with a single cell is one."""
        return self.playbooks * (self.regimes + (self.regimes > 1))

    @property
    def cells(self) -> int:
        """Cells in all, playbook after playbook."""
        return self.playbooks * self.regimes

    def edges(self) -> Floats:
        """What is asked of the maker: mean R of each cell in each week, (cells, weeks)."""
        found = np.full((self.cells, self.weeks), self.edge)
        if self.first is not None:
            later = self.first if self.later is None else self.later
            path = np.where(np.arange(self.weeks) < self.weeks // 2, self.first, later)
            found[: self.changed * self.regimes : self.regimes] = path
        return found

    def truth(self) -> Floats:
        """The true mean a trade of each cell in each week, (cells, weeks)."""
        if self.kind == "bursts":
            return np.full((self.cells, self.weeks), burst_mean(self.given))
        return self.edges()

    def winsorised_mean(self, low: float, high: float) -> float:
        """The mean of cut outcomes where the edge never changes, from the payoff's quantiles."""
        made = _PAYOFFS.get(self.kind)
        payoff = self.given.payoff if made is None else made(self.given)
        quantiles = ndtri((np.arange(QUANTILES) + 0.5) / QUANTILES)
        r = payoff.outcomes(quantiles, np.full(QUANTILES, self.edge))
        return float(np.clip(r, low, high).mean())

    def draw(self, draw: np.random.Generator) -> list[CellTrades]:
        """The trades of every cell."""
        return KINDS[self.kind].make(draw, self.edges(), self.given)

    @property
    def label(self) -> str:
        """Its kind and what is set about it, in a few words."""
        kind = KINDS[self.kind]
        words = [self.kind, *(_QUOTED[name](self.given) for name in _QUOTED if name in kind.takes)]
        if self.first is not None:
            words.append(
                f"{self.first:+g}R" if self.later is None else f"{self.first:+g} to {self.later:+g}R"
            )
        elif self.kind != "bursts" and self.edge:
            words.append(f"{self.edge:+g}R")
        if self.hypotheses > MANY:
            words.append(f"{self.hypotheses} hypotheses")
        return ", ".join(words + ([f"{self.years} years"] if self.years > 1 else []))


_QUOTED: dict[str, Callable[[Parameters], str]] = {
    "target": lambda p: f"+{p.target:g}/-1" if p.target else "t3",
    "per_week": lambda p: f"{p.per_week:g} a week",
    "symbols": lambda p: f"{p.symbols} at once",
    "rho": lambda p: f"rho {p.rho:g}",
    "rows_high": lambda p: f"{p.rows_low} to {p.rows_high} rows",
    "phi": lambda p: f"phi {p.phi:g}",
    "share": lambda p: f"share {p.share:g}",
    "span": lambda p: f"{p.span} weeks" if p.span > 1 else "1 week",
    "swing": lambda p: f"+-{p.swing:g}R",
    "hold_high": lambda p: f"{p.hold_low} to {p.hold_high} days",
    "tail": lambda p: f"tail {p.tail:g}",
    "sigma": lambda p: f"sigma {p.sigma:g}",
    "cost": lambda p: f"cost {p.cost:g}R",
    "crash_every": lambda p: f"a crash in {p.crash_every:g} weeks",
}  # fmt: skip


def world_of(kind: str, given: Mapping[str, Any] = NONE, **rest: Any) -> World:
    """A world by name; parameters that are not given are the kind's defaults."""
    return World(kind, replace(Parameters(), **{**KINDS[kind].defaults, **given}), **rest)
