"""What a rule can be at all: bounds of its numbers from those of its features, contradictions in its logic.

A sound over-estimate: what is called impossible here never happens, what is called possible may still not
happen. No bar is read.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from trading_core.features.families import ANY
from trading_core.features.registry import resolve
from trading_core.rules.grammar import parse
from trading_core.rules.tree import Expression, canonical_text

Bounds = tuple[float, float]
ROUNDING = 1e-9  # of a factor that is nothing but the last bits of its sum
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_CROSSED = {"crosses_above": ">", "crosses_below": "<"}
_OF_POSITION = {"open_r": ANY, "mae_r": (-math.inf, 0.0)}  # of the others: not negative
_BELOW = (("low", "close"), ("low", "open"), ("close", "high"), ("open", "high"), ("low", "high"))
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


@dataclass(frozen=True)
class Possible:
    """Which truth values a condition can take on a bar where it is known."""

    true: bool = True
    false: bool = True


@dataclass
class _Range:
    """Values of one expression that a conjunction leaves."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def narrow(self, op: str, value: float) -> None:
        if op in (">", ">=", "==") and (value, op == ">") > (self.low, self.low_open):
            self.low, self.low_open = value, op == ">"
        if op in ("<", "<=", "==") and (value, op != "<") < (self.high, not self.high_open):
            self.high, self.high_open = value, op == "<"

    @property
    def empty(self) -> bool:
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


def bounds(node: Expression) -> Bounds:
    """Closed interval that holds every known value of a number."""
    if node.op == "number":
        return node.value, node.value
    if node.op == "feature":
        return resolve(node.name).bounds
    if node.op == "position":
        return _OF_POSITION.get(node.name, (0.0, math.inf))
    parts = [bounds(arg) for arg in node.args]
    if node.op == "prev":
        return parts[0]
    if node.op == "neg":
        return -parts[0][1], -parts[0][0]
    if node.op == "abs":
        return _absolute(parts[0])
    if node.op in ("min", "max"):
        smaller_or_larger = min if node.op == "min" else max
        return smaller_or_larger(low for low, _ in parts), smaller_or_larger(high for _, high in parts)
    return _ARITHMETIC[node.op](parts[0], parts[1])


@lru_cache(maxsize=1_024)
def possible_of(text: str) -> Possible:
    """Truth values that the condition a text says can take.

    Raises:
        RuleError: the text is no rule.
    """
    return possible(parse(text).tree)


def possible(node: Expression) -> Possible:
    """Truth values that a condition can take."""
    if node.op in ("and", "or"):
        return _of_conjunction(node) if node.op == "and" else _of_disjunction(node)
    if node.op == "not":
        inner = possible(node.args[0])
        return Possible(inner.false, inner.true)
    if node.op == "prev":
        return possible(node.args[0])
    if node.op == "between":
        x, low, high = node.args
        above, below = _of_comparison(">=", x, low), _of_comparison("<=", x, high)
        return Possible(above.true and below.true and not _contradict([node]), above.false or below.false)
    if node.op in ("crosses_above", "crosses_below"):
        return _of_crossing(node)
    return _of_comparison(node.op, *node.args)


def _of_conjunction(node: Expression) -> Possible:
    parts = [possible(arg) for arg in node.args]
    reachable = all(part.true for part in parts) and not _contradict(node.args)
    return Possible(reachable, any(part.false for part in parts) or not reachable)


def _of_disjunction(node: Expression) -> Possible:
    parts = [possible(arg) for arg in node.args]
    negated = [Expression("not", "boolean", (arg,)) for arg in node.args]
    avoidable = all(part.false for part in parts) and not _contradict(negated)
    return Possible(any(part.true for part in parts) or not avoidable, avoidable)


def _of_comparison(op: str, a: Expression, b: Expression) -> Possible:
    if canonical_text(a) == canonical_text(b):
        return Possible(op in ("<=", ">=", "=="), op in ("<", ">", "!="))
    low, high = difference(a, b)
    apart, one_value = low > 0.0 or high < 0.0, low == high == 0.0
    return {
        "<": Possible(low < 0.0, high >= 0.0),
        "<=": Possible(low <= 0.0, high > 0.0),
        ">": Possible(high > 0.0, low <= 0.0),
        ">=": Possible(high >= 0.0, low < 0.0),
        "==": Possible(not apart, not one_value),
        "!=": Possible(not one_value, not apart),
    }[op]


def difference(a: Expression, b: Expression) -> Bounds:
    """Closed interval that holds every known value of `a - b`.

    What both read in proportion cancels out: `close * 1.02 - close` is never negative, nor is `high - close`.
    """
    for part, other, sign in ((a, b, 1.0), (b, a, -1.0)):
        if part.op in ("min", "max"):
            parts = [_scale(difference(arg, other), sign) for arg in part.args]
            choose = min if (part.op == "min") == (sign > 0) else max
            return choose(low for low, _ in parts), choose(high for _, high in parts)
    terms, known = dict[str, float](), dict[str, Bounds]()
    for node, sign in ((a, 1.0), (b, -1.0)):
        for key, (factor, share) in _proportions(node).items():
            terms[key] = terms.get(key, 0.0) + sign * factor
            known[key] = share
    shares = list(_of_one_bar(terms))
    shares += [_scale(known[key], factor) for key, factor in terms.items() if abs(factor) > ROUNDING]
    return sum(low for low, _ in shares), sum(high for _, high in shares)


def _of_one_bar(terms: dict[str, float]) -> Iterator[Bounds]:
    """Takes out of a sum what prices of one bar say of each other: `high - close` is not negative."""
    for lower, higher in _BELOW:
        low, high = terms.get(lower, 0.0), terms.get(higher, 0.0)
        if low * high < 0.0:
            share = min(abs(low), abs(high))
            terms[lower] -= math.copysign(share, low)
            terms[higher] -= math.copysign(share, high)
            yield (0.0, math.inf) if high > 0.0 else (-math.inf, 0.0)


def ratio(a: Expression, b: Expression) -> float | None:
    """The factor between two numbers that are one and the same times a constant; None of any others."""
    first, second = (_factors(node) for node in (a, b))
    if not first or first.keys() != second.keys():
        return None
    found = [first[key] / second[key] for key in first]
    return None if max(found) - min(found) > ROUNDING else found[0]


def _factors(node: Expression) -> dict[str, float]:
    found = ((key, factor) for key, (factor, _) in _proportions(node).items())
    return {key: factor for key, factor in found if abs(factor) > ROUNDING}


def _proportions(node: Expression) -> dict[str, tuple[float, Bounds]]:
    """A number as a sum of parts: the factor of each, and its bounds; a constant is the part `1`."""
    if (value := _constant(node)) is not None:
        return {"1": (value, (1.0, 1.0))}
    if node.op == "neg":
        return _times(_proportions(node.args[0]), -1.0)
    if node.op in ("+", "-"):
        found = _proportions(node.args[0])
        for key, (factor, part) in _times(
            _proportions(node.args[1]), 1.0 if node.op == "+" else -1.0
        ).items():
            found[key] = (found[key][0] + factor if key in found else factor, part)
        return found
    if node.op in ("*", "/"):
        left, right = (_constant(arg) for arg in node.args)
        if node.op == "*" and left is not None:
            return _times(_proportions(node.args[1]), left)
        if right is not None and (node.op == "*" or right != 0.0):
            return _times(_proportions(node.args[0]), right if node.op == "*" else 1.0 / right)
    return {canonical_text(node): (1.0, bounds(node))}


def _times(parts: dict[str, tuple[float, Bounds]], by: float) -> dict[str, tuple[float, Bounds]]:
    return {key: (factor * by, part) for key, (factor, part) in parts.items()}


def _scale(part: Bounds, by: float) -> Bounds:
    low, high = part[0] * by, part[1] * by
    return (low, high) if by > 0 else (high, low)


def _of_crossing(node: Expression) -> Possible:
    now, before = (">", "<=") if node.op == "crosses_above" else ("<", ">=")
    fixed = all(_constant(arg) is not None for arg in node.args)
    sides = _of_comparison(now, *node.args).true and _of_comparison(before, *node.args).true
    return Possible(sides and not fixed, True)


def _contradict(conditions: Sequence[Expression]) -> bool:
    """Whether the comparisons among these conditions leave no value to some expression."""
    ranges: dict[str, _Range] = {}
    for condition in conditions:
        for key, op, value in _constraints(condition, holds=True):
            ranges.setdefault(key, _Range()).narrow(op, value)
    return any(found.empty for found in ranges.values())


def _constraints(node: Expression, holds: bool) -> Iterator[tuple[str, str, float]]:
    """(expression, comparison, constant) that follow from a condition being true, or from its being false."""
    if node.op == "not":
        yield from _constraints(node.args[0], not holds)
    elif (node.op, holds) in (("and", True), ("or", False)):
        for arg in node.args:
            yield from _constraints(arg, holds)
    elif node.op == "between" and holds:
        x, low, high = node.args
        yield from _constraint(x, ">=", low)
        yield from _constraint(x, "<=", high)
    elif node.op in _OPPOSITE:
        yield from _constraint(node.args[0], node.op if holds else _OPPOSITE[node.op], node.args[1])
    elif (node.op, holds) in (("==", True), ("!=", False)):
        yield from _constraint(node.args[0], "==", node.args[1])
    elif node.op in _CROSSED and holds:
        yield from _constraint(node.args[0], _CROSSED[node.op], node.args[1])


def _constraint(a: Expression, op: str, b: Expression) -> Iterator[tuple[str, str, float]]:
    left, right = _constant(a), _constant(b)
    if left is None and right is not None:
        yield canonical_text(a), op, right
    elif left is not None and right is None:
        yield canonical_text(b), _MIRROR[op], left
    elif left is None and right is None:
        first, second = canonical_text(a), canonical_text(b)
        if first <= second:
            yield f"{first} - ({second})", op, 0.0
        else:
            yield f"{second} - ({first})", _MIRROR[op], 0.0


def _constant(node: Expression) -> float | None:
    if any(part.op == "feature" for part in node.walk()):
        return None
    low, high = bounds(node)
    return low if low == high else None


def _absolute(part: Bounds) -> Bounds:
    low, high = part
    if low <= 0.0 <= high:
        return 0.0, max(-low, high)
    return min(abs(low), abs(high)), max(abs(low), abs(high))


def _corners(a: Bounds, b: Bounds, operation: Callable[[float, float], float]) -> Bounds:
    values = [operation(x, y) for x in a for y in b]
    known = [0.0 if math.isnan(value) else value for value in values]  # 0 * inf: the bound is not attained
    return min(known), max(known)


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    if b[0] <= 0.0 <= b[1]:
        return ANY
    return _corners(a, b, lambda x, y: x / y)


_ARITHMETIC: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": lambda a, b: _corners(a, b, lambda x, y: x * y),
    "/": _quotient,
}
