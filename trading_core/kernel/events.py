"""How the kernel says what happened: events appended to a buffer, and state changes that the table allows."""

from typing import Any, Final

from schemas.vocabulary import TickEventKind
from trading_core.kernel.compiled import compiled
from trading_core.kernel.records import KIND
from trading_core.kernel.state_machine import LEGAL

_STATE: Final = KIND[TickEventKind.STATE_TRANSITION]


@compiled
def emit(out: Any, t: int, s: int, what: Any, x: Any) -> None:
    """Append one event record when events are wanted.

    Args:
        out: `records.Out`.
        t: row.
        s: symbol, -1 for the portfolio.
        what: position in `TickEventKind`, and the two whole numbers of that kind.
        x: one to six floats of the kind.
    """
    if out.on == 0 or out.count[0] >= out.events.shape[0]:
        out.count[0] += out.on  # a count beyond the buffer is a fault, found at the end of the bar
        return
    e = out.events[out.count[0]]
    e.t = t
    e.s = s
    e.kind, e.a, e.b = what
    for k in range(6):
        e.x[k] = x[k] if k < len(x) else 0.0
    out.count[0] += 1


@compiled
def go(st: Any, port: Any, out: Any, t: int, s: int, target: int) -> None:
    """Change the state of a symbol, if the table allows it; else raise the fault flag."""
    if LEGAL[st.state, target] == 0:
        port.fault = 1 + st.state * 6 + target
        return
    emit(out, t, s, (_STATE, st.state, target), (0.0,))
    st.state = target
