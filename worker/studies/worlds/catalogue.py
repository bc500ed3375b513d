"""Kinds of worlds by name, what can be set about each, and one world's cells with their true means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import ndtri

from schemas.errors import ConfigError, nearest
from services.high_level.trade_table import TradeTable
from services.statistics.blocks import Floats
from worker.studies.worlds.calendar import YEAR_WEEKS, CellTrades
from worker.studies.worlds.payoffs import FatWinners, Lognormal, ManyZeros, Parameters, Payoff
from worker.studies.worlds.plain import (
    autocorrelated,
    cost_bracket,
    counted,
    crowded,
    fat_winners,
    garch,
    heavy_costs,
    holidays,
    independent,
    lognormal,
    many_zeros,
    shocked,
    volatile,
)
from worker.studies.worlds.shared import (
    burst_mean,
    bursts,
    common_factor,
    copies,
    dominated,
    same_bar,
    sequential,
    weekends,
)

Maker = Callable[[np.random.Generator, Floats, Parameters], list[CellTrades]]
REGIMES = ("sideways/low", "sideways/mid", "up/low", "up/mid")
QUANTILES = 200_001
NONE: Mapping[str, Any] = MappingProxyType({})
HOUR_S = 3_600


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
        words = [self.kind, *(_SAID[name](self.given) for name in _SAID if name in kind.takes)]
        if self.first is not None:
            words.append(
                f"{self.first:+g}R" if self.later is None else f"{self.first:+g} to {self.later:+g}R"
            )
        elif self.kind != "bursts" and self.edge:
            words.append(f"{self.edge:+g}R")
        return ", ".join(words + ([f"{self.years} years"] if self.years > 1 else []))


_SAID: dict[str, Callable[[Parameters], str]] = {
    "target": lambda p: f"+{p.target:g}/-1" if p.target else "t3",
    "per_week": lambda p: f"{p.per_week:g} a week",
    "symbols": lambda p: f"{p.symbols} at once",
    "rho": lambda p: f"rho {p.rho:g}",
    "rows_high": lambda p: f"{p.rows_low} to {p.rows_high} rows",
    "phi": lambda p: f"phi {p.phi:g}",
    "share": lambda p: f"share {p.share:g}",
    "span": lambda p: f"{p.span} weeks" if p.span > 1 else "1 week",
    "tail": lambda p: f"tail {p.tail:g}",
    "sigma": lambda p: f"sigma {p.sigma:g}",
    "cost": lambda p: f"cost {p.cost:g}R",
    "crash_every": lambda p: f"a crash in {p.crash_every:g} weeks",
}  # fmt: skip


def world_of(kind: str, given: Mapping[str, Any] = NONE, **rest: Any) -> World:
    """A world by name; parameters that are not given are the kind's defaults.

    Raises:
        ConfigError: an unknown kind, or a parameter that it does not read.
    """
    if kind not in KINDS:
        raise ConfigError(f"world {kind!r} is not one of {', '.join(sorted(KINDS))}.{nearest(kind, KINDS)}")
    found = KINDS[kind]
    strange = sorted(set(given) - found.takes)
    if strange:
        taken = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(found.takes))
        raise ConfigError(f"world {kind!r} does not take --{strange[0].replace('_', '-')}; it takes {taken}")
    made = replace(Parameters(), **{**found.defaults, **given})
    return World(kind, _checked(made), **rest)


def _checked(given: Parameters) -> Parameters:
    """Parameters of a world that can be drawn.

    Raises:
        ConfigError: a number outside its range.
    """
    for item in fields(given):
        low, high = RANGES[item.name]
        value = getattr(given, item.name)
        if not low <= value <= high:
            raise ConfigError(
                f"--{item.name.replace('_', '-')} {value!r} is not between {low:g} and {high:g}"
            )
    if given.rows_low > given.rows_high:
        raise ConfigError(f"--rows-low {given.rows_low} is above --rows-high {given.rows_high}")
    return given


RANGES: dict[str, tuple[float, float]] = {
    "per_week": (0.01, 1_000.0),
    "target": (0.0, 100.0),
    "symbols": (1, 1_000),
    "rho": (0.0, 1.0),
    "rows_low": (1, 1_000),
    "rows_high": (1, 1_000),
    "phi": (-0.99, 0.99),
    "share": (0.0, 1.0),
    "span": (1, 104),
    "win_hours": (1.0, 2_000.0),
    "loss_hours": (1.0, 2_000.0),
    "tail": (1.05, 100.0),
    "sigma": (0.01, 3.0),
    "cost": (0.0, 0.95),
    "crash_every": (2.0, 1_000.0),
    "crash_trades": (1, 10_000),
    "calm": (-1.0, 5.0),
}


def table_of(world: World, drawn: Sequence[CellTrades], reference: float) -> TradeTable:
    """The trades of every cell, cell after cell; every playbook is held against `reference`."""
    sizes = [len(cell.r) for cell in drawn]
    books, regimes = np.divmod(np.repeat(np.arange(world.cells), sizes), world.regimes)
    return TradeTable(
        entry_ns=np.concatenate([cell.entry_ns for cell in drawn]),
        exit_ns=np.concatenate([cell.exit_ns for cell in drawn]),
        r=np.concatenate([cell.r for cell in drawn]),
        playbook=books,
        regime=regimes,
        timeframe=np.zeros(len(books), dtype=np.int64),
        playbooks=tuple(f"playbook_{index:02d}" for index in range(world.playbooks)),
        regimes=REGIMES[: world.regimes],
        timeframes=("1h",),
        bar_s=(HOUR_S,),
        references=(reference,) * world.playbooks,
    )
