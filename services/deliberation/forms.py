"""The closed replies of the models that look at texts, one form a prompt.

A model's thoughts are a field of their own: they are kept beside the text and never part of it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter

from services.deliberation.assessment import Assessment, clamped, parse_assessment
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply, unfenced

MOST_CHARACTERS = 51_200
CRITIQUE, CORRECTION, QUALITY, IMPROVEMENT = (
    "text_critique",
    "text_correction",
    "text_quality",
    "text_improvement",
)
REVIEW, OUTLINE, SECTION = "text_review", "text_outline", "text_section"
Reply = TypeVar("Reply", bound=BaseModel)

Line = Annotated[str, StringConstraints(min_length=1, max_length=600)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]


def _finite(value: Any) -> Any:
    """A number as it is; what is none is refused by the type.

    Raises:
        ValueError: it is not finite.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


# A score that is out of its bounds is brought to the nearest of them.
Percent = Annotated[float, BeforeValidator(_finite), BeforeValidator(lambda value: _within(value, 100.0))]
Share = Annotated[float, BeforeValidator(_finite), BeforeValidator(lambda value: _within(value, 1.0))]


def _within(value: Any, most: float) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return min(most, max(0.0, float(value))) if is_number else value


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
    REVIEW: ReviewReply,
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
    return Assessment(reply.assessment, clamped(reply.confidence), told)


def read_corrected(text: str) -> str:
    """The text of a correction: of the closed reply, or of the one code fence around it.

    Raises:
        MalformedReply: there is neither.
    """
    try:
        return read_text_reply(text, CorrectionReply).text
    except MalformedReply:
        inside = unfenced(text)
        if inside == text or inside.lstrip().startswith(("{", "[")) or not inside.strip():
            raise
        return inside.strip()


def _reads(name: str) -> Callable[[str], bool]:
    if name == CRITIQUE:
        return lambda text: read_assessment(text).verdict != "UNKNOWN"
    adapter: TypeAdapter[Any] = TypeAdapter(CONTRACTS[name])
    return lambda text: is_read(text, adapter, longest=LONGEST_REPLY)


TEXT_FORMS: Mapping[str, ReplyFormat] = {
    name: ReplyFormat(name, contract, _reads(name)) for name, contract in CONTRACTS.items()
}
