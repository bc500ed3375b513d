"""What to doubt in recorded bars that pass every check: splits, ticks, weeks without movement, repeated rows.

Pure; the same bars give the same doubts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
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

RATIOS = (1.5, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 25, 30, 40, 50, 100)  # plain ones, by which a step is named
_ROUNDED = 0.005  # of a ratio: prices are written in cents
_NEAR = 0.08  # of a plain ratio, in logarithms: a split is paid over a night, in which the market moves too
_STEP, _UNUSUAL = 1.25, 8  # the least step of level, and times the usual move from close to close
_RUSH = 4  # times the volume of the bars behind it: so much is traded on news
_NIGHTS, _MOST_NIGHTS = 60, 0.95  # a split lies nearer to its plain ratio than most nights before it moved
_STAYS = 3  # bars that show a level
_WITHIN = 1.3
_FEW = 10  # bars behind which a step that goes back is no split
_FLAT_BARS, _FLAT_NS, _YEAR_NS = 5, 5 * DAY_NS, 365 * DAY_NS


@dataclass(frozen=True)
class Doubt:
    """Bars of one symbol that are traded as they are, or left out where they stand twice."""

    # what speaks against them
    kind: Literal["split", "step", "stretch", "start", "tick", "flat", "repeated", "far"]
    symbol: str
    label: int  # of the first, ns
    bars: int = 1
    # of a split, a step or a start, the price before to that after; of a stretch, its price to that before
    # it; else 1
    ratio: float = 1.0

    def document(self) -> dict[str, Any]:
        """Plain data, with a sentence."""
        time = ns_to_datetime(self.label).isoformat()
        return {"kind": self.kind, "symbol": self.symbol, "time": time, "bars": self.bars, "text": self.text}

    @property
    def text(self) -> str:
        """One sentence with the next step."""
        what = {
            "split": f"the price steps by {self.ratio:.4g} from close to open and stays, as at a split of "
            f"{_plain_ratio(self.ratio)}: adjust the prices, by data.adjusted = true where the file has "
            "adjusted closes",
            "step": f"a step of {self.ratio:.4g} from close to open that stays, as by a split, a change of "
            "symbol or news: adjust the prices before it, unless it was traded",
            "stretch": f"{count_noun(self.bars, 'bar')} at {self.ratio:.4g} times the price around them, as "
            "of bad ticks: correct or remove them",
            "start": f"{'the first bar is' if self.bars == 1 else f'the first {self.bars} bars are'} "
            f"{self.ratio:.4g} times the next: bad or before a split, which cannot be told; remove what is "
            "bad, or adjust the prices",
            "tick": f"{count_noun(self.bars, 'implausible bar')}: "
            "data.plausibility = 'always' leaves out such bars",
            "flat": f"no movement in {count_noun(self.bars, 'bar')}: were they filled in? Remove them",
            "repeated": f"{count_noun(self.bars, 'row')} stood twice, and one of each is left out",
            "far": f"{count_noun(self.bars, 'bar')} farther from the others than those reach, as by a slip "
            "in the year: correct or remove",
        }
        return f"{visible(self.symbol)} at {show_label(self.label)}: {what[self.kind]}"


def list_doubts(bars: BarSeries, settings: DataSettings, *, sifted: bool = False) -> list[Doubt]:
    """The doubts of a series by symbol and time; ticks and repeated rows of a symbol are one.

    Those of longer bars are those of the bars they were made of. Bars that are `sifted` hold no ticks: a
    guard has left them out.
    """
    if bars.made_of is not None:
        first, last = bars.open_of(0), int(bars.close_times[-1])
        bars = replace(bars.made_of.select(bars.symbols, first, last), repeated=bars.repeated)
    found, explained = list[Doubt](), dict[str, IntArray]()
    ticks = [(str(shown.symbol), int(shown.label or 0)) for _, shown in doubted_bars(bars, settings)]
    for s, symbol in enumerate(bars.symbols):
        rows = np.flatnonzero(bars.present[:, s])
        doubted = np.isin(bars.times[rows], [label for name, label in ticks if name == symbol])
        jumps = list(_jumps(bars, s, rows, doubted)) if settings.plausibility != "off" else []
        explained[symbol] = bars.times[rows[[k for _, places in jumps for k in places if k < rows.size]]]
        found += [doubt for doubt, _ in jumps if doubt is not None]
        far = far_times(bars.times[rows])
        found += [Doubt("far", symbol, int(far[0]), far.size)] if far.size else []
        found += [Doubt("flat", symbol, label, count) for label, count in _flat_weeks(bars, s, rows)]
    seen = settings.plausibility == "live" and not sifted
    found += _count_by_symbol("tick", (tick for tick in ticks if seen and tick[1] not in explained[tick[0]]))
    first, last = int(bars.times[0]), int(bars.times[-1])
    found += _count_by_symbol(
        "repeated", (row for row in bars.repeated if row[0] in explained and first <= row[1] <= last)
    )
    return sorted(found, key=lambda doubt: (doubt.symbol, doubt.label, doubt.kind))


def doubt_documents(bars: BarSeries, settings: DataSettings, *, sifted: bool = False) -> list[dict[str, Any]]:
    """The doubts of a series as plain data, see `list_doubts`."""
    return [doubt.document() for doubt in list_doubts(bars, settings, sifted=sifted)]


def far_times(times: IntArray) -> IntArray:
    """Those of ascending times that are few at an end, a year from the others and farther than they reach."""
    if times.size < _FEW:
        return times[:0]
    pauses = np.diff(times)
    few, others = sorted(np.split(times, [int(np.argmax(pauses)) + 1]), key=len)
    is_far = few.size <= _STAYS and pauses.max() > max(others[-1] - others[0], _YEAR_NS)
    return few if is_far else times[:0]


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


def _jumps(bars: BarSeries, s: int, rows: Any, doubted: Any) -> Iterator[tuple[Doubt | None, range]]:
    """Doubts of prices that step from close to open, and the places among the rows that a step explains.

    Where the market itself made the step, as its volume tells, there is no doubt; none of bars that go back
    and are all `doubted` by the guard, which are told as ticks.
    """
    opens, close, times = bars.open[rows, s], bars.close[rows, s], bars.times[rows].tolist()
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        steps, moves = np.log(close[:-1]) - np.log(opens[1:]), np.abs(np.diff(np.log(close)))
    if steps.size < _STAYS:
        return
    least = max(np.log(_STEP), _UNUSUAL * float(np.median(moves)))
    large, passed = np.flatnonzero(np.abs(steps) >= least).tolist(), -1
    for number, k in enumerate(large):
        if k <= passed:
            continue
        near = [j for j in large[number + 1 : number + 1 + _FEW] if j <= k + _FEW]
        back = next((j for j in near if abs(steps[k] + steps[j]) < np.log(_WITHIN)), None)
        symbol, first = bars.symbols[s], k + 1
        if back is not None:
            passed = back
            if not doubted[first : back + 1].all():
                stretch = Doubt("stretch", symbol, times[first], back - k, float(np.exp(-steps[k])))
                yield stretch, range(first, back + 1 + _STAYS)
            continue
        levels = [(close[max(0, k - 2) : first], close[k]), (close[first : k + 4], opens[first])]
        far = [abs(np.log(np.median(around)) - np.log(level)) for around, level in levels]
        returned = np.log(close[first : first + _FEW] / opens[first]) / steps[k]  # share of the way back
        if k + 2 >= close.size or max(far) >= np.log(_WITHIN) or returned.max() >= 0.5:
            continue
        ratio = float(np.exp(steps[k]))
        if first < _STAYS:
            yield Doubt("start", symbol, times[0], first, ratio), range(first, first + _STAYS)
            continue
        volume, nights = (
            bars.volume[rows[first : first + 1 + _FEW], s],
            np.abs(steps[max(0, k - _NIGHTS) : k]),
        )
        kind = _kind_of(ratio, nights, is_rush=bool(volume[0] > _RUSH * np.median(volume[1:])))
        doubt = None if kind is None else Doubt(kind, symbol, times[first], 1, ratio)
        yield doubt, range(first, first + _STAYS)


def _kind_of(ratio: float, nights: Any, *, is_rush: bool) -> Literal["split", "step"] | None:
    """What a step that stays is, by the moves of nights before it; None for news, on which many trade."""
    is_exact = _plain_ratio(ratio, max(_ROUNDED, float(np.quantile(nights, _MOST_NIGHTS)))) is not None
    if is_rush and not is_exact:
        return None
    return "split" if is_exact or _plain_ratio(ratio) else "step"


def _plain_ratio(ratio: float, most: float = _NEAR) -> str | None:
    """The plain ratio of shares nearest to a step of the price, such as 3:2; None where none is so near."""
    size = abs(np.log(ratio))
    plain = Fraction(min(RATIOS, key=lambda each: abs(size - np.log(each))))
    if abs(size - np.log(float(plain))) > most:
        return None
    shares = (plain.numerator, plain.denominator)
    return ":".join(map(str, shares if ratio > 1 else shares[::-1]))


def _flat_weeks(bars: BarSeries, s: int, rows: Any) -> Iterator[tuple[int, int]]:
    """First label and number of the bars of each stretch of five days or more without any movement."""
    high, times = bars.high[rows, s], bars.times[rows]
    still = np.concatenate(
        [[False], (high[1:] == bars.low[rows, s][1:]) & (high[1:] == bars.close[rows, s][:-1])]
    )
    edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]])))
    for first, later in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if later - first >= _FLAT_BARS - 1 and times[later - 1] - times[first - 1] + bars.bar_ns >= _FLAT_NS:
            yield int(times[first]), later - first
