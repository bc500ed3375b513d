"""Operations of one bar without state: arithmetic and Kleene's logic, for a single value and for a block.

A condition is 1 true, 0 false, NaN unknown; a number that is not finite is unknown. The loops stand apart,
one for each operation, so that each is compiled to vector instructions.
"""

import math

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled
from trading_core.features.nodes import Op

FloatArray = npt.NDArray[np.float64]
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = int(Op.ADD), int(Op.SUBTRACT), int(Op.MULTIPLY), int(Op.DIVIDE)
_SCALE, _ABSOLUTE, _POSITIVE, _DOMINANT = int(Op.SCALE), int(Op.ABSOLUTE), int(Op.POSITIVE), int(Op.DOMINANT)
_LOG, _CONSTANT, _MINIMUM, _MAXIMUM = int(Op.LOG), int(Op.CONSTANT), int(Op.MINIMUM), int(Op.MAXIMUM)
_GREATER, _AT_LEAST, _EQUAL = int(Op.GREATER), int(Op.AT_LEAST), int(Op.EQUAL)
_NOT, _AND, _OR = int(Op.NOT), int(Op.AND), int(Op.OR)


@compiled
def is_pointwise(op: int) -> bool:
    """Whether `pointwise` knows the operation."""
    return _ADD <= op <= _LOG or _CONSTANT <= op <= _OR


@compiled
def pointwise(op: int, factor: float, x: float, y: float) -> float:
    """One operation on one bar's values."""
    if op == _ADD:
        return _finite(x + y)
    if op == _SUBTRACT:
        return _finite(x - y)
    if op == _MULTIPLY:
        return _finite(x * y)
    if op == _DIVIDE:
        return _finite(x / y)
    if op == _SCALE:
        return _finite(factor * x)
    if op == _ABSOLUTE:
        return abs(x)
    if op == _POSITIVE:
        return _positive(x)
    if op == _DOMINANT:
        return _dominant(x, y)
    if op == _LOG:
        return _log(x)
    if op == _CONSTANT:
        return factor
    if op == _MINIMUM:
        return _minimum(x, y)
    if op == _MAXIMUM:
        return _maximum(x, y)
    if op == _GREATER:
        return _greater(x, y)
    if op == _AT_LEAST:
        return _at_least(x, y)
    if op == _EQUAL:
        return _equal(x, y)
    if op == _NOT:
        return _not(x)
    if op == _AND:
        return _and(x, y)
    return _or(x, y)


@compiled
def pointwise_block(op: int, factor: float, a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    """One operation on a block."""
    if op == _ADD:
        for i in range(out.size):
            out[i] = _finite(a[i] + b[i])
    elif op == _SUBTRACT:
        for i in range(out.size):
            out[i] = _finite(a[i] - b[i])
    elif op == _MULTIPLY:
        for i in range(out.size):
            out[i] = _finite(a[i] * b[i])
    elif op == _DIVIDE:
        for i in range(out.size):
            out[i] = _finite(a[i] / b[i])
    elif op == _SCALE:
        for i in range(out.size):
            out[i] = _finite(factor * a[i])
    elif op == _ABSOLUTE:
        for i in range(out.size):
            out[i] = abs(a[i])
    elif op == _POSITIVE:
        for i in range(out.size):
            out[i] = _positive(a[i])
    elif op == _DOMINANT:
        for i in range(out.size):
            out[i] = _dominant(a[i], b[i])
    elif op == _LOG:
        for i in range(out.size):
            out[i] = _log(a[i])
    elif op == _CONSTANT:
        for i in range(out.size):
            out[i] = factor
    elif op == _MINIMUM:
        for i in range(out.size):
            out[i] = _minimum(a[i], b[i])
    elif op == _MAXIMUM:
        for i in range(out.size):
            out[i] = _maximum(a[i], b[i])
    elif op == _GREATER:
        for i in range(out.size):
            out[i] = _greater(a[i], b[i])
    elif op == _AT_LEAST:
        for i in range(out.size):
            out[i] = _at_least(a[i], b[i])
    elif op == _EQUAL:
        for i in range(out.size):
            out[i] = _equal(a[i], b[i])
    elif op == _NOT:
        for i in range(out.size):
            out[i] = _not(a[i])
    elif op == _AND:
        for i in range(out.size):
            out[i] = _and(a[i], b[i])
    else:
        for i in range(out.size):
            out[i] = _or(a[i], b[i])


@compiled
def _finite(x: float) -> float:
    return x if abs(x) < np.inf else np.nan


@compiled
def _positive(x: float) -> float:
    return 0.0 if x <= 0.0 else x


@compiled
def _dominant(x: float, y: float) -> float:
    return x if x > 0.0 and x > y else x * 0.0 + y * 0.0


@compiled
def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else np.nan


@compiled
def _minimum(x: float, y: float) -> float:
    return x if x <= y else y + x * 0.0  # the product is unknown when x is


@compiled
def _maximum(x: float, y: float) -> float:
    return x if x >= y else y + x * 0.0


@compiled
def _greater(x: float, y: float) -> float:
    return 1.0 if x > y else (0.0 if x <= y else np.nan)


@compiled
def _at_least(x: float, y: float) -> float:
    return 1.0 if x >= y else (0.0 if x < y else np.nan)


@compiled
def _equal(x: float, y: float) -> float:
    return 1.0 if x == y else (0.0 if x < y or x > y else np.nan)


@compiled
def _not(x: float) -> float:
    return 1.0 if x == 0.0 else (0.0 if x == 1.0 else np.nan)


@compiled
def _and(x: float, y: float) -> float:
    return 0.0 if x == 0.0 or y == 0.0 else (1.0 if x == y else np.nan)


@compiled
def _or(x: float, y: float) -> float:
    return 1.0 if x == 1.0 or y == 1.0 else (0.0 if x == y else np.nan)
