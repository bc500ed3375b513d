"""What an evaluation comes to: strategist, reflection and judge are asked in turn, nothing is carried out.

Every proposal that was reflected on ends with a verdict. What is to become of a policy that is there - a
stop move, a keep, a stand-down - is an amendment, reflected on and judged like a proposal. The engine is
neither read nor changed here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from schemas.errors import InvalidProposal, InvariantViolation
from schemas.judge import BoundaryVerdict
from schemas.policy import FrozenPolicy, PolicyAmendment
from schemas.reflection import InvariantContext, PolicyAmendmentRequest, PolicyLevelReflectionResult
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import (
    AmendmentKind,
    CheckName,
    EvaluationOutcome,
    InvocationOutcome,
    JudgeDecision,
    PlanKind,
    PolicyState,
    Severity,
)
from services.playbooks.own_plans import playbook_of, playbook_of_policy
from services.playbooks.rendering import list_changes
from services.policy_checks.plan_levels import on_grid
from services.policy_loop.clamps import ProposalClamp, clamp_proposal
from services.policy_loop.counters import PolicyCounters
from services.policy_loop.evaluation import Conclusion, Evaluation
from services.policy_loop.freeze import ApprovedPlan, JudgedAmendment, changed_fields
from services.policy_loop.invariant_context import invariant_context
from services.ports import (
    Judge,
    Plan,
    PlanEnd,
    PlanProvider,
    PlanRound,
    PlaybookReader,
    Revision,
    RevisionBudget,
)  # fmt: skip

NOTHING_TO_REFLECT = "nothing to reflect on"
REWORDED = frozenset({"thesis", "conviction", "because", "rationale", "argues_for"})  # no order hangs on them


@dataclass(eq=False)
class PolicyEvaluator:
    """Evaluator of one run.

    Attributes:
        settings: the resolved configuration, read when it is asked for.
        provider: where plans come from, and what reflects on amendments; read when it is asked for.
        judge: who decides on both.
        playbooks: active versions.
        symbols: of the run.
        policies: a frozen policy by its id.
        counters: what happened.
    """

    settings: Callable[[], Settings]
    provider: Callable[[], PlanProvider]
    judge: Judge
    playbooks: PlaybookReader
    symbols: tuple[str, ...]
    policies: Callable[[str], FrozenPolicy | None]
    counters: PolicyCounters

    async def conclude(self, evaluation: Evaluation, snapshot: PolicySnapshot) -> Conclusion:
        """What is to be done, once the answers have arrived."""
        invariants = self._invariants(snapshot)
        revision: Revision | None = None
        while True:
            request = await self.provider().provide(snapshot, invariants, evaluation.budget, revision)
            plan, clamps = self._within_bounds(request, snapshot)
            self._take(evaluation, snapshot, plan)
            evaluation.record.clamps(
                snapshot, request.last.answer.proposal, plan.last.answer.proposal, clamps
            )
            if plan.end is PlanEnd.NO_PROPOSAL:
                return self._without_proposal(evaluation, snapshot, plan.last.answer)
            if plan.end is not PlanEnd.PASSED:
                await self._judge_refused(evaluation, snapshot, plan)
                return self._refuse(evaluation, snapshot, plan)
            verdict = await self._verdict(evaluation, snapshot, plan.last)
            if verdict.decision is JudgeDecision.APPROVE:
                if self._has_ordered(snapshot, plan.last.answer):
                    return self.fall_back(evaluation, snapshot, "the same plan has ordered", may_keep=True)
                approved = ApprovedPlan(plan.last, verdict)
                return Conclusion(EvaluationOutcome.FROZEN, verdict.reason, approved)
            if verdict.decision is not JudgeDecision.REVISE:
                may_keep = verdict.decision is JudgeDecision.REJECT
                return self.fall_back(evaluation, snapshot, f"judge: {verdict.reason}", may_keep)
            if not evaluation.budget.take():
                reason = "judge asked for a revision and none is left"
                return self.fall_back(evaluation, snapshot, reason, may_keep=False)
            revision = _revision(plan.last, verdict, evaluation.budget.used)

    async def ask_early(self, provider: PlanProvider, snapshot: PolicySnapshot) -> None:
        """Ask a provider for a first plan, of which nothing is done."""
        budget = RevisionBudget(self.settings().policy_loop.max_revisions)
        await provider.provide(snapshot, self._invariants(snapshot), budget)

    def fall_back(
        self, evaluation: Evaluation, snapshot: PolicySnapshot, reason: str, may_keep: bool
    ) -> Conclusion:
        """No new policy: a position keeps its exits, a policy in force stays only if it may."""
        if snapshot.position is not None:
            kept = self._amend(evaluation, snapshot, AmendmentKind.KEEP, reason)
            return _conclude_amendment(EvaluationOutcome.HELD, reason, kept)
        if snapshot.active_policy_id is None:
            return Conclusion(EvaluationOutcome.STOOD_DOWN, reason)
        if may_keep:
            kept = self._amend(evaluation, snapshot, AmendmentKind.KEEP, reason)
            if kept.verdict.decision is JudgeDecision.APPROVE:
                return _conclude_amendment(EvaluationOutcome.KEPT_PREVIOUS, reason, kept)
            reason = f"{reason}; not kept: {kept.verdict.reason}"
        down = self._amend(evaluation, snapshot, AmendmentKind.STAND_DOWN, reason)
        return Conclusion(EvaluationOutcome.STOOD_DOWN, reason, down)

    def _has_ordered(self, snapshot: PolicySnapshot, answer: StrategistAnswer) -> bool:
        """Whether a plan that repeats has armed and the answer says it again: its order need not go."""
        policy = self.policies(snapshot.active_policy_id or "")
        if policy is None or answer.proposal is None or snapshot.state is not PolicyState.THESIS_ARMED:
            return False
        is_same = REWORDED.issuperset(changed_fields(policy, answer.proposal))
        version = playbook_of(answer.proposal, self.playbooks).content_hash
        return policy.proposal.repeats and is_same and policy.playbook_hash == version

    def _invariants(self, snapshot: PolicySnapshot) -> InvariantContext:
        return invariant_context(self.settings(), snapshot, self.playbooks, self.symbols)

    def _within_bounds(self, plan: Plan, snapshot: PolicySnapshot) -> tuple[Plan, tuple[ProposalClamp, ...]]:
        """A plan that passed, within what its playbook allows; a reflected one lies there already."""
        proposal = plan.last.answer.proposal
        if plan.end is not PlanEnd.PASSED or proposal is None:
            return plan, ()
        playbook = playbook_of(proposal, self.playbooks)
        tolerance = self.settings().reflection.conviction_tolerance
        allowed, clamps = clamp_proposal(proposal, snapshot, playbook, tolerance)
        if not clamps:
            return plan, ()
        answer = plan.last.answer.model_copy(update={"proposal": allowed})
        return replace(plan, rounds=(*plan.rounds[:-1], replace(plan.last, answer=answer))), clamps

    def _take(self, evaluation: Evaluation, snapshot: PolicySnapshot, plan: Plan) -> None:
        """Record the rounds of a plan, and why a round that has no reflection has none."""
        for answered in plan.rounds:
            evaluation.record.round(evaluation.rounds, snapshot, answered)
            evaluation.rounds += 1
            self.counters.count_round(answered, is_own=self._is_own(answered))
            if answered.reflection is not None:
                evaluation.note_reflection(answered.reflection)
            elif answered.unusable is not None:
                evaluation.not_invoked(InvocationOutcome.SKIPPED, answered.unusable.message)
            elif plan.end in (PlanEnd.STAND_DOWN, PlanEnd.BLOCKED):
                bare = answered.answer.proposal is None
                evaluation.not_invoked(InvocationOutcome.SKIPPED, NOTHING_TO_REFLECT if bare else plan.reason)

    def _is_own(self, answered: PlanRound) -> bool:
        proposal = answered.answer.proposal
        if proposal is None or not isinstance(answered.reflection, PolicyLevelReflectionResult):
            return False
        playbook = playbook_of(proposal, self.playbooks)
        follows = bool(playbook.content_hash) and proposal.direction in playbook.rules
        return follows and not list_changes(proposal, playbook)

    def _without_proposal(
        self, evaluation: Evaluation, snapshot: PolicySnapshot, answer: StrategistAnswer
    ) -> Conclusion:
        if answer.kind is PlanKind.TIGHTEN and self._may_tighten(snapshot):
            moved = self._amend(
                evaluation, snapshot, AmendmentKind.TIGHTEN, answer.reason, answer.tighter_stop
            )
            if moved.verdict.decision is JudgeDecision.APPROVE:
                return _conclude_amendment(EvaluationOutcome.TIGHTENED, answer.reason, moved)
            if snapshot.position is not None:
                return Conclusion(EvaluationOutcome.HELD, f"the stop stays: {moved.verdict.reason}", None)
        if snapshot.position is not None:
            return self.fall_back(evaluation, snapshot, answer.reason, may_keep=True)
        if snapshot.active_policy_id is not None:
            text = "held" if answer.kind is PlanKind.HOLD else "abstained"
            return self.fall_back(evaluation, snapshot, f"{text}: {answer.reason}", may_keep=True)
        if not evaluation.invocations:
            evaluation.not_invoked(InvocationOutcome.SKIPPED, NOTHING_TO_REFLECT)
        held = answer.kind is PlanKind.HOLD
        return Conclusion(EvaluationOutcome.HELD if held else EvaluationOutcome.ABSTAINED, answer.reason)

    def _may_tighten(self, snapshot: PolicySnapshot) -> bool:
        """Whether the plan behind a position leaves its stop to evaluations; one that is gone does."""
        policy = self.policies(snapshot.managed_policy_id or "")
        return policy is None or policy.proposal.tightens

    def _refuse(self, evaluation: Evaluation, snapshot: PolicySnapshot, plan: Plan) -> Conclusion:
        if plan.end is PlanEnd.STAND_DOWN:
            return self.fall_back(evaluation, snapshot, plan.reason, may_keep=False)
        reflection = plan.last.reflection
        by_invariant = isinstance(reflection, PolicyLevelReflectionResult) and any(
            finding.check is CheckName.INVARIANT and finding.severity is Severity.BLOCKER
            for finding in reflection.findings
        )
        return self.fall_back(evaluation, snapshot, f"blocked: {plan.reason}", not by_invariant)

    async def _judge_refused(self, evaluation: Evaluation, snapshot: PolicySnapshot, plan: Plan) -> None:
        """The judge's word on the last plan that was reflected on and did not pass; it cannot loosen it."""
        if plan.reflected is None:
            return
        verdict = await self._verdict(evaluation, snapshot, plan.reflected)
        if verdict.decision is JudgeDecision.APPROVE:
            raise InvariantViolation("the judge approved a plan that its reflection did not pass")

    async def _verdict(
        self, evaluation: Evaluation, snapshot: PolicySnapshot, answered: PlanRound
    ) -> BoundaryVerdict:
        proposal, reflection = answered.answer.proposal, answered.reflection
        if proposal is None or reflection is None:
            raise InvalidProposal("a plan passed without a proposal or without a reflection")
        playbook = playbook_of(proposal, self.playbooks)
        verdict = await self.judge.validate_boundary(snapshot, proposal, reflection, playbook)
        self._note_verdict(evaluation, verdict)
        return verdict

    def _amend(
        self,
        evaluation: Evaluation,
        snapshot: PolicySnapshot,
        kind: AmendmentKind,
        reason: str,
        stop: float | None = None,
    ) -> JudgedAmendment:
        """An amendment of the policy that is there, reflected on, judged and recorded."""
        policy_id = snapshot.managed_policy_id
        level = None if stop is None else on_grid(stop, self.settings().execution.tick_size)
        amendment = PolicyAmendment.trust(
            kind=kind, symbol=snapshot.symbol, policy_id=policy_id, stop=level, reason=reason
        )
        policy = None if policy_id is None else self.policies(policy_id)
        request = PolicyAmendmentRequest.trust(
            snapshot=snapshot,
            amendment=amendment,
            policy=policy,
            playbook=None if policy is None else playbook_of_policy(policy, self.playbooks),
            invariants=self._invariants(snapshot),
        )
        reflection = self.provider().reflect_amendment(request)
        evaluation.record.amendment(evaluation.rounds, snapshot, amendment, reflection)
        if stop is not None and level is not None and level != stop:
            question = amendment.model_copy(update={"stop": stop})
            evaluation.record.clamps(snapshot, question, amendment, (ProposalClamp("stop", stop, level),))
        evaluation.rounds += 1
        evaluation.note_reflection(reflection)
        self.counters.count_amendment(reflection)
        verdict = self.judge.validate_amendment(request, reflection)
        self._note_verdict(evaluation, verdict)
        return JudgedAmendment(amendment, reflection, verdict)

    def _note_verdict(self, evaluation: Evaluation, verdict: BoundaryVerdict) -> None:
        evaluation.record.verdict(verdict)
        self.counters.decisions[str(verdict.decision)] += 1


def _conclude_amendment(outcome: EvaluationOutcome, reason: str, judged: JudgedAmendment) -> Conclusion:
    """What an amendment comes to; one that was not approved changes nothing, and says so."""
    if judged.verdict.decision is JudgeDecision.APPROVE:
        return Conclusion(outcome, reason, judged)
    return Conclusion(outcome, f"{reason}; {judged.verdict.reason}")


def _revision(answered: PlanRound, verdict: BoundaryVerdict, used: int) -> Revision:
    proposal, reflection = answered.answer.proposal, answered.reflection
    if proposal is None:
        raise InvalidProposal("the judge asked to revise a plan without a proposal")
    findings = reflection.findings if isinstance(reflection, PolicyLevelReflectionResult) else ()
    return Revision(proposal, findings, f"judge: {verdict.reason}", used)
