"""The closed replies of the models that look at texts, one form a prompt.

A model's thoughts are a field of their own: they are kept beside the text and never part of it. Who answers a
critique in prose is read, too: PASS or NEEDS CORRECTION, with how sure it is. Where a text says both, or
neither, it says nothing: the text that it is of stays as it is.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import MalformedReply, first_problem, is_read, read_reply, strip_fence

Verdict = Literal["PASS", "NEEDS CORRECTION", "UNKNOWN"]
NOT = r"(?:\b(?:not|never|no|nothing|none|cannot|without)|n['’]t)\s+(?:\w+\s+)?"
WANTS = r"(?:needs?[ _-](?:any )?corrections?|corrections? (?:is |are )?(?:needed|required|necessary))"
NEEDS_NONE = re.compile(rf"{NOT}{WANTS}\b", re.I)
FAILS = re.compile(rf"(?:{NOT}|\bfails? to )pass(?:es|ed)?\b", re.I)
NEEDS = re.compile(rf"\b{WANTS}\b", re.I)
PASSES = re.compile(r"\bpass(?:es|ed)?\b", re.I)
CONFIDENCE = re.compile(r"\bconfiden(?:ce|t)\b\D{0,12}?(-?\d+(?:\.\d+)?)\s*(%|percent\b|/\s*100\b)?", re.I)
EXPLANATION = re.compile(r"\b(?:explanation|issues?|reason)\s*[:=-]\s*(.+)", re.I | re.S)
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
    """The assessment in a critique that is no closed reply."""
    plain = strip_fence(text.encode("utf-8", "replace").decode())  # no contract takes half a surrogate pair
    rest = NEEDS_NONE.sub(" ", FAILS.sub(" ", plain))
    needs = bool(FAILS.search(plain) or NEEDS.search(rest))
    passes = bool(NEEDS_NONE.search(plain) or PASSES.search(rest))
    verdict: Verdict = "UNKNOWN"
    if needs != passes:
        verdict = "NEEDS CORRECTION" if needs else "PASS"
    said = EXPLANATION.search(plain)
    explanation = (said[1] if said else plain).strip()[:LONGEST]
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
REVIEW, OUTLINE, SECTION = "text_review", "text_outline", "text_section"
QUALITY_REWRITE, REVIEW_REWRITE = "text_quality_rewrite", "text_review_rewrite"
REWRITES = {QUALITY: QUALITY_REWRITE, REVIEW: REVIEW_REWRITE}
CRITICS = frozenset({CRITIQUE, *REWRITES, *REWRITES.values()})
Reply = TypeVar("Reply", bound=BaseModel)

Line = Annotated[str, StringConstraints(min_length=1, max_length=600)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=100)]
# Commands to a terminal, and marks that turn the direction of writing.
NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _readable(text: str) -> str:
    """A text that somebody can read.

    Raises:
        ValueError: it has no words, or characters that command a terminal or turn its lines.
    """
    if re.search(r"\w", text) is None:
        raise ValueError("no words")
    if NO_TEXT.search(text):
        raise ValueError("control characters")
    return text


Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS), AfterValidator(_readable)]
TextOrNone = Annotated[
    str,
    StringConstraints(max_length=MOST_CHARACTERS),
    AfterValidator(lambda text: _readable(text) if text.strip() else ""),
]


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


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CritiqueReply(_Closed):
    """PASS or NEEDS CORRECTION."""

    assessment: Literal["PASS", "NEEDS CORRECTION"]
    confidence: Share
    explanation: Annotated[str, StringConstraints(max_length=600)]


class CorrectionReply(_Closed):
    """The corrected text."""

    text: Text


class QualityReply(_Closed):
    """Four scores in percent, and what is missing."""

    completeness: Percent
    accuracy: Percent
    actionability: Percent
    confidence: Percent
    issues: tuple[Line, ...] = Field(max_length=20)
    suggestions: tuple[Line, ...] = Field(max_length=20)
    missing_elements: tuple[Line, ...] = Field(max_length=20)


class ImprovementReply(_Closed):
    """The better text, and how its writer came to it."""

    reasoning: Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
    text: Text


class ReviewReply(_Closed):
    """One score, and why."""

    score: Share
    critique: Annotated[str, StringConstraints(max_length=1_200)]
    improvements: tuple[Line, ...] = Field(max_length=20)


class _Rewrite(_Closed):
    """The text written again, and what was thought before; empty where it scores enough."""

    reasoning: Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
    text: TextOrNone


class QualityRewriteReply(_Rewrite, QualityReply):
    """Four scores in percent, and the text written again where they are too low."""


class ReviewRewriteReply(_Rewrite, ReviewReply):
    """One score, and the text written again where it is too low."""


class OutlineReply(_Closed):
    """Labels of the sections, in order."""

    chunks: tuple[Label, ...] = Field(min_length=1, max_length=10)


class SectionReply(_Closed):
    """One section, and what was thought before it was written."""

    reasoning: Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
    text: Text


CONTRACTS: Mapping[str, type[BaseModel]] = {
    CRITIQUE: CritiqueReply,
    CORRECTION: CorrectionReply,
    QUALITY: QualityReply,
    IMPROVEMENT: ImprovementReply,
    QUALITY_REWRITE: QualityRewriteReply,
    REVIEW: ReviewReply,
    REVIEW_REWRITE: ReviewRewriteReply,
    OUTLINE: OutlineReply,
    SECTION: SectionReply,
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
    told = None if reply.assessment == "PASS" else reply.explanation
    return Assessment(reply.assessment, clamp_share(reply.confidence), told)


def read_corrected(text: str) -> str:
    """The text of a correction: of the closed reply, or of the one code fence around it.

    Raises:
        MalformedReply: there is neither.
    """
    try:
        return read_text_reply(text, CorrectionReply).text
    except MalformedReply:
        inside = strip_fence(text)
        if inside == text or inside.lstrip().startswith(("{", "[")):
            raise
        return _check_fenced(inside.strip())


def _check_fenced(inside: str) -> str:
    """The text of a fence, held to what the closed replies hold theirs to.

    Raises:
        MalformedReply: it is none.
    """
    try:
        return CorrectionReply(text=inside).text
    except ValidationError as error:
        raise MalformedReply(first_problem(error)) from error


def _reads(name: str) -> Callable[[str], bool]:
    if name == CRITIQUE:
        return lambda text: read_assessment(text).verdict != "UNKNOWN"
    adapter: TypeAdapter[Any] = TypeAdapter(CONTRACTS[name])
    return lambda text: is_read(text, adapter, longest=LONGEST_REPLY)


TEXT_FORMS: Mapping[str, ReplyFormat] = {
    name: ReplyFormat(name, contract, _reads(name)) for name, contract in CONTRACTS.items()
}
