"""Columns of rules over one bar series: each compiled once and kept with the features, extended with them.

A column at a bar is final: later bars never change it.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from trading_core.bars import BarSeries
from trading_core.features.bank import ColumnBank, FloatArray, TruthArray
from trading_core.features.columns import Column, FeatureColumns
from trading_core.features.graph import Place
from trading_core.features.nodes import Node, take_stored
from trading_core.features.registry import resolve
from trading_core.rules.evaluate import node_of
from trading_core.rules.grammar import Rule, parse
from trading_core.rules.tree import Kind, column_parts

MOST_COUNTS = 4_096  # conditions whose past is kept counted


class RuleColumns:
    """Rules by canonical text and symbol; features and finished columns come from one shared store.

    Attributes:
        features: the store, shared with whoever else reads it.
    """

    def __init__(self, bars: BarSeries, features: FeatureColumns | None = None) -> None:
        self.features = features or FeatureColumns(bars)
        self._places: dict[tuple[str, int], Place] = {}
        self._counts: dict[tuple[str, int], tuple[int, int, int]] = {}  # up to which row, fires, known

    @property
    def bars(self) -> BarSeries:
        """The series as last followed."""
        return self.features.bars

    @property
    def bank(self) -> ColumnBank:
        """The tables behind `place`: the kernel reads them by index, without a copy.

        Read them anew after every `extend` and every rule that is new: they may have moved.
        """
        return self.features.bank

    def extend(self, bars: BarSeries | None = None) -> None:
        """Follow the series to its new rows, see `FeatureColumns.extend`."""
        self.features.extend(bars)

    def boolean(self, text: str, s: int) -> TruthArray:
        """A condition of symbol s: int8 (T,), 1 true, 0 false, -1 unknown or absent. Shared: only read it.

        Raises:
            RuleError: the text is no rule, or a number.
        """
        return self._column(rule_of_kind(text, "boolean"), s)

    def number(self, text: str, s: int) -> FloatArray:
        """A level of symbol s: float64 (T,), NaN where unknown or absent. Shared: only read it.

        Raises:
            RuleError: the text is no rule, or a condition.
        """
        return self._column(rule_of_kind(text, "number"), s)

    def load(self, texts: Iterable[str]) -> None:
        """Make the columns of rules of either kind, those of one symbol in one pass: rules share their parts.

        Of a rule that reads an open position, the columns of its other parts.

        Raises:
            RuleError: a text is no rule.
        """
        rules = [parse(part) for text in texts for part in column_parts(parse(text).tree)]
        for s, places in enumerate(self.features.store_everywhere([_choose_node(rule) for rule in rules])):
            self._places.update({(rule.text, s): place for rule, place in zip(rules, places, strict=True)})

    def place(self, text: str, s: int) -> Place:
        """Where the column of a rule of either kind stands in `bank`; computed on first use.

        Raises:
            RuleError: the text is no rule.
        """
        return self._place(parse(text), s)

    def window(self, text: str, s: int, start: int, stop: int) -> Column:
        """Rows start..stop of a rule, equal to those of its column, which is not made.

        For a rule written at run time: its features are kept, the rule itself is computed from its own
        lookback before `start`.

        Raises:
            RuleError: the text is no rule.
            IndexError: the rows are not among those of the series.
        """
        if not 0 <= start <= stop <= self.features.length:
            raise IndexError(f"rows {start}..{stop} of a series of {self.features.length}")
        rule = parse(text)
        self.features.load(sorted(rule.features), [s])
        node = node_of(rule.tree, take_stored)
        return self.features.window(node, rule.kind == "boolean", rule.tree.shift, s, start, stop)

    def counts(self, text: str, s: int, upto: int) -> tuple[int, int]:
        """In how many rows before `upto` a condition of symbol s was true, and in how many it was known.

        Counted on from where the last reader stopped, over its column where there is one: what a strategist
        writes makes no column until it is frozen.

        Raises:
            RuleError: the text is no rule, or a number.
        """
        rule = rule_of_kind(text, "boolean")
        start, fires, known = self._counts.get((rule.text, s), (0, 0, 0))
        if start > upto:
            start, fires, known = 0, 0, 0
        if (rule.text, s) in self._places:
            gone = start < self.bank.first
            column = self._column(rule, s) if gone else self.bank.column(self._place(rule, s), upto)
            rows = column[start:upto]
        else:
            rows = self.window(text, s, start, upto)
        fires, known = fires + int(np.count_nonzero(rows == 1)), known + int(np.count_nonzero(rows >= 0))
        if len(self._counts) >= MOST_COUNTS + len(self._places) and (rule.text, s) not in self._counts:
            self._counts.clear()
        self._counts[rule.text, s] = start + len(rows), fires, known
        return fires, known

    def count_on(self, upto: int) -> None:
        """Count on, up to a row, what is counted and has a column: the rows before it are about to go."""
        for (text, s), (row, _, _) in tuple(self._counts.items()):
            if (text, s) in self._places and self.bank.first <= row < upto:
                self.counts(text, s, upto)

    def own(self, rule: Rule, s: int) -> Column:
        """The rule on symbol s's present bars only."""
        full, rows = self._column(rule, s), self.features.rows(s)
        return full if rows.size == full.size else full[rows]

    def _place(self, rule: Rule, s: int) -> Place:
        key = (rule.text, s)
        if key not in self._places:
            (self._places[key],) = self.features.store([_choose_node(rule)], s)
        return self._places[key]

    def _column(self, rule: Rule, s: int) -> Column:
        whole = self.features.whole(s)
        is_own = whole is self.features
        place = self._place(rule, s) if is_own else whole.store([_choose_node(rule)], s)[0]
        return whole.bank.column(place, whole.length)


class SharedColumns:
    """The columns of a bar series as they stand; they grow with it, and older rows may be gone."""

    def __init__(self, columns: RuleColumns) -> None:
        self._columns = columns

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        """Boolean columns (K, R)."""
        return self._columns.bank.truths

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """Price columns (K, R)."""
        return self._columns.bank.numbers

    def truth(self, key: tuple[str, int], column: npt.NDArray[np.int8]) -> int:
        """Index of the boolean column of a rule text and symbol; the column is there already."""
        return self._columns.place(*key).index

    def number(self, key: tuple[str, int], column: npt.NDArray[np.float64]) -> int:
        """Index of the price column of a rule text and symbol; the column is there already."""
        return self._columns.place(*key).index

    def copy(self) -> "SharedColumns":
        """Itself: a column never changes."""
        return self


def _feature(name: str) -> Node:
    return resolve(name).node


def _choose_node(rule: Rule) -> tuple[Node, bool]:
    return node_of(rule.tree, _feature), rule.kind == "boolean"


def rule_of_kind(text: str, kind: Kind) -> Rule:
    """The rule that a text says.

    Raises:
        RuleError: the text is no rule, or one of the other kind.
    """
    rule = parse(text)
    if rule.kind != kind:
        raise RuleError(f"rule {text!r} is a {rule.kind}, but a {kind} is needed here")
    return rule
