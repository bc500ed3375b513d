"""Cached columns of rules over one bar series: evaluated once per symbol, scattered to the full axis.

Called by the kernel's set-up, by `simulate` and by the linter. A column at a bar is final: later bars never
change it.
"""

from schemas.errors import RuleError
from trading_core.bars import BarSeries
from trading_core.features.columns import FeatureColumns
from trading_core.rules.evaluate import Column, FloatArray, TruthArray, evaluate_for_symbol, unknown_column
from trading_core.rules.grammar import Rule, parse
from trading_core.rules.tree import Kind


class RuleColumns:
    """Rules by canonical text and symbol; features come from one shared cache.

    Attributes:
        bars: the series.
        features: feature columns, shared with whoever else reads them.
    """

    def __init__(self, bars: BarSeries, features: FeatureColumns | None = None) -> None:
        self.bars = bars
        self.features = features or FeatureColumns(bars)
        self._columns: dict[tuple[str, int], Column] = {}

    def boolean(self, text: str, s: int) -> TruthArray:
        """A condition of symbol s: int8 (T,), 1 true, 0 false, -1 unknown or absent. Shared: only read it.

        Raises:
            RuleError: the text is no rule, or a number.
        """
        return self._column(self._parse(text, "boolean"), s)

    def number(self, text: str, s: int) -> FloatArray:
        """A level of symbol s: float64 (T,), NaN where unknown or absent. Shared: only read it.

        Raises:
            RuleError: the text is no rule, or a condition.
        """
        return self._column(self._parse(text, "number"), s)

    def own(self, rule: Rule, s: int) -> Column:
        """The rule on symbol s's present bars only."""
        self.features.load(sorted(rule.features), [s])
        columns = {name: self.features.own(name, s) for name in sorted(rule.features)}
        return evaluate_for_symbol(rule, columns, self.features.rows(s).size)

    def _parse(self, text: str, kind: Kind) -> Rule:
        rule = parse(text)
        if rule.kind != kind:
            raise RuleError(f"rule {text!r} is a {rule.kind}, but a {kind} is needed here")
        return rule

    def _column(self, rule: Rule, s: int) -> Column:
        key = (rule.text, s)
        if key not in self._columns:
            full = unknown_column(rule, self.bars.shape[0])
            full[self.features.rows(s)] = self.own(rule, s)
            self._columns[key] = full
        return self._columns[key]
