"""How the kernel says what happened: events appended to a buffer, and state changes that the table allows."""

from typing import Any, Final

import numpy as np

from schemas.vocabulary import TickEventKind
from trading_core.compiled import compiled
from trading_core.kernel.records import KIND
from trading_core.kernel.state_machine import LEGAL

_STATE: Final = KIND[TickEventKind.STATE_TRANSITION]
# Numpy integers and six floats at every call: one signature of `emit`, see `records.code`.
OF_PORTFOLIO: Final[Any] = np.int64(-1)
NO_NUMBER: Final[Any] = np.int64(0)
NO_FLOATS: Final = (0.0,) * 6


@compiled
def emit(out: Any, t: int, s: int, what: Any, x: Any) -> None:
    """Append one event record when events are wanted.

    Args:
        out: `records.Out`.
        t: row.
        s: symbol, or `OF_PORTFOLIO`.
        what: position in `TickEventKind`, and the two whole numbers of that kind.
        x: six floats: those of the kind, and zeros.
    """
    if out.on == 0 or out.count[0] >= out.events.shape[0]:
        out.count[0] += out.on  # a count beyond the buffer is a fault, found at the end of the bar
        return
    e = out.events[out.count[0]]
    e.t = t
    e.s = s
    e.kind, e.a, e.b = what
    for k in range(6):
        e.x[k] = x[k]
    out.count[0] += 1


@compiled
def go(st: Any, port: Any, out: Any, t: int, s: int, target: int) -> None:
    """Change the state of a symbol, if the table allows it; else raise the fault flag."""
    if LEGAL[st.state, target] == 0:
        port.fault = 1 + st.state * 6 + target
        return
    emit(out, t, s, (_STATE, st.state, target), NO_FLOATS)
    st.state = target
