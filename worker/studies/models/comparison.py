"""What does another prompt or another model change? Pairs of answers to the same questions, and exact tests.

Verdicts are ordered: the paired test is the sign test on those that moved, whether stricter and milder are
equally likely. Decisions are not: the test is McNemar's of each kind, exact: are as many questions lost by a
kind as it wins? Its p-values are adjusted by Holm, so the smallest one is that of "nothing moved in any
direction". Kinds that nothing left or entered say nothing and are not tested. Nothing is stored.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from prompts import PromptTemplate
from schemas.settings import Settings
from schemas.settings.providers import model_name
from services.journal.consolidations import AnsweredConsolidation
from services.policy_checks.consolidation import STRICTNESS, finding_ids
from worker.studies.models.panel import Progress, dollars, study, tally
from worker.studies.models.second_reader import RecordedQuestions, Sample, first_of_each

Move = tuple[str, str]
TWO_KINDS = 2


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
    found = await study(questions, plans, settings, template, environment, samples=1, progress=progress)
    pairs = [Pair(plan, sample) for plan, sample in zip(plans, found.every, strict=True)]
    return {
        "run_id": questions.run_id,
        "prompt": {"recorded": questions.prompt_hash, "asked": template.hash},
        "model": {"recorded": questions.model, "asked": model_name(settings.llm.fast_model).name},
        **compare_pairs(pairs),
        "latency_ms": found.latency_ms,
        "recorded_unanswered": questions.unanswered,
        "left_out": questions.left_out,
    }


def compare_pairs(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The figures of some pairs; `same` only when every question was answered as recorded."""
    stricter, milder = sum(pair.move > 0 for pair in pairs), sum(pair.move < 0 for pair in pairs)
    samples = [pair.sample for pair in pairs]
    failed = sum(sample.failure is not None for sample in samples)
    return {
        "same": not (stricter or milder or failed),
        "questions": len(pairs),
        "answered": len(pairs) - failed,
        "unchanged": len(pairs) - failed - stricter - milder,
        "stricter": stricter,
        "milder": milder,
        "p_value": sign_test(stricter, milder),
        "transitions": _transitions(pairs),
        "changed": [pair.document() for pair in pairs if pair.move],
        "refused": tally(sample.refused for sample in samples),
        "failed": tally(sample.failure for sample in samples),
        "tokens": sum(sample.tokens for sample in samples),
        "late_share": late_share(samples),
        "usd": dollars(samples),
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


def about_plan(plan: AnsweredConsolidation) -> dict[str, Any]:
    """Where a question comes from."""
    request = plan.request
    return {
        "seq": plan.seq,
        "known_at": plan.snapshot.known_at,
        "symbol": plan.snapshot.symbol,
        "playbook_id": request.playbook.id,
        "direction": request.proposal.direction,
        "reflection_hash": plan.reflection_hash,
        "findings": list(finding_ids(plan.findings)),
        "rules": plan.rules.value,
    }


def late_share(samples: Sequence[Sample]) -> float | None:
    """Share of the replies for which a run would not have waited; None where that is not known."""
    known = [sample.late for sample in samples if sample.failure is None and sample.late is not None]
    return sum(known) / len(known) if known else None


def moves(pairs: Sequence[Move]) -> list[dict[str, Any]]:
    """Moves from one decision to another, the most frequent first."""
    moved = Counter(pair for pair in pairs if pair[0] != pair[1])
    ordered = sorted(moved.items(), key=lambda item: (-item[1], item[0]))
    return [{"from": before, "to": after, "count": count} for (before, after), count in ordered]


def paired_test(pairs: Sequence[Move]) -> dict[str, Any]:
    """The test over all kinds, and of each; `p_value` None when nothing moved."""
    moved = [pair for pair in pairs if pair[0] != pair[1]]
    left, entered = Counter(before for before, _ in moved), Counter(other for _, other in moved)
    kinds = sorted({*left, *entered})
    tested = {kind: sign_test(entered[kind], left[kind]) for kind in kinds}
    raw = {kind: p_value for kind, p_value in tested.items() if p_value is not None}
    # What one of two kinds loses the other wins: that is one test.
    adjusted = raw if len(kinds) <= TWO_KINDS else holm(raw)
    return {
        "name": "exact McNemar of each decision, Holm",
        "p_value": min(adjusted.values(), default=None),
        "by_decision": [
            {
                "decision": kind,
                "left": left[kind],
                "entered": entered[kind],
                "p_value": raw[kind],
                "p_adjusted": adjusted[kind],
            }
            for kind in kinds
        ],
    }


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """P-values adjusted by Holm's step-down procedure; source: Holm 1979."""
    adjusted, highest = {}, 0.0
    for rank, (name, p_value) in enumerate(sorted(p_values.items(), key=lambda item: (item[1], item[0]))):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_value))
        adjusted[name] = highest
    return adjusted
