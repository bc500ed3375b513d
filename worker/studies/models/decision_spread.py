"""How much do a strategist's decisions vary when the same question is asked again? Nothing is stored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prompts import PromptTemplate
from schemas.settings import Settings
from worker.studies.models.decision_moves import distribution
from worker.studies.models.model_spread import Progress
from worker.studies.models.strategist_panel import Decided, open_strategist
from worker.studies.models.strategist_questions import StrategistQuestion, StrategistQuestions


async def spread_of_decisions(
    questions: StrategistQuestions,
    settings: Settings,
    template: PromptTemplate,
    environment: Mapping[str, str],
    *,
    samples: int,
    limit: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """The document: each snapshot asked about `samples` times.

    Raises:
        ConfigError: no model can be asked.
        CassetteMiss: a sample is played back and was not recorded.
    """
    asked = questions.asked[:limit]
    told: list[list[Decided]] = []
    async with open_strategist(settings, template, questions.wordings, environment) as panel:
        for number, question in enumerate(asked):
            told.append([])
            for taken in range(samples):
                progress(number * samples + taken, len(asked) * samples)
                told[-1].append(await panel.sample(question))
        progress(len(asked) * samples, len(asked) * samples)
    said = [[sample.decision for sample in found if sample.replied] for found in told]
    answered = sum(map(len, said))
    every = [sample for found in told for sample in found]
    return {
        "run_id": questions.run_id,
        "model": settings.llm.strategist_model,
        "prompt_hash": template.hash,
        "samples": samples,
        "questions": len(asked),
        "answered": answered,
        "usual_share": sum(map(_usual, said)) / answered if answered else None,
        "stable": sum(len(set(found)) == 1 for found in said),
        "decisions": distribution([name for found in said for name in found]),
        "varying": _varying(asked, said),
        "failed": distribution([sample.decision for sample in every if not sample.replied]),
        "tokens": sum(sample.tokens for sample in every),
        "usd": sum(sample.usd for sample in every),
        "left_out": questions.left_out,
    }


def _usual(said: Sequence[str]) -> int:
    """Answers with the most frequent decision."""
    return max(Counter(said).values(), default=0)


def _varying(asked: Sequence[StrategistQuestion], said: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Snapshots with more than one decision; those whose usual one has the smallest share first."""
    found = [(question, names) for question, names in zip(asked, said, strict=True) if len(set(names)) > 1]
    found.sort(key=lambda pair: (_usual(pair[1]) / len(pair[1]), pair[0].seq))
    return [
        {
            "seq": question.seq,
            "known_at": question.snapshot.known_at,
            "symbol": question.snapshot.symbol,
            "state": str(question.snapshot.state),
            "decisions": distribution(names),
        }
        for question, names in found
    ]
