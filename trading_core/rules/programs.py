"""Rules that read an open position, as programs that the kernel carries out at a close.

What of such a rule reads bars alone stays a column; the rest is a list of steps, leaves first, over columns,
numbers and what the position has.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from schemas.vocabulary import POSITION_VARIABLES
from trading_core.features.nodes import Node, Op, take_stored
from trading_core.kernel.records import (
    MOST_STEPS,
    NO_PROGRAM,
    STEP_CONSTANT,
    STEP_NUMBER,
    STEP_POSITION,
    STEP_TRUTH,
)
from trading_core.rules.evaluate import node_of
from trading_core.rules.grammar import Rule
from trading_core.rules.tree import Expression, Kind, canonical_text, column_parts, position_of

Program = npt.NDArray[np.float64]


def compile_program(rule: Rule, truth: Callable[[str], int], number: Callable[[str], int]) -> Program:
    """Steps of a rule: float64 (2 * `MOST_STEPS`,), pairs of a code and its operand, zeros after the last.

    Args:
        rule: any rule.
        truth: index of the column of a condition.
        number: index of the column of a number.

    Raises:
        RuleError: it has more steps than the kernel takes.
    """
    kinds = column_parts(rule.tree)
    nodes = tuple(_leaves_first(node_of(_fold(rule.tree), take_stored)))
    if len(nodes) > MOST_STEPS:
        raise RuleError(
            f"rule {rule.text!r} reads a position in {len(nodes)} steps, at most {MOST_STEPS} are carried "
            "out: shorten it"
        )
    steps = [_step(node, kinds, truth, number) for node in nodes]
    program = NO_PROGRAM.copy()
    program[: 2 * len(steps)] = np.ravel(steps)
    return program


def _leaves_first(node: Node) -> Iterator[Node]:
    for part in node.inputs:
        yield from _leaves_first(part)
    yield node


def _step(
    node: Node, kinds: dict[str, Kind], truth: Callable[[str], int], number: Callable[[str], int]
) -> tuple[float, float]:
    if node.op == Op.CONSTANT:
        return STEP_CONSTANT, node.scale
    if node.op != Op.STORED:
        return float(node.op), node.scale
    if node.column in POSITION_VARIABLES:
        return STEP_POSITION, POSITION_VARIABLES.index(node.column)
    if kinds[node.column] == "boolean":
        return STEP_TRUTH, truth(node.column)
    return STEP_NUMBER, number(node.column)


def _fold(node: Expression) -> Expression:
    """The tree with each such part, and what the position has, as one leaf of its text."""
    if node.op == "number":
        return node
    if node.op == "position" or not position_of(node):
        return Expression("feature", node.kind, name=canonical_text(node))
    return Expression(node.op, node.kind, tuple(map(_fold, node.args)), node.value)
