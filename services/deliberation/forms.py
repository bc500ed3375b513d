"""The closed replies of the models that look at texts, one form a prompt.

A model's thoughts are a field of their own: they are kept beside the text and never part of it. Of a critique
in prose the label counts, PASS or NEEDS CORRECTION, and a confidence; other words are not read. Where both
labels stand, or neither, it says nothing: the text that it is of stays as it is.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
)

from schemas.claims import MOST_TOPIC, Claim, Section
from schemas.reasons import MOST_REASONS, PlanReason
from services.model_calls.reply_format import ClosedReply, DecisionField, ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply, strip_fence, strip_thoughts

Verdict = Literal["PASS", "NEEDS CORRECTION", "UNKNOWN"]
LABEL = re.compile(r"\b(?:PASS|NEEDS[ _-]CORRECTION)\b")  # as the form has them, in capitals
CONFIDENCE = re.compile(r"\bconfidence\b\D{0,12}?(-?\d+(?:\.\d+)?)\s*(%|/\s*100\b)?", re.I)
UNSAID = 0.5
FEWEST_PERCENT = 2.0  # a confidence without its unit is a percentage from here on; less is out of bounds
LONGEST = 600


@dataclass(frozen=True)
class Assessment:
    """A critique as it was read; `confidence` is between 0 and 1 whatever was written."""

    verdict: Verdict
    confidence: float
    explanation: str | None


def clamp_share(value: float) -> float:
    """A share between 0 and 1; what is no number is none."""
    return min(1.0, max(0.0, value)) if value == value else 0.0


def parse_assessment(text: str) -> Assessment:
    """What the label in a critique says that is no closed reply; unknown where both stand, or neither."""
    plain = text.encode("utf-8", "replace").decode()  # no contract takes half a surrogate pair
    plain = strip_fence(strip_thoughts(plain))
    labels = {"PASS" if label == "PASS" else "NEEDS CORRECTION" for label in LABEL.findall(plain)}
    verdict: Verdict = "UNKNOWN"
    if len(labels) == 1:
        verdict = "PASS" if "PASS" in labels else "NEEDS CORRECTION"
    explanation = plain.strip()[:LONGEST]
    return Assessment(verdict, _confidence(plain), None if verdict == "PASS" else explanation)


def _confidence(text: str) -> float:
    found = CONFIDENCE.search(text)
    if found is None:
        return UNSAID
    value = float(found[1])
    return clamp_share(value / 100.0 if found[2] or value >= FEWEST_PERCENT else value)


MOST_CHARACTERS = 51_200
CRITIQUE, CORRECTION, QUALITY, IMPROVEMENT = (
    "text_critique",
    "text_correction",
    "text_quality",
    "text_improvement",
)
REASONS = "text_reasons"
REVIEW, OUTLINE, SECTION = "text_review", "text_outline", "text_section"
EXTRACTION = "text_claims"
QUALITY_REWRITE, REVIEW_REWRITE = "text_quality_rewrite", "text_review_rewrite"
REWRITES = {QUALITY: QUALITY_REWRITE, REVIEW: REVIEW_REWRITE}
CRITICS = frozenset({CRITIQUE, *REWRITES, *REWRITES.values()})
Reply = TypeVar("Reply", bound=BaseModel)

Line = Annotated[str, StringConstraints(min_length=1, max_length=600)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=MOST_TOPIC)]


Thoughts = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
MOST_SECTIONS = 12


def _within(value: Any, most: float) -> Any:
    """A number brought to the nearest bound; what is none is refused by the type.

    Raises:
        ValueError: it is not finite.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    return float(min(most, max(0.0, value)))


# A score that is out of its bounds is brought to the nearest of them.
Percent = Annotated[float, BeforeValidator(lambda value: _within(value, 100.0))]
Share = Annotated[float, BeforeValidator(lambda value: _within(value, 1.0))]
OF_ISSUES = DecisionField(("issues", "missing_elements"))
Written = Annotated[tuple[Section, ...], DecisionField(("reasoning",))]


class CritiqueReply(ClosedReply):
    """PASS or NEEDS CORRECTION."""

    explanation: Annotated[str, StringConstraints(max_length=600)]
    assessment: Annotated[Literal["PASS", "NEEDS CORRECTION"], DecisionField(("explanation",))]
    confidence: Annotated[Share, DecisionField(("explanation",))]


class CorrectionReply(ClosedReply):
    """The corrected sections."""

    sections: tuple[Section, ...] = Field(max_length=MOST_SECTIONS)


class ReasonsReply(ClosedReply):
    """The corrected reasons of a plan."""

    because: tuple[PlanReason, ...] = Field(min_length=1, max_length=MOST_REASONS)
    comment: Annotated[str, StringConstraints(max_length=1_000)] | None = None


class QualityReply(ClosedReply):
    """Four scores in percent, and what is missing."""

    issues: tuple[Line, ...] = Field(max_length=20)
    missing_elements: tuple[Line, ...] = Field(max_length=20)
    suggestions: tuple[Line, ...] = Field(max_length=20)
    completeness: Annotated[Percent, OF_ISSUES]
    accuracy: Annotated[Percent, OF_ISSUES]
    actionability: Annotated[Percent, OF_ISSUES]
    confidence: Annotated[Percent, OF_ISSUES]


class ImprovementReply(ClosedReply):
    """How its writer came to the better text, and its sections."""

    reasoning: Thoughts
    sections: Written = Field(max_length=MOST_SECTIONS)


class ReviewReply(ClosedReply):
    """One score, and why."""

    critique: Annotated[str, StringConstraints(max_length=1_200)]
    improvements: tuple[Line, ...] = Field(max_length=20)
    score: Annotated[Share, DecisionField(("critique", "improvements"))]


class _Rewrite(ClosedReply):
    """What was thought, and the text written again; no sections where it scores enough."""

    reasoning: Thoughts
    sections: Written = Field(max_length=MOST_SECTIONS)


class QualityRewriteReply(_Rewrite, QualityReply):
    """Four scores in percent, and the text written again where they are too low."""


class ReviewRewriteReply(_Rewrite, ReviewReply):
    """One score, and the text written again where it is too low."""


class OutlineReply(ClosedReply):
    """Labels of the sections, in order."""

    chunks: tuple[Label, ...] = Field(min_length=1, max_length=10)


class SectionReply(ClosedReply):
    """What was thought before one section was written, its claims, and words that nobody checks."""

    reasoning: Thoughts
    claims: Annotated[tuple[Claim, ...], DecisionField(("reasoning",))] = Field(max_length=40)
    comment: str | None


class QuotedClaim(ClosedReply):
    """One claim, and the words of the text that make it."""

    quote: Annotated[str, StringConstraints(min_length=1, max_length=600)]
    claim: Annotated[Claim, DecisionField(("quote",))]


class ExtractionReply(ClosedReply):
    """The claims of a text."""

    claims: tuple[QuotedClaim, ...] = Field(max_length=60)


CONTRACTS: Mapping[str, type[BaseModel]] = {
    CRITIQUE: CritiqueReply,
    CORRECTION: CorrectionReply,
    REASONS: ReasonsReply,
    QUALITY: QualityReply,
    IMPROVEMENT: ImprovementReply,
    QUALITY_REWRITE: QualityRewriteReply,
    REVIEW: ReviewReply,
    REVIEW_REWRITE: ReviewRewriteReply,
    OUTLINE: OutlineReply,
    SECTION: SectionReply,
    EXTRACTION: ExtractionReply,
}
LONGEST_REPLY = 2 * MOST_CHARACTERS + 2_000


def read_text_reply(text: str, contract: type[Reply]) -> Reply:
    """The closed reply in a model's text.

    Raises:
        MalformedReply: there is none.
    """
    return read_reply(text, TypeAdapter(contract), longest=LONGEST_REPLY)


def read_assessment(text: str) -> Assessment:
    """The assessment in a reply, closed or in words."""
    try:
        reply = read_text_reply(text, CritiqueReply)
    except MalformedReply:
        return parse_assessment(text)
    shown = None if reply.assessment == "PASS" else reply.explanation
    return Assessment(reply.assessment, clamp_share(reply.confidence), shown)


def _reads(name: str) -> Callable[[str], bool]:
    if name == CRITIQUE:
        return lambda text: read_assessment(text).verdict != "UNKNOWN"
    adapter: TypeAdapter[Any] = TypeAdapter(CONTRACTS[name])
    return lambda text: is_read(text, adapter, longest=LONGEST_REPLY)


TEXT_FORMS: Mapping[str, ReplyFormat] = {
    name: ReplyFormat(name, contract, _reads(name)) for name, contract in CONTRACTS.items()
}
