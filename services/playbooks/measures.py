"""What a playbook version is made of: a baseline and the temporary measures laid over it.

A measure only lowers exposure (a banned regime cell, a lower risk fraction) and is weighed again at the end
of its life; the baseline is what was in the file or what a shadow trial has proven. Keeping them apart lets a
measure end, a candidate be promoted and a version be rolled back in any order without one undoing the other.
Pure; called by the lifecycle.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

from schemas.contract import Contract
from schemas.playbook import PlaybookDefinition
from schemas.timeframes import TIMEFRAME_SECONDS
from schemas.vocabulary import Direction

NS = 1_000_000_000
RISK = ("risk", "")
C = TypeVar("C", bound=Contract)
Ledger = tuple[
    str, str
]  # the version from before a measure, by its hash, and the banned cell; "" for a risk cut


@dataclass(frozen=True)
class Measure:
    """One temporary limit.

    Attributes:
        key: (direction, `trend/volatility`) of a ban, `RISK` of a lower risk fraction.
        risk_fraction: the lower fraction of equity, None for a ban.
        since: ns. expires_at: ns; when it is weighed again.
        before: the version that was active when the measure was taken.
    """

    key: tuple[str, str]
    risk_fraction: float | None
    since: int
    expires_at: int
    before: PlaybookDefinition

    @property
    def text(self) -> str:
        """The measure in words."""
        return (
            f"risk {self.risk_fraction:g}"
            if self.risk_fraction is not None
            else f"ban of {self.key[1]} {self.key[0]}"
        )

    @property
    def ledger(self) -> Ledger:
        """Whose trades speak for or against it; both directions of one ban share a ledger."""
        return self.before.content_hash, self.key[1]


@dataclass(frozen=True)
class Composition:
    """A baseline and the measures over it."""

    baseline: PlaybookDefinition
    measures: tuple[Measure, ...] = ()

    def due(self, at: int) -> tuple[Measure, ...]:
        """Measures whose life is over at `at`."""
        return tuple(measure for measure in self.measures if measure.expires_at <= at)

    def of_ledger(self, ledger: Ledger) -> tuple[Measure, ...]:
        """Measures whose trades go to one ledger."""
        return tuple(measure for measure in self.measures if measure.ledger == ledger)

    def renew(self, due: Iterable[Measure], until: int) -> "Composition":
        """The same with another end for some measures, ns."""
        moved = tuple(due)
        return Composition(
            self.baseline,
            tuple(
                replace(measure, expires_at=until) if measure in moved else measure
                for measure in self.measures
            ),
        )

    def lift(self, keys: Iterable[tuple[str, str]], until: int) -> "Composition":
        """The same baseline without the measures of these keys that were taken at or before `until`."""
        gone = set(keys)
        rest = tuple(measure for measure in self.measures if measure.key not in gone or measure.since > until)
        return Composition(self.baseline, rest)

    def without(self, ended: Iterable[Measure]) -> "Composition":
        """The same baseline without some measures."""
        gone = tuple(ended)
        return Composition(self.baseline, tuple(measure for measure in self.measures if measure not in gone))

    @property
    def ends(self) -> int | None:
        """When the first measure is weighed again, ns; None without measures."""
        return min((measure.expires_at for measure in self.measures), default=None)

    def definition(self, version: int, known_at: int | None) -> PlaybookDefinition:
        """The definition in force: the baseline with the bans added and the lowest risk fraction."""
        eligibility = {}
        for direction, cells in self.baseline.eligibility.items():
            banned = {measure.key[1] for measure in self.measures if measure.key[0] == direction}
            eligibility[direction] = alter(cells, banned=tuple(sorted(banned | set(cells.banned))))
        risks = [measure.risk_fraction for measure in self.measures if measure.risk_fraction is not None]
        return alter(
            self.baseline,
            version=version,
            known_at=known_at,
            eligibility=eligibility,
            risk_fraction=min([self.baseline.risk_fraction, *risks]),
        )


def alter(contract: C, **changes: Any) -> C:
    """A contract with some fields changed, validated anew and without the cached hash of the old one."""
    values = {name: getattr(contract, name) for name in type(contract).model_fields}
    return type(contract)(**(values | changes))


def with_parameter(definition: PlaybookDefinition, name: str, value: float) -> PlaybookDefinition:
    """A definition with another value of one parameter; the value has to lie on its grid."""
    parameters = {**definition.parameters, name: alter(definition.parameters[name], value=value)}
    return alter(definition, parameters=parameters)


def same_rules(a: PlaybookDefinition, b: PlaybookDefinition) -> bool:
    """Whether two versions trade alike: equal but for number and date."""
    return alter(a, version=1, known_at=None).content_hash == alter(b, version=1, known_at=None).content_hash


def outcome_rules(definition: PlaybookDefinition) -> str:
    """Hash of what decides how a trade of this version ends; equal for versions whose trades are alike."""
    eligibility = {side: alter(rules, banned=()) for side, rules in definition.eligibility.items()}
    return alter(
        definition,
        version=1,
        known_at=None,
        title="",
        description="",
        enabled=True,
        minimum_episodes=20,
        risk_fraction=0.005,
        eligibility=eligibility,
    ).content_hash


def open_cells(definition: PlaybookDefinition, direction: Direction) -> tuple[str, ...]:
    """`trend/volatility` cells in which the direction may be proposed, in file order."""
    if direction not in definition.eligibility:
        return ()
    eligibility = definition.eligibility[direction]
    cells = (f"{trend}/{volatility}" for trend in eligibility.trend for volatility in eligibility.volatility)
    return tuple(cell for cell in cells if cell not in eligibility.banned)


def eligible_cells(
    definition: PlaybookDefinition, direction: Direction | None = None, *, with_banned: bool = False
) -> tuple[str, ...]:
    """Regime keys in which a playbook may be proposed, in name order: of one direction, or of any."""
    cells = set()
    for name, rules in definition.eligibility.items():
        if direction is None or name == direction:
            keys = {f"{trend}/{band}" for trend, band in product(rules.trend, rules.volatility)}
            cells |= keys if with_banned else keys - set(rules.banned)
    return tuple(sorted(cells))


def is_open(definition: PlaybookDefinition, timeframe: str) -> bool:
    """Whether anything is left that could be proposed on this timeframe."""
    trades_here = definition.enabled and (not definition.timeframes or timeframe in definition.timeframes)
    return trades_here and any(open_cells(definition, direction) for direction in definition.rules)


def duration_ns(bars: int, timeframe: str) -> int:
    """Nanoseconds of so many bars; a daily bar counts 7/5 of a day, for the days without a session."""
    span = bars * TIMEFRAME_SECONDS[timeframe] * NS
    return span * 7 // 5 if timeframe == "1d" else span
