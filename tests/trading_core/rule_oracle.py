"""Independent oracle of rules in numpy: Kleene three-valued logic over one symbol's own present bars.

Inside, false, unknown and true are 0, 1 and 2, so that `and` is the minimum, `or` the maximum and `not` the
mirror; outside they are 0, -1 and 1. A number that is not finite is unknown (NaN), so is anything made of it.
Every operation reads a bar and earlier ones only and rounds as IEEE 754 says: more history changes no bit.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from trading_core.rules.grammar import Rule
from trading_core.rules.tree import Expression

FloatArray = npt.NDArray[np.float64]
TruthArray = npt.NDArray[np.int8]
Column = npt.NDArray[Any]  # FloatArray of a number, TruthArray of a condition
Number = TypeVar("Number", np.float64, np.int8)
FALSE, UNKNOWN, TRUE = 0, 1, 2
_OUTSIDE = np.array([0, -1, 1], dtype=np.int8)


def oracle(rule: Rule, columns: Mapping[str, FloatArray], size: int | None = None) -> Column:
    """The rule on N present bars of one symbol.

    Args:
        rule: any rule.
        columns: every feature the rule reads: float64 (N,), NaN where unknown.
        size: N, for a rule of constants without any column; None takes it from the columns, or one.

    Returns:
        For a boolean rule int8 (N,): 1 true, 0 false, -1 unknown; for a number float64 (N,), NaN unknown.

    Raises:
        RuleError: a feature has no column.
    """
    missing = sorted(rule.features - set(columns))
    if missing:
        raise RuleError(f"rule {rule.text!r}: no column for {', '.join(missing)}")
    if size is None:
        size = next(iter(columns.values())).size if columns else 1
    with np.errstate(all="ignore"):
        if rule.kind == "boolean":
            return _OUTSIDE[np.broadcast_to(_truth(rule.tree, columns, size), (size,))]
        return np.array(np.broadcast_to(_number(rule.tree, columns, size), (size,)))


def _number(node: Expression, columns: Mapping[str, FloatArray], size: int) -> FloatArray:
    if node.op == "number":
        return np.array(node.value)
    if node.op == "feature":
        return columns[node.name]
    args = [_number(arg, columns, size) for arg in node.args]
    if node.op == "prev":
        return _shifted(np.broadcast_to(args[0], (size,)), int(node.value), np.nan)
    if node.op in ("neg", "abs"):
        return -args[0] if node.op == "neg" else np.abs(args[0])
    if node.op in ("min", "max"):
        smaller_or_larger = np.minimum if node.op == "min" else np.maximum
        result = args[0]
        for arg in args[1:]:
            result = smaller_or_larger(result, arg)
        return np.asarray(result)
    return _finite(_ARITHMETIC[node.op](args[0], args[1]))


def _truth(node: Expression, columns: Mapping[str, FloatArray], size: int) -> TruthArray:
    if node.op in ("and", "or", "not", "prev"):
        return _logic(node, [_truth(arg, columns, size) for arg in node.args], size)
    args = [_number(arg, columns, size) for arg in node.args]
    if node.op == "between":
        return np.asarray(np.minimum(_compare(">=", args[0], args[1]), _compare("<=", args[0], args[2])))
    if node.op in ("crosses_above", "crosses_below"):
        now, before = (">", "<=") if node.op == "crosses_above" else ("<", ">=")
        earlier = np.broadcast_to(_compare(before, args[0], args[1]), (size,))
        return np.asarray(np.minimum(_compare(now, args[0], args[1]), _shifted(earlier, 1, UNKNOWN)))
    return _compare(node.op, args[0], args[1])


def _logic(node: Expression, args: list[TruthArray], size: int) -> TruthArray:
    if node.op == "prev":
        return _shifted(np.broadcast_to(args[0], (size,)), int(node.value), UNKNOWN)
    if node.op == "not":
        return np.asarray(np.int8(TRUE) - args[0])
    weaker_or_stronger = np.minimum if node.op == "and" else np.maximum
    result = args[0]
    for arg in args[1:]:
        result = weaker_or_stronger(result, arg)
    return np.asarray(result)


def _compare(op: str, a: FloatArray, b: FloatArray) -> TruthArray:
    # With an unknown operand both the comparison and its opposite are false, which leaves 1.
    holds, opposite = _COMPARISON[op], _COMPARISON[_OPPOSITE[op]]
    known = np.int8(UNKNOWN)
    if op in ("==", "!="):
        unknown = np.isnan(a) | np.isnan(b)
        return np.where(unknown, known, np.where(holds(a, b), np.int8(TRUE), np.int8(FALSE)))
    return np.asarray(known + holds(a, b).astype(np.int8) - opposite(a, b).astype(np.int8))


def _shifted(values: npt.NDArray[Number], n: int, unknown: float) -> npt.NDArray[Number]:
    out = np.empty(values.shape, dtype=values.dtype)
    out[:n] = unknown
    out[n:] = values[: values.size - min(n, values.size)]
    return out


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, np.nan)


_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_COMPARISON = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
