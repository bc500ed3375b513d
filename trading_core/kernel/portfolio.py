"""What one bar means for the portfolio: day, carry, mark to market, the envelope, flat after a breach."""

from typing import Any, Final

import numpy as np

from schemas.vocabulary import ExitReason, TickEventKind
from trading_core.compiled import compiled, inlined
from trading_core.kernel import records as rec
from trading_core.kernel.events import NO_NUMBER, OF_PORTFOLIO, emit
from trading_core.kernel.limits import breach_of, follow_recovery, is_gone, start_halt
from trading_core.kernel.orders import disarm, take_back
from trading_core.kernel.state_machine import THESIS_ARMED

_BREACH: Final = rec.KIND[TickEventKind.ENVELOPE_BREACH]
_RELEASED: Final = rec.KIND[TickEventKind.ENVELOPE_RELEASED]
_ENDS: Final[Any] = np.arange(2)
_DAY_OVER, _DRAWDOWN_OVER = _ENDS
_GONE: Final = rec.code(rec.BREACHES, "account_gone")
_SYMBOL_LOSSES: Final = rec.code(rec.BREACHES, "symbol_losses")
_BREACHES: Final = len(rec.BREACHES)
_X_ENVELOPE: Final = rec.EXIT[ExitReason.ENVELOPE]
_X_KILL: Final = rec.EXIT[ExitReason.KILL_SWITCH]
_R_ENVELOPE: Final = rec.code(rec.REFUSALS, "envelope")
_BIT_ENVELOPE: Final = rec.BIT_ENVELOPE
_BIT_KILL: Final = rec.BIT_KILL
DAY_NS: Final = 86_400_000_000_000


@compiled
def report_release(port: Any, out: Any, t: int, which: int) -> None:
    """Append the event of a halt that ends: that of a day, or that of a drawdown."""
    details = (port.equity, port.peak, 0.0, 0.0, 0.0, 0.0)
    emit(out, t, OF_PORTFOLIO, (_RELEASED, which, NO_NUMBER), details)


@compiled
def start_day(port: Any, out: Any, t: int, moment: int) -> None:
    """A new UTC day: the daily loss counts from here, and a halt of the day before ends.

    Args:
        port: portfolio record.
        out: `records.Out`.
        t: row.
        moment: ns, the last one that belongs to the bar: a bar that closes at midnight ends its day.
    """
    if port.halt_day == port.day:
        report_release(port, out, t, _DAY_OVER)
    port.day = moment // DAY_NS
    port.day_ends = (port.day + 1) * DAY_NS
    port.day_start = port.equity


@compiled
def charge_carry(state: Any, port: Any, present: Any, p: Any, t: int) -> None:
    """Funding and borrow of every held symbol that has a bar, on its notional at this close."""
    for s in range(state.shape[0]):
        st = state[s]
        if st.direction != 0 and present[t, s]:
            rate = p.funding if st.direction > 0 else p.borrow - p.funding
            cost = st.quantity * st.last_close * rate
            port.cash -= cost
            port.fees += cost
            st.costs += cost
            st.carry += cost


@inlined
def mark(state: Any, port: Any) -> None:
    """Mark every position to its last close."""
    equity = port.cash
    gross = 0.0
    net = 0.0
    for s in range(state.shape[0]):
        st = state[s]
        if st.direction != 0:
            value = st.quantity * st.last_close
            equity += st.direction * value
            gross += value
            net += st.direction * value
    port.equity = equity
    port.gross = gross
    port.net = net


@compiled
def flatten(state: Any, port: Any, out: Any, t: int) -> None:
    """Queue the exit of every position and take back resting entries; no emergency exit is vetoed."""
    bit = _BIT_KILL if port.kill == 1 else _BIT_ENVELOPE
    for s in range(state.shape[0]):
        st = state[s]
        if st.order == 1:
            take_back(st, port, out, t, s, _R_ENVELOPE)
        if st.state == THESIS_ARMED:
            disarm(st, port, out, t, s)
            st.bits |= bit
        if st.direction != 0:
            st.exit_reason = _X_KILL if port.kill == 1 else _X_ENVELOPE
            st.bits |= bit


@compiled
def report_breach(port: Any, out: Any, t: int, s: int, breach: int, losses: int) -> None:
    """Append the event of a broken limit; `losses` in a row are those of the portfolio or of symbol s."""
    emit(
        out, t, s, (_BREACH, breach, NO_NUMBER),
        (port.equity, port.peak, port.day_start, port.gross, port.net, float(losses)),
    )  # fmt: skip


@compiled
def envelope(state: Any, port: Any, out: Any, p: Any, t: int) -> None:
    """Check the portfolio's limits at the close; each breach flattens at the next open and halts entries.

    An account that is gone has no next open: its breach stands alone.
    """
    if is_gone(port, p):
        report_breach(port, out, t, OF_PORTFOLIO, _GONE, port.losses)
        return
    if follow_recovery(state, port, t, p):
        report_release(port, out, t, _DRAWDOWN_OVER)
    for _ in range(_BREACHES):  # each limit breaks once in a bar at most
        breach = breach_of(state, port, t, p)
        if breach < 0:
            return
        report_breach(port, out, t, OF_PORTFOLIO, breach, port.losses)
        start_halt(port, breach, t, p)
        flatten(state, port, out, t)


@compiled
def pause_after_losses(st: Any, port: Any, out: Any, p: Any, t: int, s: int) -> None:
    """A symbol that has lost too often in a row enters nothing for a while."""
    if st.losses < p.max_symbol_losses:
        return
    report_breach(port, out, t, s, _SYMBOL_LOSSES, st.losses)
    st.losses = 0
    st.pause_own = st.own + p.loss_pause
    st.bits |= _BIT_ENVELOPE
