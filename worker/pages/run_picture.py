"""A run as its page shows it: figures, bars, curves, trades, marks and the journal that explains them.

Of a run that has just been made, of a stored one by its rows and bars, and of one that was played again: the
same run gives the same picture. What was measured and where it was stored are left out of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.episode import Episode
from schemas.playbook import PlaybookVersion
from services.journal.index import JournalIndex
from trading_core.accounting import (
    Drawdown,
    drawdowns,
    exposed_curve,
    monthly_returns,
    rolling_sharpe,
    worst_drawdowns,
    yearly_returns,
)
from trading_core.bars import BarSeries
from worker.pages.run_marks import ENTRY_KINDS, SymbolMarks, marks_of, report_entries

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
DAY_NS = 86_400_000_000_000
MOST_PERIODS = 60
HALF_YEAR_DAYS, LEAST_WINDOW = 182.6, 20


@dataclass(frozen=True, eq=False)
class RunPicture:
    """One run.

    Attributes:
        run_id: as its store has it.
        status: how it ended; `finished`, or why it did not.
        document: as `backtest --json` prints it.
        bars: those that were traded, T rows.
        episodes: closed positions in order of exit.
        versions: every state that a playbook version took, in order.
        index: its journal.
        curve: (T + 1,) equity with the cash in front.
        times: (T + 1,) of the curve, ns.
        hold: (T + 1,) what buy and hold of the same symbols was worth.
        account: what became of the signals, in lines.
        notices: what has to be said first, such as positions whose symbols have stopped trading.
        outside: reports that a worker wrote about it and its journal does not hold, as `report_entries`.
    """

    run_id: str
    status: str
    document: dict[str, Any]
    bars: BarSeries
    episodes: tuple[Episode, ...]
    versions: tuple[PlaybookVersion, ...]
    index: JournalIndex
    curve: FloatArray
    times: IntArray
    hold: FloatArray
    account: Sequence[str]
    notices: Sequence[str] = ()
    outside: tuple[dict[str, Any], ...] = ()

    @property
    def equity(self) -> FloatArray:
        """(T,) at the bar closes."""
        return self.curve[1:]

    @cached_property
    def marks(self) -> dict[str, SymbolMarks]:
        """What the chart of each symbol shows at its bars."""
        return marks_of(self.index, int(self.bars.times[-1]))

    @cached_property
    def reports(self) -> list[dict[str, Any]]:
        """High-level reports, oldest first."""
        rows = ((event.row, event.payload) for event in self.index.events if event.row.kind in ENTRY_KINDS)
        held = report_entries(rows)
        names = {entry["report_id"] for entry in held}
        others = [entry for entry in self.outside if entry["report_id"] not in names]
        return sorted([*held, *others], key=lambda entry: entry["report"]["known_at"]) if others else held

    @property
    def most_traded(self) -> int:
        """Column of the symbol with most fills, the first of several."""
        fills = [len(self.marks[name].fills) if name in self.marks else 0 for name in self.bars.symbols]
        return fills.index(max(fills))

    @cached_property
    def curves(self) -> dict[str, FloatArray]:
        """Equity and what stands beside it, each (T,) at the bar closes, NaN where undefined."""
        rolling = rolling_sharpe(self.curve, self.times, self.window)
        return {
            "equity": self.equity,
            "hold": self.hold[1:],
            "exposed": exposed_curve(self.hold, self.document["performance"]["mean_exposure"] or 0.0)[1:],
            "drawdown": 0.0 - drawdowns(self.equity),
            "rolling": rolling[1:],
        }

    @property
    def is_flat(self) -> bool:
        """Whether equity never moved: it has no drawdown and no rolling Sharpe ratio."""
        return bool(self.equity.min() == self.equity.max())

    @property
    def window(self) -> int:
        """Bars of the rolling Sharpe ratio: half a year, or a quarter of a shorter run."""
        days = max(1.0, float(self.times[-1] - self.times[0]) / DAY_NS)
        return int(max(LEAST_WINDOW, len(self.equity) * min(0.25, HALF_YEAR_DAYS / days)))

    @cached_property
    def years(self) -> list[tuple[int, float, list[float | None]]]:
        """Each calendar year with its return and that of its twelve months, None of one without a bar."""
        curve, times = self.curve, self.times
        months = {(year, month): gain for year, month, gain in monthly_returns(curve, times)}
        return [
            (year, gain, [months.get((year, month)) for month in range(1, 13)])
            for year, gain in yearly_returns(curve, times)
        ]

    @cached_property
    def falls(self) -> list[Drawdown]:
        """The deepest drawdowns, deepest first."""
        return worst_drawdowns(self.curve, self.times)

    @cached_property
    def outcomes(self) -> dict[str, Any]:
        """How many reflections of each period ended how: `periods` and counts by status."""
        marks = [mark for found in self.marks.values() for mark in found.reflections]
        times = np.array(sorted({mark.known_at for mark in marks}), dtype=np.int64)
        unit = _unit(times)
        names = [str(np.datetime64(mark.known_at, "ns").astype(f"datetime64[{unit}]")) for mark in marks]
        periods = sorted(set(names))
        counts = {status: [0] * len(periods) for status in sorted({mark.status for mark in marks})}
        for name, mark in zip(names, marks, strict=True):
            counts[mark.status][periods.index(name)] += 1
        return {"periods": periods, "counts": counts}


def _unit(times: IntArray) -> str:
    """The longest of day, month and year that leaves enough periods to see a course."""
    days = 0 if not times.size else int(times[-1] - times[0]) // DAY_NS
    return "D" if days <= MOST_PERIODS else "M" if days <= 31 * MOST_PERIODS else "Y"


def drawn_rows(curves: Iterable[npt.NDArray[np.float64]], pieces: int) -> npt.NDArray[np.int64]:
    """Rows of curves over one axis, ascending: where each is lowest and highest in every piece, and the last.

    Args:
        curves: each (T,), NaN where undefined.
        pieces: stretches of about equal length.
    """
    kept: set[int] = set()
    for curve in curves:
        stretches = np.array_split(np.arange(len(curve)), min(len(curve), pieces))
        low, high = np.where(np.isnan(curve), np.inf, curve), np.where(np.isnan(curve), -np.inf, curve)
        kept |= {int(s[np.argmin(low[s])]) for s in stretches} | {
            int(s[np.argmax(high[s])]) for s in stretches
        }
        kept.add(len(curve) - 1)
    return np.array(sorted(kept), dtype=np.int64)
