"""The quality loop: score a text in four dimensions, improve it until that is enough, and verify its facts.

The first draft is asked for (`full`) or given (`critique_only`). Of all candidates the one in which least
fails stands, whatever a model scores; what still fails then is struck. Where a refinement failed, fewer
iterations are tried, no facts, no improvement, nothing: each level says which failures of the one before lead
to it, and the last is the text as it was, with the error.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.deliberation import Critique, Deliberation
from schemas.settings.deliberation import QualitySettings
from services.claims.sections import keep_comment
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import ClaimText, RuleReviser, claim_critics
from services.deliberation.forms import IMPROVEMENT, QUALITY, QUALITY_REWRITE
from services.deliberation.model_critics import (
    ArguingCritics,
    CachedCritic,
    Rewrites,
    quality_critic,
    rewriting_quality_critic,
)
from services.deliberation.model_revisers import Improver
from services.deliberation.policies import (
    Acceptance,
    Application,
    Round,
    aggregate,
    best_verified,
    brings_nothing_new,
)
from services.deliberation.refine import (
    FACTS_FAILED,
    Critic,
    Draft,
    Generator,
    Policies,
    Reviser,
    Task,
    Trace,
    refine,
    sections_of,
)
from services.deliberation.text_models import MALFORMED, TextModels, with_comments_alone
from services.model_calls.asking import NoReply
from services.model_calls.quoting import visible

FULL, FEWER, NO_FACTS = "full", "fewer_iterations", "no_fact_check"
CRITIQUE_ONLY, ORIGINAL = "critique_without_improvement", "original"
OUT_OF_CALLS = frozenset({"budget", "breaker"})
SLOW = frozenset({"timeout", "budget_spent"})
NAME = "quality"
LOWERED = 0.1
ADAPTED = 0.05
SIMPLE_SENTENCES, COMPLEX_SENTENCES = 2, 10
SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True)
class FallbackLevel:
    """One way to go on; `after` holds the kinds of failure that lead here, None is every one."""

    name: str
    after: frozenset[str] | None = None

    def takes(self, kind: str) -> bool:
        """Whether a failure leads here."""
        return self.after is None or kind in self.after


LADDER = (
    FallbackLevel(FULL, frozenset()),
    FallbackLevel(FEWER, OUT_OF_CALLS | SLOW),
    FallbackLevel(NO_FACTS, frozenset({FACTS_FAILED})),
    FallbackLevel(CRITIQUE_ONLY, frozenset({MALFORMED})),
    FallbackLevel(ORIGINAL),
)


async def climb_down(
    levels: Sequence[FallbackLevel],
    attempt: Callable[[FallbackLevel], Awaitable[Deliberation]],
    failure_of: Callable[[Deliberation], str | None],
) -> Deliberation:
    """The outcome of the first level that does not fail; it says which one failed first, and how.

    Args:
        levels: in order; the last one takes every failure.
        attempt: one refinement by a level.
        failure_of: the kind of failure of an outcome; None where it did not fail.
    """
    done = seen = await attempt(levels[0])
    first, error = None, None
    left = list(levels[1:])
    while (kind := failure_of(done)) is not None and left:
        first, error = first or f"{levels[0].name}: {kind}", done.error
        while left and not left[0].takes(kind):
            left.pop(0)
        if not left:
            break
        done = await attempt(left.pop(0))
    if first is None:
        return done
    update: dict[str, Any] = {"degraded_from": first, "error": done.error or error}
    if not done.critiques:  # the last level looks at nothing again: what was found stays said
        update |= {"critiques": seen.critiques, "candidates": seen.candidates}
    return done.model_copy(update=update)


def calls_of(settings: QualitySettings) -> int:
    """Model calls at most: a critique of each candidate, three where critics argue, and the improvements."""
    critiques = 1 if settings.critics == 1 else 3
    return (settings.iterations + 1) * critiques + settings.iterations + 1 + settings.rounds


def threshold_of(settings: QualitySettings, text: str) -> float:
    """The score that is enough, 0 to 1; by the length of the text where that is set."""
    threshold = settings.threshold / 100.0
    if not settings.adaptive_threshold:
        return threshold
    count = len(SENTENCE_END.findall(text))
    if count <= SIMPLE_SENTENCES:
        return max(0.0, threshold - ADAPTED)
    return min(1.0, threshold + ADAPTED) if count > COMPLEX_SENTENCES else threshold


@dataclass(frozen=True)
class FactsFirst:
    """A reviser for what fails, and another one for what could be better; each as often as it may."""

    corrector: Reviser
    improver: Reviser | None
    corrections: int
    improvements: int

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """From whoever is due; none where both are used up."""
        failed = sum(1 for seen in rounds if seen.failures)
        if rounds[-1].failures:
            if failed <= self.corrections:
                return await self.corrector.revise(task, rounds, budget)
        elif self.improver is not None and len(rounds) - failed <= self.improvements:
            return await self.improver.revise(task, rounds, budget)
        newest = rounds[-1].candidate
        return Draft(newest.text, "given", source=newest.source)


@dataclass
class QualityLoop:
    """One text in the quality loop, on every level of its ladder.

    Attributes:
        facts: the claims of the text and the run that they are held against; None: nobody writes one.
        unread: why the facts could not be read: the text as it was given is scored, and nothing else.
        corrector: of what fails; None: who improves it, or the rules.
        application: when a later candidate may stand.
    """

    task: Task
    draft: str | Draft | Generator
    settings: QualitySettings
    budget: Budget
    models: TextModels | None = None
    facts: ClaimText | None = None
    unread: NoReply | None = None
    corrector: Reviser | None = None
    fallback: str | None = None
    application: Application = brings_nothing_new
    preset: str = NAME
    trace: Trace = field(default_factory=Trace)
    critic: CachedCritic | None = None
    rewrites: Rewrites = field(default_factory=Rewrites)

    def __post_init__(self) -> None:
        models, self.rewrites.claims = self.models, self.facts
        if models is None or not models.has(QUALITY) or self.critic is not None:
            return
        first = quality_critic(models, self.settings)
        if self.settings.critics > 1:
            self.critic = CachedCritic(ArguingCritics(first, first))
        elif self.facts is not None and models.has(QUALITY_REWRITE, IMPROVEMENT):
            rewriting = rewriting_quality_critic(models, self.settings, self.rewrites)
            self.critic = CachedCritic(rewriting)
        else:
            self.critic = CachedCritic(first)

    async def run(self) -> Deliberation:
        """What stands; level by level where something fails."""
        done = await climb_down(LADDER, self._attempt, failure_of)
        return done.model_copy(update={"usage": self.budget.used, "elapsed_ms": self.budget.elapsed_ms})

    async def _attempt(self, level: FallbackLevel) -> Deliberation:
        settings, iterations = self.settings, self.settings.iterations
        if self.unread is not None and level.name in (FULL, FEWER):
            return self._without_facts(self.unread)
        threshold = threshold_of(settings, _text_of(self.draft))
        if level.name == FEWER:
            iterations, threshold = max(0, iterations - 1), max(0.0, threshold - LOWERED)
        facts = None if level.name in (NO_FACTS, ORIGINAL) else self.facts
        critics: list[Critic] = [*claim_critics(facts)]
        if self.critic is not None and level.name != ORIGINAL:
            critics.append(self.critic)
        corrections = settings.rounds
        reviser = None if level.name == CRITIQUE_ONLY else self._reviser(corrections, iterations, facts)
        self.rewrites.most, self.rewrites.threshold = 0 if reviser is None else iterations, threshold
        done = await refine(
            self.task,
            self.draft,
            critics,
            reviser,
            Policies(
                Acceptance(threshold, patience=1), self.application, best_verified, fallback=self.fallback
            ),
            self.budget.child(rounds=corrections + iterations),
            preset=self.preset,
            trace=self.trace,
        )
        if isinstance(self.draft, str | Draft) or not done.candidates:
            return done
        first = done.candidates[0]  # a level further down asks for no second first draft
        self.draft = Draft(first.text, first.author, first.reasoning, source=first.source)
        return done

    def _without_facts(self, unread: NoReply) -> Deliberation:
        text = _text_of(self.draft)
        return Deliberation(
            preset=self.preset, status="unchanged", initial=text, final=text,
            degraded_from=f"{FULL}: {unread.kind}", error=visible(unread.detail),
        )  # fmt: skip

    def _reviser(self, corrections: int, iterations: int, facts: ClaimText | None) -> Reviser | None:
        """Who writes the next text; nobody where there are no facts to write from."""
        if facts is None:
            return None
        improver = None
        if self.models is not None and self.models.has(IMPROVEMENT):
            improver = Improver(self.models, facts, self.settings.improvement_tokens, self.rewrites)
        corrector = self.corrector or improver or RuleReviser(facts)
        return FactsFirst(corrector, improver, corrections, iterations)


def _text_of(draft: str | Draft | Generator) -> str:
    return draft if isinstance(draft, str) else draft.text if isinstance(draft, Draft) else ""


def failure_of(done: Deliberation) -> str | None:
    """The kind of failure of an outcome; None where nothing failed, or nothing came at all."""
    if done.degraded_from is None or done.status == "failed":
        return None
    return done.degraded_from.partition(": ")[2]


def with_checks(done: Deliberation, facts: ClaimText | None) -> Deliberation:
    """The outcome with the claims of its first text and of the one that stands, each with its verdict.

    A model's own words on a text are left as comments: without a figure and without a name of the run.
    """
    if facts is None or not done.candidates:
        return done
    done = with_comments_alone(done, lambda words: keep_comment(words, facts.facts))
    stands = next((c for c in reversed(done.candidates) if c.text == done.final), done.candidates[-1])
    texts = dict.fromkeys((done.candidates[0].number, stands.number))
    checks = [facts.check(sections_of(done.candidates[number])) for number in texts]
    return done.model_copy(
        update={
            "fact_checks": tuple(checks),
            "verified_gain": len(checks[0].failures) - len(checks[-1].failures),
            "details": {**done.details, "struck_claims": len(checks[-1].failures)},
        }
    )


async def run_quality(
    task: Task,
    draft: str | Draft | Generator,
    settings: QualitySettings,
    budget: Budget,
    *,
    models: TextModels | None = None,
    facts: ClaimText | None = None,
    unread: NoReply | None = None,
    critic: CachedCritic | None = None,
) -> Deliberation:
    """What stands of a text; without models, rules score it and stored values correct it."""
    loop = QualityLoop(task, draft, settings, budget, models, facts, unread, critic=critic)
    return with_checks(await loop.run(), facts)


def result_fields(done: Deliberation) -> dict[str, Any]:
    """The result as the preset's own fields have it; scores in percent."""
    scored = [_percent(done, candidate.number) for candidate in done.candidates]
    known = [score for score in scored if score is not None]
    return {
        "final_response": done.final,
        "iterations": max(0, len(done.candidates) - 1),
        "improvement_trace": [
            {"iteration": number, "score": score, "author": candidate.author, "hash": candidate.hash}
            for number, (candidate, score) in enumerate(zip(done.candidates, scored, strict=True))
        ],
        "chain_of_thought": [candidate.reasoning for candidate in done.candidates if candidate.reasoning],
        "total_quality_gain": None if len(known) < 2 else round(known[-1] - known[0], 6),
        "metadata": {
            "initial_score": known[0] if known else None,
            "final_score": known[-1] if known else None,
            "response_time_ms": done.elapsed_ms,
        },
    }


def _percent(done: Deliberation, number: int) -> float | None:
    of_candidate: list[Critique] = [critique for critique in done.critiques if critique.candidate == number]
    overall = aggregate(of_candidate).overall
    return None if overall is None else round(100.0 * overall, 6)
