"""Event flags of bars: what their regime says, and where no entry may be ordered."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.errors import ConfigError, InvariantViolation, nearest
from schemas.settings import NoTradeWindow
from trading_core.bars import NS, BarSeries
from trading_core.kernel import records as rec

_DAY_NS = 86_400 * NS


def event_flags(
    regime_flags: npt.NDArray[np.uint8],
    bars: BarSeries | None = None,
    windows: Sequence[NoTradeWindow] = (),
) -> npt.NDArray[np.uint8]:
    """uint8 (T, S): `records.FLAG_...` of every bar, those of its regime and those of the windows.

    Raises:
        ConfigError: a window names a symbol that the bars do not have.
    """
    flags = regime_flags.copy()
    if bars is not None and windows:
        flags |= no_trade_flags(bars.close_times, bars.symbols, windows)
    return flags


def no_trade_flags(
    close_times: npt.NDArray[np.int64], symbols: Sequence[str], windows: Sequence[NoTradeWindow]
) -> npt.NDArray[np.uint8]:
    """uint8 (T, S): `FLAG_NO_TRADE` where a bar closes inside a window.

    Raises:
        ConfigError: a window names an unknown symbol.
    """
    flags = np.zeros((close_times.size, len(symbols)), dtype=np.uint8)
    for window in windows:
        columns = slice(None)
        if window.symbol is not None:
            columns = column_of(window.symbol, symbols, "no_trade_windows")
        flags[_inside(window, close_times), columns] = rec.FLAG_NO_TRADE
    return flags


def no_trade_reasons(close_time: int, symbol: str, windows: Sequence[NoTradeWindow]) -> list[str]:
    """Reasons of the windows in which a bar of the symbol closes, in the order of the settings."""
    at = np.array([close_time], dtype=np.int64)
    return [window.reason for window in windows if window.symbol in (None, symbol) and _inside(window, at)[0]]


def _inside(window: NoTradeWindow, close_times: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if window.start is not None and window.end is not None:
        return (close_times >= window.start) & (close_times < window.end)
    if window.from_minute is None or window.to_minute is None:
        raise InvariantViolation(f"no-trade window {window!r} has no stretch")
    minute = close_times % _DAY_NS // (60 * NS)
    weekday = (close_times // _DAY_NS + 3) % 7  # 1970-01-01 was a Thursday
    return (minute >= window.from_minute) & (minute < window.to_minute) & np.isin(weekday, window.weekdays)


def column_of(symbol: str, symbols: Sequence[str], where: str) -> Any:
    """Column of a symbol that a limit of the envelope names.

    Raises:
        ConfigError: the data has no such symbol; names the nearest.
    """
    if symbol not in symbols:
        raise ConfigError(
            f"envelope.{where}: unknown symbol {symbol!r}: the data has {', '.join(symbols)}."
            f"{nearest(symbol, symbols)}"
        )
    return list(symbols).index(symbol)
