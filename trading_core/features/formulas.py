"""Formulas that several families of features are made of, as graphs."""

from typing import Literal

from trading_core.features import nodes as f
from trading_core.features.nodes import CLOSE, HIGH, LOW, OPEN, VOLUME, Node

SESSION = f.raw("session")


def three_prices() -> Node:
    """High + low + close, three times the typical price."""
    return f.add(f.add(HIGH, LOW), CLOSE)


def typical_price() -> Node:
    """(high + low + close) / 3."""
    return f.scale(1 / 3, three_prices())


def log_return() -> Node:
    """Log of close over the close before."""
    return f.log(f.divide(CLOSE, f.lag(CLOSE, 1)))


def efficiency(n: int) -> Node:
    """Net move over the path of n bars."""
    path = f.scale(float(n), f.mean(f.absolute(f.change(CLOSE)), n))
    return f.divide(f.absolute(f.change(CLOSE, n)), path)


def trend_strength(fast: int, slow: int) -> Node:
    """(ema_F - ema_S) / atr_S."""
    return f.divide(f.subtract(f.ema(CLOSE, fast), f.ema(CLOSE, slow)), f.atr(slow))


def realized_volatility(n: int) -> Node:
    """Population standard deviation of the last n log returns."""
    return f.stdev(log_return(), n)


def range_ratio(n: int) -> Node:
    """True range over atr_N."""
    return f.divide(f.true_range(), f.atr(n))


def session_open() -> Node:
    """Open of the session's first bar."""
    return f.first_of(OPEN, SESSION)


def session_vwap() -> Node:
    """Volume-weighted typical price of the session so far."""
    money = f.total_of(f.multiply(typical_price(), VOLUME), SESSION)
    return f.divide(money, f.total_of(VOLUME, SESSION))


def previous_session(price: Literal["high", "low", "close"]) -> Node:
    """High, low or close of the last session before this one that had a bar."""
    at_its_end = {"high": f.highest_of(HIGH, SESSION), "low": f.lowest_of(LOW, SESSION), "close": CLOSE}
    return f.last_of_previous(at_its_end[price], SESSION)
