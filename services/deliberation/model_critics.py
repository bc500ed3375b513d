"""Critics that ask a model: alone, arguing, rewriting what they score too low, and with a memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from schemas.deliberation import Critique, CritiqueSource, CritiqueVerdict, TextCandidate
from schemas.settings.deliberation import PassSettings, QualitySettings, ReviewSettings
from services.deliberation.budget import Budget
from services.deliberation.forms import (
    CONTRACTS,
    CRITIQUE,
    IMPROVEMENT,
    QUALITY,
    REVIEW,
    REWRITES,
    QualityReply,
    QualityRewriteReply,
    ReviewReply,
    ReviewRewriteReply,
    Verdict,
    read_assessment,
    read_text_reply,
)
from services.deliberation.policies import Round
from services.deliberation.refine import ClaimWriter, Draft, Task
from services.deliberation.text_models import (
    TextModels,
    describe_critique,
    quote_parts,
    read_as,
)
from services.model_calls.asking import NoReply
from services.model_calls.quoting import quoted_json

DIMENSIONS = ("completeness", "accuracy", "actionability", "confidence")
REVIEWED_TOKENS = 1_500  # of a text that a review has written again
ARGUE_FROM = 0.1  # scores that differ by more are argued about
VERDICT_OF: Mapping[Verdict, CritiqueVerdict] = {
    "PASS": "accept",
    "NEEDS CORRECTION": "revise",
    "UNKNOWN": "unknown",
}
Reader = Callable[[str, Task, TextCandidate], Critique]
Values = Callable[[Sequence[Round], Critique | None], dict[str, str]]


@dataclass
class Rewrites:
    """Texts that came in the reply which scored the one before it; each is taken once.

    Attributes:
        claims: writes them in words; None: nobody writes a text.
        most: texts without a fault that may be written again.
        threshold: the score that is enough, 0 to 1.
    """

    claims: ClaimWriter | None = None
    most: int = 0
    threshold: float = 0.0
    kept: dict[tuple[str, str], Draft] = field(default_factory=dict)

    def has_room(self, rounds: Sequence[Round]) -> bool:
        """Whether the newest text may still be written again."""
        return sum(not seen.failures for seen in rounds) < self.most

    def keep(
        self, task: Task, candidate: TextCandidate, reply: QualityRewriteReply | ReviewRewriteReply
    ) -> None:
        """Keep the text of a reply, if it has one."""
        if any(section.claims for section in reply.sections) and self.claims is not None:
            self.kept[place_of(task, candidate)] = self.claims.draft(
                reply.sections, reasoning=reply.reasoning
            )

    def take(self, task: Task, candidate: TextCandidate) -> Draft | None:
        """What is to stand in the place of a candidate; None where nothing came, or it was taken."""
        return self.kept.pop(place_of(task, candidate), None)


def place_of(task: Task, candidate: TextCandidate) -> tuple[str, str]:
    """One text to one question."""
    return candidate.hash, f"{task.question}\0{task.material}"


@dataclass(frozen=True)
class ModelCritic:
    """A model's view of a candidate, by one prompt.

    Attributes:
        prompt: name of the template.
        values: what else the template holds, by the rounds so far and another's critique.
        read: the critique in a reply; raises `MalformedReply` where there is none.
    """

    models: TextModels
    prompt: str
    max_tokens: int
    values: Values
    read: Reader
    source: ClassVar[CritiqueSource] = "model"

    @property
    def name(self) -> str:
        """As its prompt."""
        return self.prompt

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """The critique, or why there is none."""
        return await self.ask_opponent(task, candidate, rounds, budget, None)

    async def ask_opponent(
        self,
        task: Task,
        candidate: TextCandidate,
        rounds: Sequence[Round],
        budget: Budget,
        other: Critique | None,
    ) -> Critique | NoReply:
        """The critique by one who knows what another critic said."""
        values = quote_parts(task, candidate.text) | self.values(rounds, other)
        reply = await self.models.ask(self.prompt, self.max_tokens, budget, **values)
        return read_as(reply, lambda text: self.read(text, task, candidate))


@dataclass(frozen=True)
class ArguingCritics:
    """Two model critics: the second hears the first, who answers where they differ; the stricter holds."""

    first: ModelCritic
    second: ModelCritic
    name: str = "arguing"
    source: ClassVar[CritiqueSource] = "model"

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """The stricter of both; the other one where only one can be read."""
        opened = await self.first.ask_opponent(task, candidate, rounds, budget, None)
        heard = None if isinstance(opened, NoReply) else opened
        answered = await self.second.ask_opponent(task, candidate, rounds, budget, heard)
        if isinstance(opened, NoReply) or isinstance(answered, NoReply):
            return opened if isinstance(answered, NoReply) else answered
        if abs(_score(opened) - _score(answered)) > ARGUE_FROM:
            again = await self.first.ask_opponent(task, candidate, rounds, budget, answered)
            opened = opened if isinstance(again, NoReply) else again
        return min(opened, answered, key=_score)


def _score(critique: Critique) -> float:
    return -1.0 if critique.overall is None else critique.overall


@dataclass(frozen=True)
class RewritingCritic:
    """A critic whose reply also holds the better text, as long as one is wanted; else it scores alone."""

    plain: ModelCritic
    rewriting: ModelCritic
    rewrites: Rewrites
    source: ClassVar[CritiqueSource] = "model"

    @property
    def name(self) -> str:
        """Of the critic that scores alone."""
        return self.plain.name

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """The critique, or why there is none; the text is kept apart."""
        critic = self.rewriting if self.rewrites.has_room(rounds) else self.plain
        return await critic.critique(task, candidate, rounds, budget)


@dataclass
class CachedCritic:
    """A critic that is asked once about one text to one question; it remembers by content."""

    inner: ModelCritic | ArguingCritics | RewritingCritic
    kept: dict[tuple[str, str], Critique] = field(default_factory=dict)
    hits: int = 0
    source: ClassVar[CritiqueSource] = "model"

    @property
    def name(self) -> str:
        """Of the critic behind it."""
        return self.inner.name

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """As it was said before, or asked now."""
        key = place_of(task, candidate)
        if key in self.kept:
            self.hits += 1
            return self.kept[key].model_copy(update={"candidate": candidate.number})
        reply = await self.inner.critique(task, candidate, rounds, budget)
        if not isinstance(reply, NoReply):
            self.kept[key] = reply
        return reply


def pass_critic(models: TextModels, settings: PassSettings) -> ModelCritic:
    """PASS or NEEDS CORRECTION against a checklist."""

    def read(text: str, task: Task, candidate: TextCandidate) -> Critique:
        reply = read_assessment(text)
        return Critique(
            critic=CRITIQUE,
            source="model",
            candidate=candidate.number,
            verdict=VERDICT_OF[reply.verdict],
            confidence=reply.confidence,
            explanation=reply.explanation or "",
        )

    checklist = {"checklist": quoted_json(list(settings.checklist))}
    return ModelCritic(models, CRITIQUE, settings.critique_tokens, lambda rounds, other: checklist, read)


def quality_critic(
    models: TextModels, settings: QualitySettings, rewrites: Rewrites | None = None
) -> ModelCritic:
    """Four scores in percent, issues, suggestions and what is missing; see `_scoring_critic`."""

    def values(rounds: Sequence[Round], other: Critique | None) -> dict[str, str]:
        known = {"iteration": str(len(rounds))}
        if rewrites is not None:
            return known | {"threshold": f"{100.0 * rewrites.threshold:g}"}
        return known | {"other": quoted_json(None if other is None else describe_critique(other))}

    def critique(quality_reply: QualityReply, candidate: TextCandidate) -> Critique:
        scores = {name: getattr(quality_reply, name) / 100.0 for name in DIMENSIONS}
        return Critique(
            critic=QUALITY,
            source="model",
            candidate=candidate.number,
            verdict="accept",
            scores=scores,
            overall=round(sum(scores.values()) / len(scores), 9),
            issues=quality_reply.issues,
            suggestions=quality_reply.suggestions,
            missing_elements=quality_reply.missing_elements,
        )

    tokens = settings.critique_tokens, settings.improvement_tokens
    return _scoring_critic(models, QUALITY, tokens, values, critique, rewrites)


def review_critic(
    models: TextModels, settings: ReviewSettings, rewrites: Rewrites | None = None
) -> ModelCritic:
    """One score by the review questions; see `_scoring_critic`."""
    known = {"questions": quoted_json(list(settings.questions)), "threshold": f"{settings.threshold:g}"}

    def critique(review_reply: ReviewReply, candidate: TextCandidate) -> Critique:
        return Critique(
            critic=REVIEW,
            source="model",
            candidate=candidate.number,
            verdict="accept",
            overall=review_reply.score,
            explanation=review_reply.critique,
            suggestions=review_reply.improvements,
        )

    tokens = settings.eval_tokens, REVIEWED_TOKENS
    return _scoring_critic(models, REVIEW, tokens, lambda rounds, other: known, critique, rewrites)


def _scoring_critic(
    models: TextModels,
    prompt: str,
    tokens: tuple[int, int],
    values: Values,
    critique: Callable[[Any, TextCandidate], Critique],
    rewrites: Rewrites | None,
) -> ModelCritic:
    """A critic that scores; with `rewrites` its reply also holds the better text where the score is too low.

    `tokens` are those of a critique and of a text.
    """
    name = prompt if rewrites is None else REWRITES[prompt]

    def read(text: str, task: Task, candidate: TextCandidate) -> Critique:
        reply: Any = read_text_reply(text, CONTRACTS[name])
        if rewrites is not None:
            rewrites.keep(task, candidate, reply)
        return critique(reply, candidate)

    return ModelCritic(models, name, tokens[0] if rewrites is None else sum(tokens), values, read)


def scoring_critic(
    make: Callable[[Rewrites | None], ModelCritic], models: TextModels, rewrites: Rewrites
) -> CachedCritic:
    """The critic that `make` gives; it writes too, where a model may and there are facts to write from."""
    plain = make(None)
    if rewrites.claims is None or not models.has(REWRITES[plain.prompt], IMPROVEMENT):
        return CachedCritic(plain)
    return CachedCritic(RewritingCritic(plain, make(rewrites), rewrites))
