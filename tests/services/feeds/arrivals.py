"""A small market on a grid of minutes, and what an assembler makes of bars that arrive from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.settings.live import FeedSettings
from services.feeds.assembler import RowAssembler
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar
from trading_core.live.growing_bars import Bar

MINUTE = 60 * NS
T0 = 1_700_000_040 * NS  # a whole minute
GRID = LabelGrid("1m", "open", True)
SETTINGS = FeedSettings(grace_s=5.0)


def label(number: int) -> int:
    """The label of a bar by its number."""
    return T0 + number * MINUTE


def close(number: int) -> int:
    """When that bar is over."""
    return label(number + 1)


def bar(number: int, symbol: str = "A", wrong: float = 0.0) -> Bar:
    """The one true bar of a number and symbol, or a wrong one."""
    price = 100.0 + number + 10.0 * ord(symbol[0]) + wrong
    return Bar(price, price + 2.0, price - 2.0, price + 1.0, 10.0)


def raw(number: int, symbol: str = "A", wrong: float = 0.0) -> RawBar:
    """The same as it arrives."""
    return RawBar(symbol, label(number), bar(number, symbol, wrong))


@dataclass
class Desk:
    """An assembler and everything that came out of it."""

    symbols: Sequence[str] = ("A", "B")
    settings: FeedSettings = SETTINGS
    grid: LabelGrid = GRID
    start: int = T0
    after: int | None = None
    items: list[BarRow | FeedAnomaly] = field(default_factory=list)

    def __post_init__(self):
        self.assembler = RowAssembler(
            self.symbols, self.grid, self.settings, start=self.start, after=self.after
        )

    def take(self, now: int, *bars: RawBar, hold: bool = False):
        """Bars arrive at a time; what comes of it."""
        found: list[BarRow | FeedAnomaly] = [
            item for entry in bars for item in self.assembler.take(entry, now)
        ]
        found += self.assembler.rows(now, hold=hold)
        self.items += found
        return found

    def rows(self) -> list[BarRow]:
        return [item for item in self.items if isinstance(item, BarRow)]

    def shown(self, *kinds: FeedAnomalyKind) -> list[FeedAnomaly]:
        return [
            item for item in self.items if isinstance(item, FeedAnomaly) and (not kinds or item.kind in kinds)
        ]

    def kinds(self) -> list[str]:
        return [item.kind.value if isinstance(item, FeedAnomaly) else "row" for item in self.items]


def full(desk: Desk, *numbers: int) -> None:
    """Rows of all symbols, each at its close."""
    for number in numbers:
        desk.take(close(number), *(raw(number, symbol) for symbol in desk.symbols))
