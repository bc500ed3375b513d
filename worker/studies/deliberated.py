"""A text of one's own in one of the presets, by the rules or with a model, held against a run or alone."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from schemas.deliberation import Deliberation
from schemas.errors import ConfigError, nearest
from schemas.settings import DeliberationSettings, Settings
from services.deliberation.budget import Budget
from services.deliberation.fact_check import FactCritic
from services.deliberation.forms import (
    CORRECTION,
    CRITICS,
    CRITIQUE,
    IMPROVEMENT,
    OUTLINE,
    QUALITY,
    REVIEW,
    REWRITES,
    SECTION,
)
from services.deliberation.model_revisers import FirstDraft
from services.deliberation.presets import chunked, combined, quality, reflection_pass, review
from services.deliberation.refine import Generator, Task
from services.deliberation.text_models import TextModels
from services.evidence.run_facts import RunFacts

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


@dataclass(frozen=True)
class TextRequest:
    """A text with what is asked of it.

    Attributes:
        facts: of the run that it is about, what reads them, or who holds a text against them; None: no run.
        material: what the text may use beside the question.
    """

    text: str
    preset: Preset
    question: str = ""
    material: str = ""
    facts: RunFacts | Callable[[], Awaitable[RunFacts]] | FactCritic | None = None


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
        told = (
            f"there are {', '.join(modes)}.{nearest(mode, list(modes))}"
            if modes
            else "it has none, leave --mode out"
        )
        raise ConfigError(f"no mode {mode!r} of {preset}: {told}")
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


async def deliberate_all(
    requests: Sequence[TextRequest], settings: Settings, environment: Mapping[str, str]
) -> list[Deliberation]:
    """What stands of texts in one preset, one after the other, held against the facts of the first one.

    A model is asked where the settings ask one, within the budget of the preset for each text.

    Raises:
        ConfigError: a model without a key, a price or a cassette.
        CassetteMiss: the cassette does not hold a reply.
    """
    facts = critic_of(requests[0])
    if not settings.uses_models:
        return [await refine_one(request, settings.deliberation, None, facts) for request in requests]
    from worker.studies.asked_models import asked_models  # a text without a model waits for none of them

    async with asked_models(settings, environment, models_asked(settings, requests[0].preset)) as opened:
        models, account = opened
        done = []
        for request in requests:
            account.open_event()
            done.append(await refine_one(request, settings.deliberation, models.text_models(), facts))
        return done


def models_asked(settings: Settings, preset: Preset) -> dict[str, str]:
    """Which model is asked with each prompt of a preset."""
    writer = settings.llm.slow_model
    critic = settings.deliberation.critique_model or writer
    found = {name: critic if name in CRITICS else writer for name in PROMPTS[preset]}
    rewrites = settings.deliberation.rewrites_by(writer)
    return found | {REWRITES[name]: writer for name in REWRITES if name in found and rewrites}


def critic_of(request: TextRequest) -> FactCritic | None:
    """Who holds a text against its run; None without one."""
    facts = request.facts
    return facts if facts is None or isinstance(facts, FactCritic) else FactCritic(facts)


async def refine_one(
    request: TextRequest, settings: DeliberationSettings, models: TextModels | None, facts: FactCritic | None
) -> Deliberation:
    """What stands of one text in the preset of its request, within that one's budget."""
    if facts is not None:  # before any deadline begins; what cannot be read is told by its critic
        await facts.read_for(request.text)
    task = Task(request.question, request.material, request.preset)
    if request.preset == "pass":
        budget = Budget(0, reflection_pass.calls_of(settings.reflection_pass), deadline_ms=DEADLINE_MS)
        return await reflection_pass.run_pass(
            task, request.text, settings.reflection_pass, budget, models=models, facts=facts
        )
    if request.preset == "quality":
        budget = Budget(0, quality.calls_of(settings.quality) + 1, deadline_ms=settings.quality.deadline_ms)
        draft: str | Generator = request.text
        if settings.quality.mode == "full" and models is not None:
            task = Task(request.question, f"{request.text}\n{request.material}".strip(), request.preset)
            draft = FirstDraft(models, settings.quality.improvement_tokens)
        return await quality.run_quality(task, draft, settings.quality, budget, models=models, facts=facts)
    calls = combined.calls_of(settings) + review.calls_of(settings.review)
    sections = 1 + settings.chunked.max_chunks if request.preset == "chunked" else 1
    budget = Budget(0, calls, deadline_ms=DEADLINE_MS * sections)
    if request.preset == "review":
        return await combined.run_reviewed(
            task, request.text, settings, budget, models=models, facts=facts,
            requested_tokens=len(request.text) // 4,
        )  # fmt: skip
    return await combined.run_chunked(task, request.text, settings, budget, models=models, facts=facts)


def result_fields(done: Deliberation) -> dict[str, object]:
    """The result as the preset's own fields have it."""
    of_preset = {
        "pass": reflection_pass.result_fields,
        "quality": quality.result_fields,
        "review": review.result_fields,
        "chunked": chunked.result_fields,
    }
    return of_preset[done.preset](done)
