"""How do verdicts move from one prompt to another? Both are asked about the same plans of a run.

Replies of a prompt are kept in a folder under the hash of its template: what is there is played back, what
is missing is asked and kept, so the second look at two prompts needs neither key nor network. A prompt whose
replies were not all taken down leaves no cassette. Called by `thinktwice prompts diff`.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prompts import PromptTemplate
from schemas.config import Settings
from schemas.errors import CassetteMiss, ConfigError
from services.journal.consolidations import AnsweredConsolidation
from worker.model_comparison import Pair, compared
from worker.model_panel import Sample, open_panel
from worker.model_questions import RecordedQuestions, first_of_each
from worker.model_spread import Progress

NO_REPLY = "no reply"


async def diff_prompts(
    questions: RecordedQuestions,
    settings: Settings,
    templates: tuple[PromptTemplate, PromptTemplate],
    folder: Path,
    environment: Mapping[str, str],
    *,
    limit: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """The document: verdicts of both prompts, and the plans on which the second differs from the first.

    Args:
        questions: plans of a run.
        settings: model, prices and limits.
        templates: the first prompt and the second.
        folder: of the cassettes; made when it is not there.
        environment: for a key, where a prompt has no cassette yet.
        limit: only the first plans.
        progress: told the replies so far and those in all.

    Raises:
        ConfigError: the folder or a cassette cannot be used, or no model can be asked.
    """
    plans = first_of_each(questions, templates[0], limit)
    said: list[list[Sample]] = []
    for template in templates:
        done = len(said) * len(plans)

        def told(number: int, _: int, done: int = done) -> None:
            progress(done + number, 2 * len(plans))

        said.append(await _samples(questions, settings, template, plans, folder, environment, told))
    first, second = said
    pairs = [
        Pair(replace(plan, final=before.final), after)
        for plan, before, after in zip(plans, first, second, strict=True)
        if before.final is not None
    ]
    return {
        "run_id": questions.run_id,
        "prompt": {"recorded": templates[0].hash, "asked": templates[1].hash},
        "model": {"recorded": settings.llm.fast_model, "asked": settings.llm.fast_model},
        "verdicts": {"first": _verdicts(first), "second": _verdicts(second)},
        **compared(pairs),
        "questions": len(plans),
        "latency_ms": None,
        "recorded_unanswered": {},
        "left_out": questions.left_out,
    }


async def _samples(
    questions: RecordedQuestions,
    settings: Settings,
    template: PromptTemplate,
    plans: Sequence[AnsweredConsolidation],
    folder: Path,
    environment: Mapping[str, str],
    progress: Progress,
) -> list[Sample]:
    """One reply about each plan, played back or asked and kept."""
    kept, part = _files(folder, template)
    replay = kept.exists()
    source = {"llm": "replay", "cassette": str(kept)} if replay else {"llm": "record", "cassette": str(part)}
    values = settings.payload()
    values["runtime"] |= source
    samples = []
    async with open_panel(
        Settings.model_validate(values), template, questions.max_tokens, environment
    ) as panel:
        for number, plan in enumerate(plans):
            progress(number, len(plans))
            try:
                samples.append(await panel.sample(plan))
            except CassetteMiss as error:
                raise ConfigError(
                    f"{str(kept)!r} was made of other plans or settings: delete it, and they are asked anew"
                ) from error
        progress(len(plans), len(plans))
    if not replay and all(sample.failure is None for sample in samples):
        os.replace(part, kept)
    return samples


def _files(folder: Path, template: PromptTemplate) -> tuple[Path, Path]:
    """The cassette of a prompt, and where it grows until it is whole."""
    kept = folder / f"{template.hash[:16]}.jsonl"
    part = kept.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--cassette {str(folder)!r}: {error.strerror}: name another folder") from error
    return kept, part


def _verdicts(samples: Sequence[Sample]) -> dict[str, int]:
    """How often each verdict was given, the rules' floor included."""
    said = Counter(NO_REPLY if one.final is None else one.final.value for one in samples)
    return dict(sorted(said.items()))
