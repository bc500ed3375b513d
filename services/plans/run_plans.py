"""The change plans of one run: made, waiting for a decision, carried out once, between two rows of bars.

What is approved is held against the state it was made for; then exactly its bytes run, and what they make
comes into force together. Everything is journalled, so that a replay decides and does the same.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from schemas.errors import ConfigError, InvariantViolation
from schemas.judge import JudgeAction, RefusedAction
from schemas.plan import ChangePlan, Decision, PlanAction, PlanState, PlanStep, Proposed, Trigger
from schemas.playbook import PlaybookVersion
from schemas.state import PART, Stateful
from services.context import RunContext
from services.plans.basis import mean_true_range, stale_reasons
from services.plans.drafting import EmptyPlan, PlanFacts, draft
from services.plans.execution import ExecutedStep, PlanExecutor, StepFailed
from services.plans.facts import facts_of
from services.plans.rows import FinishedPlan, PlanRows, finish
from services.plans.same_change import (
    WaitingPlan,
    describe_difference,
    list_changes,
    list_known,
    list_outdated,
    list_proven,
)
from services.plans.sources import OpenTrials, PlanSources, propose_again
from services.playbooks.lifecycle import PlaybookLifecycle
from services.slow_loop.loop_facts import LoopFacts
from trading_core.market import Market

AUTO, UNATTENDED, RUN = "auto", "unattended", "run"


@dataclass(frozen=True)
class Effects:
    """What the desk moves beside versions.

    Attributes:
        entered: journals versions that moved and retires policies of those replaced.
        replanned: retires every frozen policy.
        applied: counts the actions of verdicts that were carried out.
        refused: journals an action of a verdict that becomes no plan.
    """

    entered: Callable[[tuple[PlaybookVersion, ...], int], None]
    replanned: Callable[[], None]
    applied: Callable[[Iterable[str]], None]
    refused: Callable[[RefusedAction, str | None, int], None]


@dataclass
class PlanCounters(Stateful):
    """Plans by the state in which they ended, and those made; telemetry."""

    made: int = 0
    ended: Counter[str] = field(default_factory=Counter)


class RunPlans(Stateful):
    """Plans of one run.

    Args:
        context: of the run.
        market: its bars.
        lifecycle: what carries steps out.
        trials: what candidates and measures have shown.
        facts: where the run stands.
        effects: what follows from a step.

    Attributes:
        asks: whether a person decides; otherwise each plan is approved as it is made.
    """

    STATE: ClassVar = {
        "waiting": dict[str, WaitingPlan],
        "finished": dict[str, FinishedPlan],
        "closed": dict[str, int | None],
        "counters": PART,
    }
    REBUILT = frozenset({
        "_settings", "_market", "_trials", "_facts", "_rows", "_effects", "_executor", "sources", "asks",
    })  # fmt: skip

    def __init__(
        self,
        context: RunContext,
        market: Market,
        lifecycle: PlaybookLifecycle,
        trials: OpenTrials,
        facts: LoopFacts,
        effects: Effects,
    ) -> None:
        self._settings = settings = context.settings
        self._market = market
        self._trials = trials
        self._facts = facts
        self._effects = effects
        self._rows = PlanRows(context.events)
        self.sources = PlanSources(settings, lifecycle, trials, market.bars.timeframe)
        self._executor = PlanExecutor(lifecycle, trials.key_of, settings.judge, market.bars.timeframe)
        by_default = settings.plans.approval == "" and not context.market_waits
        self.asks = settings.plans.approval == "ask" or by_default
        self.waiting: dict[str, WaitingPlan] = {}
        self.finished: dict[str, FinishedPlan] = {}
        self.closed: dict[str, int | None] = {}  # changes that are decided: until when, ns; None: for good
        self.counters = PlanCounters()

    def facts(self, now: int) -> PlanFacts:
        """Where the run stands at the close of a bar, ns, by value."""
        state, bars = self._facts.run_state, self._market.bars
        row = int(np.searchsorted(bars.close_times, now, side="right"))
        closes: dict[str, float] = {}
        atr: dict[str, float] = {}
        for symbol in {*state.held, *state.policies}:
            s = bars.symbols.index(symbol)
            high, low, close = (values[:row, s] for values in (bars.high, bars.low, bars.close))
            closes[symbol] = float(close[~np.isnan(close)][-1])
            atr[symbol] = mean_true_range(high, low, close)
        return facts_of(self._facts, now, closes, atr, self._settings)

    def of_verdict(
        self, actions: Sequence[JudgeAction], now: int, report_id: str, verdict_id: str
    ) -> ChangePlan | None:
        """The plan of those actions of a verdict that are none to act at once."""
        kinds = ", ".join(action.kind for action in actions)
        words, source = f"The judge decided on report {report_id}: {kinds}.", (report_id, verdict_id)
        return self._make(self.sources.of_verdict(actions, now), "verdict", words, now, source)

    def of_candidate(self, version_hash: str, shown: Mapping[str, Any], now: int) -> tuple[()]:
        """The plan to promote a candidate that its own trades prove; versions move when it is carried out."""
        words = f"Candidate {version_hash[:12]} is proven by its own {shown['n']} trades in shadow."
        self._make([self.sources.of_candidate(version_hash, now)], "candidate", words, now)
        return ()

    def of_measures(self, now: int) -> None:
        """A plan for each measure whose life is over and that its own trades contradict."""
        for measure, item in self.sources.of_measures(now):
            words = f"The life of a measure is over, and its own trades contradict it: {measure}."
            self._make([item], "measure", words, now)

    def of_rollback(self, playbook_id: str, now: int) -> ChangePlan | None:
        """The plan of an operator who wants an earlier version.

        Raises:
            ConfigError: there is no such playbook, or nothing different to return to.
        """
        words = f"The operator wants {playbook_id} as it was before."
        return self._make([self.sources.of_rollback(playbook_id, now)], "rollback", words, now)

    def _make(
        self,
        proposed: Sequence[Proposed],
        trigger: Trigger,
        understanding: str,
        now: int,
        source: tuple[str | None, str | None] = (None, None),
    ) -> ChangePlan | None:
        """Phase 1, and where nobody is asked phase 2 at once.

        None when every action was refused, or is part of a plan that waits or was decided. A change that is
        another one by now takes the place of the plan that waits for it.
        """
        started, facts = time.perf_counter(), self.facts(now)

        def plan_of(items: Sequence[Proposed]) -> ChangePlan | EmptyPlan:
            return draft(
                items, facts, trigger,
                understanding=understanding, report_id=source[0], verdict_id=source[1],
            )  # fmt: skip

        plan, outdated = plan_of(proposed), list[WaitingPlan]()
        if isinstance(plan, ChangePlan):
            outdated = list_outdated(plan, self.waiting.values())
            others = [held for held in self.waiting.values() if held not in outdated]
            known = dict(list_known(plan, others, self.closed, now))
            for action, why in known.items():
                self._refuse(action, why, source[1], now)
            if len(known) == len(plan.steps):
                return None
            plan = plan_of([item for item in proposed if item.action not in known]) if known else plan
        replaced = self._replace(outdated, plan, facts, now) if isinstance(plan, ChangePlan) else ()
        self.counters.made += 1
        self._rows.write_draft(plan, trigger, source, now, started, replaced)
        if isinstance(plan, EmptyPlan):
            return None
        self._wait_or_act(WaitingPlan(plan, changes=dict(list_changes(plan))), now)
        return plan

    def _refuse(self, action: PlanAction, why: str, verdict_id: str | None, now: int) -> None:
        """An action of a verdict that is in a plan already, so that nobody takes it for done."""
        if verdict_id is not None and isinstance(action, JudgeAction):
            refusal = RefusedAction(action=action, code="already_planned", reason=why)
            self._effects.refused(refusal, verdict_id, now)

    def _replace(
        self, outdated: Sequence[WaitingPlan], plan: ChangePlan, facts: PlanFacts, now: int
    ) -> list[tuple[ChangePlan, Sequence[str]]]:
        """End the plans that wait for what is another change by now; each with what differs."""
        ended = list[tuple[ChangePlan, Sequence[str]]]()
        for held in outdated:
            limit = self._settings.plans.max_move_atr
            stale = stale_reasons(held.plan, facts, self._trials.proves(), limit)
            diff = describe_difference(held.plan, plan, stale)
            self._end(held, "replace", RUN, "stale", (f"plan {plan.plan_id} takes its place", *diff), now)
            ended.append((held.plan, diff))
        return ended

    def _wait_or_act(self, waiting: WaitingPlan, now: int) -> None:
        if self.asks:
            self.waiting[waiting.plan.plan_id] = waiting
        else:
            self._approve(waiting, AUTO, now)

    def document(self) -> dict[str, Any]:
        """Plans made, those that wait, and how the others ended, as the run's document tells them."""
        ended = dict(sorted(self.counters.ended.items()))
        return {"made": self.counters.made, "waiting": len(self.waiting), "ended": ended}

    @property
    def next_deadline(self) -> int | None:
        """When the first plan that waits expires, ns."""
        return min((waiting.plan.expires_at for waiting in self.waiting.values()), default=None)

    def expire(self, now: int) -> None:
        """End the plans that nobody has decided in time: declined, or run where all of it lowers exposure."""
        if not self.waiting:
            return
        for plan_id, waiting in list(self.waiting.items()):
            plan = waiting.plan
            if plan.expires_at > now or plan_id not in self.waiting:
                continue
            lowers = all(step.lowers_exposure for step in plan.steps)
            if lowers and self._settings.plans.unattended == "reduce_only":
                del self.waiting[plan_id]
                self._approve(waiting, UNATTENDED, now)
            else:
                self._end(waiting, "decline", UNATTENDED, "declined", ("nobody decided in time",), now)

    def decide(self, command: Mapping[str, Any], now: int) -> dict[str, Any]:
        """Carry out a person's decision on a plan.

        Args:
            command: {plan_id, decision, hash, by, plan} of the operator's request; `submit` hands in a plan
                that was made beside the run, which waits here from now on.
            now: close of the last bar, ns.

        Returns:
            {outcome: done | refused, plan_id, state, reasons, versions}.
        """
        plan_id, decision, by = command["plan_id"], command["decision"], command["by"]
        if decision == "rollback":
            return self._roll_back(plan_id, by, now)
        waiting = self.waiting.get(plan_id)
        if waiting is None and plan_id in self.finished:
            state = self.finished[plan_id].state
            return _answer(plan_id, state, (f"it is {state} already",), refused=True)
        if decision == "cancel":
            if waiting is None:
                return _answer(plan_id, "cancelled")
            return self._end(waiting, "cancel", by, "cancelled", (), now)
        plan = ChangePlan.model_validate(command["plan"])
        if decision == "submit":
            return self._take_in(plan, waiting, now)
        if plan.content_hash != command["hash"] or plan.plan_id != plan_id:
            return _answer(plan_id, "awaiting_approval", ("the hash is not that of the plan",), refused=True)
        if waiting is None:
            waiting = self._write_arrival(plan, now)
        edited = waiting.edited or plan.content_hash != waiting.plan.content_hash
        self.waiting.pop(plan_id, None)
        approved = replace(waiting, plan=plan, edited=edited)
        if plan.expires_at <= now:
            return self._end(approved, "expire", by, "expired", ("it was approved too late",), now)
        return self._approve(approved, by, now, shown=waiting.plan)

    def _take_in(self, plan: ChangePlan, waiting: WaitingPlan | None, now: int) -> dict[str, Any]:
        """A plan that was made beside the run, or an edit of one that waits, waits here from now on."""
        if waiting is not None and plan.revision <= waiting.plan.revision:
            return _answer(plan.plan_id, "awaiting_approval", ("it is no newer revision",), refused=True)
        arrived = self._write_arrival(plan, now)
        if waiting is not None:
            arrived = replace(waiting, plan=plan, edited=True)
        self.waiting[plan.plan_id] = arrived
        return _answer(plan.plan_id, "awaiting_approval")

    def _write_arrival(self, plan: ChangePlan, now: int) -> WaitingPlan:
        self.counters.made += 1
        self._rows.write_draft(plan, plan.trigger, (plan.report_id, plan.verdict_id), now)
        return WaitingPlan(plan, edited=plan.revision > 1, changes=dict(list_changes(plan)))

    def _approve(
        self, waiting: WaitingPlan, by: str, now: int, shown: ChangePlan | None = None
    ) -> dict[str, Any]:
        """Hold an approved plan against the present, then run the phase that is due."""
        started, plan = time.perf_counter(), waiting.plan
        proven = self._trials.proves()
        limit = self._settings.plans.max_move_atr
        reasons = stale_reasons(plan, self.facts(now), proven, limit)
        if reasons:
            return self._end(waiting, "approve", by, "stale", reasons, now, shown)
        self._rows.write_decision(waiting, "approve", by, "approved", (), now, shown)
        try:
            done = self._executor.carry_out(plan, plan.due, proven, now)
        except StepFailed as failed:
            return self._fail(waiting, failed, now, started)
        for item in done:
            self._enter(plan, item, now)
            self._rows.step(waiting, item.step, "done", item.versions, None, now)
        return self._phase2(waiting, done, now, started)

    def _enter(self, plan: ChangePlan, item: ExecutedStep, now: int) -> None:
        self._effects.entered(item.versions, now)
        self._effects.applied([item.step.action.kind] if plan.verdict_id is not None else [])
        if item.key is not None:
            self._trials.note_promotion(item.key, now)
        else:
            self._trials.note_lift(item.versions, now)
        if item.step.action.kind == "replan":
            self._effects.replanned()

    def _phase2(
        self, waiting: WaitingPlan, done: Sequence[ExecutedStep], now: int, started: float
    ) -> dict[str, Any]:
        plan, rest = waiting.plan, waiting.plan.steps[len(done) :]
        versions = [version.definition.content_hash for item in done for version in item.versions]
        status: PlanState = "awaiting_approval" if rest else "completed"
        self._rows.write_end(waiting, status, len(done), now, started)
        made = self._list_made(plan, done)
        if rest:
            self._ask_again(waiting, rest, made, now)
        else:
            self._finish(waiting, "completed", made)
        return _answer(plan.plan_id, status, versions=versions)

    def _list_made(self, plan: ChangePlan, done: Sequence[ExecutedStep]) -> tuple[tuple[str, str, str], ...]:
        before = self.finished.get(plan.plan_id)
        made = [] if before is None else list(before.made)
        stood = {name: held.version_hash for name, held in plan.basis.versions.items()}
        for item in done:
            for version in item.step.makes:
                made.append((version.playbook_id, stood[version.playbook_id], version.version_hash))
                stood[version.playbook_id] = version.version_hash
        return tuple(made)

    def _ask_again(
        self,
        waiting: WaitingPlan,
        rest: Sequence[PlanStep],
        made: tuple[tuple[str, str, str], ...],
        now: int,
    ) -> None:
        """Behind a checkpoint the steps that are left are a new revision on the state of now."""
        plan = waiting.plan
        proven = self._trials.proves()
        again = draft(
            [propose_again(step, proven) for step in rest], self.facts(now), plan.trigger,
            understanding=plan.understanding, report_id=plan.report_id, verdict_id=plan.verdict_id,
            revises=plan,
        )  # fmt: skip
        self._rows.write_draft(again, plan.trigger, (plan.report_id, plan.verdict_id), now)
        if isinstance(again, EmptyPlan):
            self._rows.write_end(waiting, "failed", 0, now, time.perf_counter())
            self._finish(waiting, "failed", made)
            return
        following = WaitingPlan(again, waiting.phase + 1, waiting.edited, dict(list_changes(again)))
        self.finished[plan.plan_id] = finish(following, "awaiting_approval", made)
        self._wait_or_act(following, now)

    def _fail(self, waiting: WaitingPlan, failed: StepFailed, now: int, started: float) -> dict[str, Any]:
        for item in failed.before:
            self._rows.step(waiting, item.step, "undone", (), "a step behind it failed", now)
        self._rows.step(waiting, failed.step, "failed", (), str(failed), now)
        self._rows.write_end(waiting, "failed", 0, now, started)
        self._finish(waiting, "failed", self._list_made(waiting.plan, ()))
        self.closed |= dict.fromkeys(waiting.changes.values(), waiting.plan.expires_at)  # then it opens again
        reason = f"step {failed.step.number}: {failed}"
        return _answer(waiting.plan.plan_id, "failed", (reason,), refused=True)

    def _roll_back(self, plan_id: str, by: str, now: int) -> dict[str, Any]:
        started, over = time.perf_counter(), self.finished.get(plan_id)
        if over is None or over.state in ("awaiting_approval", "rolled_back") or not over.made:
            state = "awaiting_approval" if over is None else over.state
            reason = "it has made nothing that could be returned"
            return _answer(plan_id, state, (reason,), refused=True)
        try:
            moved = self._executor.roll_back(over.made, f"plan {plan_id} was rolled back", now)
        except (ConfigError, InvariantViolation) as error:
            return _answer(plan_id, over.state, (str(error),), refused=True)
        self._rows.write_decision(over, "rollback", by, "executing", (), now)
        self._effects.entered(moved, now)
        self._rows.write_end(over, "rolled_back", len(over.made), now, started)
        self.finished[plan_id] = replace(over, state="rolled_back", made=())
        self.counters.ended["rolled_back"] += 1
        versions = [version.definition.content_hash for version in moved]
        return _answer(plan_id, "rolled_back", versions=versions)

    def _end(
        self,
        waiting: WaitingPlan,
        decision: Decision,
        by: str,
        state: PlanState,
        reasons: Sequence[str],
        now: int,
        shown: ChangePlan | None = None,
    ) -> dict[str, Any]:
        self.waiting.pop(waiting.plan.plan_id, None)
        self._rows.write_decision(waiting, decision, by, state, reasons, now, shown)
        self._finish(waiting, state, self._list_made(waiting.plan, ()))
        if decision == "cancel":
            self.closed |= dict.fromkeys(list_proven(waiting))
        return _answer(waiting.plan.plan_id, state, reasons, refused=state not in ("cancelled", "declined"))

    def _finish(self, waiting: WaitingPlan, state: PlanState, made: tuple[tuple[str, str, str], ...]) -> None:
        self.finished[waiting.plan.plan_id] = finish(waiting, state, made)
        self.counters.ended[state] += 1


def _answer(
    plan_id: str,
    state: str,
    reasons: Sequence[str] = (),
    *,
    versions: Sequence[str] = (),
    refused: bool = False,
) -> dict[str, Any]:
    return {
        "outcome": "refused" if refused else "done",
        "plan_id": plan_id,
        "state": state,
        "reasons": list(reasons),
        "versions": list(versions),
    }
