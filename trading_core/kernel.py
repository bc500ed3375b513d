"""The kernel: one compiled function that validates every bar of every symbol and stops at the first boundary.

Backtest, replay, live step and `simulate` call this same function; a live step is a block of one bar. Order
within a bar: due exits at the open, entries at the open, exits inside the bar, excursions; then entry
conditions and state transitions at the close; then the portfolio is marked and its envelope checked; last,
policy events are detected. Symbols go in ascending name order in every phase. It allocates nothing, reads
no later row, and knows no model, memory or store.
"""

from typing import Any, Final

import numpy as np
from numba import njit

from schemas.vocabulary import ExitReason, TickEventKind
from trading_core import records as rec
from trading_core.execution import intrabar_exit, slipped
from trading_core.risk import breach_of, follow_recovery, halted, sized, start_halt
from trading_core.state_machine import (
    COOLDOWN,
    HOLD_LOCK,
    IDLE,
    INVALIDATED,
    LEGAL,
    POSITION_OPEN,
    THESIS_ARMED,
)

END, BOUNDARY, BUFFER_FULL, FAULT = range(4)
EVENTS_PER_SYMBOL_BAR: Final = 20

_STATE: Final = rec.KIND[TickEventKind.STATE_TRANSITION]
_ARMED: Final = rec.KIND[TickEventKind.THESIS_ARMED]
_ACTIVATED: Final = rec.KIND[TickEventKind.ACTIVATION_TRIGGERED]
_REFINED: Final = rec.KIND[TickEventKind.ENTRY_REFINED]
_EXPIRED: Final = rec.KIND[TickEventKind.THESIS_EXPIRED]
_INVALID: Final = rec.KIND[TickEventKind.INVALIDATION_HIT]
_ACCEPTED: Final = rec.KIND[TickEventKind.ORDER_ACCEPTED]
_CLAMPED: Final = rec.KIND[TickEventKind.ORDER_CLAMPED]
_REFUSED: Final = rec.KIND[TickEventKind.ORDER_REFUSED]
_ENTERED: Final = rec.KIND[TickEventKind.ENTRY_FILLED]
_STOP: Final = rec.KIND[TickEventKind.STOP_BREACH]
_TARGET: Final = rec.KIND[TickEventKind.TARGET_BREACH]
_TIME: Final = rec.KIND[TickEventKind.TIME_STOP]
_EXITED: Final = rec.KIND[TickEventKind.EXIT_FILLED]
_POLICY_EXPIRED: Final = rec.KIND[TickEventKind.POLICY_EXPIRED]
_BREACH: Final = rec.KIND[TickEventKind.ENVELOPE_BREACH]
_RELEASED: Final = rec.KIND[TickEventKind.ENVELOPE_RELEASED]

_X_STOP: Final = rec.EXIT[ExitReason.STOP]
_X_TARGET: Final = rec.EXIT[ExitReason.TARGET]
_X_TIME: Final = rec.EXIT[ExitReason.TIME_STOP]
_X_INVALID: Final = rec.EXIT[ExitReason.INVALIDATION]
_X_ENVELOPE: Final = rec.EXIT[ExitReason.ENVELOPE]
_X_KILL: Final = rec.EXIT[ExitReason.KILL_SWITCH]

_R_SIDE: Final = rec.REFUSALS.index("wrong_side")
_R_RISK: Final = rec.REFUSALS.index("no_planned_risk")
_R_HALTED: Final = rec.REFUSALS.index("halted")
_R_ROOM: Final = rec.REFUSALS.index("no_capacity")
_R_UNKNOWN: Final = rec.REFUSALS.index("level_unknown")
_R_ENVELOPE: Final = rec.REFUSALS.index("envelope")

_BIT_REGIME: Final = rec.BIT_REGIME
_BIT_BAND: Final = rec.BIT_BAND
_BIT_OPENED: Final = rec.BIT_OPENED
_BIT_CLOSED: Final = rec.BIT_CLOSED
_BIT_HEARTBEAT: Final = rec.BIT_HEARTBEAT
_BIT_INVALIDATION: Final = rec.BIT_INVALIDATION
_BIT_ENVELOPE: Final = rec.BIT_ENVELOPE
_BIT_KILL: Final = rec.BIT_KILL
_BIT_STALE: Final = rec.BIT_STALE
_BIT_SHOCK: Final = rec.BIT_SHOCK
_NAN: Final = float("nan")


@njit(cache=True, error_model="numpy")
def emit(
    events: Any,
    count: Any,
    on: int,
    t: int,
    s: int,
    kind: int,
    a: int,
    b: int,
    x0: float,
    x1: float,
    x2: float,
    x3: float,
    x4: float,
    x5: float,
) -> None:
    """Append one event record when events are wanted."""
    if on == 0:
        return
    e = events[count[0]]
    e.t = t
    e.s = s
    e.kind = kind
    e.a = a
    e.b = b
    x = e.x
    x[0] = x0
    x[1] = x1
    x[2] = x2
    x[3] = x3
    x[4] = x4
    x[5] = x5
    count[0] += 1


@njit(cache=True, error_model="numpy")
def go(st: Any, port: Any, events: Any, count: Any, on: int, t: int, s: int, target: int) -> None:
    """Change the state of a symbol, if the table allows it; else raise the fault flag."""
    if LEGAL[st.state, target] == 0:
        port.fault = 1 + st.state * 6 + target
        return
    emit(events, count, on, t, s, _STATE, st.state, target, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    st.state = target


@njit(cache=True, error_model="numpy")
def close_position(
    st: Any,
    port: Any,
    trades: Any,
    n_trades: Any,
    events: Any,
    count: Any,
    p: Any,
    t: int,
    s: int,
    raw: float,
    reason: int,
) -> None:
    """Sell out or buy back the whole position at `raw` before slippage; write the trade; go to COOLDOWN."""
    direction = st.direction
    price = slipped(raw, -direction, p.slippage)
    fee = st.quantity * price * p.fee
    port.cash += direction * st.quantity * price - fee
    port.fees += fee
    move = (price - st.entry_price) * direction
    st.mae = min(st.mae, move)
    st.mfe = max(st.mfe, move)
    fees = st.entry_fee + fee
    pnl = st.quantity * move - fees
    trade = trades[n_trades[0]]
    trade.s = s
    trade.policy = st.position_policy
    trade.direction = direction
    trade.signal_t = st.signal_t
    trade.entry_t = st.entry_t
    trade.exit_t = t
    trade.entry_price = st.entry_price
    trade.exit_price = price
    trade.quantity = st.quantity
    trade.fees = fees
    trade.pnl = pnl
    trade.r = pnl / (st.quantity * st.risk)
    trade.mae_r = st.mae / st.risk
    trade.mfe_r = st.mfe / st.risk
    trade.bars_held = st.own - st.entry_own
    trade.reason = reason
    emit(
        events, count, p.emit, t, s, _EXITED, reason, n_trades[0], price, st.quantity, fee, pnl, trade.r, raw
    )
    n_trades[0] += 1
    st.direction = 0
    st.quantity = 0.0
    st.exit_reason = -1
    st.exit_own = st.own
    st.position_policy = -1
    st.bits |= _BIT_CLOSED
    go(st, port, events, count, p.emit, t, s, COOLDOWN)


@njit(cache=True, error_model="numpy")
def open_position(
    st: Any,
    port: Any,
    events: Any,
    count: Any,
    p: Any,
    t: int,
    s: int,
    raw: float,
) -> None:
    """Fill the resting entry order at `raw` before slippage; the exit authority is fixed here."""
    direction = st.policy_direction
    price = slipped(raw, direction, p.slippage)
    fee = st.order_quantity * price * p.fee
    port.cash -= direction * st.order_quantity * price + fee
    port.fees += fee
    st.order = 0
    st.direction = direction
    st.quantity = st.order_quantity
    st.entry_price = price
    st.entry_t = t
    st.entry_own = st.own
    st.entry_fee = fee
    st.signal_t = st.order_t
    st.stop = st.order_stop
    st.target = st.order_target
    st.risk = st.order_risk
    if p.base_fill == 1:
        rebase_levels(st, price)
    st.mae = 0.0
    st.mfe = 0.0
    st.time_stop = st.policy_horizon
    st.exit_reason = -1
    st.position_policy = st.policy
    st.position_invalidation = st.k_invalidation
    st.bits |= _BIT_OPENED
    emit(
        events,
        count,
        p.emit,
        t,
        s,
        _ENTERED,
        direction,
        st.policy,
        price,
        st.quantity,
        fee,
        st.stop,
        st.target,
        raw,
    )
    go(st, port, events, count, p.emit, t, s, POSITION_OPEN)
    if st.policy_standing == 0:
        st.policy = -1  # spent: one policy leads to at most one position


@njit(cache=True, error_model="numpy")
def rebase_levels(st: Any, price: float) -> None:
    """Measure stop and target from the fill instead of the signal close, at the same relative distance."""
    d = st.direction
    if np.isnan(st.policy_stop_pct):
        st.stop = price * (st.order_stop / st.order_base)
    else:
        st.stop = price * (1.0 - d * st.policy_stop_pct)
    if np.isnan(st.policy_target_pct):
        st.target = price * (st.order_target / st.order_base)
    else:
        st.target = price * (1.0 + d * st.policy_target_pct)
    st.risk = abs(price - st.stop)


@njit(cache=True, error_model="numpy")
def accept_order(
    st: Any,
    port: Any,
    events: Any,
    count: Any,
    p: Any,
    numbers: Any,
    t: int,
    s: int,
    close: float,
    gross: float,
    blocked: bool,
) -> float:
    """Check sides, size and reserve an entry order at the close of the signal bar.

    Returns:
        The notional reserved, 0 when the order was refused; the refusal is an event with its reason.
    """
    d = st.policy_direction
    stop = st.armed_stop
    if np.isnan(stop):
        stop = close * (1.0 - d * st.policy_stop_pct) if st.k_stop < 0 else numbers[st.k_stop, t]
    target = close * (1.0 + d * st.policy_target_pct) if st.k_target < 0 else numbers[st.k_target, t]
    refusal = -1
    quantity = 0.0
    clamps = 0
    risk = abs(close - stop)
    if blocked:
        refusal = _R_HALTED
    elif np.isnan(stop) or np.isnan(target):
        refusal = _R_UNKNOWN
    elif risk == 0.0:
        refusal = _R_RISK
    elif (close - stop) * d <= 0.0 or (target - close) * d <= 0.0 or stop <= 0.0 or target <= 0.0:
        refusal = _R_SIDE
    else:
        recovering = 1 if port.recovery_from >= 0 else 0
        quantity, clamps = sized(port.equity, gross, close, risk, st.policy_risk, recovering, p)
        if quantity <= 0.0:
            refusal = _R_ROOM
    if refusal >= 0:
        emit(events, count, p.emit, t, s, _REFUSED, refusal, st.policy, close, stop, target, 0.0, 0.0, 0.0)
        return 0.0
    if clamps != 0:
        wanted = port.equity * st.policy_risk / risk
        emit(events, count, p.emit, t, s, _CLAMPED, clamps, st.policy, wanted, quantity, 0.0, 0.0, 0.0, 0.0)
    st.order = 1
    st.order_t = t
    st.order_quantity = quantity
    st.order_base = close
    st.order_stop = stop
    st.order_target = target
    st.order_risk = risk
    emit(events, count, p.emit, t, s, _ACCEPTED, d, st.policy, quantity, close, stop, target, risk, 0.0)
    return quantity * close


@njit(cache=True, error_model="numpy")
def drop_policy(st: Any) -> None:
    """Take the frozen policy out of force; an open position keeps its own exits."""
    if st.policy_standing == 0:
        st.policy = -1


@njit(cache=True, error_model="numpy")
def refine_stop(st: Any, events: Any, count: Any, p: Any, numbers: Any, t: int, s: int, close: float) -> None:
    """While armed: adopt a tighter stop that leaves at least half of the planned distance."""
    better = numbers[st.k_refinement, t]
    base = st.armed_stop if not np.isnan(st.armed_stop) else numbers[st.k_stop, t]
    d = st.policy_direction
    distance = (close - numbers[st.k_stop, t]) * d
    if (better - base) * d > 0.0 and (close - better) * d >= 0.5 * distance and distance > 0.0:
        st.armed_stop = better
        emit(events, count, p.emit, t, s, _REFINED, d, st.policy, base, better, close, 0.0, 0.0, 0.0)


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


@njit(cache=True, error_model="numpy")
def policy_events(st: Any, p: Any, flags: int, gap: int) -> None:
    """Set the boundary bits of a present symbol at its close."""
    if flags & 1:
        st.bits |= _BIT_REGIME
    if flags & 2:
        st.bits |= _BIT_BAND
    if flags & 4:
        st.bits |= _BIT_SHOCK
    if p.stale_bars > 0 and gap > p.stale_bars and (st.direction != 0 or st.state == THESIS_ARMED):
        st.bits |= _BIT_STALE
    if p.heartbeat > 0 and st.own - st.last_heartbeat >= p.heartbeat:
        st.bits |= _BIT_HEARTBEAT
        st.last_heartbeat = st.own


@njit(cache=True, error_model="numpy")
def open_phases(
    t: int,
    o: Any,
    h: Any,
    low: Any,
    c: Any,
    present: Any,
    state: Any,
    port: Any,
    p: Any,
    trades: Any,
    n_trades: Any,
    events: Any,
    count: Any,
) -> None:
    """From the open to the last tick of bar t: due exits, entries, exits inside the bar."""
    symbols = state.shape[0]
    for s in range(symbols):
        st = state[s]
        st.bits = 0
        if present[t, s]:
            st.own += 1
            port.bars += 1
            if st.direction != 0:
                at_open(st, port, trades, n_trades, events, count, p, t, s, o[t, s])
    for s in range(symbols):
        st = state[s]
        if st.order == 1 and present[t, s]:
            open_position(st, port, events, count, p, t, s, o[t, s])
    for s in range(symbols):
        st = state[s]
        if st.direction != 0 and present[t, s]:
            inside_bar(
                st, port, trades, n_trades, events, count, p, t, s, o[t, s], h[t, s], low[t, s], c[t, s]
            )


@njit(cache=True, error_model="numpy")
def enter_at_close(st: Any, port: Any, events: Any, count: Any, p: Any, t: int, s: int, close: float) -> None:
    """Fill a just accepted order at the signal close, when the settings say so."""
    if p.fill_close == 1 and st.order == 1 and st.order_t == t:
        open_position(st, port, events, count, p, t, s, close)


@njit(cache=True, error_model="numpy")
def close_phase(
    t: int,
    h: Any,
    low: Any,
    c: Any,
    present: Any,
    day: int,
    truths: Any,
    numbers: Any,
    state: Any,
    port: Any,
    p: Any,
    events: Any,
    count: Any,
) -> None:
    """At the close of bar t.

    Entry conditions and state transitions, in symbol order, against one portfolio state.
    """
    blocked = halted(port, t, day)
    gross = port.gross
    for s in range(state.shape[0]):
        if state[s].order == 1:
            gross += state[s].order_quantity * state[s].order_base
    for s in range(state.shape[0]):
        if not present[t, s]:
            continue
        st = state[s]
        close = c[t, s]
        if st.state == COOLDOWN and st.own - st.exit_own >= p.cooldown:
            go(st, port, events, count, p.emit, t, s, IDLE)
        if st.state == INVALIDATED and st.direction == 0 and st.bits & _BIT_INVALIDATION == 0:
            go(st, port, events, count, p.emit, t, s, IDLE)
        if st.direction != 0:
            at_close_holding(st, port, events, count, p, truths, t, s, close)
        elif st.state == THESIS_ARMED:
            gross += at_close_armed(st, port, events, count, p, truths, numbers, t, s, close, gross, blocked)
        elif st.state == IDLE:
            gross += at_close_idle(
                st, port, events, count, p, truths, numbers, t, s, h[t, s], low[t, s], close, gross, blocked
            )
        enter_at_close(st, port, events, count, p, t, s, close)


@njit(cache=True, error_model="numpy")
def advance(
    t0: int,
    t1: int,
    o: Any,
    h: Any,
    low: Any,
    c: Any,
    present: Any,
    days: Any,
    flags: Any,
    truths: Any,
    numbers: Any,
    state: Any,
    portfolio: Any,
    parameters: Any,
    events: Any,
    count: Any,
    trades: Any,
    n_trades: Any,
    equity: Any,
    gross: Any,
) -> Any:
    """Validate bars t0 <= t < t1 and stop after the first one that opens a boundary.

    Args:
        t0: first row.
        t1: row after the last one.
        o: float64 (T, S), opens.
        h: float64 (T, S), highs.
        low: float64 (T, S), lows.
        c: float64 (T, S), closes.
        present: bool (T, S).
        days: int64 (T,), UTC day number of each label.
        flags: uint8 (T, S); bit 0 regime change, 1 volatility band shift, 2 volatility shock.
        truths: int8 (K, T), boolean rule columns: 1 true, 0 false, -1 unknown.
        numbers: float64 (K, T), price rule columns.
        state: symbol records (S,), see `records`.
        portfolio: portfolio record (1,).
        parameters: parameter record (1,).
        events: event buffer.
        count: fill of the event buffer (1,).
        trades: trade buffer.
        n_trades: fill of the trade buffer (1,).
        equity: float64 (T,), written at every close.
        gross: float64 (T,), written at every close.

    Returns:
        (t, code): the next row to validate, and END, BOUNDARY, BUFFER_FULL or FAULT.
    """
    port = portfolio[0]
    p = parameters[0]
    symbols = state.shape[0]
    room = EVENTS_PER_SYMBOL_BAR * symbols + 4
    for t in range(t0, t1):
        if p.emit == 1 and count[0] + room > events.shape[0]:
            return t, BUFFER_FULL
        if n_trades[0] + symbols > trades.shape[0]:
            return t, BUFFER_FULL
        if days[t] != port.day:
            if port.day >= 0 and port.halt_day == port.day:
                emit(
                    events, count, p.emit, t, -1, _RELEASED, 0, 0, port.equity, port.peak, 0.0, 0.0, 0.0, 0.0
                )
            port.day = days[t]
            port.day_start = port.equity
        open_phases(t, o, h, low, c, present, state, port, p, trades, n_trades, events, count)
        for s in range(symbols):
            if present[t, s]:
                state[s].last_close = c[t, s]
        mark(state, port)
        close_phase(t, h, low, c, present, days[t], truths, numbers, state, port, p, events, count)
        if p.fill_close == 1:
            mark(state, port)
        envelope(state, port, events, count, p, t)
        equity[t] = port.equity
        gross[t] = port.gross
        stop = False
        for s in range(symbols):
            if present[t, s]:
                st = state[s]
                policy_events(st, p, flags[t, s], t - st.last_t if st.last_t >= 0 else 0)
                st.last_t = t
            if state[s].bits != 0:
                stop = True
        if port.fault != 0:
            return t + 1, FAULT
        if stop and p.boundaries == 1:
            return t + 1, BOUNDARY
    return t1, END
