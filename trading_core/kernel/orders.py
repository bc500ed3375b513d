"""Entry orders before they fill: accepted with checked sides and a size, refined, or taken back.

Small compiled functions, one effect each; the order in which they run is the kernel's.
"""

from typing import Any, Final

import numpy as np

from schemas.vocabulary import TickEventKind
from trading_core.compiled import compiled
from trading_core.kernel import records as rec
from trading_core.kernel.events import emit, go
from trading_core.kernel.execution import on_tick
from trading_core.kernel.limits import count_entry, is_halted, is_throttled
from trading_core.kernel.sizing import size_addition, size_entry
from trading_core.kernel.state_machine import IDLE

_REFINED: Final = rec.KIND[TickEventKind.ENTRY_REFINED]
_ACCEPTED: Final = rec.KIND[TickEventKind.ORDER_ACCEPTED]
_CLAMPED: Final = rec.KIND[TickEventKind.ORDER_CLAMPED]
_REFUSED: Final = rec.KIND[TickEventKind.ORDER_REFUSED]
_R_SIDE: Final = rec.code(rec.REFUSALS, "wrong_side")
_R_RISK: Final = rec.code(rec.REFUSALS, "no_planned_risk")
_R_HALTED: Final = rec.code(rec.REFUSALS, "halted")
_R_ROOM: Final = rec.code(rec.REFUSALS, "no_capacity")
_R_UNKNOWN: Final = rec.code(rec.REFUSALS, "level_unknown")
_R_THROTTLED: Final = rec.code(rec.REFUSALS, "throttled")
_R_WINDOW: Final = rec.code(rec.REFUSALS, "no_trade_window")
_R_PAUSED: Final = rec.code(rec.REFUSALS, "paused_after_losses")
_R_REWARD: Final = rec.code(rec.REFUSALS, "reward_to_risk")
_MARKET: Final = rec.code(rec.ENTRY_KINDS, "market")
_LIMIT: Final = rec.code(rec.ENTRY_KINDS, "limit")
_STOP: Final = rec.code(rec.ENTRY_KINDS, "stop")
_BY_VOLATILITY: Final = rec.code(rec.SIZINGS, "volatility")
_SCALE_OUTS: Final = rec.MAX_SCALE_OUTS
_FLAG_NO_TRADE: Final = rec.FLAG_NO_TRADE
SMALLEST_STOP_SHARE: Final = 0.5  # a refinement leaves at least this share of the planned stop distance


@compiled
def find_block(st: Any, port: Any, p: Any, t: int, moment: int, flags: int) -> Any:
    """Why no entry may be ordered on this bar, as a position in `REFUSALS`, or -1."""
    if is_halted(port, t):
        return _R_HALTED
    if st.own < st.pause_own:
        return _R_PAUSED
    if flags & _FLAG_NO_TRADE:
        return _R_WINDOW
    if is_throttled(port, moment, p):
        return _R_THROTTLED
    return -1


@compiled
def planned_stop(st: Any, numbers: Any, t: int, base: float) -> float:
    """The policy's stop read at row t, before any refinement."""
    if st.k_stop < 0:
        return float(base * (1.0 - st.policy_direction * st.policy_stop_pct))
    return float(numbers[st.k_stop, t])


@compiled
def entry_level(st: Any, p: Any, numbers: Any, t: int, close: float) -> Any:
    """(kind, price, before) of the order that an activation makes; the price of a market order is the close.

    A better limit, found by the refinement, turns a market order into a limit order and moves a limit order;
    `before` is the price it was better than, NaN without one. A stop entry is not refined.
    """
    kind, price, d = st.policy_entry, close, st.policy_direction
    if kind != _MARKET:
        price = on_tick(numbers[st.k_entry, t], p.tick)
    if st.policy_refines_entry == 1 and st.k_refinement >= 0 and kind != _STOP:
        better = on_tick(numbers[st.k_refinement, t], p.tick)
        stop = planned_stop(st, numbers, t, price)
        if (price - better) * d > 0.0 and (better - stop) * d >= SMALLEST_STOP_SHARE * (price - stop) * d:
            return _LIMIT, better, price
    return kind, price, np.nan


@compiled
def refusal_of(d: int, kind: int, close: float, base: float, stop: float, target: float) -> Any:
    """What is wrong with the levels of an order, as a position in `REFUSALS`, or -1."""
    if np.isnan(stop) or np.isnan(target) or np.isnan(base):
        return _R_UNKNOWN
    if base == stop:
        return _R_RISK
    if (base - stop) * d <= 0.0 or (target - base) * d <= 0.0 or stop <= 0.0 or target <= 0.0:
        return _R_SIDE
    if (kind == _LIMIT and (close - base) * d < 0.0) or (kind == _STOP and (base - close) * d < 0.0):
        return _R_SIDE
    return -1


@compiled
def pays_too_little(st: Any, p: Any, base: float, risk: float, reward: float) -> bool:
    """Whether reaching every level pays less for the risk than the fast reflection asks, after costs."""
    rest, scaled = 1.0, 0.0
    for k in range(_SCALE_OUTS):
        share = st.policy_scale_share[k]
        if share > 0.0:
            scaled += share * min(st.policy_scale_r[k] * risk, reward)
            rest -= share
    reward = scaled + rest * reward
    costs = 2.0 * base * p.side_cost
    short: bool = reward - costs < p.least_reward * (risk + costs)
    return short


@compiled
def accept_order(
    state: Any,
    port: Any,
    out: Any,
    p: Any,
    numbers: Any,
    t: int,
    s: int,
    close: float,
    moment: int,
    flags: int,
) -> bool:
    """Check sides, size and reserve an entry order at the close of the signal bar.

    Returns:
        Whether the order rests now; a refusal is an event with its reason.
    """
    st = state[s]
    d = st.policy_direction
    kind, base, before = entry_level(st, p, numbers, t, close)
    stop = st.armed_stop if not np.isnan(st.armed_stop) else planned_stop(st, numbers, t, base)
    target = base * (1.0 + d * st.policy_target_pct) if st.k_target < 0 else numbers[st.k_target, t]
    stop, target = on_tick(stop, p.tick), on_tick(target, p.tick)
    quantity, request, clamps, risk = 0.0, 0.0, 0, abs(base - stop)
    volatility = np.nan
    if p.sizing == _BY_VOLATILITY and st.k_volatility >= 0:
        volatility = numbers[st.k_volatility, t]
    refusal = find_block(st, port, p, t, moment, flags)
    if refusal < 0:
        refusal = refusal_of(d, kind, close, base, stop, target)
    if refusal < 0 and p.least_reward > 0.0 and pays_too_little(st, p, base, risk, abs(target - base)):
        refusal = _R_REWARD
    if refusal < 0 and p.sizing == _BY_VOLATILITY and not volatility > 0.0:
        refusal = _R_UNKNOWN
    if refusal < 0:
        half = 1 if port.recovery_from >= 0 else 0
        request, quantity, clamps = size_entry(state, s, d, base, risk, volatility, half, port, p)
        if quantity <= 0.0:
            refusal = _R_ROOM
    if refusal >= 0:
        port.refused[refusal] += 1
        emit(out, t, s, (_REFUSED, refusal, st.policy), (close, stop, target, 0.0, 0.0, 0.0))
        return False
    if clamps != 0:
        emit(out, t, s, (_CLAMPED, clamps, st.policy), (request, quantity, 0.0, 0.0, 0.0, 0.0))
    st.order = 1
    st.order_kind = kind
    st.order_t = t
    st.order_price = base
    st.order_quantity = quantity
    st.order_base = base
    st.order_stop = stop
    st.order_target = target
    st.order_risk = risk
    port.orders += 1
    count_entry(port, moment)
    emit(out, t, s, (_ACCEPTED, d, st.policy), (quantity, base, stop, target, risk, float(kind)))
    if not np.isnan(before):
        emit(out, t, s, (_REFINED, d, st.policy), (before, base, close, 1.0, 0.0, 0.0))
    return True


@compiled
def order_addition(
    state: Any, port: Any, out: Any, p: Any, t: int, s: int, close: float, moment: int, flags: int
) -> None:
    """Order the one added entry of a position, bounded as an entry is; refused, it is dropped."""
    st = state[s]
    st.add_r = np.nan
    refusal = find_block(st, port, p, t, moment, flags)
    if refusal < 0 and not (close - st.stop) * st.direction > 0.0:
        refusal = _R_RISK
    if refusal < 0:
        half = 1 if port.recovery_from >= 0 else 0
        request, quantity, clamps = size_addition(state, s, close, half, port, p)
        if quantity > 0.0:
            if clamps != 0:
                emit(
                    out, t, s, (_CLAMPED, clamps, st.position_policy), (request, quantity, 0.0, 0.0, 0.0, 0.0)
                )
            st.adding = quantity
            count_entry(port, moment)
            return
        refusal = _R_ROOM
    port.refused[refusal] += 1
    emit(out, t, s, (_REFUSED, refusal, st.position_policy), (close, st.stop, st.target, 0.0, 0.0, 0.0))


@compiled
def take_back(st: Any, port: Any, out: Any, t: int, s: int, refusal: int) -> None:
    """Withdraw the resting entry order; the event says why."""
    st.order = 0
    port.orders -= 1
    levels = (st.order_base, st.order_stop, st.order_target, 0.0, 0.0, 0.0)
    emit(out, t, s, (_REFUSED, refusal, st.policy), levels)


@compiled
def drop_policy(st: Any) -> None:
    """Take the frozen policy out of force; an open position keeps its own exits."""
    if st.policy_never_ends == 0:
        st.policy = -1


@compiled
def disarm(st: Any, port: Any, out: Any, t: int, s: int) -> None:
    """An armed thesis ends without a position."""
    drop_policy(st)
    go(st, port, out, t, s, IDLE)


@compiled
def refine_stop(st: Any, out: Any, p: Any, numbers: Any, t: int, s: int, close: float) -> None:
    """While armed: adopt a tighter stop that leaves at least half of the planned distance."""
    better = on_tick(numbers[st.k_refinement, t], p.tick)
    planned = numbers[st.k_stop, t]
    base = st.armed_stop if not np.isnan(st.armed_stop) else planned
    d = st.policy_direction
    distance = (close - planned) * d
    if (
        (better - base) * d > 0.0
        and (close - better) * d >= SMALLEST_STOP_SHARE * distance
        and distance > 0.0
    ):
        st.armed_stop = better
        emit(out, t, s, (_REFINED, d, st.policy), (base, better, close, 0.0, 0.0, 0.0))


@compiled
def refine_limit(st: Any, out: Any, p: Any, numbers: Any, t: int, s: int, close: float) -> None:
    """While a limit order rests: move it to a better price that leaves half of the planned distance.

    The quantity stays; a better price only lowers the risk.
    """
    d = st.policy_direction
    better, before = on_tick(numbers[st.k_refinement, t], p.tick), st.order_price
    distance = (close - st.order_stop) * d
    if (before - better) * d > 0.0 and (better - st.order_stop) * d >= SMALLEST_STOP_SHARE * distance > 0.0:
        st.order_price = better
        st.order_base = better
        st.order_risk = abs(better - st.order_stop)
        emit(out, t, s, (_REFINED, d, st.policy), (before, better, close, 1.0, 0.0, 0.0))
