"""What fills: entries, scale-outs and exits, at the open, inside the bar or at its close.

Every position has one exit authority, fixed here at the entry; exits only reduce.
"""

from typing import Any, Final

import numpy as np

from schemas.vocabulary import ExitReason, TickEventKind
from trading_core.compiled import compiled
from trading_core.kernel import records as rec
from trading_core.kernel.events import emit, go
from trading_core.kernel.execution import (
    BOTH_TARGET,
    NOTHING,
    STOP,
    TARGET,
    add_fee,
    entry_fill,
    fee_of,
    find_touch,
    intrabar_exit,
    on_tick,
    slip,
    whole_lots,
)
from trading_core.kernel.state_machine import COOLDOWN, POSITION_OPEN

_ENTERED: Final = rec.KIND[TickEventKind.ENTRY_FILLED]
_EXITED: Final = rec.KIND[TickEventKind.EXIT_FILLED]
_SCALED: Final = rec.KIND[TickEventKind.SCALE_OUT_FILLED]
_ADDED: Final = rec.KIND[TickEventKind.ADD_FILLED]
_STOP: Final = rec.KIND[TickEventKind.STOP_BREACH]
_TARGET: Final = rec.KIND[TickEventKind.TARGET_BREACH]
_TIME: Final = rec.KIND[TickEventKind.TIME_STOP]
_X_STOP: Final = rec.EXIT[ExitReason.STOP]
_X_TARGET: Final = rec.EXIT[ExitReason.TARGET]
_X_TIME: Final = rec.EXIT[ExitReason.TIME_STOP]
_BIT_OPENED: Final = rec.BIT_OPENED
_BIT_CLOSED: Final = rec.BIT_CLOSED
_AT_OPEN: Final = rec.code(rec.TIME_EXITS, "open")
_AFTER_STOPS: Final = rec.code(rec.TIME_EXITS, "after_stops")
_NEVER: Final = rec.NEVER
_SCALE_OUTS: Final = rec.MAX_SCALE_OUTS
# A numpy integer, as is every constant that is given to a compiled function: see `records.code`.
AT_OPEN_OR_CLOSE: Final[Any] = np.int64(0)  # where of its bar a fill lies, if not inside
_PROGRAM_SIZE: Final = 2 * rec.MOST_STEPS


@compiled
def close_position(st: Any, port: Any, out: Any, p: Any, t: int, s: int, raw: float, reason: int) -> None:
    """Sell out or buy back what is left at `raw` before slippage; write the trade; go to COOLDOWN."""
    direction = st.direction
    passive = reason == _X_TARGET and p.passive_target == 1
    price = raw if passive else slip(raw, -direction, p.slippage, p.tick)
    fee = fee_of(st.quantity * price, passive, p)
    port.cash += direction * st.quantity * price - fee
    port.fees = add_fee(port.fees, fee, p.carry, p)
    port.carry += st.carry
    st.highest = max(st.highest, price)
    st.lowest = min(st.lowest, price)
    fees = add_fee(st.costs, fee, st.carry, p)
    if st.scaled_quantity == 0.0:
        average = price
        pnl = st.quantity * ((price - st.entry_price) * direction) - fees
    else:
        value = st.scaled_value + st.quantity * price
        average = value / st.entry_quantity
        pnl = direction * (value - st.entry_quantity * st.entry_price) - fees
    above, below = st.highest - st.entry_price, st.lowest - st.entry_price
    trade = out.trades[out.n_trades[0]]
    trade.s = s
    trade.policy = st.position_policy
    trade.direction = direction
    trade.signal_t = st.signal_t
    trade.entry_t = st.entry_t
    trade.exit_t = t
    trade.entry_price = st.entry_price
    trade.exit_price = average
    trade.quantity = st.entry_quantity
    trade.fees = fees
    trade.pnl = pnl
    trade.r = pnl / (st.first_quantity * st.risk)
    trade.mae_r = (below if direction > 0 else -above) / st.risk
    trade.mfe_r = (above if direction > 0 else -below) / st.risk
    trade.bars_held = st.own - st.entry_own
    trade.reason = reason
    emit(out, t, s, (_EXITED, reason, out.n_trades[0]), (price, st.quantity, fee, pnl, trade.r, raw))
    out.n_trades[0] += 1
    st.direction = 0
    st.quantity = 0.0
    st.adding = 0.0
    st.exit_reason = -1
    st.exit_own = st.own
    st.position_policy = -1
    port.positions -= 1
    lost = pnl < 0.0
    st.losses = st.losses + 1 if lost else 0
    port.losses = port.losses + 1 if lost else 0
    st.bits |= _BIT_CLOSED
    go(st, port, out, t, s, COOLDOWN)


@compiled
def scale_out(st: Any, port: Any, out: Any, p: Any, t: int, s: int, raw: float) -> None:
    """Close the declared share at `raw` before slippage; the rest keeps its stop and target."""
    direction = st.direction
    quantity = whole_lots(st.entry_quantity * st.scale_shares[st.scale_step], p.lot)
    st.scale_step += 1
    set_near(st)
    if quantity <= 0.0:
        return
    passive = p.passive_target == 1
    price = raw if passive else slip(raw, -direction, p.slippage, p.tick)
    fee = fee_of(quantity * price, passive, p)
    port.cash += direction * quantity * price - fee
    port.fees = add_fee(port.fees, fee, p.carry, p)
    st.costs = add_fee(st.costs, fee, st.carry, p)
    st.quantity = on_tick(st.quantity - quantity, p.lot)
    st.scaled_quantity += quantity
    st.scaled_value += quantity * price
    st.highest = max(st.highest, price)
    st.lowest = min(st.lowest, price)
    emit(out, t, s, (_SCALED, direction, st.position_policy), (price, quantity, fee, st.quantity, raw, 0.0))


@compiled
def open_position(st: Any, port: Any, out: Any, p: Any, t: int, s: int, raw: float, inside: int) -> None:
    """Fill the resting entry order at `raw` before slippage; the exit authority is fixed here.

    A limit order pays no slippage: it is never filled at a worse price than its own.
    """
    direction = st.policy_direction
    passive = st.order_kind == 1
    price = raw if passive else slip(raw, direction, p.slippage, p.tick)
    fee = fee_of(st.order_quantity * price, passive, p)
    port.cash -= direction * st.order_quantity * price + fee
    port.fees = add_fee(port.fees, fee, p.carry, p)
    port.orders -= 1
    port.positions += 1
    st.order = 0
    st.direction = direction
    st.quantity = st.order_quantity
    st.entry_quantity = st.order_quantity
    st.first_quantity = st.order_quantity
    st.entry_price = price
    st.entry_t = t
    st.entry_own = st.own
    st.entry_inside = inside
    st.costs = fee
    st.carry = 0.0
    st.signal_t = st.order_t
    st.stop = st.order_stop
    st.target = st.order_target
    st.risk = st.order_risk
    if p.base_fill == 1:
        rebase_levels(st, price, p.tick)
    st.highest = price
    st.lowest = price
    st.due_own = st.own + st.policy_horizon if st.policy_horizon > 0 else _NEVER
    st.exit_reason = -1
    fix_management(st, p.tick)
    st.bits |= _BIT_OPENED
    emit(out, t, s, (_ENTERED, direction, st.policy), (price, st.quantity, fee, st.stop, st.target, raw))
    go(st, port, out, t, s, POSITION_OPEN)
    if st.policy_never_ends == 0 and st.policy_repeats == 0:
        st.policy = -1  # spent: it leads to at most one position


@compiled
def fix_management(st: Any, tick: float) -> None:
    """Hand the policy's invalidation, trailing stop, break-even and scale-out over to the position."""
    direction = st.direction
    st.position_policy = st.policy
    st.position_invalidation = st.k_invalidation
    st.position_trail = st.k_trail
    st.break_even_r = st.policy_break_even_r
    hand_over(st.policy_exit, st.exit_rule)
    hand_over(st.policy_trail, st.trail_rule)
    moves = st.k_trail >= 0 or st.trail_rule[0] != 0.0 or not np.isnan(st.break_even_r)
    st.position_target = st.k_target if st.policy_target_moves == 1 else -1
    st.add_r = st.policy_add_r
    st.add_share = st.policy_add_share
    adds = not np.isnan(st.add_r)
    st.managed = 1 if moves or adds or st.exit_rule[0] != 0.0 or st.position_target >= 0 else 0
    st.scaled_quantity = 0.0
    st.scaled_value = 0.0
    st.scale_step = 0
    for k in range(_SCALE_OUTS):
        st.scale_shares[k] = st.policy_scale_share[k]
        st.scale_prices[k] = on_tick(st.entry_price + direction * st.policy_scale_r[k] * st.risk, tick)
        if np.isnan(st.policy_scale_r[k]):
            break  # what stands behind the first unknown price is not read
    set_near(st)


@compiled
def hand_over(program: Any, held: Any) -> None:
    """Copy the steps of a rule; there is mostly none."""
    if program[0] != 0.0 or held[0] != 0.0:
        for k in range(_PROGRAM_SIZE):
            held[k] = program[k]


@compiled
def set_near(st: Any) -> None:
    """The nearer of the target and the next scale-out; one at or beyond the target is not reached."""
    st.near = st.target
    st.scale_price = np.nan
    if st.scale_step < _SCALE_OUTS:
        price = st.scale_prices[st.scale_step]
        if (st.target - price) * st.direction > 0.0:
            st.near = price
            st.scale_price = price


@compiled
def rebase_levels(st: Any, price: float, tick: float) -> None:
    """Measure stop and target from the fill instead of the signal close, at the same relative distance."""
    d = st.direction
    if np.isnan(st.policy_stop_pct):
        st.stop = on_tick(price * (st.order_stop / st.order_base), tick)
    else:
        st.stop = on_tick(price * (1.0 - d * st.policy_stop_pct), tick)
    if np.isnan(st.policy_target_pct):
        st.target = on_tick(price * (st.order_target / st.order_base), tick)
    else:
        st.target = on_tick(price * (1.0 + d * st.policy_target_pct), tick)
    risk = abs(price - st.stop)
    st.risk = risk if risk > 0.0 else st.order_risk


@compiled
def at_open(st: Any, port: Any, out: Any, p: Any, t: int, s: int, o: float) -> None:
    """What is due at the open: a queued exit, the time stop when it comes before stops, an added entry."""
    if st.exit_reason >= 0:
        close_position(st, port, out, p, t, s, o, st.exit_reason)
    elif p.time_exit == _AT_OPEN and st.own >= st.due_own:
        time_out(st, port, out, p, t, s, o)
    elif st.adding > 0.0 and port.kill == 0:
        add_to_position(st, port, out, p, t, s, o)


@compiled
def add_to_position(st: Any, port: Any, out: Any, p: Any, t: int, s: int, raw: float) -> None:
    """Fill the added entry at `raw` before slippage; the entry price becomes the average, R stays."""
    direction, quantity = st.direction, st.adding
    price = slip(raw, direction, p.slippage, p.tick)
    fee = fee_of(quantity * price, False, p)
    port.cash -= direction * quantity * price + fee
    port.fees = add_fee(port.fees, fee, p.carry, p)
    st.costs = add_fee(st.costs, fee, st.carry, p)
    total = on_tick(st.entry_quantity + quantity, p.lot)
    st.entry_price = (st.entry_quantity * st.entry_price + quantity * price) / total
    st.entry_quantity = total
    st.quantity = on_tick(st.quantity + quantity, p.lot)
    st.adding = 0.0
    st.highest = max(st.highest, price)
    st.lowest = min(st.lowest, price)
    emit(out, t, s, (_ADDED, direction, st.position_policy), (price, quantity, fee, st.quantity, raw, 0.0))


@compiled
def time_out(st: Any, port: Any, out: Any, p: Any, t: int, s: int, price: float) -> None:
    """The time stop, at the given price before slippage."""
    emit(out, t, s, (_TIME, st.own - st.entry_own, st.position_policy), (price, 0.0, 0.0, 0.0, 0.0, 0.0))
    close_position(st, port, out, p, t, s, price, _X_TIME)


@compiled
def fill_entry(st: Any, port: Any, out: Any, p: Any, t: int, s: int, o: float, h: float, low: float) -> None:
    """The resting entry order meets the bar: a market order fills at the open, others where they are met."""
    if st.order_kind == 0:
        open_position(st, port, out, p, t, s, o, AT_OPEN_OR_CLOSE)
        return
    inside, price = entry_fill(
        st.order_kind, st.policy_direction, st.order_price, o, h, low, p.gap_open, p.through
    )
    if inside >= 0:
        open_position(st, port, out, p, t, s, price, inside)


@compiled
def inside_bar(
    st: Any, port: Any, out: Any, p: Any, t: int, s: int, o: float, h: float, low: float, c: float
) -> None:
    """Stop, scale-out and target inside the bar; then, if the position lives, its extremes and time stop.

    After a scale-out inside the bar a due time stop can no longer be at its open: the rest goes at the close.
    """
    opened_now = st.entry_t == t
    if opened_now and p.entry_bar_exits == 0:
        follow_extremes(st, h, low, c, st.entry_inside if opened_now else 0)
        return
    code, price = first_touch(st, p, o, h, low, c, opened_now)
    scaled = False
    while code == TARGET and not np.isnan(st.scale_price):
        scaled = True
        scale_out(st, port, out, p, t, s, price)
        code, price = first_touch(st, p, o, h, low, c, opened_now)
    if code == NOTHING and not scaled and st.own >= st.due_own and p.time_exit == _AFTER_STOPS:
        reach_open(st, o)
        time_out(st, port, out, p, t, s, o)
        return
    if code == NOTHING:
        follow_extremes(st, h, low, c, st.entry_inside if opened_now else 0)
        if st.own >= st.due_own and p.time_exit != _AT_OPEN:
            time_out(st, port, out, p, t, s, c)
        return
    if not opened_now:
        reach_open(st, o)
    level = st.stop if code == STOP else st.target
    kind = _STOP if code == STOP else _TARGET
    emit(out, t, s, (kind, st.direction, st.position_policy), (level, price, o, h, low, c))
    close_position(st, port, out, p, t, s, price, _X_STOP if code == STOP else _X_TARGET)


@compiled
def first_touch(st: Any, p: Any, o: float, h: float, low: float, c: float, opened_now: bool) -> Any:
    """Which of stop and the nearer favourable level the bar reaches first, and the price there.

    Where a fill inside the bar lies on its path is unknown, so the worse reading counts: the stop may lie
    after it, and first; the best price surely after it is the extreme of a stop entry, behind which that lies
    on the way, and the close of a limit entry.
    """
    if opened_now and st.entry_inside > 0:
        worst, best = (low, h) if st.direction > 0 else (h, low)
        best = c if st.entry_inside == 1 else best
        return find_touch(st.direction, worst, best, st.stop, st.near, p.both_hit != BOTH_TARGET, p.through)
    gap_open = 1 if opened_now else p.gap_open
    return intrabar_exit(st.direction, o, h, low, c, st.stop, st.near, p.both_hit, gap_open, p.through)


@compiled
def reach_open(st: Any, o: float) -> None:
    """On the bar of an exit only the open and the exit price count."""
    st.highest = max(st.highest, o)
    st.lowest = min(st.lowest, o)


@compiled
def follow_extremes(st: Any, h: float, low: float, c: float, inside: int) -> None:
    """Highest and lowest price of the position's life.

    On the bar inside which a limit order filled, the favourable extreme may lie before the fill: only the
    close counts there.
    """
    best, worst = (h, low) if st.direction > 0 else (low, h)
    if inside == 1:
        best = c
    st.highest = max(st.highest, best, worst)
    st.lowest = min(st.lowest, best, worst)
