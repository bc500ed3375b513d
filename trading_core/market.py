"""The market of one run in one value: made once and handed on to whoever reads bars."""

from dataclasses import dataclass

from schemas.settings import RegimeSettings
from trading_core.bars import BarSeries
from trading_core.clock import SimulatedClock
from trading_core.features.columns import FeatureColumns
from trading_core.live.growing_bars import GrowingBars
from trading_core.regime import RegimeColumns, RegimeTracker
from trading_core.rules.columns import RuleColumns


@dataclass(frozen=True)
class Market:
    """Bars, what is computed from them, and the time up to which they are known.

    Attributes:
        bars: all bars of the run, or those so far.
        columns: rules and features of the bars; they grow with them.
        tracker: follows the regime of the bars.
        clock: refuses a read of what is not known yet.
    """

    bars: BarSeries
    columns: RuleColumns
    tracker: RegimeTracker
    clock: SimulatedClock

    @classmethod
    def of(cls, bars: BarSeries, regime: RegimeSettings | None = None, now: int | None = None) -> "Market":
        """The market of a series.

        Args:
            bars: the series; it may grow.
            regime: None: the defaults.
            now: where the clock starts, ns; None: at the label of the first bar.
        """
        features = FeatureColumns(bars, grows=isinstance(bars, GrowingBars))
        columns = RuleColumns(bars, features)
        features.bank.before_leaving = columns.count_on
        tracker = RegimeTracker(bars, regime, features)
        return cls(bars, columns, tracker, SimulatedClock(int(bars.times[0]) if now is None else now))

    @property
    def regimes(self) -> RegimeColumns:
        """Regime columns (T, S), up to the rows last followed."""
        return self.tracker.columns
