"""A bar as a source gave it, unjudged, and what a bar has to be."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from trading_core.live.growing_bars import NOTHING, Bar


class RawBar(NamedTuple):
    """What a source said about one bar."""

    symbol: str
    label: int  # ns, as the feed labels its bars
    bar: Bar  # the values as they came
    extra: Mapping[str, float | None] = NOTHING  # what further columns say, see `BarRow.extra`


def fault(bar: Bar) -> str | None:
    """Why these values cannot be a bar; None when they can.

    The conditions are those of `BarSeries`, so that what passes here passes there.
    """
    for name, value in zip(Bar._fields, bar, strict=True):
        if value is None and name == "volume":
            continue
        if type(value) is not float or not math.isfinite(value):
            return f"{name} is {str(value)[:32]!r}, not a finite number"
    if min(bar.open, bar.high, bar.low, bar.close) <= 0.0:
        return "a price is not above zero"
    if bar.high < bar.low:
        return "high is below low"
    if not (bar.low <= bar.open <= bar.high and bar.low <= bar.close <= bar.high):
        return "open or close lies outside low..high"
    return "volume is negative" if bar.volume is not None and bar.volume < 0.0 else None
