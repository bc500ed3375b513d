"""How do a model's words move from one prompt or model to another? Both are asked about the same run.

About plans the second reader gives verdicts, at snapshots the strategist makes decisions.

Replies are kept in a folder under the hash of the template: what is there is played back, what is missing is
asked and kept, so the second look needs neither key nor network. Replies that were not all taken down leave
no cassette.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from prompts import PromptTemplate
from schemas.canonical import content_hash
from schemas.errors import CassetteMiss, ConfigError
from schemas.settings import Settings
from services.journal.consolidations import AnsweredConsolidation
from services.model_calls.wording import PLAIN_RUN, Wordings
from worker.studies.models.decision_moves import distribution, moves, paired_test
from worker.studies.models.model_comparison import Pair, compared
from worker.studies.models.model_panel import Sample, open_panel
from worker.studies.models.model_questions import RecordedQuestions, first_of_each
from worker.studies.models.model_spread import Progress
from worker.studies.models.strategist_panel import Decided, open_strategist
from worker.studies.models.strategist_questions import StrategistQuestion, StrategistQuestions

NO_REPLY = "no reply"
STEM_DIGITS = 16
SIDES = ("first", "second")
Q = TypeVar("Q")
A = TypeVar("A")
Q_in = TypeVar("Q_in", contravariant=True)
A_out = TypeVar("A_out", covariant=True)


@dataclass(frozen=True)
class Asking:
    """One way to ask: the words, and whom.

    Attributes:
        template: words the questions.
        settings: model, prices, limits, deadline and envelope.
        stem: name of the cassette.
        wordings: of the data in a strategist's questions.
    """

    template: PromptTemplate
    settings: Settings
    stem: str
    wordings: Wordings = PLAIN_RUN

    @classmethod
    def of_prompt(
        cls, template: PromptTemplate, settings: Settings, wordings: Wordings = PLAIN_RUN
    ) -> "Asking":
        """With a cassette by the template alone."""
        return cls(template, settings, template.hash[:STEM_DIGITS], wordings)

    @classmethod
    def of_strategist(cls, template: PromptTemplate, settings: Settings, wordings: Wordings) -> "Asking":
        """With a cassette by the template and the strategist's model, wherever it answers."""
        llm = settings.llm
        model = content_hash([llm.provider, llm.base_url, llm.strategist_model, llm.anonymise])
        return cls(template, settings, f"{template.hash[:STEM_DIGITS]}-{model[:STEM_DIGITS]}", wordings)


class Panel(Protocol[Q_in, A_out]):
    """A model with one template, asked one question after the other."""

    async def sample(self, question: Q_in, /) -> A_out:
        """What it answers."""
        ...


Open = Callable[[Asking, Settings], AbstractAsyncContextManager[Panel[Q, A]]]


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

    def opened(
        asking: Asking, values: Settings
    ) -> AbstractAsyncContextManager[Panel[AnsweredConsolidation, Sample]]:
        return open_panel(values, asking.template, questions, environment)

    askings = tuple(Asking.of_prompt(template, settings) for template in templates)
    first, second = await _both(plans, askings, folder, opened, _has_verdict, progress)
    pairs = [
        Pair(replace(plan, final=before.final), after)
        for plan, before, after in zip(plans, first, second, strict=True)
        if before.final is not None
    ]
    return {
        "run_id": questions.run_id,
        "template": templates[0].name,
        "prompt": {"recorded": templates[0].hash, "asked": templates[1].hash},
        "model": {"recorded": settings.llm.fast_model, "asked": settings.llm.fast_model},
        "verdicts": {"first": _verdicts(first), "second": _verdicts(second)},
        **compared(pairs),
        "questions": len(plans),
        "latency_ms": None,
        "recorded_unanswered": {},
        "left_out": questions.left_out,
    }


async def diff_decisions(
    questions: StrategistQuestions,
    askings: tuple[Asking, Asking],
    folder: Path,
    environment: Mapping[str, str],
    *,
    limit: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """The document: decisions of a strategist asked in two ways, and the snapshots on which they differ.

    Args:
        questions: snapshots of a run.
        askings: the first way and the second.
        folder: of the cassettes; made when it is not there.
        environment: for a key, where there is no cassette yet.
        limit: only the first snapshots.
        progress: told the replies so far and those in all.

    Raises:
        ConfigError: the folder or a cassette cannot be used, or no model can be asked.
    """
    asked = questions.asked[:limit]

    def opened(
        asking: Asking, values: Settings
    ) -> AbstractAsyncContextManager[Panel[StrategistQuestion, Decided]]:
        return open_strategist(values, asking.template, asking.wordings, environment)

    first, second = await _both(asked, askings, folder, opened, _has_decision, progress)
    told = list(zip(asked, first, second, strict=True))
    both = [one for one in told if one[1].replied and one[2].replied]
    pairs = [(before.decision, after.decision) for _, before, after in both]
    moved = moves(pairs)
    return {
        "run_id": questions.run_id,
        "template": askings[0].template.name,
        "prompt": {"first": askings[0].template.hash, "second": askings[1].template.hash},
        "model": {name: one.settings.llm.strategist_model for name, one in zip(SIDES, askings, strict=True)},
        "same": not moved and len(both) == len(told),
        "questions": len(told),
        "compared": len(both),
        "unchanged": sum(before == after for before, after in pairs),
        "other_plan": sum(_only_plan_differs(before, after) for _, before, after in both),
        "moved": sum(one["count"] for one in moved),
        "decisions": {
            "first": distribution([one.decision for one in first]),
            "second": distribution([one.decision for one in second]),
        },
        "moves": moved,
        "test": paired_test(pairs),
        "changed": [_moved(*one) for one in both if one[1].decision != one[2].decision],
        "missing": sum(not one.replied for one in (*first, *second)),
        "tokens": sum(one.tokens for one in (*first, *second)),
        "usd": sum(one.usd for one in (*first, *second)),
        "left_out": questions.left_out,
        "without_background": questions.without_background,
    }


def _only_plan_differs(before: Decided, after: Decided) -> bool:
    return before.decision == after.decision and before.plan != after.plan


def _moved(question: StrategistQuestion, before: Decided, after: Decided) -> dict[str, Any]:
    snapshot = question.snapshot
    return {
        "seq": question.seq,
        "known_at": snapshot.known_at,
        "symbol": snapshot.symbol,
        "state": str(snapshot.state),
        "from": before.decision,
        "to": after.decision,
    }


def _has_verdict(sample: Sample) -> bool:
    return sample.failure is None


def _has_decision(said: Decided) -> bool:
    return said.replied


async def _both(
    questions: Sequence[Q],
    askings: Sequence[Asking],
    folder: Path,
    opened: Open[Q, A],
    whole: Callable[[A], bool],
    progress: Progress,
) -> tuple[list[A], list[A]]:
    """What both ways of asking got to hear, each from its cassette or asked and kept."""
    said: list[list[A]] = []
    for asking in askings:
        done = len(said) * len(questions)

        def told(number: int, done: int = done) -> None:
            progress(done + number, 2 * len(questions))

        said.append(await _answers(questions, asking, folder, opened, whole, told))
    return said[0], said[1]


async def _answers(
    questions: Sequence[Q],
    asking: Asking,
    folder: Path,
    opened: Open[Q, A],
    whole: Callable[[A], bool],
    told: Callable[[int], None],
) -> list[A]:
    """One answer to each question, played back or asked and kept."""
    kept, part = _files(folder, asking.stem)
    replay = kept.exists()
    source = {"llm": "replay", "cassette": str(kept)} if replay else {"llm": "record", "cassette": str(part)}
    values = asking.settings.payload()
    values["runtime"] |= source
    answers = []
    async with opened(asking, Settings.model_validate(values)) as panel:
        for number, question in enumerate(questions):
            told(number)
            try:
                answers.append(await panel.sample(question))
            except CassetteMiss as error:
                raise ConfigError(
                    f"{str(kept)!r} was made of other questions or settings: delete it, and they are asked "
                    "anew"
                ) from error
        told(len(questions))
    if not replay and all(whole(one) for one in answers):
        os.replace(part, kept)
    return answers


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
    said = Counter(NO_REPLY if one.final is None else one.final.value for one in samples)
    return dict(sorted(said.items()))
