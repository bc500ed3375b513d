"""From the checked tree of a rule to nodes of the feature programs: one compiled walk computes both.

Kleene's logic stands in the operations: a condition is 1, 0 or NaN there.
"""

from collections.abc import Callable
from functools import reduce

from trading_core.features import nodes as f
from trading_core.features.nodes import Node
from trading_core.rules.tree import Expression

FeatureNode = Callable[[str], Node]


def node_of(tree: Expression, feature: FeatureNode) -> Node:
    """The node that computes a tree.

    Args:
        tree: any checked tree.
        feature: node of a feature's name.
    """
    if tree.op == "number":
        return f.constant(tree.value)
    if tree.op == "feature":
        return feature(tree.name)
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
