"""One symbol's regime at one bar, read out of the regime columns.

Snapshots, shadow ledgers and episodes carry what comes back.
"""

from typing import Final

import numpy as np

from schemas.regime import RegimeLabels, RegimeView
from schemas.vocabulary import Structure, Trend, VolatilityBand
from trading_core.regime import RegimeColumns

TRENDS: Final = tuple(Trend)
BANDS: Final = tuple(VolatilityBand)
STRUCTURES: Final = tuple(Structure)


def regime_view(regimes: RegimeColumns, t: int, s: int) -> RegimeView | None:
    """Labels and fingerprint of symbol `s` at row `t`; None while warming up."""
    codes = (int(regimes.trend[t, s]), int(regimes.volatility[t, s]), int(regimes.structure[t, s]))
    ranks = regimes.fingerprint[t, s]
    if min(codes) < 0 or not np.isfinite(ranks).all():
        return None
    labels = RegimeLabels(trend=TRENDS[codes[0]], volatility=BANDS[codes[1]], structure=STRUCTURES[codes[2]])
    return RegimeView(labels=labels, fingerprint=tuple(float(rank) for rank in ranks))
