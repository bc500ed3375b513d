"""What the kernel does to one symbol: events, state changes, orders and positions.

Small compiled functions, one effect each; the order in which they run is the kernel's. Every change of
state goes through `go`, every record of a change through `emit`.
"""

from typing import Any, Final

import numpy as np
from numba import njit

from schemas.vocabulary import TickEventKind
from trading_core import records as rec
from trading_core.execution import slipped
from trading_core.risk import sized
from trading_core.state_machine import COOLDOWN, LEGAL, POSITION_OPEN

_STATE: Final = rec.KIND[TickEventKind.STATE_TRANSITION]
_REFINED: Final = rec.KIND[TickEventKind.ENTRY_REFINED]
_ACCEPTED: Final = rec.KIND[TickEventKind.ORDER_ACCEPTED]
_CLAMPED: Final = rec.KIND[TickEventKind.ORDER_CLAMPED]
_REFUSED: Final = rec.KIND[TickEventKind.ORDER_REFUSED]
_ENTERED: Final = rec.KIND[TickEventKind.ENTRY_FILLED]
_EXITED: Final = rec.KIND[TickEventKind.EXIT_FILLED]
_R_SIDE: Final = rec.REFUSALS.index("wrong_side")
_R_RISK: Final = rec.REFUSALS.index("no_planned_risk")
_R_HALTED: Final = rec.REFUSALS.index("halted")
_R_ROOM: Final = rec.REFUSALS.index("no_capacity")
_R_UNKNOWN: Final = rec.REFUSALS.index("level_unknown")
_BIT_OPENED: Final = rec.BIT_OPENED
_BIT_CLOSED: Final = rec.BIT_CLOSED


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
