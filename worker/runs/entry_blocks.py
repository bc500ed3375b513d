"""Where the blocks begin in which `envelope.max_entries_per_block` counts, in the engine's terms."""

import numpy as np
import numpy.typing as npt

from schemas.config import Settings
from services.statistics.calendar_units import DAY_NS, unit_numbers, unit_of_timeframe, unit_starts
from trading_core.bars import BarSeries

LAST_NS = np.iinfo(np.int64).max - 2 * DAY_NS  # a label after which a bar still closes within an int64


def block_edges(settings: Settings, bars: BarSeries) -> npt.NDArray[np.int64] | None:
    """int64 (E,), ascending: closes, ns, from which a bar belongs to the next block of `gate.block`.

    A bar belongs to the block of its label, as in the gate. The edges go on beyond the last bar, as bars may
    be added. None where nothing is counted.
    """
    if settings.envelope.max_entries_per_block == 0:
        return None
    unit = unit_of_timeframe(settings.gate.block, bars.timeframe)
    first, last = (int(unit_numbers(at, unit)) for at in (bars.times[0], LAST_NS))
    to_close = 0 if bars.label == "close" else bars.bar_ns
    return unit_starts(np.arange(first + 1, last + 1), unit) + to_close
