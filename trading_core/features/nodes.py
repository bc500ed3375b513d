"""Nodes: features and rules are small graphs of operations over the raw columns of one symbol's own bars.

A node is a value: two that share a part share the node, and a program computes it once. A condition is a
number too: 1 true, 0 false, NaN unknown. This module knows what each operation means and how long it stays
unknown; the arithmetic itself is in `recurrences`.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

RANK_WINDOW = 252
RANK_MINIMUM = 60


class Op(IntEnum):
    """Operations of `recurrences.run`; the numbers are the operation codes."""

    RAW = 0
    ADD = 1
    SUBTRACT = 2
    MULTIPLY = 3
    DIVIDE = 4
    SCALE = 5
    ABSOLUTE = 6
    POSITIVE = 7
    DOMINANT = 8
    LOG = 9
    LAG = 10
    MEAN = 11
    STDEV = 12
    EMA = 13
    WILDER = 14
    WILDER_SUM = 15
    TRUE_RANGE = 16
    EXTREME = 17
    RANK = 18
    STORED = 19
    CONSTANT = 20
    MINIMUM = 21
    MAXIMUM = 22
    GREATER = 23
    AT_LEAST = 24
    EQUAL = 25
    NOT = 26
    AND = 27
    OR = 28
    CROSS = 29
    SHIFT = 30
    SO_FAR = 31
    LAST_OF_PREVIOUS = 32
    PUBLISH = 33
    HOLD = 34
    MEAN_DEVIATION = 35
    WEIGHTED_MEAN = 36
    RECENCY = 37
    ADAPTIVE_MEAN = 38
    STREAK = 39
    TOTAL = 40


class RunningOp(IntEnum):
    """What SO_FAR says of the values of a group up to the current bar; the numbers are its codes."""

    FIRST = 0
    HIGHEST = 1
    LOWEST = 2
    TOTAL = 3
    COUNT = 4


LEAVES = frozenset({Op.RAW, Op.STORED})
WINDOWED = frozenset({
    Op.LAG, Op.MEAN, Op.STDEV, Op.EXTREME, Op.RANK, Op.SHIFT, Op.MEAN_DEVIATION, Op.WEIGHTED_MEAN,
    Op.RECENCY,
})  # fmt: skip
SCANNING = frozenset({Op.STDEV, Op.RANK, Op.MEAN_DEVIATION, Op.WEIGHTED_MEAN})
"""Operations that read their whole window at every bar: their columns are kept, not computed again."""
_STATELESS = frozenset({
    *LEAVES, Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.SCALE, Op.ABSOLUTE, Op.POSITIVE, Op.DOMINANT,
    Op.LOG, Op.CONSTANT, Op.MINIMUM, Op.MAXIMUM, Op.GREATER, Op.AT_LEAST, Op.EQUAL, Op.NOT, Op.AND, Op.OR,
})  # fmt: skip


@dataclass(frozen=True)
class Node:
    """One operation on up to three inputs.

    Attributes:
        op: what is done.
        inputs: nodes read, at most three.
        length: window or smoothing length in own bars; LAG and SHIFT: how many back.
        second: EMA: known values skipped before the seed; EXTREME: 1 leaves the current bar out; RANK: the
            fewest values that have a rank; SO_FAR: one of `RunningOp`.
        scale: SCALE and RANK: the factor; EXTREME, RECENCY: +1 highest, -1 lowest; CONSTANT: the value.
        column: RAW: the column's name; STORED: whatever name the caller knows a finished column by.
    """

    op: Op
    inputs: tuple["Node", ...] = ()
    length: int = 0
    second: int = 0
    scale: float = 1.0
    column: str = ""

    @property
    def lookback(self) -> int:
        """Own bars before the first bar on which the value can be known."""
        return self._own_lookback() + max((node.lookback for node in self.inputs), default=0)

    @property
    def state_size(self) -> int:
        """float64 cells of saved state: a header of four, and the window when there is one."""
        if self.op in _STATELESS:
            return 0
        return 4 + (self.length if self.op in WINDOWED else 0)

    def _own_lookback(self) -> int:
        if self.op in (Op.LAG, Op.SHIFT):
            return self.length
        if self.op is Op.EXTREME:
            return self.length - 1 + self.second
        if self.op is Op.EMA:
            return self.length - 1 + self.second
        if self.op is Op.RANK:
            return self.second - 1
        if self.op in (
            Op.MEAN, Op.STDEV, Op.WILDER, Op.WILDER_SUM, Op.MEAN_DEVIATION, Op.WEIGHTED_MEAN, Op.RECENCY,
        ):  # fmt: skip
            return self.length - 1
        return 1 if self.op in (Op.TRUE_RANGE, Op.CROSS, Op.LAST_OF_PREVIOUS) else 0


def raw(column: str) -> Node:
    """A column of the bars."""
    return Node(Op.RAW, column=column)


OPEN, HIGH, LOW, CLOSE, VOLUME = (raw(name) for name in ("open", "high", "low", "close", "volume"))


def add(a: Node, b: Node) -> Node:
    """Sum a + b."""
    return Node(Op.ADD, (a, b))


def subtract(a: Node, b: Node) -> Node:
    """Difference a - b."""
    return Node(Op.SUBTRACT, (a, b))


def multiply(a: Node, b: Node) -> Node:
    """Product a * b."""
    return Node(Op.MULTIPLY, (a, b))


def divide(a: Node, b: Node) -> Node:
    """Quotient a / b; unknown where b is zero."""
    return Node(Op.DIVIDE, (a, b))


def scale(factor: float, x: Node) -> Node:
    """Constant multiple factor * x."""
    return Node(Op.SCALE, (x,), scale=factor)


def absolute(x: Node) -> Node:
    """|x|."""
    return Node(Op.ABSOLUTE, (x,))


def positive(x: Node) -> Node:
    """Positive part: x where it is above zero, else 0."""
    return Node(Op.POSITIVE, (x,))


def dominant(a: Node, b: Node) -> Node:
    """Larger move: a where it is above zero and above b, else 0 (Wilder's directional movement)."""
    return Node(Op.DOMINANT, (a, b))


def log(x: Node) -> Node:
    """Natural logarithm; unknown at or below zero."""
    return Node(Op.LOG, (x,))


def lag(x: Node, n: int) -> Node:
    """Value of x n own bars ago."""
    return Node(Op.LAG, (x,), length=n)


def change(x: Node, n: int = 1) -> Node:
    """Change of x over n own bars."""
    return subtract(x, lag(x, n))


def mean(x: Node, n: int) -> Node:
    """Simple mean of the last n."""
    return Node(Op.MEAN, (x,), length=n)


def stdev(x: Node, n: int) -> Node:
    """Population standard deviation of the last n."""
    return Node(Op.STDEV, (x,), length=n)


def ema(x: Node, n: int, skip: int = 0) -> Node:
    """Exponential mean with factor 2 / (n + 1), seeded by the simple mean of n values after `skip`."""
    return Node(Op.EMA, (x,), length=n, second=skip)


def wilder(x: Node, n: int) -> Node:
    """Wilder's mean: factor 1 / n, seeded by the simple mean of the first n values."""
    return Node(Op.WILDER, (x,), length=n)


def wilder_sum(x: Node, n: int) -> Node:
    """Wilder's running sum: s - s / n + x, seeded by the sum of the first n - 1 values."""
    return Node(Op.WILDER_SUM, (x,), length=n)


def true_range() -> Node:
    """Largest of high - low and the distances of high and low from the close before."""
    return Node(Op.TRUE_RANGE, (HIGH, LOW, CLOSE))


def atr(n: int) -> Node:
    """Wilder's mean of the true range."""
    return wilder(true_range(), n)


def highest(x: Node, n: int, before: bool) -> Node:
    """Highest of n values: of the n bars before the current one, or of the last n with it."""
    return Node(Op.EXTREME, (x,), length=n, second=int(before), scale=1.0)


def lowest(x: Node, n: int, before: bool) -> Node:
    """Lowest of n values; see `highest`."""
    return Node(Op.EXTREME, (x,), length=n, second=int(before), scale=-1.0)


def rank(x: Node, window: int = RANK_WINDOW, minimum: int = RANK_MINIMUM, factor: float = 1.0) -> Node:
    """Percentile rank in [0, 1] of factor * x among the last `window` known x, unknown before `minimum`.

    (values below + half of the other ties) / (values - 1); values within 1e-9 of each other, relatively, are
    ties, so that rounding never decides a rank.
    """
    return Node(Op.RANK, (x,), length=window, second=minimum, scale=factor)


def take_stored(name: str) -> Node:
    """A finished column that the caller has."""
    return Node(Op.STORED, column=name)


def constant(value: float) -> Node:
    """The same number at every bar."""
    return Node(Op.CONSTANT, scale=value)


def minimum(a: Node, b: Node) -> Node:
    """Smaller of two numbers; unknown when either is."""
    return Node(Op.MINIMUM, (a, b))


def maximum(a: Node, b: Node) -> Node:
    """Larger of two numbers; unknown when either is."""
    return Node(Op.MAXIMUM, (a, b))


def greater(a: Node, b: Node) -> Node:
    """Condition a > b; unknown when either is."""
    return Node(Op.GREATER, (a, b))


def at_least(a: Node, b: Node) -> Node:
    """Condition a >= b; unknown when either is."""
    return Node(Op.AT_LEAST, (a, b))


def equal(a: Node, b: Node) -> Node:
    """Condition a == b; unknown when either is."""
    return Node(Op.EQUAL, (a, b))


def negation(a: Node) -> Node:
    """Kleene's not: unknown stays unknown."""
    return Node(Op.NOT, (a,))


def conjunction(a: Node, b: Node) -> Node:
    """Kleene's and: false when either is false, else unknown when either is."""
    return Node(Op.AND, (a, b))


def disjunction(a: Node, b: Node) -> Node:
    """Kleene's or: true when either is true, else unknown when either is."""
    return Node(Op.OR, (a, b))


def cross(a: Node, b: Node) -> Node:
    """Condition a > b now and a <= b one own bar before."""
    return Node(Op.CROSS, (a, b))


def shift(x: Node, n: int) -> Node:
    """Value of x n own bars ago, counting bars on which x is unknown; `lag` counts the known ones."""
    return Node(Op.SHIFT, (x,), length=n)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operation on other inputs."""
    return replace(node, inputs=inputs)


def above_zero(x: Node) -> Node:
    """Condition x > 0."""
    return greater(x, constant(0.0))


def weighted_mean(x: Node, n: int) -> Node:
    """Mean of the last n with weights 1 for the oldest to n for the newest."""
    return Node(Op.WEIGHTED_MEAN, (x,), length=n)


def mean_deviation(x: Node, n: int) -> Node:
    """Mean absolute distance of the last n from their mean."""
    return Node(Op.MEAN_DEVIATION, (x,), length=n)


def adaptive_mean(x: Node, efficiency: Node) -> Node:
    """Kaufman's mean of x, as fast as the efficiency in [0, 1] lets it be."""
    return Node(Op.ADAPTIVE_MEAN, (x, efficiency))


def recency_of_highest(x: Node, n: int) -> Node:
    """How recent the highest of the last n + 1 is: 1 on this bar, 0 n bars ago; the later of equals."""
    return Node(Op.RECENCY, (x,), length=n + 1, scale=1.0)


def recency_of_lowest(x: Node, n: int) -> Node:
    """How recent the lowest of the last n + 1 is; see `recency_of_highest`."""
    return Node(Op.RECENCY, (x,), length=n + 1, scale=-1.0)


def streak(x: Node) -> Node:
    """How many values in a row, this one included, were above zero."""
    return Node(Op.STREAK, (x,))


def total(x: Node) -> Node:
    """Sum of all values since the first."""
    return Node(Op.TOTAL, (x,))


def first_of(x: Node, key: Node) -> Node:
    """First value of the current group, a run of bars with one key (its whole part)."""
    return Node(Op.SO_FAR, (x, key), second=RunningOp.FIRST)


def highest_of(x: Node, key: Node) -> Node:
    """Highest value of the current group so far."""
    return Node(Op.SO_FAR, (x, key), second=RunningOp.HIGHEST)


def lowest_of(x: Node, key: Node) -> Node:
    """Lowest value of the current group so far."""
    return Node(Op.SO_FAR, (x, key), second=RunningOp.LOWEST)


def total_of(x: Node, key: Node) -> Node:
    """Sum of the values of the current group so far."""
    return Node(Op.SO_FAR, (x, key), second=RunningOp.TOTAL)


def bars_of(key: Node) -> Node:
    """Bars of the current group before this one."""
    return Node(Op.SO_FAR, (key, key), second=RunningOp.COUNT)


def last_of_previous(x: Node, key: Node) -> Node:
    """Last value of the group before the current one."""
    return Node(Op.LAST_OF_PREVIOUS, (x, key))


def publish(x: Node, bucket: Node) -> Node:
    """Last value of each higher bar, on the one bar on which that higher bar is seen first; else unknown."""
    return Node(Op.PUBLISH, (x, bucket))


def hold(x: Node, clock: Node) -> Node:
    """Value of x, known or not, at the last bar on which the clock was known."""
    return Node(Op.HOLD, (x, clock))
