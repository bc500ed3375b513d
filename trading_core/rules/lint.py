"""The linter: what is wrong with a rule before a policy with it may be frozen.

It reads the rule and its past columns only: rows before the one it is given. A text that is no rule for
another reason than an unknown feature is left to whoever parses it; its error says more than a finding could.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from schemas.errors import RuleError
from trading_core.rules.bounds import possible_of
from trading_core.rules.columns import RuleColumns
from trading_core.rules.grammar import Rule, parse

LintCode = Literal["unknown_feature", "tautology", "unreachable", "never_fired", "always_fired"]
MINIMUM_KNOWN = 250


@dataclass(frozen=True)
class FireRate:
    """How often a condition was true among the bars on which it was known."""

    fires: int
    known: int

    @property
    def rate(self) -> float | None:
        """Share of known bars on which it fired; None when it never was known."""
        return self.fires / self.known if self.known else None


@dataclass(frozen=True)
class LintFinding:
    """One finding about the rule of one role; `fires` and `known` when past bars were counted."""

    code: LintCode
    role: str
    message: str
    fires: int | None = None
    known: int | None = None


def lint(rule_texts: Mapping[str, str], columns: RuleColumns, s: int, upto: int) -> tuple[LintFinding, ...]:
    """Findings about the rules of a policy, in the order of the roles given.

    Args:
        rule_texts: role -> text; number rules are checked for unknown features only.
        columns: columns of the bars the policy is for.
        s: symbol index.
        upto: rows before this one are the past.
    """
    found = (_lint_one(role, text, columns, s, upto) for role, text in rule_texts.items())
    return tuple(finding for finding in found if finding is not None)


def fire_rate(text: str, columns: RuleColumns, s: int, upto: int) -> FireRate:
    """Fires and known bars of a condition of symbol s in the rows before `upto`.

    Raises:
        RuleError: the text is no rule, or a number.
    """
    return FireRate(*columns.counts(text, s, upto))


def _lint_one(role: str, text: str, columns: RuleColumns, s: int, upto: int) -> LintFinding | None:
    try:
        rule = parse(text)
        columns.features.check(sorted(rule.features))
    except RuleError as error:
        return LintFinding("unknown_feature", role, str(error)) if "feature" in error.context else None
    if rule.kind == "number" or rule.position:
        return None if rule.kind == "number" else _impossible(role, rule)
    return _impossible(role, rule) or _lint_unfired(role, rule, fire_rate(text, columns, s, upto))


def _impossible(role: str, rule: Rule) -> LintFinding | None:
    can_be = possible_of(rule.text)
    if not can_be.true:
        return LintFinding("unreachable", role, f"{rule.text!r} can never be true")
    if not can_be.false:
        return LintFinding("tautology", role, f"{rule.text!r} is true whatever the market does")
    return None


def _lint_unfired(role: str, rule: Rule, past: FireRate) -> LintFinding | None:
    if past.known < MINIMUM_KNOWN:
        return None
    if past.fires == past.known:
        message = f"{rule.text!r} was true on each of {past.known} known past bars"
        return LintFinding("always_fired", role, message, past.fires, past.known)
    if past.fires == 0:
        message = f"{rule.text!r} was true on none of {past.known} known past bars"
        return LintFinding("never_fired", role, message, past.fires, past.known)
    return None
