"""Self-review: score a text by review questions, have it written again below the threshold, keep the best.

Up to three passes, in each up to two regenerations; every candidate is scored, and the best one stands even
where none reaches the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from schemas.deliberation import Deliberation
from schemas.settings.deliberation import ReviewSettings
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import FINDERS, ClaimText, RuleReviser, claim_critics, find_uncovered
from services.deliberation.forms import IMPROVEMENT, REVIEW
from services.deliberation.model_critics import REVIEWED_TOKENS, Rewrites, review_critic, scoring_critic
from services.deliberation.model_revisers import Improver
from services.deliberation.policies import Acceptance, aggregate, best_score, brings_nothing_new
from services.deliberation.refine import Critic, Draft, Policies, Reviser, Task, Trace, refine, sections_of
from services.deliberation.text_models import TextModels

NAME = "review"
MANY_CLUSTERS, MANY_ACTIONS = 5, 2


@dataclass(frozen=True)
class TextTraits:
    """What a review is chosen by: whether the answer failed, and how much it is about."""

    failed: bool = False
    clusters: int = 0
    actions: int = 0

    @property
    def is_complex(self) -> bool:
        """More than five clusters or two actions."""
        return self.clusters > MANY_CLUSTERS or self.actions > MANY_ACTIONS


@dataclass(frozen=True)
class TextParts:
    """Who and what a text is written with: without models by rules, without facts by nobody.

    `trace` is where events go; None: a new one.
    """

    models: TextModels | None = None
    facts: ClaimText | None = None
    trace: Trace | None = None


BY_NOBODY = TextParts()


def review_skip(settings: ReviewSettings, traits: TextTraits, incomplete: bool = False) -> str | None:
    """Why a text is not reviewed; None: it is. `incomplete`: it leaves out a topic that it has to cover."""
    wanted = {
        "always": True,
        "never": False,
        "on_error": traits.failed,
        "on_incomplete": incomplete,
        "on_complex": traits.is_complex,
    }
    return None if wanted[settings.mode] else f"mode_{settings.mode}"


def calls_of(settings: ReviewSettings) -> int:
    """Model calls at most: each regeneration and each score, and the first one."""
    return 1 + 2 * settings.iterations * settings.max_regenerations


async def run_review(
    task: Task,
    given: str | Draft,
    settings: ReviewSettings,
    budget: Budget,
    parts: TextParts = BY_NOBODY,
    *,
    traits: TextTraits | None = None,
    critics_of: Sequence[str] = tuple(FINDERS),
) -> Deliberation:
    """What stands of a text after its review; without models, rules score it.

    `critics_of` names the critics without a model; without facts nobody writes a text again.
    """
    models, facts = parts.models, parts.facts
    trace = Trace() if parts.trace is None else parts.trace
    plain = given if isinstance(given, Draft) else Draft(given, "given")
    text = plain.text if isinstance(given, Draft) else given
    reason = review_skip(settings, traits or TextTraits(), _is_incomplete(task, plain, facts))
    if reason is not None:
        return Deliberation(
            preset=NAME, status="skipped", skip_reason=reason, initial=text, final=plain.text,
            cleaned=plain.cleaned,
        )  # fmt: skip
    critics: list[Critic] = [*claim_critics(facts, critics_of)]
    reviser: Reviser | None = None if facts is None else RuleReviser(facts)
    if models is not None and models.has(REVIEW, IMPROVEMENT):
        rewrites = Rewrites(facts, settings.max_regenerations, settings.threshold)
        critics.append(scoring_critic(partial(review_critic, models, settings), models, rewrites))
        reviser = None if facts is None else Improver(models, facts, REVIEWED_TOKENS, rewrites)
    policies = Policies(Acceptance(settings.threshold), brings_nothing_new, best_score)
    passes: list[Deliberation] = []
    best: str | Draft = given
    for number in range(1, settings.iterations + 1):
        started = budget.elapsed_ms
        part = budget.child(rounds=settings.max_regenerations)
        done = await refine(task, best, critics, reviser, policies, part, preset=NAME)
        passes.append(done)
        _tell(trace, number, done, settings, budget.elapsed_ms - started)
        gained = done.final != (best.text if isinstance(best, Draft) else best)
        best = final_draft(done)
        if done.status == "accepted" or done.degraded_from is not None or not gained:
            break
    return _together(passes, text, trace, budget)


def _is_incomplete(task: Task, draft: Draft, facts: ClaimText | None) -> bool:
    return facts is not None and bool(find_uncovered(task, facts.write(sections_of(draft)))[1])


def final_draft(done: Deliberation) -> Draft:
    """The text that stands with what it was rendered from."""
    stands = done.standing
    if stands is None:
        return Draft(done.final, "given")
    return Draft(done.final, stands.author, source=stands.source)


def _tell(trace: Trace, number: int, done: Deliberation, settings: ReviewSettings, elapsed_ms: float) -> None:
    number_of_final = _number_of_final(done)
    critiques = [critique for critique in done.critiques if critique.candidate == number_of_final]
    lines = [critique for critique in critiques if critique.source == "model"] or critiques
    trace.add(
        "review_cycle",
        elapsed_ms,
        iter=number,
        name="self_review",
        status="ok" if done.degraded_from is None else done.degraded_from,
        review_pass=number,
        quality_score=aggregate(critiques).overall,
        threshold=settings.threshold,
        critique="; ".join(critique.explanation for critique in lines if critique.explanation),
        accepted=done.status == "accepted",
        regenerations=max(0, len(done.candidates) - 1),
    )


def _number_of_final(done: Deliberation) -> int:
    return next((c.number for c in done.candidates if c.text == done.final), 0)


def _together(parts: list[Deliberation], text: str, trace: Trace, budget: Budget) -> Deliberation:
    """All passes as one: candidates numbered through, what stands at the end of the last."""
    last = parts[-1]
    candidates, critiques, shift, stood = [], [], 0, 0
    for number, part in enumerate(parts):
        skip = 1 if number else 0  # a later pass begins with what stood already
        moved = {c.number: c.number + shift - skip for c in part.candidates}
        moved |= {0: stood}
        candidates += [
            c.model_copy(
                update={
                    "number": moved[c.number],
                    "parent": None if c.parent is None else moved[c.parent],
                    "round": number,
                }
            )
            for c in part.candidates[skip:]
        ]
        critiques += [
            c.model_copy(update={"candidate": moved[c.candidate]})
            for c in part.critiques
            if c.candidate >= skip
        ]
        shift, stood = len(candidates), moved[_number_of_final(part)]
    changed = last.final != text
    status = last.status if last.status != "unchanged" else "best_effort" if changed else "unchanged"
    scores = [reply.overall for reply in critiques if reply.source == "model" and reply.overall is not None]
    return last.model_copy(
        update={
            "initial": text,
            "status": status,
            "candidates": tuple(candidates),
            "critiques": tuple(critiques),
            "self_reported_gain": round(scores[-1] - scores[0], 9) if len(scores) > 1 else None,
            "verified_gain": sum(part.verified_gain or 0 for part in parts),
            "usage": budget.used,
            "cleaned": sum(part.cleaned for part in parts),
            "events": tuple(trace.events),
            "elapsed_ms": budget.elapsed_ms,
        }
    )


def result_fields(done: Deliberation) -> dict[str, Any]:
    """The result as the preset's own fields have it: one entry a pass."""
    names = ("review_pass", "quality_score", "threshold", "critique", "accepted", "regenerations")
    cycles = [event.fields for event in done.events if event.kind == "review_cycle"]
    return {"passes": [{name: fields[name] for name in names} for fields in cycles]}
