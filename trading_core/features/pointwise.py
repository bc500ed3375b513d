"""Operations of one bar without state: arithmetic and Kleene's logic, for a single value and for a block.

A condition is 1 true, 0 false, NaN unknown; a number that is not finite is unknown. Called by `recurrences`.
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from trading_core.features.nodes import Op

FloatArray = npt.NDArray[np.float64]
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = int(Op.ADD), int(Op.SUBTRACT), int(Op.MULTIPLY), int(Op.DIVIDE)
_SCALE, _ABSOLUTE, _POSITIVE, _DOMINANT = int(Op.SCALE), int(Op.ABSOLUTE), int(Op.POSITIVE), int(Op.DOMINANT)
_LOG, _CONSTANT, _MINIMUM, _MAXIMUM = int(Op.LOG), int(Op.CONSTANT), int(Op.MINIMUM), int(Op.MAXIMUM)
_GREATER, _AT_LEAST, _EQUAL = int(Op.GREATER), int(Op.AT_LEAST), int(Op.EQUAL)
_NOT, _AND, _OR = int(Op.NOT), int(Op.AND), int(Op.OR)


@njit(error_model="numpy")
def is_pointwise(op: int) -> bool:
    """Whether `pointwise` knows the operation."""
    return _ADD <= op <= _LOG or _CONSTANT <= op <= _OR


@njit(error_model="numpy")
def pointwise(op: int, factor: float, x: float, y: float) -> float:
    """One operation on one bar's values."""
    if _GREATER <= op <= _OR:
        return _condition(op, x, y)
    value = _number(op, factor, x, y)
    return value if abs(value) < np.inf else np.nan


@njit(error_model="numpy")
def pointwise_block(op: int, factor: float, a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    """One operation on a block."""
    # Each call is compiled for its own operation: no choice is left inside the loop.
    if op == _ADD:
        _each(_ADD, factor, a, b, out)
    elif op == _SUBTRACT:
        _each(_SUBTRACT, factor, a, b, out)
    elif op == _MULTIPLY:
        _each(_MULTIPLY, factor, a, b, out)
    elif op == _DIVIDE:
        _each(_DIVIDE, factor, a, b, out)
    elif op == _SCALE:
        _each(_SCALE, factor, a, b, out)
    elif op == _ABSOLUTE:
        _each(_ABSOLUTE, factor, a, b, out)
    elif op == _POSITIVE:
        _each(_POSITIVE, factor, a, b, out)
    elif op == _DOMINANT:
        _each(_DOMINANT, factor, a, b, out)
    elif op == _LOG:
        _each(_LOG, factor, a, b, out)
    elif op == _CONSTANT:
        _each(_CONSTANT, factor, a, b, out)
    elif op == _MINIMUM:
        _each(_MINIMUM, factor, a, b, out)
    elif op == _MAXIMUM:
        _each(_MAXIMUM, factor, a, b, out)
    elif op == _GREATER:
        _each(_GREATER, factor, a, b, out)
    elif op == _AT_LEAST:
        _each(_AT_LEAST, factor, a, b, out)
    elif op == _EQUAL:
        _each(_EQUAL, factor, a, b, out)
    elif op == _NOT:
        _each(_NOT, factor, a, b, out)
    elif op == _AND:
        _each(_AND, factor, a, b, out)
    elif op == _OR:
        _each(_OR, factor, a, b, out)


@njit(error_model="numpy")
def _each(op: int, factor: float, a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    for i in range(out.size):
        out[i] = pointwise(op, factor, a[i], b[i])


@njit(error_model="numpy")
def _number(op: int, factor: float, x: float, y: float) -> float:
    if op == _ADD:
        return x + y
    if op == _SUBTRACT:
        return x - y
    if op == _MULTIPLY:
        return x * y
    if op == _DIVIDE:
        return x / y
    if op == _SCALE:
        return factor * x
    if op == _ABSOLUTE:
        return abs(x)
    if op == _LOG:
        return math.log(x) if x > 0.0 else np.nan
    if op == _POSITIVE:
        return 0.0 if x <= 0.0 else x
    if op == _CONSTANT:
        return factor
    if op == _MINIMUM:
        return x if x <= y else y + x * 0.0  # the product is unknown when x is
    if op == _MAXIMUM:
        return x if x >= y else y + x * 0.0
    return x if x > 0.0 and x > y else x * 0.0 + y * 0.0


@njit(error_model="numpy")
def _condition(op: int, x: float, y: float) -> float:
    if op == _GREATER:
        return 1.0 if x > y else (0.0 if x <= y else np.nan)
    if op == _AT_LEAST:
        return 1.0 if x >= y else (0.0 if x < y else np.nan)
    if op == _EQUAL:
        return 1.0 if x == y else (0.0 if x < y or x > y else np.nan)
    if op == _NOT:
        return 1.0 if x == 0.0 else (0.0 if x == 1.0 else np.nan)
    if op == _AND:
        return 0.0 if x == 0.0 or y == 0.0 else (1.0 if x == y else np.nan)
    return 1.0 if x == 1.0 or y == 1.0 else (0.0 if x == y else np.nan)
