"""Carry out a rule that reads an open position; see `trading_core.rules.programs` for how one is made."""

from typing import Any, Final

import numpy as np

from schemas.vocabulary import POSITION_VARIABLES
from trading_core.compiled import compiled
from trading_core.features.nodes import Op
from trading_core.features.pointwise import pointwise
from trading_core.kernel import records as rec

_PRICE, _BARS, _OPEN, _MFE, _MAE, _BEST, _WORST = range(len(POSITION_VARIABLES))
_CONSTANT: Final = int(rec.STEP_CONSTANT)
_NUMBER: Final = int(rec.STEP_NUMBER)
_TRUTH: Final = int(rec.STEP_TRUTH)
_POSITION: Final = int(rec.STEP_POSITION)
_SCALE: Final = int(Op.SCALE)
_ABSOLUTE: Final = int(Op.ABSOLUTE)
_NOT: Final = int(Op.NOT)
_MOST_STEPS: Final = rec.MOST_STEPS


@compiled
def position_value(st: Any, which: int, close: float) -> float:
    """What the position has at a close, by its place in `POSITION_VARIABLES`."""
    if which == _PRICE:
        return float(st.entry_price)
    if which == _BARS:
        return float(st.own - st.entry_own)
    price: float = close
    if which in (_MFE, _BEST):
        price = st.highest if st.direction > 0 else st.lowest
    elif which in (_MAE, _WORST):
        price = st.lowest if st.direction > 0 else st.highest
    if which in (_BEST, _WORST):
        return price
    return float((price - st.entry_price) * st.direction / st.risk)


@compiled
def leaf_value(code: int, operand: float, st: Any, truths: Any, numbers: Any, t: int, close: float) -> float:
    """Value of a step that takes none; NaN where it is unknown."""
    if code == _CONSTANT:
        return float(operand)
    if code == _POSITION:
        return float(position_value(st, int(operand), close))
    if code == _NUMBER:
        return float(numbers[int(operand), t])
    truth = truths[int(operand), t]
    return np.nan if truth < 0 else float(truth)


@compiled
def run_program(program: Any, st: Any, port: Any, truths: Any, numbers: Any, t: int, close: float) -> float:
    """The rule at the close of row t: a number, or 1 and 0 of a condition; NaN where unknown, or no rule."""
    stack, top = port.stack, -1
    for k in range(_MOST_STEPS):
        code, operand = int(program[2 * k]), program[2 * k + 1]
        if code == 0:
            break
        if code < 0:
            top += 1
            stack[top] = leaf_value(code, operand, st, truths, numbers, t, close)
        elif code in (_SCALE, _ABSOLUTE, _NOT):
            stack[top] = pointwise(code, operand, stack[top], 0.0)
        else:
            top -= 1
            stack[top] = pointwise(code, operand, stack[top], stack[top + 1])
            stack[top + 1] = 0.0
    if top < 0:
        return np.nan
    value = stack[0]
    stack[0] = 0.0
    return float(value)
