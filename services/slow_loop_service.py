"""The slow loop of a run.

When it is due it reflects on resolved episodes, hears the judge and moves playbook versions.

Examined at slots, when the batch is reached or surprise asks for it, and never from a tick. A report is known
at the first bar close after its slot and reaches the judge in the same step; what it changes starts with the
next bar. Every skip is an event with its reason, once per slot.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from schemas.errors import CassetteMiss, ModelRefused
from schemas.evidence_plan import RecommendationEvidence
from schemas.judge import JudgeAction, RefusedAction, ReplanVerdict
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.state import PART, Stateful
from schemas.trials import TrialCounts
from schemas.vocabulary import VersionState
from services.context import RunContext
from services.plans.run_plans import Effects, RunPlans
from services.playbooks.assembly import RunPlaybooks
from services.ports import (
    HighLevelReflection,
    Judge,
    PolicyLoop,
    ReportEvidence,
)
from services.slow_loop.cadence import CadenceFacts, Run, Skip, due, examine_early, structural_permission
from services.slow_loop.counters import SlowCounters
from services.slow_loop.evidence_rows import evidence_rows
from services.slow_loop.loop_facts import LoopFacts
from services.slow_loop.loop_rows import journal_renewal, journal_version, narrative_rows, reason_rows
from services.slow_loop.shadow_trials import EvidenceOfMeasures, ShadowTrials
from services.slow_loop.trial_evidence import Evidence
from services.statistics.slots import next_slot
from trading_core.market import Market
from trading_core.research.counterfactual import PaperPlans


class SlowLoopService(Stateful):
    """Slow loop of one run on its market."""

    STATE: ClassVar = {
        "_next_slot": int,
        "_last_examined": int | None,
        "_failed": bool,
        "_in_hand": str | None,
        "_report_seq": int,
        "facts": PART,
        "last_report": HighLevelReflectionReport | None,
        "last_verdict": ReplanVerdict | None,
        "counters": PART,
        "_trials": PART,
        "plans": PART,
    }
    REBUILT = frozenset({
        "_settings", "_market", "_reflection", "_judge", "_lifecycle", "_playbooks", "_policy_loop",
        "_journal", "_interval", "_evidence",
    })  # fmt: skip

    def __init__(
        self,
        context: RunContext,
        market: Market,
        books: RunPlaybooks,
        reflection: HighLevelReflection,
        judge: Judge,
        trials: ShadowTrials,
        policy_loop: PolicyLoop,
        evidence: ReportEvidence | None = None,
    ) -> None:
        settings = context.settings
        self._settings, self._journal = settings, context.events
        self._market = market
        self._reflection = reflection
        self._judge = judge
        self._lifecycle = books.lifecycle
        self._playbooks = books.reader
        self._trials = trials
        self._policy_loop = policy_loop
        self._evidence = evidence
        self._interval: Literal["daily", "weekly"] = settings.high_level.interval_for(market.bars.timeframe)
        self._next_slot = next_slot(int(market.bars.close_times[0]), self._interval)
        self._last_examined: int | None = None
        self._failed = False
        self._in_hand: str | None = None
        self._report_seq = -1
        self.facts = LoopFacts(settings)
        self.last_report: HighLevelReflectionReport | None = None
        self.last_verdict: ReplanVerdict | None = None
        self.counters = SlowCounters()
        effects = Effects(self.retire_changed, policy_loop.replan, self.counters.applied.update, self._refuse)
        self.plans = RunPlans(context, market, books.lifecycle, trials, self.facts, effects)
        if settings.plans.enabled:
            trials.promote = self.plans.of_candidate

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the loop stood that wrote this; the policy loop stands there already.

        Raises:
            ValueError: it has other fields, or a value is not of its type.
        """
        super().restore(state)
        self.facts.in_force(self._policy_loop.policies)

    @property
    def proven(self) -> EvidenceOfMeasures:
        """Measures that their own trades contradict, see `ShadowTrials`."""
        return self._trials.proven

    def on_trial(self) -> tuple[Evidence, ...]:
        """What is on trial, with what it has shown, as of the last slot."""
        return self._trials.summaries()

    def count_trials(self, declared: Collection[str]) -> TrialCounts:
        """What was tried so far: declared hypotheses, grid values, and what began its proof on paper."""
        candidates, promotions = self._trials.counts
        hypotheses = len({*declared, *self.facts.list_tested()})
        return TrialCounts(hypotheses=hypotheses, candidates=candidates, promotions=promotions)

    def next_row(self, row: int) -> int:
        """First row at or after `row` whose close reaches the next slot or deadline; T when there is none."""
        times, deadline = self._market.bars.close_times, self.plans.next_deadline
        until = self._next_slot if deadline is None else min(deadline, self._next_slot)
        return row + int(np.searchsorted(times[row:], until, side="left"))

    def slot_closed_by(self, row: int) -> bool:
        """Whether the close of bar `row` reaches the next slot."""
        return int(self._market.bars.close_times[row]) >= self._next_slot

    async def on_row(self, row: int) -> None:
        """Examine the slots that bar `row` has closed, or an early batch; never both.

        After an error nothing is examined again before the next slot.
        """
        started = time.perf_counter()
        now = int(self._market.bars.close_times[row])
        slot = self._closed_slot(now)
        try:
            if slot is not None:
                self._keep_trials(row, now)
                await self._examine(self._cadence(slot, now), row, now)
            elif not self._failed and examine_early(self._cadence(now, now)):
                await self._examine(self._cadence(now, now), row, now)
        except (CassetteMiss, ModelRefused):
            raise  # not this run any more: a report without the reply would pass for a replay
        except Exception as error:  # noqa: BLE001 - the one boundary of the slow loop
            self._contain(error, now)
        self.counters.seconds += time.perf_counter() - started

    def keep_trials(self, row: int) -> None:
        """What a slot that bar `row` has closed changes without a report, where reports come from elsewhere.

        Trials are promoted or retired on their own evidence, or end with their life; measures whose life is
        over are renewed, or end on their own evidence.
        """
        now = int(self._market.bars.close_times[row])
        if self._closed_slot(now) is None:
            return
        try:
            self._keep_trials(row, now)
        except Exception as error:  # noqa: BLE001 - the one boundary of the slow loop
            self._contain(error, now)

    async def ask_judge(self, report: HighLevelReflectionReport, seen: int | None = None) -> ReplanVerdict:
        """The judge's word on a report, and before it the journal rows of what was read for it.

        Nothing is changed by it. `seen` rows of the run may be read; None: all that are there.
        """
        evidence = await self.evidence(report, seen)
        for row in evidence_rows(evidence, report.content_hash[:16]):
            self._append(report.known_at, *row)
        experiments = sum(1 for trial in self._lifecycle.shadows() if trial.kind == "experiment")
        return await self._judge.replan(report, self._definitions(), experiments, evidence)

    async def evidence(
        self, report: HighLevelReflectionReport, seen: int | None = None
    ) -> tuple[RecommendationEvidence, ...]:
        """What the run knows about the recommendations of a report; nothing where nobody plans."""
        if self._evidence is None:
            return ()
        return await self._evidence.read(report, self.facts.last_seq + 1 if seen is None else seen)

    def apply_report(
        self,
        request: HighLevelReflectionRequest,
        report: HighLevelReflectionReport,
        verdict: ReplanVerdict,
        row: int,
    ) -> None:
        """A report that was made elsewhere, with the verdict on it, arrives at the close of bar `row`."""
        now = int(self._market.bars.close_times[row])
        try:
            self._write_request(request, now)
            self._write_report(request, report, now)
            self._write_verdict(verdict, now)
            self._in_hand = None
        except Exception as error:  # noqa: BLE001 - the one boundary of the slow loop
            self._contain(error, now)

    def _closed_slot(self, now: int) -> int | None:
        """The newest slot at or before `now` that was not examined yet."""
        slot: int | None = None
        while self._next_slot <= now:
            slot = self._next_slot
            self._next_slot = next_slot(slot, self._interval)
        return slot

    def _keep_trials(self, row: int, now: int) -> None:
        self._failed = False
        self.facts.forget_regimes(now)
        evidence, opened = self.facts.learnable(now), self.facts.open_entries(now)
        self.retire_changed(self._trials.step(row, now, evidence, opened), now)
        self._weigh_measures(now)
        self.retire_changed(self._lifecycle.expire_due(now, self._trials.shown), now)
        self._tell_trials(now)

    def _tell_trials(self, now: int) -> None:
        """Journal what the open trials have shown, where that has changed.

        Reports read nothing else of them.
        """
        shown = self._trials.summaries()
        if shown != self.facts.shadow_trials(now):
            self._append(now, "shadow_trials", {"trials": shown})

    def _weigh_measures(self, now: int) -> None:
        """Renew the measures whose life is over, or end those that their own trades contradict."""
        shown, proven = self._trials.measured, self._trials.proven
        for renewal in self._lifecycle.renew_due(now, self._market.bars.timeframe, shown, proven):
            journal_renewal(self._journal, renewal, now)
        if self._settings.plans.enabled:
            self.plans.of_measures(now)
            return
        ended = self._lifecycle.end_contradicted(now, proven)
        self._trials.note_lift(ended, now)
        self.retire_changed(ended, now)

    def _contain(self, error: Exception, now: int) -> None:
        self._failed = True
        self.counters.errors += 1
        failure = {"where": "slow_loop", "type": type(error).__name__, "message": str(error)}
        if self._in_hand is not None:
            failure["report_id"], self._in_hand = self._in_hand, None
        self._append(now, "error", failure)

    def _cadence(self, moment: int, now: int) -> CadenceFacts:
        return self.facts.cadence(moment, now, last_examined=self._last_examined)

    async def _examine(self, facts: CadenceFacts, row: int, now: int) -> None:
        decision = due(facts)
        self._last_examined = facts.now
        if isinstance(decision, Skip):
            self._skip(decision, now)
            return
        await self._run(decision, row, now)

    async def reflect_now(self, row: int) -> tuple[HighLevelReflectionRequest, HighLevelReflectionReport]:
        """A request as of the close of bar `row`, and the report on it, by rules alone.

        It changes nothing and resets nothing. What it may recommend is what a slot would be allowed to.
        """
        now = int(self._market.bars.close_times[row])
        allowed, override = structural_permission(self._cadence(now, now))
        run = Run(now, "batch", allowed, override)
        request = self.facts.request(run, now, PaperPlans(self._market.columns))
        evidence = self.facts.evidence(request.episode_ids)
        report = await self._reflection.by_rules().reflect(request, evidence, self._definitions())
        return request, report

    async def replan_now(self, row: int) -> ReplanVerdict | None:
        """Reflect as of the close of bar `row`, ask the judge and carry out what it decided, out of turn.

        For an operator who asks a run that goes on. It counts as a run of the slow loop, so the next slot
        keeps its interval from here; the limit on structural changes holds. None when the loop is off.
        """
        now = int(self._market.bars.close_times[row])
        facts = self._cadence(now, now)
        if not facts.enabled:
            return None
        allowed, override = structural_permission(facts)
        await self._run(Run(now, "batch", allowed, override), row, now)
        return self.last_verdict

    def _definitions(self) -> tuple[PlaybookDefinition, ...]:
        return tuple(version.definition for version in self._playbooks.active())

    def _skip(self, skip: Skip, now: int) -> None:
        self.counters.skips[str(skip.reason)] += 1
        self._append(
            now,
            "slow_skip",
            {
                "slot": skip.slot,
                "reason": str(skip.reason),
                "next_eligible": skip.next_eligible,
                "facts": {"episodes": skip.counted, "needed": skip.needed},
                **({} if skip.trigger == "slot" else {"trigger": skip.trigger}),
            },
        )

    async def _run(self, run: Run, row: int, now: int) -> None:
        started = time.perf_counter()
        request = self.facts.request(run, now, PaperPlans(self._market.columns))
        self._write_request(request, now)
        evidence = self.facts.evidence(request.episode_ids)
        report = await self._reflection.reflect(request, evidence, self._definitions())
        self._write_report(request, report, now)
        self._write_verdict(await self.ask_judge(report), now)
        self._in_hand = None
        self.counters.run_ms.append((time.perf_counter() - started) * 1e3)

    def _write_request(self, request: HighLevelReflectionRequest, now: int) -> None:
        self._append(now, "high_level_request", {"request_hash": request.content_hash, "request": request})

    def _write_report(
        self, request: HighLevelReflectionRequest, report: HighLevelReflectionReport, now: int
    ) -> None:
        self.last_report = report
        report_id = self._in_hand = report.content_hash[:16]
        self._append(
            now,
            "high_level_report",
            {"report_id": report_id, "request_hash": request.content_hash, "report": report},
            report.telemetry(),
        )
        self._report_seq = self.facts.last_seq
        for row in narrative_rows(report, report_id):
            self._append(now, *row)
        self.counters.count(report, report_id, now)

    def _write_verdict(self, verdict: ReplanVerdict, now: int) -> None:
        self.last_verdict = verdict
        verdict_id = verdict.content_hash[:16]
        self._append(
            now,
            "replan_verdict",
            {"verdict_id": verdict_id, "report_id": verdict.report_id, "verdict": verdict},
        )
        for row in reason_rows(verdict, verdict_id):
            self._append(now, *row)
        acted = self._apply(verdict, verdict_id, now)
        self.counters.count_verdict(verdict, acted=acted or not verdict.actions)

    def _apply(self, verdict: ReplanVerdict, verdict_id: str, now: int) -> bool:
        """Let those actions act that lower exposure or open a trial; the others are a plan.

        Whether one did, or is planned.
        """
        planned = [
            action
            for action in verdict.actions
            if self._settings.plans.enabled and self.plans.sources.is_plan(action, now)
        ]
        at_once = [action for action in verdict.actions if action not in planned]
        done = self._act(at_once, verdict.report_id, verdict_id, now) if at_once else []
        if planned:
            self.plans.of_verdict(planned, now, verdict.report_id, verdict_id)
        return bool(done or planned)

    def _act(
        self, actions: list[JudgeAction], report_id: str, verdict_id: str, now: int
    ) -> list[JudgeAction]:
        refused_before = len(self._lifecycle.refused)
        changed = self._lifecycle.apply(
            actions,
            report_id=report_id,
            verdict_id=verdict_id,
            at=now,
            timeframe=self._market.bars.timeframe,
            proven=self.proven,
        )
        self._trials.note_lift(changed, now)
        refused = self._lifecycle.refused[refused_before:]
        not_done = [refusal.action for refusal in refused]
        done = [action for action in actions if action not in not_done]
        self.counters.applied.update(action.kind for action in done)
        for refusal in refused:
            self._refuse(refusal, verdict_id, now)
        self.retire_changed(changed, now)
        self._tell_trials(now)
        if any(action.kind == "replan" for action in actions):
            self._policy_loop.replan()
        return done

    def _refuse(self, refusal: RefusedAction, verdict_id: str | None, now: int) -> None:
        self.counters.refused[refusal.code] += 1
        self._append(now, "action_refused", {"verdict_id": verdict_id, **refusal.payload()})

    def retire_changed(self, changed: tuple[PlaybookVersion, ...], now: int) -> None:
        """Journal every transition.

        Policies of a replaced version go out of force, positions keep their exits.
        """
        for version in changed:
            journal_version(self._journal, version, now)
            if version.state is VersionState.ACTIVE:
                self._policy_loop.retire_playbook(version.definition.id)

    def _append(
        self, now: int, kind: str, payload: dict[str, Any], telemetry: dict[str, Any] | None = None
    ) -> None:
        self._journal.append(kind, ts_event=now, known_at=now, payload=payload, telemetry=telemetry)
