"""The quality loop: score a text in four dimensions, improve it until that is enough, and verify its facts.

The first draft is asked for (`full`) or given (`critique_only`). Of all candidates the one in which least
fails stands, whatever a model scores; what still fails then is struck. Where a refinement failed, fewer
iterations are tried, no facts, no improvement, nothing: each rung says which failures of the one before lead
to it, and the last is the text as it was, with the error.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.deliberation import Critique, Deliberation
from schemas.settings.deliberation import QualitySettings
from services.deliberation.budget import Budget
from services.deliberation.forms import IMPROVEMENT, QUALITY, QUALITY_REWRITE
from services.deliberation.model_critics import (
    ArguingCritics,
    CachedCritic,
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
)
from services.deliberation.rule_critics import ClaimCritic, RuleReviser, end_whole, rule_critics
from services.deliberation.text_models import MALFORMED, Rewrites, TextModels
from services.model_calls.asking import NoReply
from services.text.claims import sentences

FULL, FEWER, NO_FACTS = "full", "fewer_iterations", "no_fact_check"
CRITIQUE_ONLY, ORIGINAL = "critique_without_improvement", "original"
OUT_OF_CALLS = frozenset({"budget", "breaker"})
SLOW = frozenset({"timeout", "budget_spent"})
NAME = "quality"
LOWERED = 0.1
ADAPTED = 0.05
SIMPLE_SENTENCES, COMPLEX_SENTENCES = 2, 10


@dataclass(frozen=True)
class Rung:
    """One way to go on; `after` holds the kinds of failure that lead here, None is every one."""

    name: str
    after: frozenset[str] | None = None

    def takes(self, kind: str) -> bool:
        """Whether a failure leads here."""
        return self.after is None or kind in self.after


LADDER = (
    Rung(FULL, frozenset()),
    Rung(FEWER, OUT_OF_CALLS | SLOW),
    Rung(NO_FACTS, frozenset({FACTS_FAILED})),
    Rung(CRITIQUE_ONLY, frozenset({MALFORMED})),
    Rung(ORIGINAL),
)


async def climb_down(
    rungs: Sequence[Rung],
    attempt: Callable[[Rung], Awaitable[Deliberation]],
    failure_of: Callable[[Deliberation], str | None],
) -> Deliberation:
    """The outcome of the first rung that does not fail; it says which one failed first, and how.

    Args:
        rungs: in order; the last one takes every failure.
        attempt: one refinement by a rung.
        failure_of: the kind of failure of an outcome; None where it did not fail.
    """
    done = seen = await attempt(rungs[0])
    first, error = None, None
    left = list(rungs[1:])
    while (kind := failure_of(done)) is not None and left:
        first, error = first or f"{rungs[0].name}: {kind}", done.error
        while left and not left[0].takes(kind):
            left.pop(0)
        if not left:
            break
        done = await attempt(left.pop(0))
    if first is None:
        return done
    update: dict[str, Any] = {"degraded_from": first, "error": done.error or error}
    if not done.critiques:  # the last rung looks at nothing again: what was found stays said
        update |= {"critiques": seen.critiques, "candidates": seen.candidates}
    return done.model_copy(update=update)


def calls_of(settings: QualitySettings) -> int:
    """Model calls at most: a critique of each candidate, three where critics argue, and the improvements."""
    critiques = 1 if settings.critics == 1 else 3
    return (settings.iterations + 1) * critiques + settings.iterations + settings.rounds


def threshold_of(settings: QualitySettings, text: str) -> float:
    """The score that is enough, 0 to 1; by the length of the text where that is set."""
    threshold = settings.threshold / 100.0
    if not settings.adaptive_threshold:
        return threshold
    count = sum(1 for _ in sentences(text))
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
        return Draft(rounds[-1].candidate.text, "given")


@dataclass
class QualityLoop:
    """One text in the quality loop, on every rung of its ladder.

    Attributes:
        corrector: of what fails; None: who improves it, or the rules.
        application: when a later candidate may stand.
        rules: critics without a model; None: all of them.
    """

    task: Task
    draft: str | Generator
    settings: QualitySettings
    budget: Budget
    models: TextModels | None = None
    facts: ClaimCritic | None = None
    corrector: Reviser | None = None
    fallback: str | None = None
    application: Application = brings_nothing_new
    rules: Sequence[Critic] | None = None
    preset: str = NAME
    trace: Trace = field(default_factory=Trace)
    critic: CachedCritic | None = None
    rewrites: Rewrites = field(default_factory=Rewrites)

    def __post_init__(self) -> None:
        models = self.models
        if models is None or not models.has(QUALITY) or self.critic is not None:
            return
        first = quality_critic(models, self.settings)
        if self.settings.critics > 1:
            self.critic = CachedCritic(ArguingCritics(first, first))
        elif models.has(QUALITY_REWRITE, IMPROVEMENT):
            rewriting = rewriting_quality_critic(models, self.settings, self.rewrites)
            self.critic = CachedCritic(rewriting)
        else:
            self.critic = CachedCritic(first)

    async def run(self) -> Deliberation:
        """What stands; rung by rung where something fails."""
        done = await climb_down(LADDER, self._attempt, failure_of)
        return done.model_copy(update={"usage": self.budget.used, "elapsed_ms": self.budget.elapsed_ms})

    async def _attempt(self, rung: Rung) -> Deliberation:
        settings, iterations = self.settings, self.settings.iterations
        text = self.draft if isinstance(self.draft, str) else ""
        threshold = threshold_of(settings, text)
        if rung.name == FEWER:
            iterations, threshold = max(0, iterations - 1), max(0.0, threshold - LOWERED)
        facts = None if rung.name in (NO_FACTS, ORIGINAL) else self.facts
        rules = self.rules if self.rules is not None and facts is not None else rule_critics(facts)
        critics: list[Critic] = list(rules) if rung.name != ORIGINAL else []
        if self.critic is not None and rung.name != ORIGINAL:
            critics.append(self.critic)
        corrections = settings.rounds - 1
        reviser = (
            None if rung.name in (CRITIQUE_ONLY, ORIGINAL) else self._reviser(corrections, iterations, facts)
        )
        self.rewrites.most, self.rewrites.threshold = 0 if reviser is None else iterations, threshold
        done = await refine(
            self.task,
            self.draft,
            critics,
            reviser,
            Policies(Acceptance(threshold, patience=1), self.application, best_verified),
            self.budget.child(rounds=corrections + iterations),
            preset=self.preset,
            fallback=self.fallback,
            trace=self.trace,
        )
        if isinstance(self.draft, str) or not done.candidates:
            return done
        self.draft = done.candidates[0].text  # a rung further down asks for no second first draft
        return done

    def _reviser(self, corrections: int, iterations: int, facts: ClaimCritic | None) -> Reviser:
        improver = None
        if self.models is not None and self.models.has(IMPROVEMENT):
            improver = Improver(self.models, self.settings.improvement_tokens, self.rewrites)
        corrector = self.corrector or improver or RuleReviser(facts)
        return FactsFirst(corrector, improver, corrections, iterations)


def failure_of(done: Deliberation) -> str | None:
    """The kind of failure of an outcome; None where nothing failed, or nothing came at all."""
    if done.degraded_from is None or done.status == "failed":
        return None
    return done.degraded_from.partition(": ")[2]


def struck(done: Deliberation, facts: ClaimCritic | None) -> Deliberation:
    """The outcome with what still fails of its text struck, and the checks of both texts."""
    if facts is None or not done.candidates:
        return done
    checks = [check for text in dict.fromkeys((done.initial, done.final)) if (check := facts.check(text))]
    last = facts.check(done.final)
    gone = 0 if last is None else len(last.failures)
    final = end_whole(last.struck_text) if last is not None and gone else done.final
    before = 0 if not checks else len(checks[0].failures)
    changed = final != done.initial and done.status == "unchanged" or gone and not final
    return done.model_copy(
        update={
            "final": final,
            "status": "best_effort" if changed else done.status,
            "fact_checks": tuple(checks),
            "verified_gain": None if last is None else before,
            "details": {**done.details, "struck_claims": gone},
        }
    )


async def run_quality(
    task: Task,
    draft: str | Generator,
    settings: QualitySettings,
    budget: Budget,
    *,
    models: TextModels | None = None,
    facts: ClaimCritic | None = None,
    critic: CachedCritic | None = None,
) -> Deliberation:
    """What stands of a text; without models, rules score it and stored values correct it."""
    loop = QualityLoop(task, draft, settings, budget, models, facts, critic=critic)
    return struck(await loop.run(), facts)


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
