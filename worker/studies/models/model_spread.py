"""How much do a model's verdicts vary when the same question is asked again? Nothing is stored."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.language_models.cassette import Cassette
from prompts import PromptTemplate
from schemas.errors import ConfigError
from schemas.settings import Settings
from schemas.vocabulary import ReflectionStatus
from services.journal.consolidations import AnsweredConsolidation
from services.model_calls.record import RecordedCall
from services.policy_checks.consolidation import finding_ids, stated_verdict
from services.policy_level_reflection_service import PROMPT
from worker.studies.models.model_panel import Sample, open_panel
from worker.studies.models.model_questions import RecordedQuestions, demand_same_questions, first_of_each

Progress = Callable[[int, int], None]
MALFORMED = "model_reply_malformed"
VERDICTS = tuple(status.value for status in ReflectionStatus)


@dataclass
class Asked:
    """One question: what it was about, its recorded verdict, and the samples."""

    about: dict[str, Any]
    recorded: ReflectionStatus | None
    samples: list[Sample] = field(default_factory=list)

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
        return sum(one.final is self.recorded for one in self.samples if one.final is not None)

    @property
    def unstable(self) -> bool:
        """Whether some sample gave another verdict."""
        return any(one.final not in (None, self.recorded) for one in self.samples)


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
    asked = []
    async with open_panel(settings, template, questions, environment) as panel:
        for number, plan in enumerate(plans):
            progress(number * samples, len(plans) * samples)
            one = Asked(about_plan(plan), plan.final)
            for taken in range(samples):
                one.samples.append(await panel.sample(plan))
                progress(number * samples + taken + 1, len(plans) * samples)
            asked.append(one)
        latency = panel.account.document()["latency_ms"]
    head = {"run_id": questions.run_id, "cassette": None, "basis": "final", "model": settings.llm.fast_model}
    recorded = {"recorded_unanswered": questions.unanswered, "left_out": questions.left_out}
    return _document(head | {"prompt_hash": template.hash}, asked, latency, samples) | recorded


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
    others = Counter(call.prompt for call in calls if call.prompt != PROMPT)
    largest = max(len(found) for found in by_key.values()) - 1
    recorded = {"recorded_unanswered": {}, "left_out": dict(sorted(others.items()))}
    return _document(head | {"prompt_hash": first.prompt_hash}, asked, None, largest) | recorded


def about_plan(plan: AnsweredConsolidation) -> dict[str, Any]:
    """Where a question comes from."""
    request = plan.request
    return {
        "seq": plan.seq,
        "known_at": request.snapshot.known_at,
        "symbol": request.snapshot.symbol,
        "playbook_id": request.playbook.id,
        "direction": request.proposal.direction,
        "reflection_hash": plan.reflection_hash,
        "findings": list(finding_ids(plan.findings)),
        "rules": plan.rules.value,
    }


def _from_calls(key: str, calls: Sequence[RecordedCall]) -> Asked:
    first, *rest = (_stated(call) for call in calls)
    return Asked({"key": key}, first.final, rest)


def _stated(call: RecordedCall) -> Sample:
    tokens = 0 if call.usage is None else call.usage.total
    if not call.replied:
        return Sample(failure=call.outcome, tokens=tokens)
    verdict = stated_verdict(call.text)
    return Sample(final=verdict, refused=None if verdict else MALFORMED, tokens=tokens)


def _document(
    head: dict[str, Any], asked: Sequence[Asked], latency: dict[str, Any] | None, samples: int
) -> dict[str, Any]:
    everything = [sample for one in asked for sample in one.samples]
    return {
        **head,
        "samples": samples,
        "questions": len(asked),
        "unstable": sum(one.unstable for one in asked),
        **_figures(everything, sum(one.agreeing for one in asked)),
        "latency_ms": latency,
        "by_question": [one.document() for one in asked],
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
        "refused": _counted(sample.refused for sample in samples),
        "failed": _counted(sample.failure for sample in samples),
        "malformed_share": malformed / answered if answered else None,
        "late_share": late_share(samples),
        "tokens": sum(sample.tokens for sample in samples),
        "usd": dollars(samples),
    }


def _counted(names: Any) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name is not None).items()))


def late_share(samples: Sequence[Sample]) -> float | None:
    """Share of the replies for which a run would not have waited; None where that is not known."""
    known = [sample.late for sample in samples if sample.failure is None and sample.late is not None]
    return sum(known) / len(known) if known else None


def dollars(samples: Sequence[Sample]) -> float | None:
    """What the samples cost; None where that is not known."""
    known = [sample.usd for sample in samples if sample.usd is not None]
    return sum(known) if known else None
