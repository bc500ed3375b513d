"""One world of bars: what its market does, and which side of it the playbook on trial trades."""

from dataclasses import dataclass, fields

import numpy as np

from schemas.playbook import PlaybookDefinition
from schemas.timeframes import TIMEFRAME_SECONDS
from services.playbooks.measures import with_parameter
from services.statistics.calendar_units import after_units, unit_of_timeframe
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import NS, START_NS, make_market
from worker.studies.scenarios import planted_books

PLAYBOOK, PARAMETER = "buys_strength", "side"
STRENGTH, WEAKNESS = 1.0, -1.0

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
        shown = [f"{self.kind}, {self.timeframe}, {self.blocks} {unit_of_timeframe('', self.timeframe)}s"]
        shown += [
            f"{declared.name} {getattr(self, declared.name):g}"
            for declared in fields(self)[3:]
            if getattr(self, declared.name) != declared.default
        ]
        return ", ".join(shown)

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
