"""What became of a text that was looked at again: its candidates, the critiques of each, and what stands.

A model's own score is kept apart from what was verified. Times are measured and stand beside what is hashed.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from schemas.claims import FactCheck
from schemas.contract import Contract, FrozenMap
from schemas.vocabulary import Severity

Author = Literal["given", "model", "rules"]
CritiqueSource = Literal["rule", "tool", "data", "model", "human"]
CritiqueVerdict = Literal["accept", "revise", "reject", "unknown"]
DeliberationStatus = Literal["accepted", "best_effort", "unchanged", "skipped", "blocked", "failed"]
StopReason = Literal[
    "blocker", "budget", "accepted", "low_confidence", "no_gain", "rounds", "no_revision", "model_failed"
]


class CallUsage(Contract):
    """What the calls for a text cost."""

    calls: int = Field(default=0, ge=0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)

    @property
    def tokens(self) -> int:
        """Both ways."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: "CallUsage") -> "CallUsage":
        """Both together."""
        return CallUsage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class TextCandidate(Contract):
    """One version of the text; `parent` is the number of the one that it was made from.

    `source` is the data that the text was rendered from; none of a text that was given.
    """

    number: int = Field(ge=0)
    text: str
    hash: str
    author: Author
    parent: int | None = None
    round: int = Field(default=0, ge=0)
    reasoning: str = Field(default="", description="what a model thought; never part of the text")
    source: tuple[Contract, ...] = ()


class TextFinding(Contract):
    """What a critic found; `said` are the words or the claim that it is of."""

    code: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    severity: Severity
    dimension: str
    message: str
    said: str = ""


class Critique(Contract):
    """One critic's view of one candidate.

    Attributes:
        verdict: `unknown` where a model's critique could not be read.
        scores: by dimension, 0 to 1.
        overall: their mean, or what the critic says; None where it gives none.
        agreed: of a model's: whether the rules came to the same; None where no rule looked.
    """

    critic: str
    source: CritiqueSource
    candidate: int = Field(ge=0)
    verdict: CritiqueVerdict
    scores: FrozenMap[str, float] = Field(default_factory=dict)
    overall: float | None = Field(default=None, ge=0, le=1)
    confidence: float = Field(default=1.0, ge=0, le=1)
    explanation: str = ""
    issues: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    missing_elements: tuple[str, ...] = ()
    findings: tuple[TextFinding, ...] = ()
    agreed: bool | None = None


class DeliberationEvent(Contract):
    """One thing that happened, in order; its kind is that of its journal row."""

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"elapsed_ms"})

    kind: str
    fields: FrozenMap[str, Any] = Field(default_factory=dict)
    elapsed_ms: float = Field(default=0.0, ge=0)


class Deliberation(Contract):
    """How a text was refined, and what stands of it.

    Attributes:
        initial: the text as it was first; empty where no text came.
        final: the text that stands.
        stop_reason: why no further round was made; None where none was begun.
        degraded_from: the rung of the ladder that failed first, with how it failed.
        error: the last failure, in words.
        self_reported_gain: the model's last score less its first one; it decides nothing.
        verified_gain: claims that did not hold at first, less those that do not at the end.
        cleaned: characters that nobody sees and that were taken out of candidates.
        details: what only this preset has.
    """

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"elapsed_ms"})

    preset: str
    status: DeliberationStatus
    skip_reason: str | None = None
    initial: str
    final: str
    candidates: tuple[TextCandidate, ...] = ()
    critiques: tuple[Critique, ...] = ()
    fact_checks: tuple[FactCheck, ...] = ()
    stop_reason: StopReason | None = None
    degraded_from: str | None = None
    error: str | None = None
    self_reported_gain: float | None = None
    verified_gain: int | None = None
    usage: CallUsage = CallUsage()
    cleaned: int = Field(default=0, ge=0)
    events: tuple[DeliberationEvent, ...] = ()
    details: FrozenMap[str, Any] = Field(default_factory=dict)
    elapsed_ms: float = Field(default=0.0, ge=0)

    @property
    def changed(self) -> bool:
        """Whether another text stands than the first."""
        return self.final != self.initial

    @property
    def standing(self) -> TextCandidate | None:
        """The candidate that stands, the newest of equal ones; None where none does."""
        return next((c for c in reversed(self.candidates) if c.text == self.final), None)
