"""How much does a model vary when the same question is asked again? Nothing is stored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.language_models.cassette import Cassette
from prompts import PromptTemplate
from schemas.errors import ConfigError
from schemas.settings import Settings
from schemas.settings.providers import model_name
from schemas.vocabulary import ReflectionStatus
from services.model_calls.record import RecordedCall
from services.policy_checks.consolidation import stated_verdict
from services.policy_level_reflection_service import PROMPT
from worker.studies.models.comparison import about_plan, late_share
from worker.studies.models.panel import Progress, dollars, study, tally
from worker.studies.models.second_reader import (
    RecordedQuestions,
    Sample,
    demand_same_questions,
    first_of_each,
)
from worker.studies.models.strategist import DQ, D, DecisionQuestion, DecisionQuestions

MALFORMED = "model_reply_malformed"
VERDICTS = tuple(status.value for status in ReflectionStatus)


@dataclass(frozen=True)
class Asked:
    """One question: what it was about, its recorded verdict, and the samples."""

    about: dict[str, Any]
    recorded: ReflectionStatus | None
    samples: Sequence[Sample]

    def document(self) -> dict[str, Any]:
        """The figures of this question."""
        return {
            **self.about,
            "recorded": None if self.recorded is None else self.recorded.value,
            **_figures(self.samples, self.agreeing),
        }

    @property
    def agreeing(self) -> int:
        """Samples with the recorded verdict."""
        return sum(sample.final is self.recorded for sample in self.samples if sample.final is not None)

    @property
    def unstable(self) -> bool:
        """Whether some sample gave another verdict."""
        return any(sample.final not in (None, self.recorded) for sample in self.samples)


async def spread_of_run(
    questions: RecordedQuestions,
    settings: Settings,
    template: PromptTemplate,
    environment: Mapping[str, str],
    *,
    samples: int,
    limit: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """The document of a run: each of its questions asked `samples` times more.

    Raises:
        ConfigError: the questions are others by now, or no model can be asked.
        CassetteMiss: a sample is played back and was not recorded.
    """
    demand_same_questions(questions, template)
    plans = first_of_each(questions, template, limit)
    found = await study(questions, plans, settings, template, environment, samples=samples, progress=progress)
    asked = [
        Asked(about_plan(plan), plan.final, said) for plan, said in zip(plans, found.samples, strict=True)
    ]
    head = {
        "run_id": questions.run_id,
        "cassette": None,
        "basis": "final",
        "model": model_name(settings.llm.fast_model).name,
    }
    recorded = {"recorded_unanswered": questions.unanswered, "left_out": questions.left_out}
    return _document(head | {"prompt_hash": template.hash}, asked, found.latency_ms, samples) | recorded


def spread_of_cassette(cassette: Cassette, name: str, limit: int | None) -> dict[str, Any]:
    """The document of a cassette: what its replies state, the first one of each question against the others.

    A cassette holds no findings, so nothing is weighed: a verdict is the one that the reply states.

    Raises:
        ConfigError: it holds no call about a plan.
    """
    by_key: dict[str, list[RecordedCall]] = {}
    calls = sorted(cassette.calls(), key=lambda call: call.repeat)
    for call in calls:
        if call.prompt == PROMPT:
            by_key.setdefault(call.key, []).append(call)
    if not by_key:
        raise ConfigError(f"cassette {name!r} holds no call about a plan (prompt {PROMPT!r})")
    asked = [_from_calls(key, found) for key, found in sorted(by_key.items())][:limit]
    first = next(iter(by_key.values()))[0]
    head = {"run_id": None, "cassette": name, "basis": "stated", "model": first.model}
    others = tally(call.prompt for call in calls if call.prompt != PROMPT)
    largest = max(len(found) for found in by_key.values()) - 1
    recorded = {"recorded_unanswered": {}, "left_out": others}
    return _document(head | {"prompt_hash": first.prompt_hash}, asked, None, largest) | recorded


async def spread_of_decisions(
    questions: DecisionQuestions[DQ, D],
    settings: Settings,
    template: PromptTemplate,
    environment: Mapping[str, str],
    *,
    samples: int,
    limit: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """The document: each question asked `samples` times.

    Raises:
        ConfigError: no model can be asked.
        CassetteMiss: a sample is played back and was not recorded.
    """
    asked = questions.asked[:limit]
    found = await study(questions, asked, settings, template, environment, samples=samples, progress=progress)
    said = [[sample.decision for sample in samples_of if sample.replied] for samples_of in found.samples]
    answered = sum(map(len, said))
    return {
        "run_id": questions.run_id,
        "model": model_name(getattr(settings.llm, questions.asks.model_setting)).name,
        "prompt_hash": template.hash,
        "samples": samples,
        "questions": len(asked),
        "answered": answered,
        "usual_share": sum(map(_usual, said)) / answered if answered else None,
        "stable": sum(len(set(names)) == 1 for names in said),
        "decisions": tally(name for names in said for name in names),
        "varying": _varying(asked, said),
        "failed": tally(answer.decision for answer in found.every if not answer.replied),
        **questions.figures(found.every),
        "tokens": sum(answer.tokens for answer in found.every),
        "usd": dollars(found.every) or 0.0,
        "left_out": questions.left_out,
    }


def _usual(said: Sequence[str]) -> int:
    """Answers with the most frequent decision."""
    return max(Counter(said).values(), default=0)


def _varying(asked: Sequence[DecisionQuestion], said: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Questions with more than one decision; those whose usual one has the smallest share first."""
    found = [(question, names) for question, names in zip(asked, said, strict=True) if len(set(names)) > 1]
    found.sort(key=lambda pair: (_usual(pair[1]) / len(pair[1]), pair[0].seq))
    return [{**question.about(), "decisions": tally(names)} for question, names in found]


def _from_calls(key: str, calls: Sequence[RecordedCall]) -> Asked:
    first, *rest = (_read_sample(call) for call in calls)
    return Asked({"key": key}, first.final, rest)


def _read_sample(call: RecordedCall) -> Sample:
    tokens = 0 if call.usage is None else call.usage.total
    if not call.replied:
        return Sample(failure=call.outcome, tokens=tokens)
    verdict = stated_verdict(call.text)
    return Sample(final=verdict, refused=None if verdict else MALFORMED, tokens=tokens)


def _document(
    head: dict[str, Any], asked: Sequence[Asked], latency: dict[str, Any] | None, samples: int
) -> dict[str, Any]:
    everything = [sample for question in asked for sample in question.samples]
    return {
        **head,
        "samples": samples,
        "questions": len(asked),
        "unstable": sum(question.unstable for question in asked),
        **_figures(everything, sum(question.agreeing for question in asked)),
        "latency_ms": latency,
        "by_question": [question.document() for question in asked],
    }


def _figures(samples: Sequence[Sample], agreeing: int) -> dict[str, Any]:
    judged = [sample for sample in samples if sample.final is not None]
    verdicts = Counter(sample.final.value for sample in judged if sample.final is not None)
    answered = sum(sample.failure is None for sample in samples)
    malformed = sum(sample.refused == MALFORMED for sample in samples)
    return {
        "asked": len(samples),
        "answered": answered,
        "agreement": agreeing / len(judged) if judged else None,
        "verdicts": {name: verdicts[name] for name in VERDICTS},
        "refused": tally(sample.refused for sample in samples),
        "failed": tally(sample.failure for sample in samples),
        "malformed_share": malformed / answered if answered else None,
        "late_share": late_share(samples),
        "tokens": sum(sample.tokens for sample in samples),
        "usd": dollars(samples),
    }
