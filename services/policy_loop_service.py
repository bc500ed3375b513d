"""The policy loop: gate and snapshot of every boundary of a row, then evaluator and freeze in symbol order.

Every link is demanded by the next one: a plan or an amendment without a reflection has no verdict, and
freeze refuses anything without both for exactly its hashes. An exception is an `error`: it is journalled and
counted, and no order comes from it.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from schemas.background import DecisionBackground
from schemas.errors import (
    CassetteMiss,
    FreezeRefused,
    InvalidProposal,
    InvariantViolation,
    ModelRefused,
)
from schemas.policy import AmendedPolicy, FrozenPolicy
from schemas.regime import UNKNOWN
from schemas.snapshot import PolicySnapshot
from schemas.state import PART, Stateful, demand_fields, read_as, write_as
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import EvaluationOutcome, InvocationOutcome
from services.context import RunContext
from services.playbooks.own_plans import playbook_of
from services.policy_loop.admission import BoundaryFacts, decide
from services.policy_loop.background import BackgroundBuilder
from services.policy_loop.compiler import compile_policy, volatility_rule
from services.policy_loop.counters import PolicyCounters
from services.policy_loop.evaluation import Conclusion, Evaluation
from services.policy_loop.evaluator import PolicyEvaluator
from services.policy_loop.freeze import ApprovedPlan, JudgedAmendment, amend, freeze
from services.policy_loop.late_answers import LateAnswers
from services.policy_loop.records import Ending, PolicyJournal, tick_event
from services.policy_loop.signal_log import SignalLog
from services.policy_loop.snapshot_builder import SnapshotBuilder
from services.ports import Judge, PlanProvider, PlaybookReader, RevisionBudget
from trading_core.kernel.state_machine import STATES
from trading_core.market import Market
from trading_core.trigger_engine import Boundary, TriggerEngine


class PolicyLoopService(Stateful):
    """Policy loop of one run.

    An evaluation has three steps: `open` at the boundary, `think` beside the bars, and `close` at the bar at
    which the answer is there. Every boundary of a row is opened before the first one is closed.

    Attributes:
        provider: where plans come from.
        background: gathers what a model strategist is shown; None where rules propose.
        backgrounds: what was gathered for the evaluations that are out, by the hash of their snapshot.
        policies: frozen policies by id; of each symbol the last one, and the one that opened its position.
        counters: what happened; telemetry.
        signals: where symbols stood for setups that are true.
    """

    STATE: ClassVar = {
        "background": PART,
        "_last_evaluation": dict[int, int],
        "_judge": PART,
        "counters": PART,
        "signals": PART,
    }
    REBUILT = frozenset(
        {"_settings", "_engine", "_market", "_builder", "_playbooks", "_journal", "provider"}
        | {"_evaluator", "_late", "backgrounds", "_in_flight", "_missed"}  # empty where no evaluation is out
    )
    IN_FORCE: ClassVar = {"policies": dict[str, FrozenPolicy], "structures": dict[str, str]}

    def __init__(
        self,
        context: RunContext,
        market: Market,
        engine: TriggerEngine,
        builder: SnapshotBuilder,
        provider: PlanProvider,
        judge: Judge,
        playbooks: PlaybookReader,
        background: BackgroundBuilder | None = None,
    ) -> None:
        self._settings, self._journal = context.settings, context.events
        self.background = background
        self.backgrounds: dict[str, DecisionBackground] = {}
        self._engine = engine
        self._market = market
        self._builder = builder
        self.provider = provider
        self._judge = judge
        self._playbooks = playbooks
        self._last_evaluation: dict[int, int] = {}
        self._in_flight: set[int] = set()
        self._missed: dict[int, list[Boundary]] = {}  # skipped while an answer of the symbol is out
        self.policies: dict[str, FrozenPolicy] = {}
        self.structures: dict[str, str] = {}
        self.counters = PolicyCounters(self._settings.reflection)
        self.signals = SignalLog(engine, self.in_force)
        self._late = LateAnswers(engine, builder, playbooks, lambda: self._settings.policy_loop)
        self._evaluator = PolicyEvaluator(
            lambda: self._settings, lambda: self.provider, judge, playbooks, engine.bars.symbols,
            self.policies.get, self.counters,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Every field of the state, and the policies that orders or positions still belong to.

        Raises:
            InvariantViolation: an evaluation is out.
        """
        if self._in_flight:
            raise InvariantViolation("an evaluation is out: what it thinks about is no state")
        kept = {tag.policy_id for tag in self._engine.tags_in_force().values()}
        policies = {
            name: write_as(kind, {key: value for key, value in getattr(self, name).items() if key in kept})
            for name, kind in self.IN_FORCE.items()
        }
        return super().state() | policies

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the loop stood that wrote this.

        Raises:
            ValueError: it has other fields, or a value is not of its type.
        """
        demand_fields("PolicyLoopService", state, {**self.STATE, **self.IN_FORCE})
        super().restore({name: state[name] for name in self.STATE})
        for name, kind in self.IN_FORCE.items():
            getattr(self, name).update(read_as(kind, state[name]))

    def open(self, boundary: Boundary, *, history: bool = False, draining: bool = False) -> Evaluation | None:
        """Gate one boundary; an evaluation with its snapshot when the gate admits it.

        Args:
            boundary: of the last validated bar.
            history: the bar lies before the run: nothing is decided on it.
            draining: evaluations that are out are to be answered before another one begins.
        """
        bars = self._engine.bars
        own = int(self._engine.state["own"][boundary.s])
        facts = BoundaryFacts(
            state=boundary.state,
            events=boundary.events,
            overrides=boundary.overrides,
            own_bar=own,
            last_evaluation_bar=self._last_evaluation.get(boundary.s),
            warming_up=history or not self._builder.is_warm(boundary.t, boundary.s),
            in_flight=boundary.s in self._in_flight,
            draining=draining,
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
            self._note_passed_over(boundary, facts)
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

    def _note_passed_over(self, boundary: Boundary, facts: BoundaryFacts) -> None:
        if facts.in_flight:
            self._missed.setdefault(boundary.s, []).append(boundary)
        elif facts.draining and not facts.warming_up:
            self._engine.reopen(boundary)

    async def ask_early(self, provider: PlanProvider, evaluation: Evaluation) -> None:
        """Ask a provider for the plan of an open evaluation, of which nothing but replies is kept."""
        if evaluation.snapshot is not None and evaluation.error is None:
            with self._market.clock.pin(evaluation.snapshot.known_at):
                await self._evaluator.ask_early(provider, evaluation.snapshot)

    @property
    def in_flight(self) -> int:
        """Evaluations whose answer has not arrived."""
        return len(self._in_flight)

    def _look(self, evaluation: Evaluation) -> None:
        """Take the snapshot: what the account and the market are as the evaluation begins."""
        boundary = evaluation.boundary
        try:
            evaluation.requested = self._builder.account_state(boundary.s)
            evaluation.snapshot = self._snapshot(boundary)
            if self.background is not None:
                others = self._builder.others(boundary.s)
                if (shown := self.background.build(evaluation.snapshot, others)) is not None:
                    evaluation.background = self.backgrounds[shown.snapshot_hash] = shown
        except Exception as error:  # noqa: BLE001 - the boundary of the policy loop, see `think`
            self._note_failure(evaluation, error)

    def _snapshot(self, boundary: Boundary) -> PolicySnapshot:
        held = self.in_force(boundary.s), self.find_opener(boundary.s)
        return self._builder.build(boundary, *held, self.signals.setups())

    async def think(self, evaluation: Evaluation) -> None:
        """Ask strategist, reflection and judge; the engine is neither read nor changed meanwhile."""
        snapshot, started = evaluation.snapshot, time.perf_counter()
        if snapshot is not None and evaluation.error is None:
            try:
                evaluation.record.snapshot(snapshot)
                if evaluation.background is not None:
                    evaluation.record.background(evaluation.background)
                evaluation.conclusion = await self._evaluator.conclude(evaluation, snapshot)
            except (CassetteMiss, ModelRefused):
                raise  # not this run any more: deciding without the reply would pass for a replay
            except Exception as error:  # noqa: BLE001 - the one boundary of the policy loop
                self._note_failure(evaluation, error)
        evaluation.latency_ms += (time.perf_counter() - started) * 1e3

    def close(self, evaluation: Evaluation) -> None:
        """Carry out what the evaluation came to, at the bar at which its answer is there.

        What opened a boundary while the answer was out, and was skipped for it, opens one at the next close.
        """
        boundary, started = evaluation.boundary, time.perf_counter()
        evaluation.record.note_answer(self._now())
        ending = self._ending(evaluation)
        self._in_flight.discard(boundary.s)
        if evaluation.background is not None:
            self.backgrounds.pop(evaluation.background.snapshot_hash, None)
        for missed in self._missed.pop(boundary.s, ()):
            self._engine.reopen(missed)
        self.counters.revisions += evaluation.budget.used
        latency_ms = evaluation.latency_ms + (time.perf_counter() - started) * 1e3
        self.counters.evaluation_ms.append(latency_ms)
        self.counters.outcomes[str(ending.outcome)] += 1
        self.counters.count_invocations(evaluation.invocations)
        seen = None if evaluation.snapshot is None else evaluation.snapshot.content_hash
        evaluation.record.evaluation(seen, ending, evaluation.budget.used, evaluation.invocations, latency_ms)

    def _now(self) -> int:
        return int(self._engine.bars.close_times[self._engine.t - 1])

    def _ending(self, evaluation: Evaluation) -> Ending:
        if self._engine.account_gone:
            return Ending(EvaluationOutcome.STOOD_DOWN, "the account is gone")
        if evaluation.error is not None:
            return self._after_error(evaluation, evaluation.error)
        if evaluation.conclusion is None:
            raise InvariantViolation("an evaluation is closed before it was thought about")
        if (stale := self._late.why_dropped(evaluation, self.in_force, self.find_opener)) is not None:
            return self._after_stale(evaluation, stale)
        try:
            return self._carry_out(evaluation, evaluation.conclusion)
        except Exception as error:  # noqa: BLE001 - the boundary of the policy loop, see `think`
            self._note_failure(evaluation, error)
            return self._after_error(evaluation, error)

    def _note_failure(self, evaluation: Evaluation, error: Exception) -> None:
        """A failure instead of a conclusion; what follows it is decided when the evaluation is closed."""
        evaluation.error = error
        evaluation.not_invoked(InvocationOutcome.ERROR, type(error).__name__)
        self.counters.reflections["error"] += 1

    def in_force(self, s: int) -> FrozenPolicy | None:
        """The frozen policy in force for a symbol, if any."""
        return self._policy(int(self._engine.state["policy"][s]))

    def find_opener(self, s: int) -> FrozenPolicy | None:
        """The policy that opened the symbol's position, if any."""
        return self._policy(int(self._engine.state["position_policy"][s]))

    def _policy(self, reference: int) -> FrozenPolicy | None:
        return None if reference < 0 else self.policies[self._engine.tag(reference).policy_id]

    def _carry_out(self, evaluation: Evaluation, concluded: Conclusion) -> Ending:
        boundary = evaluation.boundary
        if isinstance(concluded.approved, ApprovedPlan):
            policy = self._freeze(evaluation, concluded.approved)
            return Ending(concluded.outcome, concluded.reason, policy)
        if concluded.outcome is EvaluationOutcome.STOOD_DOWN:
            return self._stand_down(evaluation, concluded)
        if concluded.approved is None:
            return Ending(concluded.outcome, concluded.reason, self.find_opener(boundary.s))
        amended = self._amend(evaluation, concluded.approved)
        if amended.amendment.stop is not None:
            tightened = self._engine.tighten_stop(boundary.s, amended.amendment.stop)
            self._write_change(tightened, amended.amendment_id)
        evaluation.record.write_amendment(amended)
        policy = self.policies[amended.policy_id]
        return Ending(concluded.outcome, concluded.reason, policy, amended.amendment_id)

    def _amend(self, evaluation: Evaluation, judged: JudgedAmendment) -> AmendedPolicy:
        if evaluation.snapshot is None:
            raise InvariantViolation("an amendment was made without a snapshot")
        return amend(judged, evaluation.snapshot, amended_at=self._now(), reflection_off=self._reflection_off)

    @property
    def _reflection_off(self) -> bool:
        return self._settings.reflection.mode == "off"

    def _freeze(self, evaluation: Evaluation, approved: ApprovedPlan) -> FrozenPolicy:
        boundary, snapshot, answer = evaluation.boundary, evaluation.snapshot, approved.round.answer
        if answer.proposal is None or snapshot is None:
            raise InvalidProposal("nothing to freeze: the plan has no proposal, or no snapshot")
        playbook = playbook_of(answer.proposal, self._playbooks)
        previous = self.in_force(boundary.s)
        policy = freeze(approved, snapshot, playbook, previous, reflection_off=self._reflection_off)
        sizing = volatility_rule(self._settings.execution)
        orders = compile_policy(policy, boundary.s, self._market.columns, self._engine.columns, sizing)
        self.policies[policy.policy_id] = policy
        if self.background is not None:
            self.background.plans.frozen(policy, self._now())
        self.structures[policy.policy_id] = str(getattr(snapshot.labels, "structure", UNKNOWN))
        for event in self._engine.install(boundary.s, orders):
            self._write_change(event)
        evaluation.record.frozen(policy)
        self._forget_replaced(boundary.s, policy.symbol)
        return policy

    def _forget_replaced(self, s: int, symbol: str) -> None:
        """Drop the symbol's policies that nothing refers to any more: no other evaluation of it is out."""
        held = {tag.policy_id for tag in self._engine.tags_in_force(s).values()}
        own = [name for name, policy in self.policies.items() if policy.symbol == symbol]
        for name in set(own) - held:
            del self.policies[name], self.structures[name]

    def _write_change(self, event: TickValidationEvent, amendment_id: str | None = None) -> None:
        """Record what an intervention of this loop changed in the engine."""
        tick_event(self._journal, event, amendment_id)
        self.observe(event)

    def observe(self, event: TickValidationEvent) -> None:
        """A tick event happened: the background of decisions follows the plans."""
        if self.background is not None:
            self.background.plans.observe(event)

    def _stand_down(self, evaluation: Evaluation, concluded: Conclusion) -> Ending:
        """Leave the symbol without a policy; that lowers exposure, so a refusal is told and stops nothing."""
        amendment_id = None
        try:
            if isinstance(concluded.approved, JudgedAmendment):
                amended = self._amend(evaluation, concluded.approved)
                evaluation.record.write_amendment(amended)
                amendment_id = amended.amendment_id
        except FreezeRefused as error:
            self._count_error(evaluation, error)
        self._retire(evaluation.boundary.s)
        return Ending(EvaluationOutcome.STOOD_DOWN, concluded.reason, None, amendment_id)

    def _retire(self, s: int) -> None:
        for event in self._engine.retire(s):
            self._write_change(event)

    def _count_error(self, evaluation: Evaluation, error: Exception) -> None:
        evaluation.record.error("policy_loop", error)
        self.counters.errors += 1

    def _after_error(self, evaluation: Evaluation, error: Exception) -> Ending:
        """As after a block: the previous policy stays only if it may on this snapshot.

        What failed may be part of that: a second error is recorded too, and the symbol stands down.
        """
        self._count_error(evaluation, error)
        reason, failed = f"error: {type(error).__name__}", evaluation.conclusion
        may_keep = failed is None or failed.outcome is not EvaluationOutcome.STOOD_DOWN
        ending = self._without_answer(evaluation, reason, may_keep)
        return replace(ending, outcome=EvaluationOutcome.ERROR, reason=reason)

    def _after_stale(self, evaluation: Evaluation, reason: str) -> Ending:
        """Nothing comes of a late answer; the policy in force stays only if it may as things are now.

        Events that came while the answer was out were skipped, so a symbol that loses its policy gets a
        boundary at its next close.
        """
        s = evaluation.boundary.s
        if self.in_force(s) is None or self.find_opener(s) is not None:
            return Ending(EvaluationOutcome.STALE, reason)
        ending = self._without_answer(evaluation, reason, may_keep=True)
        if self.in_force(s) is None:
            self._engine.request_boundary(s)
        return replace(ending, outcome=EvaluationOutcome.STALE)

    def _without_answer(self, evaluation: Evaluation, reason: str, may_keep: bool) -> Ending:
        """Keep or stand down what is in force, reflected on and judged under the present snapshot."""
        try:
            snapshot = self._present(evaluation)
            if snapshot is not None:
                concluded = self._evaluator.fall_back(evaluation, snapshot, reason, may_keep)
                s = evaluation.boundary.s
                present = self.find_opener(s) or self.in_force(s)
                if self._late.why_out_of_date(s, concluded, present) is None:
                    return self._carry_out(evaluation, concluded)
        except Exception as second:  # noqa: BLE001 - the same boundary, on its way out
            self._count_error(evaluation, second)
        self._retire(evaluation.boundary.s)
        return Ending(EvaluationOutcome.STOOD_DOWN, reason)

    def _present(self, evaluation: Evaluation) -> PolicySnapshot | None:
        """The evaluation's snapshot, taken anew where the symbol had a bar since."""
        s, row = evaluation.boundary.s, self._builder.last_row(evaluation.boundary.s)
        if evaluation.snapshot is not None and row != evaluation.boundary.t:
            state = STATES[int(self._engine.state["state"][s])]
            evaluation.snapshot = self._snapshot(replace(evaluation.boundary, t=row, state=state))
            evaluation.record.snapshot(evaluation.snapshot)
        return evaluation.snapshot

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
            self._retire(s)
            self._engine.request_boundary(s)
            retired.append(symbol)
        return tuple(retired)
