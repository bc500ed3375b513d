"""Presets together: sections that are reviewed, a whole that is, and sections where a review failed."""

from dataclasses import replace

from schemas.canonical import content_hash
from schemas.deliberation import Deliberation, TextCandidate
from schemas.settings.deliberation import DeliberationSettings
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import OF_A_SECTION, ClaimText, RuleReviser
from services.deliberation.forms import OUTLINE, SECTION
from services.deliberation.presets import chunked, review
from services.deliberation.presets.chunked import SectionedGenerator, is_long, tell_chunk, tell_outline
from services.deliberation.presets.quality import with_checks
from services.deliberation.presets.review import TextParts, TextTraits, run_review
from services.deliberation.refine import Draft, Task, Trace, await_within, sections_of
from services.deliberation.text_models import TextModels
from services.model_calls.asking import NoReply
from services.model_calls.quoting import visible


def calls_of(settings: DeliberationSettings) -> int:
    """Model calls at most, reviews of sections and of the whole included."""
    reviews = settings.chunked.max_chunks + 1 if settings.review.enabled else 0
    return chunked.calls_of(settings.chunked) + reviews * review.calls_of(settings.review)


def section_writer(
    task: Task, settings: DeliberationSettings, models: TextModels, trace: Trace, facts: ClaimText
) -> SectionedGenerator:
    """What writes a text in sections; each is reviewed where that is set."""

    async def refine_section(draft: Draft, budget: Budget) -> Deliberation:
        part = budget.child(rounds=0, calls=review.calls_of(settings.review))
        parts = TextParts(models, facts, trace)
        return await run_review(task, draft, settings.review, part, parts, critics_of=OF_A_SECTION)

    each = settings.review.enabled and settings.chunked.strategy in ("per_chunk", "both")
    return SectionedGenerator(models, settings.chunked, trace, facts, refine_section if each else None)


def repair_sections(given: Draft, most: int, trace: Trace, facts: ClaimText) -> Draft:
    """The sections of a text as the rules correct them, at most so many; the last one takes the rest."""
    parts = [part for part in RuleReviser(facts).repair(sections_of(given)) if part.claims]
    if len(parts) > most:
        rest = tuple(claim for part in parts[most - 1 :] for claim in part.claims)
        parts = [*parts[: most - 1], parts[most - 1].model_copy(update={"claims": rest})]
    tell_outline(trace, 0, "ok", [part.topic for part in parts])
    none = {"reasoning_tokens": 0, "content_tokens": 0}
    for index, part in enumerate(parts):
        tell_chunk(trace, index, "ok", {"chunk_index": index, "chunk_label": part.topic, **none})
    return facts.draft(parts, author="rules")


async def run_chunked(
    task: Task,
    given: Draft,
    settings: DeliberationSettings,
    budget: Budget,
    facts: ClaimText,
    *,
    models: TextModels | None = None,
) -> Deliberation:
    """A text in sections, reviewed as the settings say; without models, the given one in its own sections.

    The given text stands where no section comes.
    """
    trace = Trace()
    parts = TextParts(models, facts, trace)
    done, failed, chunks = _begin(given), None, list[dict[str, object]]()
    if models is not None and models.has(OUTLINE, SECTION):
        known = replace(task, material=f"{given.text}\n{task.material}".strip())
        generator = section_writer(known, settings, models, trace, facts)
        draft = await await_within(generator.generate(known, budget), budget)
        chunks, failed = generator.chunks, generator.failed
        if isinstance(draft, NoReply):
            done, failed = done.model_copy(update={"status": "failed", "stop_reason": "model_failed"}), draft
        else:
            whole = await _whole(task, draft, settings, budget, parts)
            short = generator.failed is not None and whole.status == "accepted"
            done = whole.model_copy(update={"status": "best_effort"}) if short else whole
    else:
        draft = repair_sections(given, settings.chunked.max_chunks, trace, facts)
        done = await _whole(task, draft, settings, budget, parts)
        done = done.model_copy(update={"initial": given.text})
    payload = {
        "preset": chunked.NAME,
        "degraded_from": done.degraded_from if failed is None else f"{chunked.NAME}: {failed.kind}",
        "error": done.error if failed is None else visible(failed.detail),
        "usage": budget.used,
        "events": tuple(trace.events),
        "elapsed_ms": budget.elapsed_ms,
        "details": {**done.details, "chunks": chunks},
    }
    return with_checks(done.model_copy(update=payload), facts)


async def _whole(
    task: Task, draft: Draft, settings: DeliberationSettings, budget: Budget, parts: TextParts
) -> Deliberation:
    if not settings.review.enabled or settings.chunked.strategy == "per_chunk":
        return _begin(draft)
    return await run_review(task, draft, settings.review, budget, parts)


def _begin(draft: Draft) -> Deliberation:
    """A text that nobody has looked at yet."""
    first = TextCandidate(
        number=0, text=draft.text, hash=content_hash(draft.text), author=draft.author, source=draft.source
    )
    return Deliberation(
        preset=chunked.NAME, status="accepted", initial=draft.text, final=draft.text, candidates=(first,),
        cleaned=draft.cleaned,
    )  # fmt: skip


async def run_reviewed(
    task: Task,
    given: Draft,
    settings: DeliberationSettings,
    budget: Budget,
    facts: ClaimText,
    *,
    models: TextModels | None = None,
    traits: TextTraits | None = None,
    requested_tokens: int = 0,
) -> Deliberation:
    """A review; a long text whose review fails is written in sections, and the better of both stands."""
    done = await run_review(task, given, settings.review, budget, TextParts(models, facts), traits=traits)
    long = is_long(settings.chunked, requested_tokens) and settings.chunked.retry
    if (
        done.status in ("accepted", "skipped")
        or not long
        or models is None
        or not models.has(OUTLINE, SECTION)
    ):
        return with_checks(done, facts)
    again = await run_chunked(task, given, settings, budget, facts, models=models)
    better = again if again.status == "accepted" and again.final else done
    events = (*done.events, *again.events)
    return with_checks(better.model_copy(update={"events": events, "preset": review.NAME}), facts)
