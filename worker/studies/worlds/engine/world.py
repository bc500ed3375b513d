"""One world of bars: what its market does, and which side of it the playbook on trial trades."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from schemas.errors import ConfigError, nearest
from schemas.playbook import PlaybookDefinition
from schemas.timeframes import TIMEFRAME_SECONDS, timeframe_problem
from services.playbooks.measures import with_parameter
from services.statistics.calendar_units import after_units, unit_of_timeframe
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import NS, START_NS, make_market
from worker.studies.scenarios import planted_books

PLAYBOOK, PARAMETER = "buys_strength", "side"
STRENGTH, WEAKNESS = 1.0, -1.0

TAKES = ("timeframe", "blocks", "symbols", "rho", "pull")
RANGES = {"blocks": (2, 10_000), "symbols": (1, 1_000), "rho": (0.0, 0.99), "pull": (0.0, 1.0)}

# What each kind is, and the side that its playbook begins with.
KINDS = {
    "null": ("correlated random walks: no side is right", STRENGTH),
    "planted": ("prices fall back to their anchor, and the playbook buys strength", STRENGTH),
    "turned": ("prices fall back, then trend; the playbook buys weakness, right at first", WEAKNESS),
}


@dataclass(frozen=True)
class EngineWorld:
    """Bars with a known truth, and what is traded on them at the default settings.

    Attributes:
        kind: of `KINDS`.
        timeframe: of the bars.
        blocks: length in the blocks in which the gate counts on this timeframe.
        symbols: traded.
        rho: correlation of their shocks.
        pull: share of the distance from its anchor that a price loses in a bar.
        momentum: standard deviation of a bar's drift over that of its shock, once the market has turned.
    """

    kind: str
    timeframe: str = "4h"
    blocks: int = 120
    symbols: int = 6
    rho: float = 0.3
    pull: float = 0.12
    momentum: float = 0.4

    @property
    def label(self) -> str:
        """The world in words."""
        told = [f"{self.kind}, {self.timeframe}, {self.blocks} {unit_of_timeframe('', self.timeframe)}s"]
        told += [
            f"{declared.name} {getattr(self, declared.name):g}"
            for declared in fields(self)[3:]
            if getattr(self, declared.name) != declared.default
        ]
        return ", ".join(told)

    @property
    def bars(self) -> int:
        """Bars of each symbol."""
        end = after_units(START_NS, self.blocks - 1, unit_of_timeframe("", self.timeframe))
        return (end - START_NS) // (TIMEFRAME_SECONDS[self.timeframe] * NS)

    def draw(self, seed: int) -> BarSeries:
        """The bars of one run."""
        turned = self.kind == "turned"
        falls_back = np.full(self.bars, 0.0 if self.kind == "null" else self.pull)
        drifts = np.zeros(self.bars)
        if turned:
            falls_back[self.bars // 2 :] = 0.0
            drifts[self.bars // 2 :] = self.momentum
        return make_market(
            falls_back,
            seed=seed,
            symbols=self.symbols,
            timeframe=self.timeframe,
            rho=self.rho,
            momentum=drifts if turned else None,
        )

    def playbooks(self, *, right: bool = False) -> tuple[PlaybookDefinition, ...]:
        """The playbook on trial beside two embedded ones; `right` turns its side round."""
        side = KINDS[self.kind][1] * (-1.0 if right else 1.0)
        planted, *others = planted_books()
        return (with_parameter(planted, PARAMETER, side), *others)


def engine_world(kind: str, given: Mapping[str, Any]) -> EngineWorld:
    """A world with given parameters.

    Raises:
        ConfigError: an unknown kind or timeframe, or a number out of its range.
    """
    if kind not in KINDS:
        raise ConfigError(
            f"--world {kind!r} is not one of {', '.join(KINDS)} with --engine.{nearest(kind, KINDS)}"
        )
    for name, (low, high) in RANGES.items():
        if name in given and not low <= given[name] <= high:
            raise ConfigError(f"--{name} {given[name]!r} is not between {low:g} and {high:g}")
    world = replace(EngineWorld(kind), **given)
    if (problem := timeframe_problem(world.timeframe)) is not None:
        raise ConfigError(f"--timeframe {problem}")
    return world
