"""The live step: one new row of bars through the same columns, regime and kernel as a backtest.

A step computes what the new row adds, with saved state, so it costs the same on any length of history and
gives the bits that a block would give. It waits for nothing and knows no policy loop.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from schemas.errors import InvariantViolation
from schemas.settings.envelope import NoTradeWindow
from trading_core.kernel.flags import no_trade_flags
from trading_core.kernel.records import FLAG_NO_TRADE
from trading_core.live.growing_bars import NOTHING, Bar, GrowingBars
from trading_core.market import Market
from trading_core.trigger_engine import Advance, TriggerEngine


class LiveStep:
    """Bars in, what the engine made of them out.

    Attributes:
        bars: the series so far.
        columns: its rule columns.
        engine: the engine that validates it.
    """

    def __init__(
        self,
        market: Market,
        engine: TriggerEngine,
        windows: Sequence[NoTradeWindow] = (),
    ) -> None:
        """Wire a step.

        Args:
            market: history so far, in bars that grow.
            engine: engine on those bars with `SharedColumns` of their columns.
            windows: no-trade windows.

        Raises:
            InvariantViolation: the bars cannot grow.
        """
        if not isinstance(market.bars, GrowingBars):
            raise InvariantViolation("a live step needs bars that grow")
        self.bars = market.bars
        self.columns = market.columns
        self.engine = engine
        self._tracker = market.tracker
        self._windows = tuple(windows)

    def __call__(self, label: int, bars: Mapping[str, Bar]) -> tuple[Advance, ...]:
        """Take in one row and validate it; usually one `Advance`, none is skipped.

        Args:
            label: ns, after the last one.
            bars: the row's bars by symbol.

        Raises:
            DataError: the row cannot be; nothing has changed then.
        """
        self.take(label, bars)
        done = []
        while not self.engine.done:
            done.append(self.engine.advance())
        return tuple(done)

    def take(
        self,
        label: int,
        bars: Mapping[str, Bar],
        blocked: Collection[str] = (),
        extra: Mapping[str, Mapping[str, float | None]] = NOTHING,
    ) -> int:
        """Take in one row without validating it; the engine's next advance does.

        Args:
            label: ns, after the last one.
            bars: the row's bars by symbol.
            blocked: symbols that order no entry at this row; exits run on.
            extra: what further columns say, see `GrowingBars.append`.

        Returns:
            The number of the row.

        Raises:
            DataError: the row cannot be; nothing has changed then.
        """
        row = self.bars.append(label, bars, extra)
        self._tracker.extend()
        self.engine.extend(self._flags(row, blocked))
        return row

    def _flags(self, row: int, blocked: Collection[str]) -> npt.NDArray[np.uint8]:
        flags = self._tracker.columns.flags[row : row + 1]
        if self._windows:
            closes = self.bars.close_times[row : row + 1]
            flags = flags | no_trade_flags(closes, self.bars.symbols, self._windows)
        if blocked:
            shut = np.array([symbol in blocked for symbol in self.bars.symbols])
            flags = flags | np.where(shut, FLAG_NO_TRADE, 0).astype(np.uint8)
        return flags
