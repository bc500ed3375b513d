"""Regime detector: trend, volatility band and structure of each symbol, from rolling ranks of its own bars.

No constant has a price, a volatility or a time in it, so scaling prices or changing the timeframe of a path
changes no label. Labels have hysteresis: a change needs k of the last n closes and a minimum dwell. Events
say that something changed, reasons say of every bar why or why not. A tracker follows a series: a whole
history is an extension of nothing, and any split of its rows gives the same bits.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from schemas.regime import FINGERPRINT, RegimeLabels, RegimeView
from schemas.settings import RegimeSettings
from schemas.vocabulary import Structure, Trend, VolatilityBand
from trading_core.bars import BarSeries, FloatArray
from trading_core.features.columns import FeatureColumns

__all__ = ["RegimeColumns", "RegimeReason", "RegimeSettings", "RegimeTracker", "regime_columns"]
CodeArray = npt.NDArray[np.int8]
FlagArray = npt.NDArray[np.uint8]
CODES = 7
FEATURES_READ = (
    "trend_rank",
    "realized_vol_20_rank",
    "bandwidth_20_rank",
    "volume_rank",
    "range_rank",
    "trend_change_20_50_10_rank",
    "double_trend_rank",
    "reduced_vol_rank",
    "trend_strength_20_50",
    "trend_change_20_50_10",
    "realized_vol_20",
    "zscore_20_rank",
    "close",
    "highest_20",
    "lowest_20",
)
FIRST_ROWS: Final = 4_096  # that there is room for twice: tables that are copied leave holes in memory
TRENDS: Final = tuple(Trend)
BANDS: Final = tuple(VolatilityBand)
STRUCTURES: Final = tuple(Structure)


class RegimeReason(StrEnum):
    """Why an evaluation of the regime fired or did not; the codes are the positions of the members."""

    ABSENT = "absent"
    WARMING_UP = "warming_up"
    INITIAL = "initial"
    UNCHANGED = "unchanged"
    UNKNOWN_INPUT = "unknown_input"
    UNCONFIRMED = "unconfirmed"
    DWELLING = "dwelling"
    BAND_SHIFTED = "band_shifted"
    TREND_CHANGED = "trend_changed"
    SHOCK = "shock"


@dataclass(eq=False)
class RegimeColumns:
    """Regime of every symbol at every bar; on an absent bar the labels in force are carried, events are zero.

    A tracker that follows its series gives the attributes more rows; what was read before stays as it was.

    Attributes:
        trend, volatility, structure: int8 (T, S), positions of the members of the enums; -1 while warming up.
        fingerprint: float64 (T, S, 5) in the order of `FINGERPRINT`; NaN while warming up; a rank that
            becomes unknown keeps its last value, and that of a volume which was never known is 0.5.
        trend_change: uint8 (T, S), the confirmed trend changed.
        band_shift: uint8 (T, S), the confirmed volatility band changed.
        shock: uint8 (T, S), volatility entered the extreme band; again only after it had left it for good.
        flags: uint8 (T, S), the three events as bits 1, 2 and 4.
        reason: int8 (T, S), position in `RegimeReason`.
    """

    trend: CodeArray
    volatility: CodeArray
    structure: CodeArray
    fingerprint: FloatArray
    trend_change: FlagArray
    band_shift: FlagArray
    shock: FlagArray
    flags: FlagArray
    reason: CodeArray


class RegimeTracker:
    """The regime of a series that may grow.

    Attributes:
        columns: the regime up to the rows last followed.
    """

    def __init__(
        self, bars: BarSeries, settings: RegimeSettings | None = None, features: FeatureColumns | None = None
    ) -> None:
        # Imported on use, so that reading the names of reasons never loads the compiler.
        from trading_core.regime_recurrence import STATE_SIZE, extend

        self._extend = extend
        self._features = features or FeatureColumns(bars)
        self._settings = (settings or RegimeSettings()).values()
        self._rows = 0
        symbols = len(bars.symbols)
        for s in range(symbols):
            self._features.load(FEATURES_READ, [s])
        self._read = np.array(
            [[self._features.place(name, s).index for name in FEATURES_READ] for s in range(symbols)],
            dtype=np.int64,
        )
        self._state = np.zeros((symbols, STATE_SIZE))
        self._scratch = np.empty(len(FEATURES_READ)), np.empty(CODES, dtype=np.int8)
        self._tables = _tables(2 * max(self._features.length, FIRST_ROWS), symbols)
        self._follow()

    def extend(self, bars: BarSeries | None = None) -> None:
        """Follow the series, and its features with it, to the new rows; see `FeatureColumns.extend`."""
        self._features.extend(bars)
        if self._features.length > self._rows:
            self._follow()

    def _follow(self) -> None:
        start, stop = self._rows, self._features.length
        if stop > self._tables.trend.shape[0]:
            self._tables = _grown(self._tables, start, 2 * stop)
        present, numbers, full = self._features.bars.present, self._features.bank.numbers, self._tables
        labels = full.trend, full.volatility, full.structure
        events = full.trend_change, full.band_shift, full.shock, full.flags
        for s in range(self._state.shape[0]):
            self._extend(
                numbers, self._read[s], present, s, start, stop, self._settings, self._state[s],
                *self._scratch, labels, events, full.reason, full.fingerprint,
            )  # fmt: skip
        self._rows = stop
        views = {name: table[:stop] for name, table in vars(full).items()}
        if start == 0:
            self.columns = RegimeColumns(**views)
        else:
            vars(self.columns).update(views)


def regime_columns(
    bars: BarSeries, settings: RegimeSettings | None = None, features: FeatureColumns | None = None
) -> RegimeColumns:
    """Regime of every symbol at every bar.

    Args:
        bars: the series.
        settings: None: the defaults.
        features: feature columns to share; None computes them.
    """
    return RegimeTracker(bars, settings, features).columns


def _tables(rows: int, symbols: int) -> RegimeColumns:
    def codes() -> CodeArray:
        return np.empty((rows, symbols), dtype=np.int8)

    def flags() -> FlagArray:
        return np.empty((rows, symbols), dtype=np.uint8)

    ranks = np.empty((rows, symbols, len(FINGERPRINT)))
    return RegimeColumns(codes(), codes(), codes(), ranks, flags(), flags(), flags(), flags(), codes())


def _grown(tables: RegimeColumns, used: int, rows: int) -> RegimeColumns:
    grown = _tables(rows, tables.trend.shape[1])
    for name, table in vars(grown).items():
        table[:used] = getattr(tables, name)[:used]
    return grown


def regime_view(regimes: RegimeColumns, t: int, s: int) -> RegimeView | None:
    """Labels and fingerprint of symbol `s` at row `t`; None while warming up."""
    codes = (int(regimes.trend[t, s]), int(regimes.volatility[t, s]), int(regimes.structure[t, s]))
    ranks = regimes.fingerprint[t, s]
    if min(codes) < 0 or not np.isfinite(ranks).all():
        return None
    trend, band, structure = codes
    labels = RegimeLabels.trust(trend=TRENDS[trend], volatility=BANDS[band], structure=STRUCTURES[structure])
    return RegimeView.trust(labels=labels, fingerprint=tuple(ranks.tolist()))
