"""A stranger's text in one of the presets: its claims are read and held against a run, and written anew."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from schemas.canonical import content_hash
from schemas.claims import FactCheck, Section
from schemas.deliberation import Deliberation, TextCandidate
from schemas.errors import ConfigError, nearest
from schemas.settings import DeliberationSettings, Settings
from services.claims.subjects import names_for_claims
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import ClaimText, RuleReviser, claim_critics
from services.deliberation.extraction import ReadClaims, extract_claims, read_by_rules
from services.deliberation.forms import (
    CORRECTION,
    CRITICS,
    CRITIQUE,
    EXTRACTION,
    IMPROVEMENT,
    OUTLINE,
    QUALITY,
    REVIEW,
    REWRITES,
    SECTION,
)
from services.deliberation.model_revisers import Corrector, FirstDraft
from services.deliberation.presets import chunked, combined, quality, reflection_pass, review
from services.deliberation.refine import Draft, Generator, Task, sections_of
from services.deliberation.text_models import TextModels
from services.evidence.run_facts import RunFacts
from services.high_level.report_sections import TOPICS

Preset = Literal["pass", "quality", "review", "chunked"]
PROMPTS: dict[str, tuple[str, ...]] = {
    "pass": (CRITIQUE, CORRECTION),
    "quality": (QUALITY, IMPROVEMENT),
    "review": (REVIEW, IMPROVEMENT, OUTLINE, SECTION),
    "chunked": (OUTLINE, SECTION, REVIEW, IMPROVEMENT),
}
MODES: dict[str, tuple[str, ...]] = {
    "pass": (),
    "quality": ("full", "critique_only"),
    "review": ("always", "never", "on_error", "on_incomplete", "on_complex"),
    "chunked": ("final_only", "per_chunk", "both"),
}
MODE_FIELD = {"chunked": "strategy"}  # of its settings; of the others `mode`
MOST_QUESTION = 8_000
DEADLINE_MS = 45_000.0
TOPIC = "text"
MOST_CLAIMS = 40


@dataclass(frozen=True)
class TextRequest:
    """A text with what is asked of it; `material` is what it may use beside the question."""

    text: str
    preset: Preset
    question: str = ""
    material: str = ""


def preset_named(name: str) -> Preset:
    """The preset of a name.

    Raises:
        ConfigError: there is none.
    """
    for preset in PROMPTS:
        if preset == name:
            return preset  # type: ignore[return-value]  # a key of the table is one of the literal
    raise ConfigError(f"no preset {name!r}: there are {', '.join(PROMPTS)}.{nearest(name, list(PROMPTS))}")


def with_mode(settings: DeliberationSettings, preset: Preset, mode: str | None) -> DeliberationSettings:
    """The settings with the mode of a preset; a text that is given is critique_only unless it says full.

    Raises:
        ConfigError: the preset has no such mode.
    """
    modes = MODES[preset]
    if mode is not None and mode not in modes:
        text = (
            f"there are {', '.join(modes)}.{nearest(mode, list(modes))}"
            if modes
            else "it has none, leave --mode out"
        )
        raise ConfigError(f"no mode {mode!r} of {preset}: {text}")
    if preset == "quality":
        mode = mode or "critique_only"
    if mode is None:
        return settings
    part = getattr(settings, preset).model_copy(update={MODE_FIELD.get(preset, "mode"): mode})
    return settings.model_copy(update={preset: part})


def check_question(question: str) -> str:
    """The question as it is.

    Raises:
        ConfigError: it is empty, or longer than 8,000 characters.
    """
    if len(question) > MOST_QUESTION:
        raise ConfigError(
            f"--question has {len(question):,} characters; at most {MOST_QUESTION:,}: shorten it"
        )
    return question


@dataclass(frozen=True)
class DeliberatedText:
    """What stands of a text, and the sentences of it of which no claim was read."""

    done: Deliberation
    not_read: tuple[str, ...]


async def deliberate_all(
    requests: Sequence[TextRequest],
    settings: Settings,
    environment: Mapping[str, str],
    facts: Callable[[], Awaitable[RunFacts]],
) -> list[DeliberatedText]:
    """What stands of texts in one preset, one after the other, held against the facts of one run.

    A model is asked where the settings ask one, within the budget of the preset for each text.

    Raises:
        ConfigError: a model without a key, a price or a cassette; or no model, and the preset needs one.
        CassetteMiss: the cassette does not hold a reply.
    """
    read = await facts()
    if not settings.uses_models:
        preset, mode = requests[0].preset, settings.deliberation.quality.mode
        if preset != "quality" or mode != "critique_only":
            named = preset if preset != "quality" else f"quality in mode {mode}"
            raise ConfigError(
                f"preset {named} asks a model: set reflection.mode = 'full' (--reflection full), or take "
                "--preset quality --mode critique_only"
            )
        return [await refine_one(request, settings.deliberation, None, read) for request in requests]
    from worker.studies.study_models import open_models  # a text without a model waits for none of them

    question = models_asked(settings, requests[0].preset)
    names = names_for_claims(read.playbook_ids, read.symbols)
    async with open_models(settings, environment, question, names=names) as opened:
        done, models = [], opened.models.text_models()
        for request in requests:
            opened.account.open_event()
            done.append(await refine_one(request, settings.deliberation, models, read))
        return done


async def read_text_claims(
    text: str, facts: RunFacts, settings: Settings, environment: Mapping[str, str]
) -> ReadClaims:
    """The claims of a stranger's text, read by a model where the settings ask one.

    Raises:
        ConfigError: a model without a key, a price or a cassette.
        CassetteMiss: the cassette does not hold a reply.
    """
    if not settings.uses_models:
        return read_by_rules(text, facts)
    from worker.studies.study_models import open_models

    names = names_for_claims(facts.playbook_ids, facts.symbols)
    request = {EXTRACTION: settings.llm.slow_model}
    async with open_models(settings, environment, request, names=names) as opened:
        opened.account.open_event()
        models = opened.models.text_models()
        return await extract_claims(text, facts, models, Budget(0, 1, deadline_ms=DEADLINE_MS))


def models_asked(settings: Settings, preset: Preset) -> dict[str, str]:
    """Which model is asked with each prompt of a preset."""
    writer = settings.llm.slow_model
    critic = settings.deliberation.critique_model or writer
    prompts = (EXTRACTION, *PROMPTS[preset])
    found = {name: critic if name in CRITICS else writer for name in prompts}
    rewrites = settings.deliberation.rewrites_by(writer)
    return found | {REWRITES[name]: writer for name in REWRITES if name in found and rewrites}


async def refine_one(
    request: TextRequest, settings: DeliberationSettings, models: TextModels | None, facts: RunFacts
) -> DeliberatedText:
    """What stands of one text in the preset of its request, within that one's budget."""
    claims = ClaimText(facts, topics=(TOPIC, *TOPICS))
    read = await extract_claims(request.text, facts, models, Budget(0, 1, deadline_ms=DEADLINE_MS))
    section = Section(topic=TOPIC, claims=tuple(found.claim for found in read.claims)[:MOST_CLAIMS])
    given = Draft(request.text, "given", source=(section,))
    done = await _refine(request, given, settings, models, claims)
    return DeliberatedText(_without_false_claims(done, given, claims), read.not_read)


def _without_false_claims(done: Deliberation, given: Draft, claims: ClaimText) -> Deliberation:
    """The outcome; where the given text would stand though it claims what is not so, what holds of it."""
    checked = done.fact_checks[-1:]
    if done.final != given.text or done.error is not None or all(check.holds for check in checked):
        return done
    kept = claims.draft(RuleReviser(claims).repair(sections_of(given)), author="rules")
    last = TextCandidate(
        number=len(done.candidates), text=kept.text, hash=content_hash(kept.text), author="rules", parent=0,
        source=kept.source,
    )  # fmt: skip
    update = {"final": kept.text, "status": "best_effort", "candidates": (*done.candidates, last)}
    return quality.with_checks(done.model_copy(update=update), claims)


async def _refine(
    request: TextRequest,
    given: Draft,
    settings: DeliberationSettings,
    models: TextModels | None,
    claims: ClaimText,
) -> Deliberation:
    task = Task(request.question, request.material)
    if request.preset == "pass":
        budget = Budget(0, reflection_pass.calls_of(settings.reflection_pass), deadline_ms=DEADLINE_MS)
        tokens = settings.reflection_pass.correction_tokens
        done = await reflection_pass.run_pass(
            task, given, settings.reflection_pass, budget, rules=claim_critics(claims), models=models,
            reviser=None if models is None else Corrector(models, claims, tokens),
        )  # fmt: skip
        return quality.with_checks(done, claims)
    if request.preset == "quality":
        budget = Budget(0, quality.calls_of(settings.quality) + 1, deadline_ms=settings.quality.deadline_ms)
        draft: Draft | Generator = given
        if settings.quality.mode == "full" and models is not None:
            task = Task(request.question, f"{request.text}\n{request.material}".strip())
            draft = FirstDraft(models, claims, settings.quality.improvement_tokens)
        return await quality.run_quality(task, draft, settings.quality, budget, models=models, facts=claims)
    calls = combined.calls_of(settings) + review.calls_of(settings.review)
    sections = 1 + settings.chunked.max_chunks if request.preset == "chunked" else 1
    budget = Budget(0, calls, deadline_ms=DEADLINE_MS * sections)
    if request.preset == "review":
        tokens = len(request.text) // 4
        return await combined.run_reviewed(
            task, given, settings, budget, claims, models=models, requested_tokens=tokens
        )
    return await combined.run_chunked(task, given, settings, budget, claims, models=models)


def result_fields(done: Deliberation) -> dict[str, object]:
    """The result as the preset's own fields have it."""
    of_preset = {
        "pass": reflection_pass.result_fields,
        "quality": quality.result_fields,
        "review": review.result_fields,
        "chunked": chunked.result_fields,
    }
    return of_preset[done.preset](done)


def document_of_text(run_id: str, text: DeliberatedText) -> dict[str, Any]:
    """The JSON of an outcome, with the fields of its preset."""
    done = text.done
    payload = done.payload()
    del payload["details"]
    own = result_fields(done)
    events = [
        {"kind": event.kind, **dict(event.fields), "elapsed_ms": event.elapsed_ms} for event in done.events
    ]
    return {
        "run_id": run_id,
        **payload,
        "events": events,
        "elapsed_ms": done.elapsed_ms,
        **own,
        "not_read": list(text.not_read),
    }


def document_of_check(checked: FactCheck, read: ReadClaims) -> dict[str, Any]:
    """The JSON of a check, times in ns."""
    return {
        "known_at": checked.known_at,
        "claims": [{**claim.payload()} for claim in checked.claims],
        "counts": {**checked.counts, "not_read": len(read.not_read)},
        "not_read": list(read.not_read),
        "read_by": "model" if read.by_model else "rules",
        "model_failed": read.failed,
        "claims_without_their_words": read.unplaced,
    }
