"""The rule language over features: parse, evaluate as columns, lint."""

from trading_core.rules.grammar import Rule, parse

__all__ = ["Rule", "parse"]
