"""Sizing and the portfolio envelope, compiled: risk at the stop, clamps, and what happens at a breach.

Called by the kernel only. Every clamp and every breach is an event of the bar in which it happened.
"""

from typing import Any, Final

import numpy as np
from numba import njit

from trading_core.records import BREACHES, CLAMPS

CLAMP_RISK: Final = CLAMPS.index("risk_cap")
CLAMP_GROSS: Final = CLAMPS.index("gross_exposure")
CLAMP_RECOVERY: Final = CLAMPS.index("recovery_half_risk")
BREACH_DAILY: Final = BREACHES.index("daily_loss")
BREACH_DRAWDOWN: Final = BREACHES.index("drawdown")
BREACH_GROSS: Final = BREACHES.index("gross_exposure")
BREACH_KILL: Final = BREACHES.index("kill_switch")
SMALLEST_SHARE: Final = 0.01


@njit(cache=True, error_model="numpy")
def sized(
    equity: float, gross: float, price: float, risk: float, fraction: float, recovering: int, p: Any
) -> Any:
    """Quantity of an entry and which clamps applied.

    Args:
        equity: portfolio value at the close of the signal bar.
        gross: notional already held or reserved.
        price: signal close.
        risk: planned risk per unit, > 0.
        fraction: risk fraction of the policy.
        recovering: 1 while risk is halved after a drawdown.
        p: engine parameters.

    Returns:
        (quantity, clamps): quantity 0 when less than 1 % of the intended size has room; bit k of clamps
        is set when `CLAMPS[k]` applied.
    """
    if not np.isnan(p.fixed_quantity):
        return p.fixed_quantity, 0
    clamps = 0
    if fraction > p.max_risk:
        fraction = p.max_risk
        clamps |= 1 << CLAMP_RISK
    if recovering:
        fraction *= 0.5
        clamps |= 1 << CLAMP_RECOVERY
    wanted = equity * fraction / risk
    room = (p.max_gross * equity - gross) / price
    if wanted <= 0.0 or room < SMALLEST_SHARE * wanted:
        return 0.0, clamps
    if wanted > room:
        return room, clamps | 1 << CLAMP_GROSS
    return wanted, clamps


@njit(cache=True, error_model="numpy")
def halted(port: Any, t: int, day: int) -> bool:
    """Whether entries are blocked at row t of UTC day `day`."""
    if port.kill == 1:
        return True
    blocked: bool = port.halt_day >= day or port.halt_until >= t
    return blocked


@njit(cache=True, error_model="numpy")
def breach_of(port: Any, t: int, p: Any) -> int:
    """Index into `BREACHES` of a limit newly broken at this close, or -1. Called after marking to market."""
    if port.kill == 1:
        return BREACH_KILL if port.kill_seen == 0 else -1
    if port.halt_day < port.day and port.day_start - port.equity >= p.max_daily_loss * port.day_start:
        return BREACH_DAILY
    if port.halt_until < t and port.peak - port.equity >= p.max_drawdown * port.peak:
        return BREACH_DRAWDOWN
    if port.exposure_halt == 0 and port.gross > p.gross_breach * port.equity:
        return BREACH_GROSS
    return -1


@njit(cache=True, error_model="numpy")
def start_halt(port: Any, breach: int, t: int, p: Any) -> None:
    """Block entries as the breach demands.

    The day, a number of bars, or until the operator releases the switch.
    """
    if breach == BREACH_KILL:
        port.kill_seen = 1
    elif breach == BREACH_DAILY:
        port.halt_day = port.day
    elif breach == BREACH_DRAWDOWN:
        port.halt_until = t + p.release_bars
        port.recovery_from = t + p.release_bars
        port.recovery_high = 0.0
    else:
        port.exposure_halt = 1
        port.halt_until = max(port.halt_until, t + 1)


@njit(cache=True, error_model="numpy")
def follow_recovery(port: Any, t: int, p: Any) -> bool:
    """Keep the books of a drawdown's aftermath; True on the bar of the release.

    From the release the peak starts anew, and risk stays halved until equity passes the high of the
    `recovery_bars` bars that follow the release.
    """
    if port.gross <= p.max_gross * port.equity:
        port.exposure_halt = 0
    if port.recovery_from < 0 or t < port.recovery_from:
        return False
    if t == port.recovery_from:
        port.peak = port.equity
        port.recovery_high = port.equity
        return True
    if t <= port.recovery_from + p.recovery_bars:
        port.recovery_high = max(port.recovery_high, port.equity)
    elif port.equity > port.recovery_high:
        port.recovery_from = -1
    return False
