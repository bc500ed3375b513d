"""The rule language over features: parse, evaluate as columns, lint."""

from trading_core.rules.columns import RuleColumns
from trading_core.rules.evaluate import evaluate_for_symbol
from trading_core.rules.grammar import parse
from trading_core.rules.lint import LintFinding, fire_rate, lint

__all__ = [
    "LintFinding",
    "RuleColumns",
    "evaluate_for_symbol",
    "fire_rate",
    "lint",
    "parse",
]
