"""What one bar means for the portfolio: mark to market, check the envelope, flatten after a breach.

Called by the kernel at the close, after every symbol has been validated.
"""

from typing import Any, Final

from numba import njit

from schemas.vocabulary import ExitReason, TickEventKind
from trading_core import records as rec
from trading_core.kernel_orders import drop_policy, emit, go
from trading_core.risk import breach_of, follow_recovery, start_halt
from trading_core.state_machine import IDLE, THESIS_ARMED

_REFUSED: Final = rec.KIND[TickEventKind.ORDER_REFUSED]
_BREACH: Final = rec.KIND[TickEventKind.ENVELOPE_BREACH]
_RELEASED: Final = rec.KIND[TickEventKind.ENVELOPE_RELEASED]
_X_ENVELOPE: Final = rec.EXIT[ExitReason.ENVELOPE]
_X_KILL: Final = rec.EXIT[ExitReason.KILL_SWITCH]
_R_ENVELOPE: Final = rec.REFUSALS.index("envelope")
_BIT_ENVELOPE: Final = rec.BIT_ENVELOPE
_BIT_KILL: Final = rec.BIT_KILL


@njit(cache=True, error_model="numpy")
def mark(state: Any, port: Any) -> None:
    """Mark every position to its last close."""
    equity = port.cash
    gross = 0.0
    for s in range(state.shape[0]):
        st = state[s]
        if st.direction != 0:
            value = st.quantity * st.last_close
            equity += st.direction * value
            gross += value
    port.equity = equity
    port.gross = gross


@njit(cache=True, error_model="numpy")
def flatten(state: Any, port: Any, events: Any, count: Any, p: Any, t: int, breach: int) -> None:
    """Queue the exit of every position and take back resting entries; no emergency exit is vetoed."""
    bit = _BIT_KILL if port.kill == 1 else _BIT_ENVELOPE
    for s in range(state.shape[0]):
        st = state[s]
        if st.order == 1:
            st.order = 0
            emit(
                events,
                count,
                p.emit,
                t,
                s,
                _REFUSED,
                _R_ENVELOPE,
                st.policy,
                st.order_base,
                st.order_stop,
                st.order_target,
                0.0,
                0.0,
                0.0,
            )
        if st.state == THESIS_ARMED:
            drop_policy(st)
            go(st, port, events, count, p.emit, t, s, IDLE)
            st.bits |= bit
        if st.direction != 0:
            st.exit_reason = _X_KILL if port.kill == 1 else _X_ENVELOPE
            st.bits |= bit


@njit(cache=True, error_model="numpy")
def envelope(state: Any, port: Any, events: Any, count: Any, p: Any, t: int) -> None:
    """Check the portfolio's limits at the close; a breach flattens at the next open and halts entries."""
    released = follow_recovery(port, t, p)
    if released:
        emit(events, count, p.emit, t, -1, _RELEASED, 1, 0, port.equity, port.peak, 0.0, 0.0, 0.0, 0.0)
    if port.equity > port.peak:
        port.peak = port.equity
    breach = breach_of(port, t, p)
    if breach >= 0:
        emit(
            events,
            count,
            p.emit,
            t,
            -1,
            _BREACH,
            breach,
            0,
            port.equity,
            port.peak,
            port.day_start,
            port.gross,
            0.0,
            0.0,
        )
        start_halt(port, breach, t, p)
        flatten(state, port, events, count, p, t, breach)
