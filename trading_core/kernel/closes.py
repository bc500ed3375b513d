"""What the close of a bar means for one symbol, by its state.

Compiled functions that read rule columns at the present row only.
"""

from typing import Any, Final

import numpy as np

from schemas.vocabulary import ExitReason, TickEventKind
from trading_core.compiled import compiled
from trading_core.kernel import records as rec
from trading_core.kernel.events import NO_FLOATS, NO_NUMBER, emit, go
from trading_core.kernel.execution import on_tick
from trading_core.kernel.fills import set_near
from trading_core.kernel.orders import (
    accept_order,
    disarm,
    drop_policy,
    order_addition,
    refine_limit,
    refine_stop,
    take_back,
)
from trading_core.kernel.programs import run_program
from trading_core.kernel.state_machine import HOLD_LOCK, IDLE, INVALIDATED, POSITION_OPEN, THESIS_ARMED

_ARMED: Final = rec.KIND[TickEventKind.THESIS_ARMED]
_ACTIVATED: Final = rec.KIND[TickEventKind.ACTIVATION_TRIGGERED]
_EXPIRED: Final = rec.KIND[TickEventKind.THESIS_EXPIRED]
_INVALID: Final = rec.KIND[TickEventKind.INVALIDATION_HIT]
_TIGHTENED: Final = rec.KIND[TickEventKind.STOP_TIGHTENED]
_POLICY_EXPIRED: Final = rec.KIND[TickEventKind.POLICY_EXPIRED]
_EXIT_RULE: Final = rec.KIND[TickEventKind.EXIT_RULE_HIT]
_X_RULE: Final = rec.EXIT[ExitReason.EXIT_RULE]
_X_INVALID: Final = rec.EXIT[ExitReason.INVALIDATION]
_R_UNFILLED: Final = rec.code(rec.REFUSALS, "unfilled")
_R_INVALID: Final = rec.code(rec.REFUSALS, "invalidated")
_R_WINDOW: Final = rec.code(rec.REFUSALS, "no_trade_window")
_FROM_TRAIL: Final = float(rec.STOP_SOURCES.index("trail"))
_FROM_BREAK_EVEN: Final = float(rec.STOP_SOURCES.index("break_even"))
_BIT_INVALIDATION: Final = rec.BIT_INVALIDATION
_FLAG_NO_TRADE: Final = rec.FLAG_NO_TRADE
_LIMIT: Final = rec.code(rec.ENTRY_KINDS, "limit")
_NAN: Final = float("nan")


@compiled
def expire(st: Any, out: Any, t: int, s: int) -> None:
    """The frozen policy's horizon has passed without a position."""
    emit(out, t, s, (_POLICY_EXPIRED, NO_NUMBER, st.policy), NO_FLOATS)
    st.policy = -1


@compiled
def is_set_up(st: Any, truths: Any, t: int) -> bool:
    """Whether the setup is true, and the invalidation does not take it back at the same close."""
    over = st.k_invalidation >= 0 and truths[st.k_invalidation, t] == 1
    true: bool = truths[st.k_setup, t] == 1 and not over
    return true


@compiled
def arm(
    state: Any,
    port: Any,
    out: Any,
    p: Any,
    numbers: Any,
    t: int,
    s: int,
    high: float,
    low: float,
    close: float,
    moment: int,
    flags: int,
) -> None:
    """The setup is true: the thesis is armed; an immediate policy orders at once."""
    st = state[s]
    st.armed_own = st.own
    st.setup_high = high
    st.setup_low = low
    st.armed_stop = _NAN
    emit(out, t, s, (_ARMED, st.policy_direction, st.policy), (high, low, close, 0.0, 0.0, 0.0))
    go(st, port, out, t, s, THESIS_ARMED)
    if st.policy_immediate == 0:
        return
    emit(out, t, s, (_ACTIVATED, NO_NUMBER, st.policy), (close, 0.0, 0.0, 0.0, 0.0, 0.0))
    if not accept_order(state, port, out, p, numbers, t, s, close, moment, flags):
        go(st, port, out, t, s, IDLE)


@compiled
def at_close_armed(
    state: Any,
    port: Any,
    out: Any,
    p: Any,
    truths: Any,
    numbers: Any,
    t: int,
    s: int,
    close: float,
    moment: int,
    flags: int,
) -> None:
    """An armed thesis: expiry, invalidation, refinement, activation, with or without a resting order."""
    st = state[s]
    waited = st.own - st.armed_own
    if waited > st.policy_window:
        if st.order == 1:
            take_back(st, port, out, t, s, _R_UNFILLED)
        emit(out, t, s, (_EXPIRED, waited, st.policy), NO_FLOATS)
        go(st, port, out, t, s, IDLE)
        return
    if st.k_invalidation >= 0 and truths[st.k_invalidation, t] == 1:
        emit(out, t, s, (_INVALID, st.policy_direction, st.policy), (close, 0.0, 0.0, 0.0, 0.0, 0.0))
        if st.order == 1:
            take_back(st, port, out, t, s, _R_INVALID)
        st.bits |= _BIT_INVALIDATION
        drop_policy(st)
        go(st, port, out, t, s, INVALIDATED)
        return
    if st.order == 1:
        if flags & _FLAG_NO_TRADE:
            take_back(st, port, out, t, s, _R_WINDOW)
            disarm(st, port, out, t, s)
        elif st.k_refinement >= 0 and st.policy_refines_entry == 1 and st.order_kind == _LIMIT:
            refine_limit(st, out, p, numbers, t, s, close)
        return
    if st.k_refinement >= 0 and st.k_stop >= 0 and st.policy_refines_entry == 0:
        refine_stop(st, out, p, numbers, t, s, close)
    if is_active(st, truths, t, close):
        emit(out, t, s, (_ACTIVATED, waited, st.policy), (close, 0.0, 0.0, 0.0, 0.0, 0.0))
        if not accept_order(state, port, out, p, numbers, t, s, close, moment, flags):
            disarm(st, port, out, t, s)


@compiled
def is_active(st: Any, truths: Any, t: int, close: float) -> bool:
    """Whether the activation is true; without one, the close beyond the setup bar's extreme."""
    if st.k_activation >= 0:
        active: bool = truths[st.k_activation, t] == 1
    elif st.policy_direction > 0:
        active = close > st.setup_high
    else:
        active = close < st.setup_low
    return active


@compiled
def at_close_holding(
    state: Any,
    port: Any,
    out: Any,
    p: Any,
    truths: Any,
    numbers: Any,
    t: int,
    s: int,
    close: float,
    moment: int,
    flags: int,
) -> None:
    """An open position: its bar passes into HOLD_LOCK; a true invalidation or exit rule ends it."""
    st = state[s]
    if st.state == POSITION_OPEN and st.own > st.entry_own:
        go(st, port, out, t, s, HOLD_LOCK)
    k = st.position_invalidation
    if st.state != INVALIDATED and k >= 0 and truths[k, t] == 1:
        emit(out, t, s, (_INVALID, st.direction, st.position_policy), (close, 0.0, 0.0, 0.0, 0.0, 0.0))
        st.bits |= _BIT_INVALIDATION
        if st.exit_reason < 0:
            st.exit_reason = _X_INVALID
        go(st, port, out, t, s, INVALIDATED)
    if st.managed == 1:
        read_exit_rule(st, port, out, truths, numbers, t, s, close)
        manage_stop(st, port, out, p, truths, numbers, t, s, close)
        move_target(st, p, numbers, t)
        far = (close - st.entry_price) * st.direction
        if st.exit_reason < 0 and far >= st.add_r * st.risk:
            order_addition(state, port, out, p, t, s, close, moment, flags)


@compiled
def read_exit_rule(
    st: Any, port: Any, out: Any, truths: Any, numbers: Any, t: int, s: int, close: float
) -> None:
    """A true exit rule queues the exit, unless one is queued: the idea stands, so nothing else changes."""
    if st.exit_reason < 0 and run_program(st.exit_rule, st, port, truths, numbers, t, close) == 1.0:
        emit(out, t, s, (_EXIT_RULE, st.direction, st.position_policy), (close, 0.0, 0.0, 0.0, 0.0, 0.0))
        st.exit_reason = _X_RULE


@compiled
def manage_stop(
    st: Any, port: Any, out: Any, p: Any, truths: Any, numbers: Any, t: int, s: int, close: float
) -> None:
    """Break-even and trailing stop as the policy declared them; they only tighten, from the next bar on."""
    d = st.direction
    best = st.highest if d > 0 else st.lowest
    if (best - st.entry_price) * d >= st.break_even_r * st.risk:
        tighten(st, out, t, s, on_tick(st.entry_price, p.tick), close, _FROM_BREAK_EVEN)
    if st.position_trail >= 0 or st.trail_rule[0] != 0.0:
        if st.position_trail >= 0:
            level = numbers[st.position_trail, t]
        else:
            level = run_program(st.trail_rule, st, port, truths, numbers, t, close)
        level = on_tick(level, p.tick)
        if not np.isnan(level):
            tighten(st, out, t, s, level, close, _FROM_TRAIL)


@compiled
def move_target(st: Any, p: Any, numbers: Any, t: int) -> None:
    """A target that moves lies where its rule is now, from the next bar on; an unknown one stays."""
    if st.position_target >= 0:
        level = on_tick(numbers[st.position_target, t], p.tick)
        if level > 0.0:
            st.target = level
            set_near(st)


@compiled
def tighten(st: Any, out: Any, t: int, s: int, level: float, close: float, source: float) -> None:
    """Move the stop to a level between the present stop and the close; anything else changes nothing."""
    d = st.direction
    if (level - st.stop) * d > 0.0 and (close - level) * d > 0.0:
        emit(out, t, s, (_TIGHTENED, d, st.position_policy), (st.stop, level, source, 0.0, 0.0, 0.0))
        st.stop = level
