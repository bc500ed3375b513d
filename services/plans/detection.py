"""Does a text ask for high stakes, so that a plan has to be approved before anything happens?

Each pattern that the text has adds its weight once; the sum, at most 1, is held against the threshold of the
run. A match that its clause denies adds nothing. This decides how a request is handled, never what it may do:
a typed action takes two phases whatever its words.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from schemas.contract import Contract
from schemas.settings import PlansSettings

Category = Literal["high_stakes", "complex", "plan_request", "context"]
WEIGHTS: dict[Category, float] = {
    "high_stakes": 0.4,
    "complex": 0.3,
    "plan_request": 0.5,
    "context": 0.2,
}
LAST_PLAN = "last plan stale, failed or expired"  # of the category `context`


@dataclass(frozen=True)
class Pattern:
    """Beginnings of words that stand for one thing."""

    name: str
    category: Category
    expression: re.Pattern[str]


def _pattern(category: Category, name: str, *phrases: str) -> Pattern:
    between = r"[\W_]+(?:(?:the|our|my)[\W_]+)?"
    forms = "|".join(between.join(phrase.split()) for phrase in phrases)
    return Pattern(name, category, re.compile(rf"(?<![a-z0-9])(?:{forms})"))


# The seed's patterns with its weights; live mode, risk cap, playbooks and symbols are those of trading.
PATTERNS = (
    _pattern("high_stakes", "production or deploy", "production", "deploy", "critical"),
    _pattern("high_stakes", "refactor or rewrite", "refactor", "rewrit"),
    _pattern("high_stakes", "migrate", "migrat"),
    _pattern(
        "high_stakes", "delete or remove all", "delete database", "drop table", "remove all", "delete all"
    ),
    _pattern("high_stakes", "live mode", "live mode", "go live", "live trading", "real money"),
    _pattern("high_stakes", "risk cap", "risk cap", "risk limit", "loss limit", "leverage"),
    _pattern("high_stakes", "playbook definition", "playbook definition", "playbook rule"),
    _pattern("high_stakes", "eligibility", "eligib", "unban", "lift ban"),
    _pattern("complex", "large change", "multiple files", "large change", "entire codebase", "whole system"),
    _pattern("complex", "all symbols", "all symbols", "every symbol"),
    _pattern("complex", "several playbooks", "several playbooks", "all playbooks", "every playbook"),
    _pattern("plan_request", "show me a plan", "show me a plan"),
    _pattern("plan_request", "step by step plan", "step by step plan"),
    _pattern("plan_request", "what would you do", "what would you do"),
    _pattern("plan_request", "explain your approach", "explain your approach"),
    _pattern("plan_request", "before you start", "before you start"),
)
CLAUSE_END = re.compile(r"[.!?;,]+")
NEGATION = re.compile(r"\b(?:no|not|never|without|cannot|[a-z]+n't)\b")


class PatternMatch(Contract):
    """A pattern that a text has, and what it adds."""

    pattern: str
    category: Category
    weight: float


class TwoPhase(Contract):
    """Whether a text takes two phases, from 0 to 1 how surely, and why."""

    should_use: bool
    confidence: float
    matches: tuple[PatternMatch, ...] = ()
    reason: str


@dataclass(frozen=True)
class DetectionContext:
    """What is known besides the text.

    Attributes:
        live: whether the run trades live.
        last_plan_failed: whether the last plan of the run went stale, failed or expired.
        forced: whether `--two-phase` was given.
        typed: whether the request is a typed action.
    """

    live: bool = False
    last_plan_failed: bool = False
    forced: bool = False
    typed: bool = False


def detect_two_phase(text: str, context: DetectionContext, settings: PlansSettings) -> TwoPhase:
    """What the patterns find in a text; nothing where `auto_detect` is off, unless it is forced or typed."""
    found = _matches(text, context) if settings.auto_detect else ()
    confidence = min(1.0, round(sum(match.weight for match in found), 6))
    least = settings.live_threshold if context.live else settings.threshold
    reached = settings.auto_detect and confidence >= least
    if context.typed:
        reason = "a typed action that changes structure always takes two phases"
    elif context.forced:
        reason = "two phases were asked for"
    elif not settings.auto_detect:
        reason = "plans.auto_detect is off"
    else:
        names = ", ".join(match.pattern for match in found) or "no sign of high stakes"
        reason = f"confidence {confidence:.2f} {'reaches' if reached else 'is below'} {least:.2f}: {names}"
    should_use = reached or context.forced or context.typed
    return TwoPhase(should_use=should_use, confidence=confidence, matches=found, reason=reason)


def _matches(text: str, context: DetectionContext) -> tuple[PatternMatch, ...]:
    clauses = CLAUSE_END.split(unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    found = [(pattern.name, pattern.category) for pattern in PATTERNS if _has(pattern, clauses)]
    if context.last_plan_failed:
        found.append((LAST_PLAN, "context"))
    return tuple(
        PatternMatch(pattern=name, category=category, weight=WEIGHTS[category]) for name, category in found
    )


def _has(pattern: Pattern, clauses: Sequence[str]) -> bool:
    for clause in clauses:
        found = pattern.expression.search(clause)
        if found is not None and NEGATION.search(clause, 0, found.start()) is None:
            return True
    return False
