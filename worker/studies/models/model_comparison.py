"""What does another prompt or another model change? Recorded questions are worded and asked anew.

The paired test is the exact sign test on the verdicts that moved: whether stricter and milder are equally
likely. Nothing is stored.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from prompts import PromptTemplate
from schemas.settings import Settings
from services.journal.consolidations import AnsweredConsolidation
from services.policy_checks.consolidation import STRICTNESS
from worker.studies.models.model_panel import Sample, open_panel
from worker.studies.models.model_questions import RecordedQuestions, first_of_each
from worker.studies.models.model_spread import Progress, about_plan, dollars, late_share


@dataclass(frozen=True)
class Pair:
    """One question with its recorded verdict and the new one."""

    plan: AnsweredConsolidation
    sample: Sample

    @property
    def move(self) -> int:
        """Above zero: stricter than recorded; below: milder; 0 also without an answer."""
        if self.sample.final is None:
            return 0
        return STRICTNESS[self.sample.final] - STRICTNESS[self.plan.final]

    def document(self) -> dict[str, Any]:
        """Where it is, and from what to what."""
        after = None if self.sample.final is None else self.sample.final.value
        moved = {"from": self.plan.final.value, "to": after, "cited": list(self.sample.cited)}
        return about_plan(self.plan) | moved | {"refused": self.sample.refused, "failed": self.sample.failure}


async def compare_run(
    questions: RecordedQuestions,
    settings: Settings,
    template: PromptTemplate,
    environment: Mapping[str, str],
    *,
    limit: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """The document: every recorded question asked once more in the words of `template`.

    Raises:
        ConfigError: no model can be asked.
        CassetteMiss: a reply is played back and was not recorded.
    """
    plans = first_of_each(questions, template, limit)
    pairs = []
    async with open_panel(settings, template, questions, environment) as panel:
        for number, plan in enumerate(plans):
            progress(number, len(plans))
            pairs.append(Pair(plan, await panel.sample(plan)))
        progress(len(plans), len(plans))
        latency = panel.account.document()["latency_ms"]
    return {
        "run_id": questions.run_id,
        "prompt": {"recorded": questions.prompt_hash, "asked": template.hash},
        "model": {"recorded": questions.model, "asked": settings.llm.fast_model},
        **compared(pairs),
        "latency_ms": latency,
        "recorded_unanswered": questions.unanswered,
        "left_out": questions.left_out,
    }


def compared(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The figures of some pairs; `same` only when every question was answered as recorded."""
    stricter, milder = sum(pair.move > 0 for pair in pairs), sum(pair.move < 0 for pair in pairs)
    failed = Counter(pair.sample.failure for pair in pairs if pair.sample.failure is not None)
    refused = Counter(pair.sample.refused for pair in pairs if pair.sample.refused is not None)
    return {
        "same": not (stricter or milder or failed),
        "questions": len(pairs),
        "answered": len(pairs) - failed.total(),
        "unchanged": len(pairs) - failed.total() - stricter - milder,
        "stricter": stricter,
        "milder": milder,
        "p_value": sign_test(stricter, milder),
        "transitions": _transitions(pairs),
        "changed": [pair.document() for pair in pairs if pair.move],
        "refused": dict(sorted(refused.items())),
        "failed": dict(sorted(failed.items())),
        "tokens": sum(pair.sample.tokens for pair in pairs),
        "late_share": late_share([pair.sample for pair in pairs]),
        "usd": dollars([pair.sample for pair in pairs]),
    }


def sign_test(stricter: int, milder: int) -> float | None:
    """Two-sided exact p-value of the sign test; None when no verdict moved."""
    moved = stricter + milder
    if not moved:
        return None
    tail = sum(comb(moved, k) for k in range(min(stricter, milder) + 1))
    return float(min(1.0, 2 * tail / 2**moved))


def _transitions(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Moves from one verdict to another, milder ones first, with the findings of the plans that moved."""
    moves: dict[tuple[str, str], list[Pair]] = {}
    for pair in sorted((pair for pair in pairs if pair.move), key=lambda pair: pair.move):
        after = pair.sample.final
        moves.setdefault((pair.plan.final.value, "" if after is None else after.value), []).append(pair)
    return [
        {"from": before, "to": after, "count": len(found), "findings": _codes(found)}
        for (before, after), found in moves.items()
    ]


def _codes(pairs: Sequence[Pair]) -> dict[str, int]:
    """How many of the plans hold a finding of each code; those without any count as `none`."""
    codes: Counter[str] = Counter()
    for pair in pairs:
        codes.update({found.code for found in pair.plan.findings} or {"none"})
    return dict(sorted(codes.items()))
