"""The policy loop: gate, snapshot, reflected plan, judge, freeze - one boundary at a time, in symbol order.

Every link is demanded by the next one: a plan without a reflection has no verdict, and freeze refuses
anything without both for exactly its hashes. An exception is an `error`: it is journalled and counted, and
no order comes from it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from schemas.config import Settings
from schemas.errors import CassetteMiss, InvalidProposal, InvariantViolation
from schemas.judge import BoundaryVerdict
from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from schemas.reflection import (
    DeferredItem,
    InvariantContext,
    PolicyLevelReflectionRequest,
    PolicyLevelReflectionResult,
    TickValidationEvent,
)
from schemas.regime import RegimeView
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import (
    CheckName,
    EvaluationOutcome,
    JudgeDecision,
    PlanKind,
    Severity,
)
from services.policy_checks.invariants import check_invariants
from services.policy_loop.compiler import compile_policy, volatility_rule
from services.policy_loop.counters import PolicyCounters
from services.policy_loop.freeze import freeze
from services.policy_loop.gate import BoundaryFacts, decide
from services.policy_loop.invariant_context import invariant_context
from services.policy_loop.records import PolicyJournal, tick_event
from services.policy_loop.snapshot_builder import SnapshotBuilder
from services.policy_loop.staleness import Standing, why_stale
from services.ports import (
    EventJournal,
    Judge,
    Plan,
    PlanEnd,
    PlanProvider,
    PlanRound,
    PlaybookReader,
    Revision,
    RevisionBudget,
)
from trading_core.rules import RuleColumns
from trading_core.trigger_engine import Boundary, TriggerEngine


@dataclass(frozen=True)
class Ending:
    """How one evaluation ended."""

    outcome: EvaluationOutcome
    reason: str
    policy: FrozenPolicy | None = None


@dataclass
class Evaluation:
    """One evaluation on its way from the boundary to what comes of it.

    Attributes:
        boundary, record, budget, event_id: fixed when it begins.
        asked, snapshot: what it looked at; None when that failed.
        effect: what is to be done; None until somebody thought about it.
        failed: whether that is what follows a failure.
        deferred: what the fast path wanted and may not do.
        latency_ms: time spent thinking; telemetry.
    """

    boundary: Boundary
    record: PolicyJournal
    budget: RevisionBudget
    event_id: str
    asked: Standing | None = None
    snapshot: PolicySnapshot | None = None
    effect: Callable[[], Ending] | None = None
    failed: bool = False
    deferred: list[DeferredItem] = field(default_factory=list)
    latency_ms: float = 0.0


class PolicyLoopService:
    """Policy loop of one run.

    `on_boundary` waits for the answer. A live feed does not: it takes the three steps apart, `open` at the
    boundary, `think` beside the bars, and `close` at the bar at which the answer is there.

    Attributes:
        provider: where plans come from.
        policies: every frozen policy by id.
        decided_in: told the regime of each evaluation; the slow loop listens.
        tick_seen: told each tick event that this loop causes; the session listens.
        counters: what happened; telemetry.
    """

    def __init__(
        self,
        settings: Settings,
        engine: TriggerEngine,
        columns: RuleColumns,
        builder: SnapshotBuilder,
        provider: PlanProvider,
        judge: Judge,
        playbooks: PlaybookReader,
        journal: EventJournal,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._columns = columns
        self._builder = builder
        self.provider = provider
        self._judge = judge
        self._playbooks = playbooks
        self._journal = journal
        self._last_evaluation: dict[int, int] = {}
        self._in_flight: set[int] = set()
        self.policies: dict[str, FrozenPolicy] = {}
        self.structures: dict[str, str] = {}
        self.counters = PolicyCounters(settings.reflection)
        self.blocked: list[tuple[int, int, PolicyProposal]] = []
        self.deferred: list[DeferredItem] = []
        self.decided_in: Callable[[RegimeView | None], None] = lambda regime: None
        self.tick_seen: Callable[[TickValidationEvent], None] = lambda event: None

    async def on_boundary(self, boundary: Boundary, *, history: bool = False) -> None:
        """Gate one boundary and evaluate it when the gate admits it, waiting for the answer; see `open`."""
        evaluation = self.open(boundary, history=history)
        if evaluation is not None:
            await self.think(evaluation)
            self.close(evaluation)

    def open(self, boundary: Boundary, *, history: bool = False) -> Evaluation | None:
        """Gate one boundary; an evaluation with its snapshot when the gate admits it.

        Args:
            boundary: of the last validated bar.
            history: the bar lies before the run: nothing is decided on it.
        """
        bars = self._engine.bars
        own = int(self._engine.state["own"][boundary.s])
        facts = BoundaryFacts(
            state=boundary.state,
            events=boundary.events,
            overrides=boundary.overrides,
            own_bar=own,
            last_evaluation_bar=self._last_evaluation.get(boundary.s),
            warming_up=history or self._builder.regime(boundary.t, boundary.s) is None,
            in_flight=boundary.s in self._in_flight,
        )
        decision = decide(facts, self._settings.policy_loop, bars.timeframe)
        now = int(bars.close_times[boundary.t])
        record = PolicyJournal(
            self._journal, bars.symbols[boundary.s], int(bars.times[boundary.t]), now, bars.bar_ns
        )
        self.counters.count_boundary(boundary, decision)
        record.event(boundary, decision)
        for skip in decision.skips:
            record.skip(boundary, skip)
        if not decision.evaluate:
            return None
        self._in_flight.add(boundary.s)
        self._last_evaluation[boundary.s] = own
        self._engine.mark_evaluated(boundary.s)
        self.counters.evaluations += 1
        evaluation = Evaluation(
            boundary, record, RevisionBudget(self._settings.policy_loop.max_revisions), record.event_id
        )
        self._look(evaluation)
        return evaluation

    @property
    def in_flight(self) -> int:
        """Evaluations whose answer has not arrived."""
        return len(self._in_flight)

    def _look(self, evaluation: Evaluation) -> None:
        """Take the snapshot: what the account and the market are as the evaluation begins."""
        boundary = evaluation.boundary
        try:
            evaluation.asked = self._builder.standing(boundary.s)
            evaluation.snapshot = self._builder.build(
                boundary, self.in_force(boundary.s), self.opened_by(boundary.s)
            )
            self.decided_in(evaluation.snapshot.regime)
        except Exception as error:  # noqa: BLE001 - the boundary of the policy loop, see `think`
            evaluation.effect = self._failed(evaluation, error)

    async def think(self, evaluation: Evaluation) -> None:
        """Ask strategist, reflection and judge; the engine is neither read nor changed meanwhile."""
        snapshot, started = evaluation.snapshot, time.perf_counter()
        if snapshot is not None and evaluation.effect is None:
            try:
                evaluation.record.snapshot(snapshot)
                evaluation.effect = await self._concluded(evaluation, snapshot)
            except CassetteMiss:  # not this run any more: deciding without the reply would pass for a replay
                raise
            except Exception as error:  # noqa: BLE001 - the one boundary of the policy loop
                evaluation.effect = self._failed(evaluation, error)
        evaluation.latency_ms += (time.perf_counter() - started) * 1e3

    def close(self, evaluation: Evaluation) -> None:
        """Carry out what the evaluation came to, at the bar at which its answer is there."""
        boundary, started = evaluation.boundary, time.perf_counter()
        evaluation.record.arrived(int(self._engine.bars.close_times[self._engine.t - 1]))
        ending = self._ending(evaluation)
        self._in_flight.discard(boundary.s)
        self.counters.revisions += evaluation.budget.used
        latency_ms = evaluation.latency_ms + (time.perf_counter() - started) * 1e3
        self.counters.evaluation_ms.append(latency_ms)
        self.counters.outcomes[str(ending.outcome)] += 1
        policy_id = None if ending.policy is None else ending.policy.policy_id
        seen = None if evaluation.snapshot is None else evaluation.snapshot.content_hash
        evaluation.record.evaluation(
            seen, ending.outcome, ending.reason, evaluation.budget.used, policy_id, latency_ms
        )

    def _ending(self, evaluation: Evaluation) -> Ending:
        for item in evaluation.deferred:
            self.deferred.append(item)
        stale = self._why_stale(evaluation)
        if stale is not None:
            return Ending(EvaluationOutcome.STALE, stale)
        if evaluation.effect is None:
            raise InvariantViolation("an evaluation is closed before anybody thought about it")
        try:
            return evaluation.effect()
        except Exception as error:  # noqa: BLE001 - the boundary of the policy loop, see `think`
            return self._failed(evaluation, error)()

    def _failed(self, evaluation: Evaluation, error: Exception) -> Callable[[], Ending]:
        """What follows a failure; it is recorded and counted when it is carried out."""

        def effect() -> Ending:
            return self._after_error(evaluation.boundary, evaluation.snapshot, error, evaluation.record)

        evaluation.failed = True
        self.counters.reflections["error"] += 1
        return effect

    def in_force(self, s: int) -> FrozenPolicy | None:
        """The frozen policy in force for a symbol, if any."""
        return self._policy(int(self._engine.state["policy"][s]))

    def opened_by(self, s: int) -> FrozenPolicy | None:
        """The policy that opened the symbol's position, if any."""
        return self._policy(int(self._engine.state["position_policy"][s]))

    def _policy(self, reference: int) -> FrozenPolicy | None:
        return None if reference < 0 else self.policies[self._engine.tag(reference).policy_id]

    async def _concluded(self, evaluation: Evaluation, snapshot: PolicySnapshot) -> Callable[[], Ending]:
        """What is to be done once the answer has arrived; nothing of it is done here."""
        boundary, budget, record = evaluation.boundary, evaluation.budget, evaluation.record
        invariants = invariant_context(self._settings, snapshot, self._playbooks, self._engine.bars.symbols)
        revision: Revision | None = None
        rounds = 0
        while True:
            plan = await self.provider.provide(snapshot, invariants, budget, revision)
            for one in plan.rounds:
                record.round(rounds, snapshot, one)
                self.counters.count_round(one)
                evaluation.deferred += _deferred(snapshot, one)
                rounds += 1
            if plan.end is PlanEnd.NO_PROPOSAL:
                return partial(self._without_proposal, boundary, snapshot, plan, invariants)
            if plan.end is not PlanEnd.PASSED:
                await self._judged_refusal(snapshot, plan, record)
                return partial(self._refused, boundary, snapshot, plan, invariants)
            if snapshot.position is not None:
                return partial(self._held, boundary)
            verdict = await self._verdict(snapshot, plan)
            record.verdict(verdict)
            self.counters.decisions[str(verdict.decision)] += 1
            if verdict.decision is JudgeDecision.APPROVE:
                return partial(self._freeze, boundary, snapshot, plan, verdict, record)
            if verdict.decision is not JudgeDecision.REVISE:
                keep = verdict.decision is JudgeDecision.REJECT
                reason = f"judge: {verdict.reason}"
                return partial(self._fall_back, boundary, snapshot, reason, invariants, keep)
            if not budget.take():
                reason = "judge asked for a revision and none is left"
                return partial(self._stand_down, boundary, reason)
            revision = self._revision(plan, verdict, budget)

    def _held(self, boundary: Boundary) -> Ending:
        reason = "a position is open: keep or tighten only"
        return Ending(EvaluationOutcome.HELD, reason, self.opened_by(boundary.s))

    def _why_stale(self, evaluation: Evaluation) -> str | None:
        """Why nothing may come of an answer any more; a feed that waits for its answers has no reason.

        A failure is no answer: what follows it depends on the present, not on what was asked.
        """
        if evaluation.failed or evaluation.asked is None:
            return None
        now = self._builder.standing(evaluation.boundary.s)
        return why_stale(evaluation.asked, now, self._settings.policy_loop.max_answer_bars)

    async def _judged_refusal(self, snapshot: PolicySnapshot, plan: Plan, record: PolicyJournal) -> None:
        """The judge's word on a plan that the reflection did not pass: recorded, and it cannot loosen it."""
        if plan.last.answer.proposal is None or plan.last.reflection is None:
            return
        verdict = await self._verdict(snapshot, plan)
        record.verdict(verdict)
        self.counters.decisions[str(verdict.decision)] += 1
        if verdict.decision is JudgeDecision.APPROVE:
            raise InvariantViolation("the judge approved a plan that its reflection did not pass")

    async def _verdict(self, snapshot: PolicySnapshot, plan: Plan) -> BoundaryVerdict:
        proposal, reflection = plan.last.answer.proposal, plan.last.reflection
        if proposal is None or reflection is None:
            raise InvalidProposal("a plan passed without a proposal or without a reflection")
        playbook = self._playbooks.get(proposal.playbook_id).definition
        return await self._judge.validate_boundary(snapshot, proposal, reflection, playbook)

    def _revision(self, plan: Plan, verdict: BoundaryVerdict, budget: RevisionBudget) -> Revision:
        proposal, reflection = plan.last.answer.proposal, plan.last.reflection
        if proposal is None:
            raise InvalidProposal("the judge asked to revise a plan without a proposal")
        findings = reflection.findings if isinstance(reflection, PolicyLevelReflectionResult) else ()
        return Revision(proposal, findings, f"judge: {verdict.reason}", budget.used)

    def _freeze(
        self,
        boundary: Boundary,
        snapshot: PolicySnapshot,
        plan: Plan,
        verdict: BoundaryVerdict,
        record: PolicyJournal,
    ) -> Ending:
        answer = plan.last.answer
        if answer.proposal is None:
            raise InvalidProposal("nothing to freeze: the plan has no proposal")
        playbook = self._playbooks.get(answer.proposal.playbook_id).definition
        policy = freeze(
            answer.proposal,
            snapshot,
            playbook,
            plan.last.reflection,
            verdict,
            risk_fraction=playbook.risk_fraction,
            model=answer.model,
            prompt_hash=answer.prompt_hash,
            previous=self.in_force(boundary.s),
            reflection_off=self._settings.reflection.mode == "off",
        )
        sizing = volatility_rule(self._settings.execution)
        orders = compile_policy(policy, boundary.s, self._columns, self._engine.columns, sizing)
        self.policies[policy.policy_id] = policy
        if snapshot.regime is not None:
            self.structures[policy.policy_id] = str(snapshot.regime.labels.structure)
        for event in self._engine.install(boundary.s, orders):
            self._changed(event)
        record.frozen(policy)
        return Ending(EvaluationOutcome.FROZEN, verdict.reason, policy)

    def _without_proposal(
        self, boundary: Boundary, snapshot: PolicySnapshot, plan: Plan, invariants: InvariantContext
    ) -> Ending:
        answer = plan.last.answer
        if answer.kind is PlanKind.TIGHTEN and answer.tighter_stop is not None:
            self._changed(self._engine.tighten_stop(boundary.s, answer.tighter_stop))
            return Ending(EvaluationOutcome.TIGHTENED, answer.reason, self.opened_by(boundary.s))
        if answer.kind is PlanKind.HOLD or snapshot.position is not None:
            return Ending(EvaluationOutcome.HELD, answer.reason, self.opened_by(boundary.s))
        policy = self.in_force(boundary.s)
        if policy is None:
            return Ending(EvaluationOutcome.ABSTAINED, answer.reason)
        return self._fall_back(boundary, snapshot, f"abstained: {answer.reason}", invariants, True)

    def _refused(
        self, boundary: Boundary, snapshot: PolicySnapshot, plan: Plan, invariants: InvariantContext
    ) -> Ending:
        if plan.end is PlanEnd.STAND_DOWN:
            return self._stand_down(boundary, plan.reason)
        reflection, proposal = plan.last.reflection, plan.last.answer.proposal
        by_invariant = isinstance(reflection, PolicyLevelReflectionResult) and any(
            finding.check is CheckName.INVARIANT and finding.severity is Severity.BLOCKER
            for finding in reflection.findings
        )
        if proposal is not None and not by_invariant:
            self.blocked.append((boundary.t, boundary.s, proposal))
        return self._fall_back(boundary, snapshot, f"blocked: {plan.reason}", invariants, not by_invariant)

    def _changed(self, event: TickValidationEvent) -> None:
        """Record what an intervention of this loop changed in the engine, and tell who listens."""
        tick_event(self._journal, event)
        self.tick_seen(event)

    def _fall_back(
        self,
        boundary: Boundary,
        snapshot: PolicySnapshot,
        reason: str,
        invariants: InvariantContext,
        may_keep: bool,
    ) -> Ending:
        """The previous policy stays only if it still passes the invariants; else stand down."""
        previous = self.in_force(boundary.s)
        if may_keep and previous is not None and self._still_valid(previous, snapshot, invariants):
            return Ending(EvaluationOutcome.KEPT_PREVIOUS, reason, previous)
        return self._stand_down(boundary, reason)

    def _still_valid(
        self, policy: FrozenPolicy, snapshot: PolicySnapshot, invariants: InvariantContext
    ) -> bool:
        playbook = self._playbooks.get(policy.playbook_id).definition
        if playbook.content_hash != policy.playbook_hash or snapshot.regime is None:
            return False
        if not playbook.eligibility[policy.proposal.direction].allows(snapshot.regime.labels):
            return False
        request = PolicyLevelReflectionRequest(
            snapshot=snapshot,
            proposal=policy.proposal,
            playbook=playbook,
            state=snapshot.state,
            invariants=invariants,
        )
        return not any(finding.severity is Severity.BLOCKER for finding in check_invariants(request))

    def _stand_down(self, boundary: Boundary, reason: str) -> Ending:
        for event in self._engine.retire(boundary.s):
            self._changed(event)
        return Ending(EvaluationOutcome.STOOD_DOWN, reason)

    def _after_error(
        self, boundary: Boundary, snapshot: PolicySnapshot | None, error: Exception, record: PolicyJournal
    ) -> Ending:
        """As after a block: the previous policy stays only if the invariants pass on this snapshot.

        What failed may be one of them: a second error is recorded too, and the symbol stands down.
        """
        record.error("policy_loop", error)
        self.counters.errors += 1
        reason = f"error: {type(error).__name__}"
        if snapshot is not None:
            try:
                context = self._settings, snapshot, self._playbooks, self._engine.bars.symbols
                ending = self._fall_back(boundary, snapshot, reason, invariant_context(*context), True)
                return Ending(EvaluationOutcome.ERROR, reason, ending.policy)
            except Exception as second:  # noqa: BLE001 - the same boundary, on its way out
                record.error("policy_loop", second)
                self.counters.errors += 1
        return Ending(EvaluationOutcome.ERROR, reason, self._stand_down(boundary, reason).policy)

    def replan(self) -> None:
        """Retire every frozen policy; every symbol without a position gets a boundary at its next close."""
        self.retire_playbook(None)
        for s in range(len(self._engine.bars.symbols)):
            if self._engine.state["direction"][s] == 0:
                self._engine.request_boundary(s)

    def retire_playbook(self, playbook_id: str | None) -> tuple[str, ...]:
        """Retire frozen policies of a playbook (None: of all), as a replan demands.

        Positions keep their exits. A symbol that loses its policy gets a boundary at its next close.

        Returns:
            The symbols whose policy was retired.
        """
        retired = []
        for s, symbol in enumerate(self._engine.bars.symbols):
            policy = self.in_force(s)
            if policy is None or playbook_id not in (None, policy.playbook_id):
                continue
            for event in self._engine.retire(s):
                self._changed(event)
            self._engine.request_boundary(s)
            retired.append(symbol)
        return tuple(retired)


def _deferred(snapshot: PolicySnapshot, one: PlanRound) -> list[DeferredItem]:
    """What the fast path wanted but may not do: it waits for the next high-level request."""
    if not isinstance(one.reflection, PolicyLevelReflectionResult):
        return []
    return [
        DeferredItem(
            raised_at=snapshot.ts_event,
            symbol=snapshot.symbol,
            text=text,
            reflection_hash=one.reflection.content_hash,
        )
        for text in one.reflection.deferred
    ]
