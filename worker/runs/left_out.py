"""Bars that a run did not trade, by reason: what its feed left out, and holes beside other symbols.

A pure function of what the session has counted and of its bars, so that a replay counts the same.
"""

from collections.abc import Sequence

import numpy as np

from services.feeds.port import LEAVES_OUT
from trading_core.bars import BarSeries
from worker.session import Session


def left_out(session: Session) -> dict[str, int]:
    """Reasons with counts; a reason that did not occur is left out.

    `absent` are holes within the bars of a symbol, at labels where another has a bar.
    """
    found = {str(kind): session.anomalies[kind] for kind in LEAVES_OUT if session.anomalies[kind]}
    holes = _holes(session.bars, session.doubted)
    return found | ({"absent": holes} if holes else {})


def _holes(bars: BarSeries, doubted: Sequence[tuple[int, str]]) -> int:
    """Holes that hold no bar in doubt: that one is counted as such."""
    holes = np.zeros(bars.shape, dtype=np.bool_)
    for s in range(len(bars.symbols)):
        rows = np.flatnonzero(bars.present[:, s])
        if rows.size:
            holes[rows[0] : rows[-1] + 1, s] = ~bars.present[rows[0] : rows[-1] + 1, s]
    for label, symbol in doubted:
        row = int(np.searchsorted(bars.times, label))
        if symbol in bars.symbols and row < bars.shape[0] and bars.times[row] == label:
            holes[row, bars.symbols.index(symbol)] = False
    return int(holes.sum())
