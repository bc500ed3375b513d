"""What a run came to: its curve, its trades, and the positions that stay open while nothing moves them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.episode import Episode
from schemas.settings import Settings
from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers, unit_numbers, unit_of_timeframe, unit_starts
from trading_core.bars import BarSeries
from worker.pages.figures import shown_time


@dataclass(frozen=True)
class Course:
    """What a run came to: `curve` and `times` have one point before the first close (T + 1,)."""

    bars: BarSeries
    trades: Sequence[Episode]
    curve: Floats
    times: Integers

    @classmethod
    def of_closes(cls, bars: BarSeries, trades: Sequence[Episode], equity: Floats, cash: float) -> "Course":
        """With the cash one bar before the first close; `equity` (T,) is that at the closes."""
        spacing = (bars.close_times[-1] - bars.close_times[0]) // max(1, bars.shape[0] - 1)
        times = np.concatenate([[bars.close_times[0] - spacing], bars.close_times])
        return cls(bars, trades, np.concatenate([[cash], equity]), times)


def stale_positions(
    bars: BarSeries, settings: Settings, entered: Mapping[str, tuple[str, str, int]]
) -> list[str]:
    """Open positions whose symbols had no bar in the block of the last one, and what waits for them.

    Of each, by symbol, it was `entered` by a playbook on a side at a label (ns).
    """
    unit = unit_of_timeframe(settings.gate.block, bars.timeframe)
    now, shown = unit_numbers(bars.times[-1], unit), []
    for symbol, (playbook, side, label) in sorted(entered.items()):
        last = int(bars.times[np.flatnonzero(bars.present[:, bars.symbols.index(symbol)])[-1]])
        if unit_numbers(last, unit) == now:
            continue
        waits = int(unit_starts(unit_numbers(label, unit), unit))
        shown.append(
            f"{playbook}: its {side} {symbol} is open since {shown_time(label)}, and {symbol} has no bar "
            f"after {shown_time(last)}: no trade that the playbook entered from {shown_time(waits)} on "
            "counts at the gate before it is closed"
        )
    return shown
