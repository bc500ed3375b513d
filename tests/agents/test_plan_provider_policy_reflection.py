"""The plan provider reflects on every proposal before it may freeze: bounded, never skipped."""

import asyncio
from collections.abc import Sequence

import pytest

from agents.strategies.plan_provider import ReflectingPlanProvider
from agents.strategies.rule_strategist import RuleStrategist
from schemas.invocation import ReflectionInvocationMeta
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, InvariantContext, PolicyLevelReflectionResult
from schemas.settings import ReflectionSettings
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import CheckName, InvocationOutcome, PlanKind, ReflectionStatus, Severity
from services.playbooks.registry import PlaybookRegistry
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.ports import PlanEnd, Revision, RevisionBudget
from tests.services.policy_checks.plans import PLAYBOOKS, right_request
from trading_core.tick_guard import TickGuard

REQUEST = right_request()


class ScriptedStrategist:
    """Answers from a list; remembers what it was told."""

    def __init__(self, answers: Sequence[StrategistAnswer]) -> None:
        self.answers = list(answers)
        self.revisions: list[Revision | None] = []

    async def answer(self, snapshot: PolicySnapshot, revision: Revision | None) -> StrategistAnswer:
        self.revisions.append(revision)
        return self.answers[min(len(self.revisions), len(self.answers)) - 1]


class ScriptedReflection:
    """Says what it is told to, about whatever it is asked."""

    def __init__(self, statuses: Sequence[ReflectionStatus]) -> None:
        self.statuses = list(statuses)
        self.requested: list[PolicyProposal] = []

    async def reflect(self, request, *, source, lint=()):
        self.requested.append(request.proposal)
        status = self.statuses[min(len(self.requested), len(self.statuses)) - 1]
        finding = Finding(
            check=CheckName.COHERENCE, code="scripted", severity=Severity.MAJOR, message="as told"
        )
        return PolicyLevelReflectionResult(
            status=status,
            findings=() if status is ReflectionStatus.PASS else (finding,),
            snapshot_hash=request.snapshot.content_hash,
            proposal_hash=request.proposal.content_hash,
            playbook_hash=request.playbook.content_hash,
            prompt_hash="0" * 64,
            meta=ReflectionInvocationMeta(
                cadence="policy_loop", source=source, outcome=InvocationOutcome.RAN
            ),
        )


def proposing(*convictions: float) -> list[StrategistAnswer]:
    return [
        StrategistAnswer(
            kind=PlanKind.PROPOSE,
            reason="scripted",
            proposal=REQUEST.proposal.model_copy(update={"conviction": conviction}),
        )
        for conviction in convictions
    ]


def reader():
    return PlaybookRegistry(PLAYBOOKS, TickGuard(), REQUEST.snapshot.known_at).reader()


def provided(strategist, reflection, limit: int = 2):
    provider = ReflectingPlanProvider(strategist, reflection, reader(), lambda snapshot, proposal: ())
    budget = RevisionBudget(limit)
    return asyncio.run(provider.provide(REQUEST.snapshot, InvariantContext(), budget)), budget


def test_plan_provider_policy_reflection_runs_on_every_proposal_it_passes_on() -> None:
    reflection = ScriptedReflection([ReflectionStatus.PASS])
    plan, budget = provided(ScriptedStrategist(proposing(0.4)), reflection)
    assert plan.end is PlanEnd.PASSED
    assert reflection.requested == [plan.last.answer.proposal]
    assert plan.last.reflection.proposal_hash == plan.last.answer.proposal.content_hash
    assert budget.used == 0


def test_plan_provider_policy_reflection_block_ends_the_plan() -> None:
    reflection = ScriptedReflection([ReflectionStatus.BLOCK])
    plan, _ = provided(ScriptedStrategist(proposing(0.4, 0.3)), reflection)
    assert plan.end is PlanEnd.BLOCKED
    assert len(reflection.requested) == 1


def test_plan_provider_policy_reflection_revise_is_resubmitted_with_its_findings() -> None:
    strategist = ScriptedStrategist(proposing(0.6, 0.5))
    plan, budget = provided(strategist, ScriptedReflection([ReflectionStatus.REVISE, ReflectionStatus.PASS]))
    assert plan.end is PlanEnd.PASSED
    assert [finding.code for finding in strategist.revisions[1].findings] == ["scripted"]  # type: ignore[union-attr]
    assert (len(plan.rounds), budget.used) == (2, 1)


def test_plan_provider_policy_reflection_revises_at_most_twice_then_stands_down() -> None:
    strategist = ScriptedStrategist(proposing(0.6, 0.5, 0.4, 0.3, 0.2))
    reflection = ScriptedReflection([ReflectionStatus.REVISE])
    plan, budget = provided(strategist, reflection)
    assert plan.end is PlanEnd.STAND_DOWN
    assert (len(reflection.requested), budget.used) == (3, 2)


def test_plan_provider_policy_reflection_identical_resubmission_is_a_stand_down() -> None:
    reflection = ScriptedReflection([ReflectionStatus.REVISE])
    plan, _ = provided(ScriptedStrategist(proposing(0.6, 0.6)), reflection)
    assert (plan.end, plan.reason) == (PlanEnd.STAND_DOWN, "identical resubmission")
    assert len(reflection.requested) == 1


def test_plan_provider_policy_reflection_off_leaves_the_record_that_says_so() -> None:
    plan, _ = provided(ScriptedStrategist(proposing(0.4)), None)
    assert plan.end is PlanEnd.PASSED
    assert isinstance(plan.last.reflection, ReflectionInvocationMeta)
    assert plan.last.reflection.outcome is InvocationOutcome.DISABLED


def test_plan_provider_policy_reflection_error_is_not_swallowed() -> None:
    class Failing:
        async def reflect(self, *args, **named):
            raise ZeroDivisionError("in a check")

    with pytest.raises(ZeroDivisionError):
        provided(ScriptedStrategist(proposing(0.4)), Failing())


def test_plan_provider_policy_reflection_abstention_needs_none() -> None:
    reflection = ScriptedReflection([ReflectionStatus.PASS])
    answer = StrategistAnswer(kind=PlanKind.ABSTAIN, reason="nothing eligible")
    plan, _ = provided(ScriptedStrategist([answer]), reflection)
    assert (plan.end, reflection.requested) == (PlanEnd.NO_PROPOSAL, [])


def test_plan_provider_policy_reflection_rules_lower_an_overconfident_conviction_and_pass() -> None:
    strategist = RuleStrategist(reader(), allowed_playbooks=(REQUEST.playbook.id,))
    provider = ReflectingPlanProvider(
        strategist,
        PolicyLevelReflectionService(ReflectionSettings()),
        reader(),
        lambda snapshot, proposal: (),
    )
    budget = RevisionBudget(2)
    regime = REQUEST.snapshot.regime.model_copy(update={"fingerprint": (0.99, 0.01, 0.5, 0.99, 0.5)})
    strong = REQUEST.snapshot.model_copy(update={"regime": regime})
    plan = asyncio.run(provider.provide(strong, InvariantContext(), budget))
    first, last = plan.rounds[0], plan.last
    assert "over_confident" in [finding.code for finding in first.reflection.findings]  # type: ignore[union-attr]
    assert plan.end is PlanEnd.PASSED
    assert last.answer.proposal.conviction < first.answer.proposal.conviction  # type: ignore[union-attr]
