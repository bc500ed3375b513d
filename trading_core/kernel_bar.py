"""What one bar means for one symbol, by its state: at the open, inside the bar, and at the close.

Compiled functions that read rule columns at the present row only. Called by the kernel in its order.
"""

from typing import Any, Final

from numba import njit

from schemas.vocabulary import ExitReason, TickEventKind
from trading_core import records as rec
from trading_core.execution import intrabar_exit
from trading_core.kernel_orders import accept_order, close_position, drop_policy, emit, go, refine_stop
from trading_core.state_machine import HOLD_LOCK, IDLE, INVALIDATED, POSITION_OPEN, THESIS_ARMED

_ARMED: Final = rec.KIND[TickEventKind.THESIS_ARMED]
_ACTIVATED: Final = rec.KIND[TickEventKind.ACTIVATION_TRIGGERED]
_EXPIRED: Final = rec.KIND[TickEventKind.THESIS_EXPIRED]
_INVALID: Final = rec.KIND[TickEventKind.INVALIDATION_HIT]
_STOP: Final = rec.KIND[TickEventKind.STOP_BREACH]
_TARGET: Final = rec.KIND[TickEventKind.TARGET_BREACH]
_TIME: Final = rec.KIND[TickEventKind.TIME_STOP]
_POLICY_EXPIRED: Final = rec.KIND[TickEventKind.POLICY_EXPIRED]
_X_STOP: Final = rec.EXIT[ExitReason.STOP]
_X_TARGET: Final = rec.EXIT[ExitReason.TARGET]
_X_TIME: Final = rec.EXIT[ExitReason.TIME_STOP]
_X_INVALID: Final = rec.EXIT[ExitReason.INVALIDATION]
_BIT_INVALIDATION: Final = rec.BIT_INVALIDATION
_NAN: Final = float("nan")


@njit(cache=True, error_model="numpy")
def at_close_armed(
    st: Any,
    port: Any,
    events: Any,
    count: Any,
    p: Any,
    truths: Any,
    numbers: Any,
    t: int,
    s: int,
    close: float,
    gross: float,
    blocked: bool,
) -> float:
    """Entry conditions of an armed thesis: expiry, invalidation, refinement, activation.

    Returns notional reserved.
    """
    if st.order == 1:
        return 0.0
    waited = st.own - st.armed_own
    if waited > st.policy_window:
        emit(events, count, p.emit, t, s, _EXPIRED, waited, st.policy, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        go(st, port, events, count, p.emit, t, s, IDLE)
        return 0.0
    if st.k_invalidation >= 0 and truths[st.k_invalidation, t] == 1:
        emit(
            events,
            count,
            p.emit,
            t,
            s,
            _INVALID,
            st.policy_direction,
            st.policy,
            close,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
        )
        st.bits |= _BIT_INVALIDATION
        drop_policy(st)
        go(st, port, events, count, p.emit, t, s, INVALIDATED)
        return 0.0
    if st.k_refinement >= 0 and st.k_stop >= 0:
        refine_stop(st, events, count, p, numbers, t, s, close)
    if st.k_activation >= 0:
        active = truths[st.k_activation, t] == 1
    elif st.policy_direction > 0:
        active = close > st.setup_high
    else:
        active = close < st.setup_low
    if not active:
        return 0.0
    emit(events, count, p.emit, t, s, _ACTIVATED, waited, st.policy, close, 0.0, 0.0, 0.0, 0.0, 0.0)
    reserved = accept_order(st, port, events, count, p, numbers, t, s, close, gross, blocked)
    if st.order == 0:
        drop_policy(st)
        go(st, port, events, count, p.emit, t, s, IDLE)
    return reserved


@njit(cache=True, error_model="numpy")
def at_close_idle(
    st: Any,
    port: Any,
    events: Any,
    count: Any,
    p: Any,
    truths: Any,
    numbers: Any,
    t: int,
    s: int,
    high: float,
    low: float,
    close: float,
    gross: float,
    blocked: bool,
) -> float:
    """A frozen policy arms when its setup is true; an immediate one orders at once.

    Returns notional reserved.
    """
    if st.policy < 0 or t < st.policy_first_t:
        return 0.0
    if st.policy_standing == 0 and st.own > st.policy_expires_own:
        emit(events, count, p.emit, t, s, _POLICY_EXPIRED, 0, st.policy, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        st.policy = -1
        return 0.0
    if truths[st.k_setup, t] != 1:
        return 0.0
    st.armed_own = st.own
    st.setup_high = high
    st.setup_low = low
    st.armed_stop = _NAN
    emit(events, count, p.emit, t, s, _ARMED, st.policy_direction, st.policy, high, low, close, 0.0, 0.0, 0.0)
    go(st, port, events, count, p.emit, t, s, THESIS_ARMED)
    if st.policy_immediate == 0:
        return 0.0
    reserved = accept_order(st, port, events, count, p, numbers, t, s, close, gross, blocked)
    if st.order == 0:
        go(st, port, events, count, p.emit, t, s, IDLE)
    return reserved


@njit(cache=True, error_model="numpy")
def at_close_holding(
    st: Any, port: Any, events: Any, count: Any, p: Any, truths: Any, t: int, s: int, close: float
) -> None:
    """An open position: the evaluation bar passes into HOLD_LOCK; a true invalidation queues the exit."""
    if st.state == POSITION_OPEN and st.own > st.entry_own:
        go(st, port, events, count, p.emit, t, s, HOLD_LOCK)
    k = st.position_invalidation
    if st.state != INVALIDATED and k >= 0 and truths[k, t] == 1:
        emit(
            events,
            count,
            p.emit,
            t,
            s,
            _INVALID,
            st.direction,
            st.position_policy,
            close,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
        )
        st.bits |= _BIT_INVALIDATION
        if st.exit_reason < 0:
            st.exit_reason = _X_INVALID
        go(st, port, events, count, p.emit, t, s, INVALIDATED)


@njit(cache=True, error_model="numpy")
def at_open(
    st: Any, port: Any, trades: Any, n_trades: Any, events: Any, count: Any, p: Any, t: int, s: int, o: float
) -> None:
    """Due exits at the open: a queued exit, or the time stop `time_stop` own bars after the entry bar."""
    if st.exit_reason >= 0:
        close_position(st, port, trades, n_trades, events, count, p, t, s, o, st.exit_reason)
    elif st.time_stop > 0 and st.own - st.entry_own >= st.time_stop:
        held = st.own - st.entry_own
        emit(events, count, p.emit, t, s, _TIME, held, st.position_policy, o, 0.0, 0.0, 0.0, 0.0, 0.0)
        close_position(st, port, trades, n_trades, events, count, p, t, s, o, _X_TIME)


@njit(cache=True, error_model="numpy")
def inside_bar(
    st: Any,
    port: Any,
    trades: Any,
    n_trades: Any,
    events: Any,
    count: Any,
    p: Any,
    t: int,
    s: int,
    o: float,
    h: float,
    low: float,
    c: float,
) -> None:
    """Stop and target inside the bar; then, if the position lives, its excursions."""
    opened_now = 1 if st.entry_t == t else 0
    code = 0
    price = _NAN
    if opened_now == 0 or p.entry_bar_exits == 1:
        code, price = intrabar_exit(
            st.direction, o, h, low, c, st.stop, st.target, p.both_hit, p.gap_open, opened_now
        )
    if code == 0:
        best = h if st.direction > 0 else low
        worst = low if st.direction > 0 else h
        st.mfe = max(st.mfe, (best - st.entry_price) * st.direction)
        st.mae = min(st.mae, (worst - st.entry_price) * st.direction)
        return
    if opened_now == 0:
        move = (o - st.entry_price) * st.direction
        st.mfe = max(st.mfe, move)
        st.mae = min(st.mae, move)
    kind = _STOP if code == 1 else _TARGET
    level = st.stop if code == 1 else st.target
    emit(events, count, p.emit, t, s, kind, st.direction, st.position_policy, level, price, o, h, low, c)
    reason = _X_STOP if code == 1 else _X_TARGET
    close_position(st, port, trades, n_trades, events, count, p, t, s, price, reason)
