"""The rows of figures that are promised: worlds, the question asked of each, targets, and how many runs.

Worlds of the first part are those that the gate was made against; `held out` marks those that are no part of
the design; their rates were seen before the last settings were chosen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from benchmarks.gate_worlds.catalogue import World, world_of

if TYPE_CHECKING:
    from benchmarks.gate_worlds.engine.world import EngineWorld

NULL, FIVE_YEARS, WRONG_SIDE, BURST = "null", "five years", "wrong side", "burst"
INTERVAL, POWER, DECAY = "interval", "power", "decay"
OUTSIDE = "beyond the rule"
GROUPS = (NULL, OUTSIDE, FIVE_YEARS, WRONG_SIDE, BURST, INTERVAL, POWER, DECAY)


@dataclass(frozen=True)
class Target:
    """A rate and the bound it has to keep; `at_least` for what has to be found."""

    rate: str
    bound: float
    at_least: bool = False


@dataclass(frozen=True)
class Row:
    """One world under one question; `quick` rows make the small table.

    `part` runs are one piece of work.
    """

    group: str
    measure: str
    world: "World | EngineWorld"
    targets: tuple[Target, ...]
    held_out: bool = False
    quick: bool = False
    part: int = 25

    @property
    def label(self) -> str:
        """The world in words."""
        return self.world.label + (" (held out)" if self.held_out else "")


AT_MOST_5 = (Target("any", 0.05),)
COVERED = (Target("covered", 0.93, at_least=True),)


def rows() -> tuple[Row, ...]:
    """Every row in the order of its group; the worst worlds of each are the quick ones."""
    table = (
        *_null(),
        *_outside(),
        *_five_years(),
        *_wrong_side(),
        Row(BURST, "promotion", _single("bursts"), BURST_TARGETS),
        *_intervals(),
        *_power(),
        *_decay(),
    )
    return tuple(replace(row, quick=row.world.label in QUICK.get(row.group, ())) for row in table)


QUICK: dict[str, frozenset[str]] = {
    NULL: frozenset(
        {
            "independent, t3, 5 a week",
            "shock, t3, 5 a week, share 0.3, 4 weeks",
            "symbols, +3/-1, 1 a week, 8 at once, rho 0.9",
            "symbols, +4/-1, 1 a week, 20 at once, rho 0.9",
            "copies, +4/-1, 1 a week, 1 to 15 rows",
            "sequential, +3/-1",
            "trend, 5 a week, tail 2.2",
            "garch, 5 a week",
            "dominated, +4/-1, rho 0.9",
            "shock, +3/-1, 5 a week, share 0.3, 6 weeks",
            "persistent, +2/-1, 5 a week, phi 0.8, share 0.5",
            "paths, 5 a week, 6 at once, rho 0.6, 20 to 60 days",
            "symbols, +4/-1, 1 a week, 5 at once, rho 0.9, 125 hypotheses",
        }
    ),
    OUTSIDE: frozenset(
        {"swinging, t3, 5 a week, 10 weeks, +-0.4R", "persistent, t3, 5 a week, phi 0.9, share 0.3"}
    ),
    FIVE_YEARS: frozenset(
        {
            "sequential, +3/-1, 5 years",
            "trend, 5 a week, tail 2.2, 5 years",
            "persistent, +2/-1, 5 a week, phi 0.8, share 0.5, 5 years",
        }
    ),
    WRONG_SIDE: frozenset(
        {"trend, 5 a week, tail 2.2, +0.1R", "equal_rows, 1 a week, 8 at once, rho 0.9, tail 4, -0.2R"}
    ),
    BURST: frozenset({"bursts, a crash in 13 weeks"}),
    INTERVAL: frozenset(
        {
            "independent, t3, 5 a week",
            "symbols, +3/-1, 1 a week, 8 at once, rho 0.9, 3 years",
            "shock, +3/-1, 5 a week, share 0.3, 6 weeks, 2 years",
        }
    ),
    POWER: frozenset({"independent, t3, 5 a week, -0.4R", "independent, +2/-1, 5 a week, -0.4R, 2 years"}),
    DECAY: frozenset({"independent, t3, 5 a week, +0.2 to -0.3R, 2 years"}),
}


LOST: Mapping[str, Any] = MappingProxyType(
    {"first": 0.2, "later": -0.3, "years": 2}  # of one cell: the rest of the account tells it from a shock
)
TURN: Mapping[str, Any] = MappingProxyType({"first": 0.3, "later": -0.3, "changed": 3})


BURST_TARGETS = (
    Target("at the end", 0.0),
    Target("ever", 0.10),
    Target("at the end, limited", 0.0),
    Target("ever, limited", 0.03),
)


def _single(kind: str, edge: float = 0.0, years: int = 1, **given: Any) -> World:
    return world_of(kind, given, edge=edge, years=years, playbooks=1, regimes=1)


def _null() -> Iterator[Row]:
    listed: tuple[tuple[str, dict[str, Any]], ...] = (
        ("independent", {}),
        *(("independent", {"target": t}) for t in (0.5, 2.0, 3.0, 4.0)),
        ("independent", {"per_week": 15.0}),
        ("autocorrelated", {}),
        ("shock", {}),
        ("shock", {"share": 0.6}),
        ("shock", {"span": 4}),
        ("volatility", {}),
        ("counts", {}),
        ("counts", {"target": 3.0}),
        ("counts", {"per_week": 0.3}),
        ("symbols", {"symbols": 4, "rho": 0.5}),
        ("symbols", {}),
        ("symbols", {"symbols": 4, "rho": 0.7, "target": 2.0}),
        ("symbols", {"rho": 0.7, "target": 2.0}),
        ("symbols", {"target": 2.0}),
        ("symbols", {"rho": 0.5, "target": 3.0}),
        ("symbols", {"target": 3.0}),
        ("symbols", {"target": 3.0, "per_week": 5.0}),
        ("symbols", {"symbols": 20, "target": 3.0}),
        ("symbols", {"symbols": 20, "target": 4.0}),
        ("symbols", {"symbols": 20, "rho": 0.5, "target": 4.0}),
        ("symbols", {"symbols": 20, "target": 0.5}),
        ("symbols", {"symbols": 6, "rho": 0.95, "target": 5.0}),
        ("copies", {"rows_low": 8, "rows_high": 8}),
        ("copies", {}),
        ("copies", {"target": 4.0}),
        ("sequential", {"target": 2.0}),
        ("sequential", {}),
        ("factor", {}),
        ("trend", {}),
        ("lognormal", {}),
    )
    lasting: tuple[tuple[str, dict[str, Any]], ...] = (
        ("shock", {"span": 6, "target": 3.0}),
        ("shock", {"span": 8, "share": 0.6}),
        ("persistent", {"phi": 0.7}),
        ("persistent", {"phi": 0.8, "share": 0.5, "target": 2.0}),
        ("paths", {}),
    )
    held_out: tuple[tuple[str, dict[str, Any]], ...] = (
        ("garch", {}),
        ("garch", {"per_week": 15.0}),
        ("holidays", {}),
        ("holidays", {"target": 4.0, "per_week": 2.0}),
        ("crowded", {}),
        ("crowded", {"target": 3.0}),
        ("dominated", {}),
        ("dominated", {"target": 4.0}),
        ("weekends", {}),
        ("weekends", {"target": 3.0, "rho": 0.9}),
        ("zeros", {}),
        ("costs", {}),
        ("costs", {"target": 4.0}),
        ("trend", {"tail": 1.5}),
        ("symbols", {"symbols": 15, "rho": 0.98, "target": 8.0}),
        ("sequential", {"target": 6.0, "win_hours": 200.0, "loss_hours": 3.0}),
    )
    yield from (Row(NULL, "flags", world_of(kind, given), AT_MOST_5) for kind, given in (*listed, *lasting))
    for playbooks in (25, 100):
        many = {"symbols": 5, "target": 4.0}
        yield Row(NULL, "flags", world_of("symbols", many, playbooks=playbooks), AT_MOST_5)
    yield Row(NULL, "flags", world_of("independent", **TURN), AT_MOST_5)
    yield from (
        Row(NULL, "flags", world_of(kind, given), AT_MOST_5, held_out=True) for kind, given in held_out
    )


def _outside() -> Iterator[Row]:
    """What lasts longer than the rule for groups can see: rates that are said, not promised."""
    at_most_12, at_most_30 = (Target("any", 0.12),), (Target("any", 0.30),)
    yield Row(OUTSIDE, "flags", world_of("shock", {"span": 12, "target": 3.0}), at_most_12)
    yield Row(OUTSIDE, "flags", world_of("swinging"), at_most_12)
    yield Row(OUTSIDE, "flags", world_of("persistent", {"phi": 0.9}), at_most_12)
    yield Row(OUTSIDE, "flags", five_years_of(0.9), at_most_30)


def five_years_of(phi: float) -> World:
    """One playbook under a factor that lasts."""
    return world_of("persistent", {"phi": phi, "share": 0.5, "target": 2.0}, years=5, playbooks=1)


def _five_years() -> Iterator[Row]:
    listed: tuple[tuple[str, dict[str, Any]], ...] = (
        ("independent", {}),
        ("independent", {"target": 3.0}),
        ("symbols", {"symbols": 4, "rho": 0.7, "target": 2.0}),
        ("symbols", {"target": 3.0}),
        ("symbols", {"symbols": 20, "target": 4.0}),
        ("sequential", {"target": 2.0}),
        ("sequential", {}),
        ("copies", {"target": 4.0}),
        ("trend", {}),
        ("crowded", {"target": 3.0}),
        ("garch", {}),
    )
    for kind, given in listed:
        yield Row(FIVE_YEARS, "flags", world_of(kind, given, years=5, playbooks=1), AT_MOST_5)
    yield Row(FIVE_YEARS, "flags", five_years_of(0.8), (Target("any", 0.07),))


def _wrong_side() -> Iterator[Row]:
    target = (Target("losing", 0.03),)
    yield Row(WRONG_SIDE, "flags", world_of("trend", edge=0.1), target)
    yield Row(WRONG_SIDE, "flags", world_of("trend", edge=0.2), target)
    yield Row(WRONG_SIDE, "flags", world_of("trend", {"tail": 1.5}, edge=0.1), target, held_out=True)
    yield Row(WRONG_SIDE, "flags", world_of("symbols", {"target": 3.0}, edge=0.1), target)
    yield Row(WRONG_SIDE, "flags", world_of("trend", edge=0.1, years=5, playbooks=1), target)
    yield Row(WRONG_SIDE, "flags", world_of("equal_rows", edge=-0.2), (Target("gaining", 0.03),))


def _intervals() -> Iterator[Row]:
    listed: tuple[tuple[str, float, int, dict[str, Any]], ...] = (
        ("independent", 0.0, 1, {}),
        ("independent", 0.5, 3, {"per_week": 15.0}),
        ("independent", 0.3, 3, {"per_week": 40.0}),
        ("independent", 0.25, 3, {"per_week": 100.0}),
        ("independent", 0.35, 3, {"per_week": 15.0, "target": 2.0}),
        ("independent", 0.2, 3, {"target": 3.0}),
        ("shock", 0.0, 3, {"per_week": 9.0, "share": 0.6}),
        ("shock", 0.0, 3, {"span": 4}),
        ("symbols", 0.0, 3, {"target": 3.0}),
        ("symbols", 0.0, 3, {"symbols": 20, "target": 4.0}),
        ("counts", 0.2, 3, {}),
        ("sequential", 0.0, 1, {}),
        ("trend", 0.1, 3, {}),
        ("crowded", 0.0, 3, {"target": 3.0}),
        ("garch", 0.2, 3, {}),
        ("zeros", 0.1, 3, {}),
    )
    for kind, edge, years, given in listed:
        yield Row(INTERVAL, "interval", _single(kind, edge, years, **given), COVERED)
    lasting: tuple[tuple[str, dict[str, Any]], ...] = (
        ("shock", {"span": 6, "target": 3.0}),
        ("shock", {"span": 8, "share": 0.6}),
        ("persistent", {"phi": 0.8, "share": 0.5, "target": 2.0}),
        ("paths", {}),
    )
    for kind, given in lasting:
        yield Row(
            INTERVAL, "interval", world_of(kind, given, years=2), (Target("covered", 0.92, at_least=True),)
        )


def _power() -> Iterator[Row]:
    def plant(loss: float, years: int, *targets: Target, **given: Any) -> Row:
        return Row(POWER, "power", world_of("independent", given, first=loss, years=years), targets)

    by_52, by_104 = "by 52", "by 104"
    yield plant(-0.4, 1, Target(by_52, 0.75, at_least=True))
    yield plant(-0.4, 2, Target(by_52, 0.50, at_least=True), Target(by_104, 0.90, at_least=True), target=2.0)
    yield plant(-0.4, 1, Target(by_52, 0.95, at_least=True), per_week=15.0)
    yield plant(-0.4, 1, Target(by_52, 0.95, at_least=True), per_week=15.0, target=2.0)
    yield plant(-0.3, 2, Target(by_104, 0.60, at_least=True))
    yield plant(-0.3, 2, Target(by_104, 0.60, at_least=True), target=2.0)
    yield plant(-0.2, 2)


def _decay() -> Iterator[Row]:
    targets = (Target("E of 20", 0.65, at_least=True), Target("detector", 0.85, at_least=True))
    for given in ({}, {"target": 2.0}):
        world = world_of("independent", given, **LOST)
        yield Row(DECAY, "decay", world, targets if not given else ())
    alone = world_of("decay", {}, **LOST, playbooks=1, regimes=1)
    yield Row(DECAY, "decay", alone, ())  # nobody tells it from a long shock: printed, not promised
