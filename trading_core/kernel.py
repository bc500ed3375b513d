"""The kernel: one compiled function that validates every bar of every symbol and stops at the first boundary.

Backtest, replay, live step and `simulate` call this same function; a live step is a block of one bar. Order
within a bar: due exits at the open, entries at the open, exits inside the bar, excursions; then entry
conditions and state transitions at the close; then the portfolio is marked and its envelope checked; last,
policy events are detected. Symbols go in ascending name order in every phase. It allocates nothing, reads
no later row, and knows no model, memory or store.
"""

from typing import Any, Final

from numba import njit

from schemas.vocabulary import TickEventKind
from trading_core import records as rec
from trading_core.kernel_bar import at_close_armed, at_close_holding, at_close_idle, at_open, inside_bar
from trading_core.kernel_orders import emit, go, open_position
from trading_core.kernel_portfolio import envelope, mark
from trading_core.risk import halted
from trading_core.state_machine import COOLDOWN, HOLD_LOCK, IDLE, INVALIDATED, THESIS_ARMED

END, BOUNDARY, BUFFER_FULL, FAULT = range(4)
EVENTS_PER_SYMBOL_BAR: Final = 20
DAY_NS: Final = 86_400_000_000_000
_RELEASED: Final = rec.KIND[TickEventKind.ENVELOPE_RELEASED]
_BIT_REGIME: Final = rec.BIT_REGIME
_BIT_BAND: Final = rec.BIT_BAND
_BIT_HEARTBEAT: Final = rec.BIT_HEARTBEAT
_BIT_INVALIDATION: Final = rec.BIT_INVALIDATION
_BIT_STALE: Final = rec.BIT_STALE
_BIT_SHOCK: Final = rec.BIT_SHOCK
_BIT_REPLAN: Final = rec.BIT_REPLAN


@njit(cache=True, error_model="numpy")
def heartbeat(st: Any, p: Any) -> bool:
    """Whether the heartbeat fires on this bar.

    Due once `heartbeat` own bars have passed since the last evaluation. A beat that fell into a suppressed
    state fires again on the first bar after it; any other skipped beat after a further interval. Only an
    evaluation restarts the count, so a skip never extends an interval.
    """
    if p.heartbeat == 0 or st.own - st.last_evaluation < p.heartbeat:
        return False
    suppressed = st.state == THESIS_ARMED or st.state == HOLD_LOCK
    again = st.own - st.last_beat >= p.heartbeat
    if again or (st.beat_suppressed == 1 and not suppressed):
        st.last_beat = st.own
        st.beat_suppressed = 1 if suppressed else 0
        return True
    return False


@njit(cache=True, error_model="numpy")
def policy_events(st: Any, p: Any, flags: int, t: int, missed_ns: int) -> None:
    """Set the boundary bits of a present symbol at its close, those of rows it missed included."""
    st.gap = t - st.last_t - 1 if st.last_t >= 0 else 0
    st.bits |= st.held
    st.held = 0
    if flags & 1:
        st.bits |= _BIT_REGIME
    if flags & 2:
        st.bits |= _BIT_BAND
    if flags & 4:
        st.bits |= _BIT_SHOCK
    if st.requested == 1:
        st.bits |= _BIT_REPLAN
        st.requested = 0
    stale = p.stale_bars > 0 and (st.gap >= p.stale_bars or missed_ns >= p.stale_ns)
    if stale and (st.direction != 0 or st.state == THESIS_ARMED):
        st.bits |= _BIT_STALE
    if heartbeat(st, p):
        st.bits |= _BIT_HEARTBEAT
    st.last_t = t


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
    labels: Any,
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
        labels: int64 (T,), ns.
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
        day = labels[t] // DAY_NS
        if day != port.day:
            if port.day >= 0 and port.halt_day == port.day:
                emit(
                    events, count, p.emit, t, -1, _RELEASED, 0, 0, port.equity, port.peak, 0.0, 0.0, 0.0, 0.0
                )
            port.day = day
            port.day_start = port.equity
        open_phases(t, o, h, low, c, present, state, port, p, trades, n_trades, events, count)
        for s in range(symbols):
            if present[t, s]:
                state[s].last_close = c[t, s]
        mark(state, port)
        close_phase(t, h, low, c, present, day, truths, numbers, state, port, p, events, count)
        if p.fill_close == 1:
            mark(state, port)
        envelope(state, port, events, count, p, t)
        equity[t] = port.equity
        gross[t] = port.gross
        stop = False
        for s in range(symbols):
            st = state[s]
            if present[t, s]:
                missed_ns = labels[t] - labels[st.last_t] if st.last_t >= 0 else 0
                policy_events(st, p, flags[t, s], t, missed_ns)
                if st.bits != 0:
                    stop = True
            else:
                st.held |= st.bits
                st.bits = 0
        if port.fault != 0:
            return t + 1, FAULT
        if stop and p.boundaries == 1:
            return t + 1, BOUNDARY
    return t1, END
