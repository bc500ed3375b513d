"""How texts are looked at again before they are stored: four presets of one loop, and what all share."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from schemas.contract import Contract
from schemas.settings.providers import ModelWord

Words = Annotated[str, StringConstraints(min_length=1, max_length=300)]
MOST_TOKENS = 32_000
CHECKLIST = (
    "accuracy: is the answer factually correct?",
    "completeness: does it fully address what was asked?",
    "clarity: is it clear and easy to understand?",
    "errors: are there obvious errors or inconsistencies?",
    "truncation: is it complete, not cut off?",
)
QUESTIONS = (
    "Is this text satisfactory for what was asked?",
    "Does it fully address all aspects of the question?",
    "Are there any errors, inconsistencies, repetitions, or areas that need improvement?",
    "Is it complete, or was it cut off mid-thought?",
    "Rate it on a scale of 0.0 to 1.0.",
)


class PassSettings(Contract):
    """One critique of a text, and a minimal correction where it is sure enough."""

    enabled: bool = Field(default=True, description="whether a model's rationale is criticised at all")
    critique_tokens: int = Field(
        default=256, ge=16, le=MOST_TOKENS, description="tokens of one critique at most"
    )
    correction_tokens: int = Field(
        default=512, ge=16, le=MOST_TOKENS, description="tokens of one correction at most"
    )
    min_confidence: float = Field(
        default=0.6, ge=0, le=1, description="a critique that is less sure corrects nothing"
    )
    max_iterations: int = Field(
        default=1, ge=1, le=3, description="corrections at most, each after a critique"
    )
    minimum_characters: int = Field(
        default=50, ge=0, le=8_000, description="a shorter text is skipped (`too_short`)"
    )
    checklist: tuple[Words, ...] = Field(
        default=CHECKLIST, min_length=1, max_length=20, description="what a critique goes through"
    )


class QualitySettings(Contract):
    """What a model's text has to hold before it is stored, and how often it is made better."""

    enabled: bool = Field(
        default=True, description="whether a model scores its narrative; facts are checked either way"
    )
    mode: Literal["full", "critique_only"] = Field(
        default="full",
        description="where the first draft comes from: asked for, or given (the rules' text is improved)",
    )
    threshold: float = Field(
        default=80.0, ge=0, le=100, description="a score of the four dimensions, in percent, that is enough"
    )
    adaptive_threshold: bool = Field(
        default=False,
        description="ask 5 less of a text of at most two sentences, 5 more of one with over ten",
    )
    iterations: int = Field(default=2, ge=0, le=3, description="improvements at most")
    rounds: int = Field(
        default=1,
        ge=0,
        le=3,
        description="how often a model is told which of its claims are not so, with what is so, and asked "
        "again; what is left then is dropped",
    )
    critics: int = Field(
        default=1,
        ge=1,
        le=2,
        description="model critics; two argue where they differ, and the stricter holds",
    )
    critique_tokens: int = Field(
        default=1_024, ge=16, le=MOST_TOKENS, description="tokens of one critique at most"
    )
    improvement_tokens: int = Field(
        default=1_500, ge=16, le=MOST_TOKENS, description="tokens of one improved text at most"
    )
    deadline_ms: float = Field(
        default=45_000.0, gt=0, le=3_600_000, description="of all critiques and improvements of one text"
    )


class ReviewSettings(Contract):
    """Passes of review: each scores the text and may have it written again."""

    enabled: bool = Field(default=False, description="whether narratives are reviewed")
    mode: Literal["always", "never", "on_error", "on_incomplete", "on_complex"] = Field(
        default="always",
        description="which texts: all, none, those of an answer that failed, those that are cut off, or "
        "those about more than five clusters or two actions",
    )
    iterations: int = Field(default=3, ge=1, le=3, description="passes at most")
    threshold: float = Field(default=0.7, ge=0, le=1, description="a score that is enough")
    max_regenerations: int = Field(
        default=2, ge=0, le=2, description="times that one pass may have the text written again"
    )
    eval_tokens: int = Field(default=512, ge=16, le=MOST_TOKENS, description="tokens of one review at most")
    questions: tuple[Words, ...] = Field(
        default=QUESTIONS, min_length=1, max_length=20, description="what a review answers"
    )


class ChunkedSettings(Contract):
    """A long text, written section by section from an outline."""

    enabled: bool = Field(default=False, description="whether long narratives are written in sections")
    max_chunks: int = Field(default=5, ge=1, le=10, description="sections at most")
    tokens_per_chunk: int = Field(
        default=1_024, ge=64, le=MOST_TOKENS, description="tokens of one section at most"
    )
    auto_threshold: int = Field(
        default=2_048,
        ge=1,
        le=MOST_TOKENS,
        description="requested tokens of a text from which on it is written in sections",
    )
    auto_outline: bool = Field(
        default=True,
        description="the model says how many sections (3 up to `max_chunks`); false: `max_chunks` of them",
    )
    outline_retries: int = Field(default=2, ge=1, le=3, description="times that an outline is asked for")
    outline_tokens: int = Field(
        default=512, ge=16, le=MOST_TOKENS, description="tokens of one outline at most"
    )
    strategy: Literal["per_chunk", "final_only", "both"] = Field(
        default="final_only", description="what is reviewed where review is on, too: each section, the whole"
    )
    at_once: bool = Field(
        default=True,
        description="sections are asked for at once, each from the outline alone, unless each is reviewed; "
        "false: one after the other, each told what stands before it",
    )
    retry: bool = Field(default=True, description="write a long text in sections where its review failed")


class DeliberationSettings(Contract):
    """How texts are looked at again before they are stored."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    reflection_pass: PassSettings = Field(default=PassSettings(), alias="pass")
    quality: QualitySettings = QualitySettings()
    review: ReviewSettings = ReviewSettings()
    chunked: ChunkedSettings = ChunkedSettings()
    narrative_tokens: int = Field(
        default=1_500, ge=64, le=MOST_TOKENS, description="tokens of a report's narrative at most"
    )
    one_reply: bool = Field(
        default=True,
        description="write a text that scores too low again in the reply that scores it, where one model "
        "criticises and writes and no two critics argue; false: in a reply of its own",
    )
    critique_temperature: float = Field(
        default=0.2,
        ge=0,
        le=2,
        description="of critiques and reviews, also of those that bring the better text, where the API takes "
        "one; elsewhere it is recorded as not sent",
    )
    writing_temperature: float = Field(
        default=0.4, ge=0, le=2, description="of corrections, improvements, outlines and sections; likewise"
    )
    critique_model: ModelWord | None = Field(
        default=None,
        description="model that criticises texts, named as `llm.model` is; None: the one that wrote them",
    )

    def rewrites_by(self, writer: str) -> bool:
        """Whether a model that writes texts also scores them, in the same reply."""
        return self.one_reply and self.critique_model in (None, writer)
