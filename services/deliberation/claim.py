"""A claim that a text makes, in the form in which it is held against a run."""

from dataclasses import dataclass, field
from typing import Any

from schemas.fact_check import ClaimKind
from services.deliberation.numerals import Portion
from services.evidence.facts import Subject
from services.text.claims import Span

NAMING = frozenset({"name", "day", "period"})  # said of these: no more than that it is


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        kind: of the claim.
        start: first character in the text.
        end: behind the last one.
        sentence: that makes it.
        subjects: whom it may be of, the likeliest first.
        confidence: how surely the words name subject and question, 0 to 1.
        said: what kind of thing is said, for the check: figure, interval, portion, members, direction,
            comparison, extreme, grade, name, day.
        questions: of the catalogue, any of which may answer; none where the words name no measure.
        value: a figure, two edges, an outcome, a grade, a name or the ns of a day.
        relation: "=", "<", ">" for figures and comparisons.
        other: what a comparison compares with.
        negated: whether the sentence denies it.
        portion: how much of a whole.
        filters: which of the subject's trades are that part.
        domain: field of the members that are compared with each other.
        every: subjects of which each must be so, in place of `subjects`.
        alone: whether it is so of no other member of the domain.
    """

    kind: ClaimKind
    start: int
    end: int
    sentence: Span
    subjects: tuple[Subject, ...]
    confidence: float
    said: str
    questions: tuple[str, ...] = ()
    value: Any = None
    relation: str = "="
    other: Subject | None = None
    negated: bool = False
    portion: Portion | None = None
    filters: Subject = field(default_factory=Subject)
    domain: str = ""
    every: tuple[Subject, ...] = ()
    alone: str = ""
