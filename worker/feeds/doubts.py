"""What to doubt in recorded bars that pass every check: splits, ticks, weeks without movement, repeated rows.

Pure; the same bars give the same doubts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from schemas.canonical import ns_to_datetime
from schemas.errors import DataError
from schemas.settings import DataSettings
from services.feeds.plausibility import doubted_bars
from services.model_calls.quoting import count_noun, visible
from trading_core.bars import BarSeries, IntArray
from trading_core.spacing import DAY_NS, show_label

RATIOS = (
    1.5,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    15,
    20,
    25,
    30,
    40,
    50,
    100,
)  # of shares after a split to those before
_NEAR = 0.02  # the open after a split lies so near its ratio to the close before
_UNUSUAL = 8  # times the usual step from close to open
_STAYS = 3  # bars that show a level
_WITHIN = 1.3
_FLAT_BARS, _FLAT_NS = 5, 5 * DAY_NS


@dataclass(frozen=True)
class Doubt:
    """Bars of one symbol that are traded as they are, or left out where they stand twice.

    Attributes:
        kind: what speaks against them.
        symbol: whose.
        label: of the first, ns.
        bars: how many.
        ratio: of a split, the price before to that after; else 1.
    """

    kind: Literal["split", "tick", "flat", "repeated"]
    symbol: str
    label: int
    bars: int = 1
    ratio: float = 1.0

    def document(self) -> dict[str, Any]:
        """Plain data, with a sentence."""
        time = ns_to_datetime(self.label).isoformat()
        return {"kind": self.kind, "symbol": self.symbol, "time": time, "bars": self.bars, "text": self.text}

    @property
    def text(self) -> str:
        """One sentence with the next step."""
        what = {
            "split": f"the price steps by {self.ratio:.4g} from close to open and stays, as at a split: "
            "adjust the prices, by data.adjusted = true where the file has adjusted closes",
            "tick": f"{count_noun(self.bars, 'implausible bar')}: "
            "data.plausibility = 'always' leaves out such bars",
            "flat": f"no movement in {count_noun(self.bars, 'bar')}: were they filled in? Remove them",
            "repeated": f"{count_noun(self.bars, 'row')} stood twice, and one of each is left out",
        }
        return f"{visible(self.symbol)} at {show_label(self.label)}: {what[self.kind]}"


def list_doubts(bars: BarSeries, settings: DataSettings, *, sifted: bool = False) -> list[Doubt]:
    """The doubts of a series by symbol and time; ticks and repeated rows of a symbol are one.

    Bars that are `sifted` hold no ticks: a guard has left them out.
    """
    found, splits = list[Doubt](), dict[str, IntArray]()
    for s, symbol in enumerate(bars.symbols):
        rows = np.flatnonzero(bars.present[:, s])
        steps = _splits(bars, s, rows) if settings.plausibility != "off" else []
        splits[symbol] = bars.times[
            rows[[k + n for k, _ in steps for n in range(_STAYS) if k + n < rows.size]]
        ]
        found += [Doubt("split", symbol, int(bars.times[rows[k]]), 1, ratio) for k, ratio in steps]
        found += [Doubt("flat", symbol, label, count) for label, count in _flat_weeks(bars, s, rows)]
    ticks = [(str(told.symbol), int(told.label or 0)) for _, told in doubted_bars(bars, settings)]
    seen = settings.plausibility == "live" and not sifted
    found += _count_by_symbol("tick", (tick for tick in ticks if seen and tick[1] not in splits[tick[0]]))
    first, last = int(bars.times[0]), int(bars.times[-1])
    found += _count_by_symbol(
        "repeated", (row for row in bars.repeated if row[0] in splits and first <= row[1] <= last)
    )
    return sorted(found, key=lambda doubt: (doubt.symbol, doubt.label, doubt.kind))


def check_doubts(bars: BarSeries, settings: DataSettings, *, sifted: bool = False) -> list[str]:
    """A sentence for each doubt, see `list_doubts`.

    Raises:
        DataError: there is one, and `data.on_doubt` refuses it.
    """
    doubts = list_doubts(bars, settings, sifted=sifted)
    if doubts and settings.on_doubt == "refuse":
        more = f" (and {len(doubts) - 1:,} more)" if len(doubts) > 1 else ""
        raise DataError(f"{doubts[0].text}{more}; data.on_doubt = 'warn' trades them")
    return [doubt.text for doubt in doubts]


def _count_by_symbol(kind: Literal["tick", "repeated"], bars: Iterable[tuple[str, int]]) -> Iterator[Doubt]:
    for symbol, group in groupby(sorted(bars), key=lambda bar: bar[0]):
        labels = [label for _, label in group]
        yield Doubt(kind, symbol, labels[0], len(labels))


def _splits(bars: BarSeries, s: int, rows: Any) -> list[tuple[int, float]]:
    """Positions among the rows at which a price steps by a ratio of shares and stays, with the ratio."""
    opens, close = bars.open[rows, s], bars.close[rows, s]
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        steps = np.log(close[:-1]) - np.log(opens[1:])
    if steps.size < _STAYS:
        return []
    least = max(np.log(RATIOS[0]) - _NEAR, _UNUSUAL * float(np.median(np.abs(steps))))
    found = []
    for k in np.flatnonzero(np.abs(steps) >= least).tolist():
        ratio = min(RATIOS, key=lambda each: abs(abs(steps[k]) - np.log(each)))
        levels = [(close[max(0, k - 2) : k + 1], close[k]), (close[k + 1 : k + 4], opens[k + 1])]
        moves = [abs(np.log(np.median(near)) - np.log(level)) for near, level in levels]
        if abs(abs(steps[k]) - np.log(ratio)) < _NEAR and k + 2 < close.size and max(moves) < np.log(_WITHIN):
            found.append((k + 1, float(np.exp(steps[k]))))
    return found


def _flat_weeks(bars: BarSeries, s: int, rows: Any) -> Iterator[tuple[int, int]]:
    """First label and number of the bars of each stretch of five days or more without any movement."""
    high, times = bars.high[rows, s], bars.times[rows]
    still = np.concatenate(
        [[False], (high[1:] == bars.low[rows, s][1:]) & (high[1:] == bars.close[rows, s][:-1])]
    )
    edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]])))
    for first, behind in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if (
            behind - first >= _FLAT_BARS - 1
            and times[behind - 1] - times[first - 1] + bars.bar_ns >= _FLAT_NS
        ):
            yield int(times[first]), behind - first
