"""The kernel: one compiled function that validates every bar of every symbol and stops at the first boundary.

Backtest, replay, live step and `simulate` call this same function; a live step is a block of one bar. Order
within a bar: due exits at the open, entries, exits inside the bar, excursions; then entry conditions and
state transitions at the close; then the portfolio is marked and its envelope checked; last, policy events
are detected. Symbols go in ascending name order in every phase. It allocates nothing, reads no later row,
and knows no model, memory or store.

A quiet bar, on which nothing fills, arms or breaks, is handled here without a call; everything rare is a
function of its own.
"""

from typing import Any, Final

from trading_core.compiled import compiled, entry_point, inlined
from trading_core.kernel.boundaries import policy_events, quiet
from trading_core.kernel.closes import arm, at_close_armed, at_close_holding, expire, is_set_up
from trading_core.kernel.events import go
from trading_core.kernel.fills import AT_OPEN_OR_CLOSE, at_open, fill_entry, inside_bar, open_position
from trading_core.kernel.limits import is_gone, needs_attention, start_block
from trading_core.kernel.portfolio import charge_carry, envelope, mark, pause_after_losses, start_day
from trading_core.kernel.records import BIT_INVALIDATION, ENTRY_KINDS, Out
from trading_core.kernel.state_machine import COOLDOWN, HOLD_LOCK, IDLE, INVALIDATED, THESIS_ARMED

END, BOUNDARY, BUFFER_FULL, FAULT = range(4)
EVENTS_PER_SYMBOL_BAR: Final = 24
EVENTS_OF_PORTFOLIO: Final = 8  # a release of each kind and a breach of each limit in one bar
_BIT_INVALIDATION: Final = BIT_INVALIDATION
_MARKET: Final = ENTRY_KINDS.index("market")


@inlined
def open_phases(
    t: int, o: Any, h: Any, low: Any, c: Any, present: Any, state: Any, port: Any, p: Any, out: Any
) -> None:
    """From the open to the last tick of bar t: due exits, entries, exits inside the bar."""
    symbols = state.shape[0]
    for s in range(symbols):
        st = state[s]
        st.bits = 0
        if present[t, s]:
            st.own += 1
            port.bars += 1
            st.last_close = c[t, s]
            if st.direction != 0 and (st.exit_reason >= 0 or st.own >= st.due_own or st.adding > 0.0):
                at_open(st, port, out, p, t, s, o[t, s])
    if port.orders > 0 and port.kill == 0:
        for s in range(symbols):
            if state[s].order == 1 and present[t, s]:
                fill_entry(state[s], port, out, p, t, s, o[t, s], h[t, s], low[t, s])
    if port.positions == 0:
        return
    for s in range(symbols):
        st = state[s]
        if st.direction == 0 or not present[t, s]:
            continue
        high, lowest = h[t, s], low[t, s]
        inside = (
            lowest > st.stop and high < st.near if st.direction > 0 else high < st.stop and lowest > st.near
        )
        if inside and st.entry_t != t and st.own < st.due_own:
            st.highest = max(st.highest, high)
            st.lowest = min(st.lowest, lowest)
        else:
            inside_bar(st, port, out, p, t, s, o[t, s], high, lowest, c[t, s])


@compiled
def close_of_symbol(
    t: int,
    s: int,
    high: float,
    low: float,
    close: float,
    moment: int,
    flags: int,
    truths: Any,
    numbers: Any,
    state: Any,
    port: Any,
    p: Any,
    out: Any,
) -> None:
    """Entry conditions and state transitions of one symbol at the close of bar t."""
    st = state[s]
    if st.state == COOLDOWN and st.own - st.exit_own >= p.cooldown:
        go(st, port, out, t, s, IDLE)
    if st.state == INVALIDATED and st.direction == 0 and st.bits & _BIT_INVALIDATION == 0:
        go(st, port, out, t, s, IDLE)
    if st.losses >= p.max_symbol_losses:
        pause_after_losses(st, port, out, p, t, s)
    waits = False
    if st.direction != 0:
        at_close_holding(state, port, out, p, truths, numbers, t, s, close, moment, flags)
    elif st.state == THESIS_ARMED:
        at_close_armed(state, port, out, p, truths, numbers, t, s, close, moment, flags)
        waits = st.state == IDLE and st.policy_immediate == 1  # its order has ended: the next may follow
    elif st.state == IDLE:
        waits = t >= st.policy_first_t
    if waits and st.policy >= 0:
        if st.policy_never_ends == 0 and st.own > st.policy_expires_own:
            expire(st, out, t, s)
        elif is_set_up(st, truths, t) and (p.reentry == 1 or st.exit_own != st.own):
            arm(state, port, out, p, numbers, t, s, high, low, close, moment, flags)
    if p.fill_close == 1 and st.order == 1 and st.order_t == t and st.order_kind == _MARKET:
        open_position(st, port, out, p, t, s, close, AT_OPEN_OR_CLOSE)


@inlined
def close_phase(
    t: int,
    h: Any,
    low: Any,
    c: Any,
    present: Any,
    moment: int,
    flags: Any,
    truths: Any,
    numbers: Any,
    state: Any,
    port: Any,
    p: Any,
    out: Any,
) -> None:
    """At the close of bar t, in symbol order, against one portfolio state."""
    for s in range(state.shape[0]):
        st = state[s]
        if not present[t, s]:
            continue
        if st.state == HOLD_LOCK:
            k = st.position_invalidation
            if st.managed == 0 and (k < 0 or truths[k, t] != 1):
                continue
        elif st.state == IDLE and st.losses < p.max_symbol_losses:
            waiting = st.policy >= 0 and t >= st.policy_first_t
            if not waiting or (
                truths[st.k_setup, t] != 1 and (st.policy_never_ends == 1 or st.own <= st.policy_expires_own)
            ):
                continue
        close_of_symbol(
            t, s, h[t, s], low[t, s], c[t, s], moment, flags[t, s], truths, numbers, state, port, p, out
        )


@inlined
def boundary_phase(t: int, closes: Any, present: Any, flags: Any, state: Any, p: Any) -> bool:
    """Whether some symbol's bar opens a policy boundary."""
    found = False
    since = closes[t] - closes[t - 1] if t > 0 else 0
    for s in range(state.shape[0]):
        st = state[s]
        if not present[t, s]:
            st.held |= st.bits
            st.bits = 0
            continue
        if not quiet(st, p, flags[t, s], t, since):
            missed_ns = closes[t] - closes[st.last_t] if st.last_t >= 0 else 0
            policy_events(st, p, flags[t, s], t, missed_ns)
            found |= st.bits != 0
        st.last_t = t
    return found


@entry_point
def advance(
    t0: int,
    t1: int,
    o: Any,
    h: Any,
    low: Any,
    c: Any,
    present: Any,
    closes: Any,
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
    edges: Any,
) -> Any:
    """Validate bars t0 <= t < t1; stop after the first that opens a boundary or leaves no account.

    Args:
        t0: first row.
        t1: row after the last one.
        o: float64 (T, S), opens.
        h: float64 (T, S), highs.
        low: float64 (T, S), lows.
        c: float64 (T, S), closes.
        present: bool (T, S).
        closes: int64 (T,), ns at which each bar is known, whatever its label says.
        flags: uint8 (T, S), `records.FLAG_...`: regime change, volatility band shift, volatility shock, and
            no-trade window at the close.
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
        edges: int64 (E,), ascending: closes, ns, from which a bar belongs to the next block of entries.

    Returns:
        (t, code): the next row to validate, and END, BOUNDARY, BUFFER_FULL or FAULT.
    """
    port = portfolio[0]
    p = parameters[0]
    symbols = state.shape[0]
    out = Out(events, count, trades, n_trades, p.emit)
    room = EVENTS_PER_SYMBOL_BAR * symbols + EVENTS_OF_PORTFOLIO
    for t in range(t0, t1):
        if (p.emit == 1 and count[0] + room > events.shape[0]) or n_trades[0] + symbols > trades.shape[0]:
            return t, BUFFER_FULL
        moment = closes[t] - 1
        if moment >= port.day_ends:
            start_day(port, out, t, moment)
        if p.max_block_entries > 0 and closes[t] >= port.block_ends:
            start_block(port, edges, closes[t])
        open_phases(t, o, h, low, c, present, state, port, p, out)
        if port.positions > 0 and p.carry == 1:
            charge_carry(state, port, present, p, t)
        mark(state, port)
        close_phase(t, h, low, c, present, moment, flags, truths, numbers, state, port, p, out)
        if p.fill_close == 1:
            mark(state, port)
        port.peak = max(port.peak, port.equity)
        if needs_attention(port, p):
            envelope(state, port, out, p, t)
        equity[t] = port.equity
        gross[t] = port.gross
        stop = p.boundaries == 1 and boundary_phase(t, closes, present, flags, state, p)
        if port.fault != 0 or count[0] > events.shape[0]:
            return t + 1, FAULT
        if stop or is_gone(port, p):
            return t + 1, BOUNDARY
    return t1, END
