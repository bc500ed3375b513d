"""Presets together: sections that are reviewed, a whole that is, and sections where a review failed."""

from collections.abc import Sequence
from dataclasses import replace

from schemas.canonical import content_hash
from schemas.deliberation import Author, Deliberation, TextCandidate
from schemas.settings.deliberation import DeliberationSettings
from services.deliberation.budget import Budget
from services.deliberation.forms import OUTLINE, SECTION
from services.deliberation.policies import Round, aggregate
from services.deliberation.presets import chunked, review
from services.deliberation.presets.chunked import (
    SectionedGenerator,
    assemble_chunks,
    is_long,
    tell_chunk,
    tell_outline,
)
from services.deliberation.presets.quality import struck
from services.deliberation.presets.review import TextTraits, run_review
from services.deliberation.refine import Critic, Draft, Task, Trace, await_within
from services.deliberation.rule_critics import ClaimCritic, NewsCritic, RuleReviser, section_critics
from services.deliberation.text_models import TextModels
from services.model_calls.asking import NoReply
from services.model_calls.quoting import visible

LABEL_WORDS = 6
NEWS = NoReply("news", "the sections have numbers or names that nobody gave")


def calls_of(settings: DeliberationSettings) -> int:
    """Model calls at most, reviews of sections and of the whole included."""
    reviews = settings.chunked.max_chunks + 1 if settings.review.enabled else 0
    return chunked.calls_of(settings.chunked) + reviews * review.calls_of(settings.review)


def write_sections(
    task: Task,
    settings: DeliberationSettings,
    models: TextModels,
    trace: Trace,
    facts: ClaimCritic | None,
) -> SectionedGenerator:
    """What writes a text in sections; each is reviewed where that is set."""

    async def refine_text(text: str, budget: Budget) -> Deliberation:
        part = budget.child(rounds=0, calls=review.calls_of(settings.review))
        return await run_review(
            task, text, settings.review, part,
            models=models, facts=facts, trace=trace, rules=section_critics(facts),
        )  # fmt: skip

    each = settings.review.enabled and settings.chunked.strategy in ("per_chunk", "both")
    return SectionedGenerator(models, settings.chunked, trace, refine_text if each else None)


def ruled_sections(given: str, most: int, trace: Trace, facts: ClaimCritic | None) -> Draft:
    """A text by its blank lines, once the rules have corrected it, in so many sections at most."""
    text = RuleReviser(facts).repair(given)  # a section may rest on what stands before it
    parts = [part for part in text.split("\n\n") if part.strip()]
    chunks = [*parts[: most - 1], *(["\n\n".join(parts[most - 1 :])] if len(parts) >= most else [])]
    labels = [" ".join(chunk.split()[:LABEL_WORDS])[:100] for chunk in chunks]
    tell_outline(trace, 0, "ok", labels)
    none = {"reasoning_tokens": 0, "content_tokens": 0}
    for index, label in enumerate(labels):
        tell_chunk(trace, index, "ok", {"chunk_index": index, "chunk_label": label, **none})
    return Draft(assemble_chunks(chunks), "rules")


async def run_chunked(
    task: Task,
    given: str,
    settings: DeliberationSettings,
    budget: Budget,
    *,
    models: TextModels | None = None,
    facts: ClaimCritic | None = None,
) -> Deliberation:
    """A text in sections, reviewed as the settings say; without models, the given one in its own sections.

    The given text stands where no section comes, or where they tell what it, the task and the run do not.
    """
    trace = Trace()
    unread = None if facts is None else await facts.read_for(given)
    done, failed, chunks = _begin(given, "given"), unread, list[dict[str, object]]()
    if models is not None and models.has(OUTLINE, SECTION):
        known = replace(task, material=f"{given}\n{task.material}".strip())
        generator = write_sections(known, settings, models, trace, facts)
        draft = await await_within(generator.generate(known, budget), budget)
        chunks, failed = generator.chunks, generator.failed or unread
        if isinstance(draft, NoReply):
            done, failed = done.model_copy(update={"status": "failed", "stop_reason": "model_failed"}), draft
        else:
            whole = await _whole(task, draft, settings, budget, models, facts, trace)
            if given.strip() and await _news(task, given, whole.final, facts):
                done, failed = done.model_copy(update={"status": "unchanged"}), NEWS
            else:
                short = generator.failed is not None and whole.status == "accepted"
                done = whole.model_copy(update={"status": "best_effort"}) if short else whole
    else:
        draft = ruled_sections(given, settings.chunked.max_chunks, trace, facts)
        done = await _whole(task, draft, settings, budget, models, facts, trace)
        done = done.model_copy(update={"initial": given})
    told = {
        "preset": chunked.NAME,
        "degraded_from": done.degraded_from if failed is None else f"{chunked.NAME}: {failed.kind}",
        "error": done.error if failed is None else visible(failed.detail),
        "usage": budget.used,
        "cleaned": done.cleaned + (draft.cleaned if isinstance(draft, Draft) else 0),
        "events": tuple(trace.events),
        "elapsed_ms": budget.elapsed_ms,
        "details": {**done.details, "chunks": chunks},
    }
    return struck(done.model_copy(update=told), facts)


async def _whole(
    task: Task,
    draft: Draft,
    settings: DeliberationSettings,
    budget: Budget,
    models: TextModels | None,
    facts: ClaimCritic | None,
    trace: Trace,
) -> Deliberation:
    """The sections together, reviewed where that is set."""
    if not settings.review.enabled or settings.chunked.strategy == "per_chunk":
        return _begin(draft.text, draft.author)
    return await run_review(
        task, draft.text, settings.review, budget, models=models, facts=facts, trace=trace
    )


def _begin(text: str, author: Author) -> Deliberation:
    """A text that nobody has looked at yet."""
    plain = Draft(text, author)
    first = TextCandidate(number=0, text=plain.text, hash=content_hash(plain.text), author=author)
    return Deliberation(
        preset=chunked.NAME, status="accepted", initial=text, final=plain.text, candidates=(first,),
        cleaned=plain.cleaned,
    )  # fmt: skip


async def run_reviewed(
    task: Task,
    text: str,
    settings: DeliberationSettings,
    budget: Budget,
    *,
    models: TextModels | None = None,
    facts: ClaimCritic | None = None,
    traits: TextTraits | None = None,
    requested_tokens: int = 0,
    rules: Sequence[Critic] | None = None,
) -> Deliberation:
    """A review; a long text whose review fails is written in sections, and the better of both stands."""
    done = await run_review(
        task, text, settings.review, budget, models=models, facts=facts, traits=traits, rules=rules
    )
    long = is_long(settings.chunked, requested_tokens) and settings.chunked.retry
    if (
        done.status in ("accepted", "skipped")
        or not long
        or models is None
        or not models.has(OUTLINE, SECTION)
    ):
        return struck(done, facts)
    again = await run_chunked(task, text, settings, budget, models=models, facts=facts)
    better = again if again.status == "accepted" and again.final else done
    events = (*done.events, *again.events)
    return struck(better.model_copy(update={"events": events, "preset": review.NAME}), facts)


async def _news(task: Task, before: str, after: str, facts: ClaimCritic | None) -> bool:
    """Whether a text has numbers or names that neither the one before it, nor the task, nor the run has."""
    first, later = (_begin(text, "given").candidates[0] for text in (before, after))
    said = await NewsCritic(facts).critique(task, later, (Round(first, (), aggregate(())),), Budget(0, 0))
    return isinstance(said, NoReply) or bool(said.findings)
