"""Which bars open a policy boundary, and why; detected last, after everything else about the bar is done."""

from typing import Any, Final

from trading_core.compiled import compiled, inlined
from trading_core.kernel import records as rec
from trading_core.kernel.state_machine import HOLD_LOCK, THESIS_ARMED

_FLAG_REGIME: Final = rec.FLAG_REGIME
_FLAG_BAND: Final = rec.FLAG_BAND
_FLAG_SHOCK: Final = rec.FLAG_SHOCK
_BIT_REGIME: Final = rec.BIT_REGIME
_BIT_BAND: Final = rec.BIT_BAND
_BIT_HEARTBEAT: Final = rec.BIT_HEARTBEAT
_BIT_STALE: Final = rec.BIT_STALE
_BIT_SHOCK: Final = rec.BIT_SHOCK
_BIT_REPLAN: Final = rec.BIT_REPLAN


@compiled
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


@inlined
def quiet(st: Any, p: Any, flags: int, t: int, missed_ns: int) -> bool:
    """Whether nothing about this bar can open a boundary or has to be noted: the quick look of every bar."""
    calm: bool = (
        (flags & (_FLAG_REGIME | _FLAG_BAND | _FLAG_SHOCK) | st.requested | st.held | st.gap | st.bits) == 0
        and t - st.last_t == 1
        and missed_ns < p.stale_ns
        and (p.heartbeat == 0 or st.own - st.last_evaluation < p.heartbeat)
    )
    return calm


@compiled
def policy_events(st: Any, p: Any, flags: int, t: int, missed_ns: int) -> None:
    """Set the boundary bits of a present symbol at its close, those of rows it missed included."""
    st.gap = t - st.last_t - 1 if st.last_t >= 0 else 0
    st.bits |= st.held
    st.held = 0
    if flags & _FLAG_REGIME:
        st.bits |= _BIT_REGIME
    if flags & _FLAG_BAND:
        st.bits |= _BIT_BAND
    if flags & _FLAG_SHOCK:
        st.bits |= _BIT_SHOCK
    if st.requested == 1:
        st.bits |= _BIT_REPLAN
        st.requested = 0
    stale = p.stale_bars > 0 and (st.gap >= p.stale_bars or missed_ns >= p.stale_ns)
    if stale and (st.direction != 0 or st.state == THESIS_ARMED):
        st.bits |= _BIT_STALE
    if heartbeat(st, p):
        st.bits |= _BIT_HEARTBEAT
