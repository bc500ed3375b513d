"""How do a model's words move from one prompt or model to another? Both are asked about the same run.

About plans the second reader gives verdicts, at snapshots the strategist makes decisions.

Replies are kept in a folder under the hash of the template: what is there is played back, what is missing is
asked and kept, so the second look needs neither key nor network. Replies that were not all taken down leave
no cassette.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

from prompts import PromptTemplate
from schemas.canonical import content_hash
from schemas.errors import CassetteMiss, ConfigError
from schemas.settings import Settings
from schemas.settings.providers import model_name
from worker.studies.models.comparison import Pair, compare_pairs, moves, paired_test
from worker.studies.models.panel import A, Progress, Q, Questions, dollars, study, tally
from worker.studies.models.second_reader import RecordedQuestions, Sample, first_of_each
from worker.studies.models.strategist import DQ, D, DecisionQuestions

NO_REPLY = "no reply"
STEM_DIGITS = 16
SIDES = ("first", "second")


@dataclass(frozen=True)
class Asking(Generic[Q, A]):
    """One way to ask: the words, and whom.

    Attributes:
        template: words the questions.
        settings: model, prices, limits, deadline and envelope.
        questions: their kind, and how their data is worded.
        by_model: whether the cassette is also named by the model, wherever it answers.
    """

    template: PromptTemplate
    settings: Settings
    questions: Questions[Q, A]
    by_model: bool = False

    @property
    def model(self) -> str:
        """Who is asked."""
        return model_name(getattr(self.settings.llm, self.questions.asks.model_setting)).name

    @property
    def stem(self) -> str:
        """Name of the cassette."""
        llm, stem = self.settings.llm, self.template.hash[:STEM_DIGITS]
        model = content_hash([llm.model, llm.base_url, self.model, llm.anonymise])
        return f"{stem}-{model[:STEM_DIGITS]}" if self.by_model else stem


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
    first, second = await _both(
        plans,
        [Asking(template, settings, questions) for template in templates],
        folder,
        environment,
        lambda sample: sample.failure is None,
        progress,
    )
    pairs = [
        Pair(replace(plan, final=before.final), after)
        for plan, before, after in zip(plans, first, second, strict=True)
        if before.final is not None
    ]
    return {
        "run_id": questions.run_id,
        "template": templates[0].name,
        "prompt": {"recorded": templates[0].hash, "asked": templates[1].hash},
        "model": dict.fromkeys(("recorded", "asked"), model_name(settings.llm.fast_model).name),
        "verdicts": dict(zip(SIDES, map(_verdicts, (first, second)), strict=True)),
        **compare_pairs(pairs),
        "questions": len(plans),
        "latency_ms": None,
        "recorded_unanswered": {},
        "left_out": questions.left_out,
    }


async def diff_decisions(
    questions: DecisionQuestions[DQ, D],
    askings: tuple[Asking[DQ, D], Asking[DQ, D]],
    folder: Path,
    environment: Mapping[str, str],
    *,
    limit: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """The document: decisions of a model asked in two ways, and the questions on which they differ.

    Args:
        questions: of a run.
        askings: the first way and the second.
        folder: of the cassettes; made when it is not there.
        environment: for a key, where there is no cassette yet.
        limit: only the first questions.
        progress: told the replies so far and those in all.

    Raises:
        ConfigError: the folder or a cassette cannot be used, or no model can be asked.
    """
    asked = questions.asked[:limit]
    first, second = await _both(asked, askings, folder, environment, lambda said: said.replied, progress)
    told = list(zip(asked, first, second, strict=True))
    both = [row for row in told if row[1].replied and row[2].replied]
    pairs = [(before.decision, after.decision) for _, before, after in both]
    moved = moves(pairs)
    return {
        "run_id": questions.run_id,
        "template": askings[0].template.name,
        "prompt": {"first": askings[0].template.hash, "second": askings[1].template.hash},
        "model": {name: asking.model for name, asking in zip(SIDES, askings, strict=True)},
        "same": not moved and len(both) == len(told),
        "questions": len(told),
        "compared": len(both),
        "unchanged": sum(before == after for before, after in pairs),
        "other_plan": sum(a.decision == b.decision and a.plan != b.plan for _, a, b in both),
        "moved": sum(move["count"] for move in moved),
        "decisions": {
            name: tally(answer.decision for answer in said)
            for name, said in zip(SIDES, (first, second), strict=True)
        },
        "moves": moved,
        "test": paired_test(pairs),
        **questions.figures(first, second),
        "changed": [
            {**question.about(), "from": before.decision, "to": after.decision}
            for question, before, after in both
            if before.decision != after.decision
        ],
        "missing": sum(not answer.replied for answer in (*first, *second)),
        "tokens": sum(answer.tokens for answer in (*first, *second)),
        "usd": dollars((*first, *second)) or 0.0,
        "left_out": questions.left_out,
        "without_background": questions.without_background,
    }


async def _both(
    asked: Sequence[Q],
    askings: Sequence[Asking[Q, A]],
    folder: Path,
    environment: Mapping[str, str],
    whole: Callable[[A], bool],
    progress: Progress,
) -> tuple[list[A], list[A]]:
    """What both ways of asking got to hear, each from its cassette or asked and kept."""
    said: list[list[A]] = []
    for asking in askings:
        done = len(said) * len(asked)

        def tell(number: int, _: int, done: int = done) -> None:
            progress(done + number, 2 * len(asked))

        said.append(await _answers(asked, asking, folder, environment, whole, tell))
    return said[0], said[1]


async def _answers(
    asked: Sequence[Q],
    asking: Asking[Q, A],
    folder: Path,
    environment: Mapping[str, str],
    whole: Callable[[A], bool],
    told: Progress,
) -> list[A]:
    """One answer to each question, played back or asked and kept."""
    kept, part = _files(folder, asking.stem)
    replay = kept.exists()
    source = {"llm": "replay", "cassette": str(kept)} if replay else {"llm": "record", "cassette": str(part)}
    values = asking.settings.payload()
    values["runtime"] |= source
    settings = Settings.model_validate(values)
    try:
        found = await study(
            asking.questions, asked, settings, asking.template, environment, samples=1, progress=told
        )
    except CassetteMiss as error:
        raise ConfigError(
            f"{str(kept)!r} was made of other questions or settings: delete it, and they are asked anew"
        ) from error
    if not replay and all(whole(sample) for sample in found.every):
        os.replace(part, kept)
    return found.every


def _files(folder: Path, stem: str) -> tuple[Path, Path]:
    """A cassette, and where it grows until it is whole."""
    kept = folder / f"{stem}.jsonl"
    part = kept.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--cassette {str(folder)!r}: {error.strerror}: name another folder") from error
    return kept, part


def _verdicts(samples: Sequence[Sample]) -> dict[str, int]:
    """How often each verdict was given, the rules' floor included."""
    return tally(NO_REPLY if sample.final is None else sample.final.value for sample in samples)
