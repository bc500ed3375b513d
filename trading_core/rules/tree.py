"""The checked tree of a rule: nodes with a kind, and their one canonical text.

Trees are values: equal trees mean equal columns, and `canonical_text` of a tree parses to that same tree.
Built by `grammar`, read by `evaluate` and `lint`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from schemas.errors import RuleError

Kind = Literal["boolean", "number"]
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(COMPARISONS, 4),
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "neg": 7,
}
_ATOM = 8


@dataclass(frozen=True)
class Expression:
    """One node.

    Attributes:
        op: "number", "feature", "position", an operator, or the name of a function.
        kind: what it yields.
        args: operands in order.
        value: of a number; of `prev`, how many own bars back.
        name: of a feature, or of what a position has.
        depth: height of the tree below and with this node.
    """

    op: str
    kind: Kind
    args: tuple["Expression", ...] = ()
    value: float = 0.0
    name: str = ""
    depth: int = 1

    def walk(self) -> Iterator["Expression"]:
        """This node and all below it."""
        yield self
        for arg in self.args:
            yield from arg.walk()

    @cached_property
    def shift(self) -> int:
        """Own bars before the current one that the rule itself reads, its features' lookback apart."""
        own = int(self.value) if self.op == "prev" else int(self.op in ("crosses_above", "crosses_below"))
        return own + max((arg.shift for arg in self.args), default=0)


def position_of(node: Expression) -> frozenset[str]:
    """Names of what a tree reads of an open position."""
    return frozenset(part.name for part in node.walk() if part.op == "position")


def column_parts(node: Expression) -> dict[str, Kind]:
    """Text and kind of each largest part that reads no position, the tree itself among them."""
    if not position_of(node):
        return {canonical_text(node): node.kind}
    parts = (part for part in node.args if part.op != "number")
    return {text: kind for part in parts for text, kind in column_parts(part).items()}


def refuse_position(names: Collection[str]) -> None:
    """Hold what a rule reads of a position against a place where there is none.

    Raises:
        RuleError: it reads something.
    """
    if names:
        raise RuleError(
            f"{min(names)!r} is known while a position is open only: use it in the rules exit and trail"
        )


def number_text(value: float) -> str:
    """Shortest text that reads back as the same float; no sign, no trailing `.0`."""
    text = repr(float(value))
    return text.removesuffix(".0")


def canonical_text(node: Expression) -> str:
    """The one text of this tree: single spaces, no parentheses that precedence already gives."""
    if node.op == "number":
        return number_text(node.value)
    if node.op in ("feature", "position"):
        return node.name
    if node.op == "prev":
        return f"prev({canonical_text(node.args[0])}, {int(node.value)})"
    if node.op == "neg":
        return f"-{_operand(node.args[0], _PRECEDENCE['neg'])}"
    if node.op == "not":
        return f"not {_operand(node.args[0], _PRECEDENCE['not'])}"
    if node.op in ("and", "or"):
        level = _PRECEDENCE[node.op] + 1
        return f" {node.op} ".join(_operand(arg, level) for arg in node.args)
    if node.op in _PRECEDENCE:
        level = _PRECEDENCE[node.op]
        left = level + 1 if node.op in COMPARISONS else level
        return f"{_operand(node.args[0], left)} {node.op} {_operand(node.args[1], level + 1)}"
    return f"{node.op}({', '.join(canonical_text(arg) for arg in node.args)})"


def _operand(node: Expression, level: int) -> str:
    text = canonical_text(node)
    return text if _PRECEDENCE.get(node.op, _ATOM) >= level else f"({text})"
