"""Rules over columns that the caller has, through the same compiled walk as over a bar series.

False, unknown and true are 0, -1 and 1 outside. A number that is not finite is unknown (NaN), so is anything
made of it. Every operation reads a bar and earlier ones only and rounds as IEEE 754 says: more history
changes no bit. The engine reads `columns`.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from trading_core.features import nodes as f
from trading_core.features.nodes import Node, take_stored
from trading_core.features.program import NodeProgram
from trading_core.rules.grammar import Rule, parse
from trading_core.rules.tree import Expression, refuse_position

FeatureNode = Callable[[str], Node]


def node_of(tree: Expression, feature: FeatureNode) -> Node:
    """The node that computes a tree.

    Args:
        tree: any checked tree.
        feature: node of a feature's name.

    Raises:
        RuleError: it reads an open position.
    """
    if tree.op == "number":
        return f.constant(tree.value)
    if tree.op == "feature":
        return feature(tree.name)
    if tree.op == "position":
        refuse_position({tree.name})
    args = [node_of(arg, feature) for arg in tree.args]
    if tree.op == "prev":
        return f.shift(args[0], int(tree.value))
    if tree.op in _FOLDED:
        return reduce(_FOLDED[tree.op], args)
    return _OF_ARGUMENTS[tree.op](*args)


_FOLDED: dict[str, Callable[[Node, Node], Node]] = {
    "and": f.conjunction,
    "or": f.disjunction,
    "min": f.minimum,
    "max": f.maximum,
}
_OF_ARGUMENTS: dict[str, Callable[..., Node]] = {
    "not": f.negation,
    "neg": lambda x: f.scale(-1.0, x),
    "abs": f.absolute,
    "+": f.add,
    "-": f.subtract,
    "*": f.multiply,
    "/": f.divide,
    ">": f.greater,
    ">=": f.at_least,
    "<": lambda a, b: f.greater(b, a),
    "<=": lambda a, b: f.at_least(b, a),
    "==": f.equal,
    "!=": lambda a, b: f.negation(f.equal(a, b)),
    "between": lambda x, low, high: f.conjunction(f.at_least(x, low), f.at_least(high, x)),
    "crosses_above": f.cross,
    "crosses_below": lambda a, b: f.cross(b, a),
}


FloatArray = npt.NDArray[np.float64]
TruthArray = npt.NDArray[np.int8]
Column = npt.NDArray[Any]  # FloatArray of a number, TruthArray of a condition


def evaluate_for_symbol(
    rule: Rule, columns: Mapping[str, FloatArray | float], size: int | None = None
) -> Column:
    """The rule on N present bars of one symbol.

    Args:
        rule: any rule.
        columns: every feature the rule reads: float64 (N,), or one value for all bars; NaN where unknown.
        size: N, where no column says it; None takes it from the columns, or one.

    Returns:
        For a boolean rule int8 (N,): 1 true, 0 false, -1 unknown; for a number float64 (N,), NaN unknown.

    Raises:
        RuleError: a feature has no column.
    """
    missing = rule.features.difference(columns)
    if missing:
        raise RuleError(f"rule {rule.text!r}: no column for {', '.join(sorted(missing))}")
    if size is None:
        size = int(np.size(next(iter(columns.values())))) if columns else 1
    program = program_of(rule.text)
    inputs = np.empty((len(program.inputs), size))
    for k, name in enumerate(program.inputs):
        inputs[k] = columns[name]
    values: FloatArray = program.advance(inputs, program.initial_state())[0]
    if rule.kind == "number":
        return values
    values[np.isnan(values)] = -1.0
    return values.astype(np.int8)


@lru_cache(maxsize=4_096)
def program_of(text: str) -> NodeProgram:
    """The compiled rule; a program holds no state, so one serves every reader of a rule.

    A condition is 1 or 0; NaN where unknown.

    Raises:
        RuleError: the text is no rule, or it reads an open position.
    """
    return NodeProgram([node_of(parse(text).tree, take_stored)])
