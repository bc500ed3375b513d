"""The slow loop of a run.

When it is due it reflects on resolved episodes, hears the judge and moves playbook versions.

Examined at slots, when the batch is reached or surprise asks for it, and never from a tick. A report is known
at the first bar close after its slot and reaches the judge in the same step; what it changes starts with the
next bar. Every skip is an event with its reason, once per slot.
"""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from schemas.canonical import ns_to_datetime
from schemas.config import Settings
from schemas.episode import Episode
from schemas.errors import CassetteMiss, ModelRefused
from schemas.judge import ReplanVerdict
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.reflection import (
    HighLevelReflectionReport,
    HighLevelReflectionRequest,
    JudgeActionSeen,
    UntradedSignal,
)
from schemas.trials import NO_TRIALS, TrialCounts, TrialLedger
from schemas.vocabulary import OverrideReason, VersionState
from services.clock import next_slot
from services.high_level.grid import trial_key
from services.high_level_reflection_service import HighLevelReflectionService
from services.playbooks.lifecycle import PlaybookLifecycle
from services.playbooks.renewals import Renewal
from services.policy_loop_service import PolicyLoopService
from services.ports import EventJournal, Judge, PlaybookReader
from services.slow_loop.cadence import CadenceFacts, Run, Skip, due, examine_early, structural_permission
from services.slow_loop.drift_window import DriftWindow
from services.slow_loop.evidence_epochs import EvidenceEpochs
from services.slow_loop.open_positions import OpenPositions
from services.slow_loop.promotion_levels import Key
from services.slow_loop.requests import (
    CadenceState,
    RequestFacts,
    actions_seen,
    build_request,
    cadence_facts,
    changes_structure,
)
from services.slow_loop.shadow_trials import ShadowTrials
from services.slow_loop.trial_evidence import Evidence
from services.slow_loop.untraded_signals import UntradedSignals
from trading_core.bars import BarSeries


@dataclass
class SlowCounters:
    """What the slow loop did; telemetry, the summary reads it."""

    runs: int = 0
    skips: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    recommendations: Counter[str] = field(default_factory=Counter)
    replans: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    applied: Counter[str] = field(default_factory=Counter)
    reports: list[dict[str, Any]] = field(default_factory=list)
    run_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    errors: int = 0


class SlowLoopService:
    """Slow loop of one run over one BarSeries."""

    def __init__(
        self,
        settings: Settings,
        bars: BarSeries,
        reflection: HighLevelReflectionService,
        judge: Judge,
        lifecycle: PlaybookLifecycle,
        playbooks: PlaybookReader,
        trials: ShadowTrials,
        untraded: UntradedSignals,
        policy_loop: PolicyLoopService,
        journal: EventJournal,
        before: TrialLedger = NO_TRIALS,
    ) -> None:
        self._settings = settings
        self._bars = bars
        self._reflection = reflection
        self._judge = judge
        self._lifecycle = lifecycle
        self._playbooks = playbooks
        self._trials = trials
        self._untraded = untraded
        self._policy_loop = policy_loop
        self._journal = journal
        self._before = before
        self._interval: Literal["daily", "weekly"] = settings.high_level.interval_for(bars.timeframe)
        self._started = int(bars.close_times[0])
        self._next_slot = next_slot(self._started, self._interval)
        self._last_run: int | None = None
        self._last_run_episodes = 0
        self._told_until = self._started - 1
        self._last_structural: int | None = None
        self._last_examined: int | None = None
        self._overrides: list[tuple[int, OverrideReason]] = []
        self._failed = False
        self._in_hand: str | None = None
        self._epochs = EvidenceEpochs(playbooks.active())
        self._tested: list[str] = []
        self.drift = DriftWindow()
        policy_loop.decided_in = self.drift.decided_in
        self.positions = OpenPositions()
        self._told_trials: tuple[dict[str, Any], ...] = ()
        self._judge_history: list[JudgeActionSeen] = []
        self._learnable: list[Episode] = []
        self._known: list[int] = []
        self.episodes: list[Episode] = []
        self.last_report: HighLevelReflectionReport | None = None
        self.last_verdict: ReplanVerdict | None = None
        self.counters = SlowCounters()

    @property
    def proven(self) -> Mapping[Key, Evidence]:
        """Measures that their own trades contradict, see `ShadowTrials`."""
        return self._trials.proven

    def tried(self, declared: Collection[str]) -> TrialCounts:
        """What was tried so far: declared hypotheses, grid values, and what began its proof on paper."""
        candidates, promotions = self._trials.counts
        hypotheses = len({*declared, *self._tested})
        return TrialCounts(hypotheses=hypotheses, candidates=candidates, promotions=promotions)

    def next_row(self, row: int) -> int:
        """First row at or after `row` whose close reaches the next slot; T when there is none."""
        times = self._bars.close_times
        return row + int(np.searchsorted(times[row:], self._next_slot, side="left"))

    def slot_closed_by(self, row: int) -> bool:
        """Whether the close of bar `row` reaches the next slot."""
        return int(self._bars.close_times[row]) >= self._next_slot

    def record(self, episode: Episode) -> None:
        """A resolved episode; evidence from its `known_at` on, which never falls from one to the next."""
        self.episodes.append(episode)
        self.drift.resolved(episode)
        self.positions.resolved(episode)
        if not episode.no_learn:
            self._learnable.append(episode)
            self._known.append(episode.known_at)

    def note_override(self, reason: OverrideReason, known_at: int) -> None:
        """A safety override of the envelope; it may let one structural change come before its interval."""
        self._overrides.append((known_at, reason))

    async def on_row(self, row: int) -> None:
        """Examine the slots that bar `row` has closed, or an early batch; never both.

        After an error nothing is examined again before the next slot.
        """
        started = time.perf_counter()
        now = int(self._bars.close_times[row])
        slot = self._closed_slot(now)
        try:
            if slot is not None:
                self._keep_trials(row, now)
                await self._examine(self._facts(slot), row, now)
            elif self._may_be_early(now) and examine_early(self._facts(now)):
                await self._examine(self._facts(now), row, now)
        except (
            CassetteMiss,
            ModelRefused,
        ):  # not this run any more: a report without the reply would pass for a replay
            raise
        except Exception as error:  # noqa: BLE001 - the one boundary of the slow loop
            self._contain(error, now)
        self.counters.seconds += time.perf_counter() - started

    def keep_trials(self, row: int) -> None:
        """What a slot that bar `row` has closed changes without a report, where reports come from elsewhere.

        Trials are promoted or retired on their own evidence, or end with their life; measures whose life is
        over are renewed, or end on their own evidence.
        """
        now = int(self._bars.close_times[row])
        if self._closed_slot(now) is None:
            return
        try:
            self._keep_trials(row, now)
        except Exception as error:  # noqa: BLE001 - the one boundary of the slow loop
            self._contain(error, now)

    async def judged(self, report: HighLevelReflectionReport) -> ReplanVerdict:
        """The judge's word on a report; nothing is changed by it."""
        experiments = sum(1 for trial in self._lifecycle.shadows() if trial.kind == "experiment")
        return await self._judge.replan(report, self._definitions(), experiments)

    def hear(
        self,
        request: HighLevelReflectionRequest,
        report: HighLevelReflectionReport,
        verdict: ReplanVerdict,
        row: int,
    ) -> None:
        """A report that was made elsewhere, with the verdict on it, arrives at the close of bar `row`."""
        now = int(self._bars.close_times[row])
        run = Run(request.slot, "batch", request.structural_allowed, request.structural_override)
        try:
            self._asked(request, now)
            self._answered(request, report, now)
            self._decided(verdict, run, now)
            self._applied(request)
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
        self.retire_changed(self._trials.step(row, now, self._evidence(now), self.positions.at(now)), now)
        self._weigh_measures(now)
        self.retire_changed(self._lifecycle.expire_due(now, self._trials.shown), now)
        self._tell_trials(now)

    def _tell_trials(self, now: int) -> None:
        """Journal what the open trials have shown, where that has changed.

        Reports read nothing else of them.
        """
        shown = self._trials.summaries()
        if shown != self._told_trials:
            self._told_trials = shown
            self._append(now, "shadow_trials", {"trials": shown})

    def _weigh_measures(self, now: int) -> None:
        """Renew the measures whose life is over, or end those that their own trades contradict."""
        shown, proven = self._trials.measured, self._trials.proven
        for renewal in self._lifecycle.renew_due(now, self._bars.timeframe, shown, proven):
            journal_renewal(self._journal, renewal, now)
        ended = self._lifecycle.end_contradicted(now, proven)
        self._trials.lifted(ended, now)
        self.retire_changed(ended, now)

    def _contain(self, error: Exception, now: int) -> None:
        self._failed = True
        self.counters.errors += 1
        failure = {"where": "slow_loop", "type": type(error).__name__, "message": str(error)}
        if self._in_hand is not None:
            failure["report_id"], self._in_hand = self._in_hand, None
        self._append(now, "error", failure)

    def _facts(self, moment: int) -> CadenceFacts:
        fresh = self._learnable[self._last_run_episodes : self._count(moment)]
        standing = CadenceState(
            self._started,
            self._last_run,
            last_structural=self._last_structural,
            override=self._overrides[-1][1] if self._overrides else None,
            last_examined=self._last_examined,
        )
        return cadence_facts(
            moment, self._settings, self._bars.timeframe, standing, fresh, self._definitions()
        )

    def _count(self, moment: int) -> int:
        return bisect_right(self._known, moment)

    def _evidence(self, moment: int) -> list[Episode]:
        return self._learnable[: self._count(moment)]

    def _may_be_early(self, moment: int) -> bool:
        """A cheap look before the facts are gathered: this is asked on every boundary.

        A full batch, or a new outcome that no examination has seen.
        """
        count = self._count(moment)
        fresh = count - self._last_run_episodes
        if self._failed or fresh <= 0:
            return False
        seen = -1 if self._last_examined is None else self._last_examined
        return fresh >= self._settings.high_level.minimum_episodes or self._known[count - 1] > seen

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
        now = int(self._bars.close_times[row])
        allowed, override = structural_permission(self._facts(now))
        run = Run(now, "batch", allowed, override)
        facts = self._request_facts(run, row, now)
        request = build_request(run, facts)
        report = await self._reflection.by_rules().reflect(request, facts.batch(), self._definitions())
        return request, report

    async def replan_now(self, row: int) -> ReplanVerdict | None:
        """Reflect as of the close of bar `row`, hear the judge and carry out what it decided, out of turn.

        For an operator who asks a run that goes on. It counts as a run of the slow loop, so the next slot
        keeps its interval from here; the limit on structural changes holds. None when the loop is off.
        """
        now = int(self._bars.close_times[row])
        facts = self._facts(now)
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
        facts = self._request_facts(run, row, now)
        request = build_request(run, facts)
        self._asked(request, now)
        report = await self._reflection.reflect(request, facts.batch(), self._definitions())
        self._answered(request, report, now)
        self._decided(await self.judged(report), run, now)
        self._applied(request)
        self.counters.run_ms.append((time.perf_counter() - started) * 1e3)

    def _applied(self, request: HighLevelReflectionRequest) -> None:
        """A report was carried out: what its request knew is told, what came later belongs to the next one.

        After a failure all of it is told again.
        """
        self._in_hand = None
        self._last_run = request.slot
        self._last_run_episodes = self._count(request.slot)
        clock = self._told_until = request.known_at
        deferred = self._policy_loop.deferred
        deferred[:] = [one for one in deferred if one[0] > clock]
        self._overrides = [one for one in self._overrides if one[0] > clock]
        self.drift.close(clock)

    def _asked(self, request: HighLevelReflectionRequest, now: int) -> None:
        self._append(
            now, "high_level_request", {"request_hash": request.content_hash, "request": request.payload()}
        )

    def _answered(
        self, request: HighLevelReflectionRequest, report: HighLevelReflectionReport, now: int
    ) -> None:
        self.last_report = report
        report_id = self._in_hand = report.content_hash[:16]
        self._append(
            now,
            "high_level_report",
            {"report_id": report_id, "request_hash": request.content_hash, "report": report.payload()},
            report.telemetry(),
        )
        self._count_report(report, report_id, now)
        self._tested += [trial_key(trial) for trial in report.grid_trials]

    def _window_start(self, row: int) -> int:
        window = self._settings.high_level.window_bars
        return int(self._bars.times[0 if window is None else max(0, row + 1 - window)])

    def _request_facts(self, run: Run, row: int, now: int) -> RequestFacts:
        return RequestFacts(
            known_at=now,
            timeframe=self._bars.timeframe,
            window_start=self._window_start(row),
            evidence=self._evidence(run.slot),
            counted_before=self._last_run_episodes,
            judge_history=tuple(self._judge_history),
            deferred=tuple(item for _, item in self._policy_loop.deferred),
            untraded=self._new_untraded(row),
            shadow_trials=self._told_trials,
            open_entries=self.positions.at(now),
            drift_inputs=self.drift.inputs(run.trigger),
            epochs=self._epochs.epochs,
            epoch_starts=self._epochs.starts,
            same_rules=self._epochs.same_rules,
            tested=tuple(self._tested),
            ledger=self._before.told,
        )

    def _new_untraded(self, row: int) -> tuple[UntradedSignal, ...]:
        """Signals whose outcome became known since the clock of the last report."""
        return tuple(one for one in self._untraded.known(row + 1) if one.known_at > self._told_until)

    def _count_report(self, report: HighLevelReflectionReport, report_id: str, now: int) -> None:
        counters = self.counters
        counters.runs += 1
        counters.findings.update(str(cluster.grade) for cluster in report.clusters)
        counters.recommendations.update(str(one.action) for one in report.recommendations)
        counters.reports.append(
            {
                "report_id": report_id,
                "known_at": ns_to_datetime(now).isoformat(),
                "n_episodes": report.n_episodes,
                "recommended_action": str(report.recommended_action),
                "recommendations": len(report.recommendations),
                "insufficient_sample": report.insufficient_sample,
            }
        )

    def _decided(self, verdict: ReplanVerdict, run: Run, now: int) -> None:
        self.last_verdict = verdict
        verdict_id = verdict.content_hash[:16]
        self.counters.replans[str(verdict.decision)] += 1
        self.counters.refused.update(one.code for one in verdict.refused)
        self._append(
            now,
            "replan_verdict",
            {"verdict_id": verdict_id, "report_id": verdict.report_id, "verdict": verdict.payload()},
        )
        self._apply(verdict, verdict_id, run, now)

    def _apply(self, verdict: ReplanVerdict, verdict_id: str, run: Run, now: int) -> None:
        if not verdict.actions:
            return
        refused_before = len(self._lifecycle.refused)
        changed = self._lifecycle.apply(
            verdict.actions,
            report_id=verdict.report_id,
            verdict_id=verdict_id,
            at=now,
            timeframe=self._bars.timeframe,
            proven=self.proven,
        )
        self._judge_history += actions_seen(verdict, verdict_id, now)
        self._trials.lifted(changed, now)
        refused = self._lifecycle.refused[refused_before:]
        not_done = [one.action for one in refused]
        done = [one for one in verdict.actions if one not in not_done]
        self.counters.applied.update(one.kind for one in done)
        for refusal in refused:
            self.counters.refused[refusal.code] += 1
            self._append(now, "action_refused", {"verdict_id": verdict_id, **refusal.payload()})
        if changes_structure(done):
            self._last_structural = run.slot
        self.retire_changed(changed, now)
        self._tell_trials(now)
        if any(action.kind == "replan" for action in verdict.actions):
            self._policy_loop.replan()

    def retire_changed(self, changed: tuple[PlaybookVersion, ...], now: int) -> None:
        """Journal every transition.

        Policies of a replaced version go out of force, positions keep their exits. A version that becomes
        active may begin a new epoch of its playbook, see `EvidenceEpochs`.
        """
        for version in changed:
            journal_version(self._journal, version, now)
            if version.state is VersionState.ACTIVE:
                self._epochs.entered(version)
                self._policy_loop.retire_playbook(version.definition.id)

    def _append(
        self, now: int, kind: str, payload: dict[str, Any], telemetry: dict[str, Any] | None = None
    ) -> None:
        self._journal.append(kind, ts_event=now, known_at=now, payload=payload, telemetry=telemetry)


def journal_version(journal: EventJournal, version: PlaybookVersion, now: int) -> None:
    """One playbook version at one place of its lifecycle."""
    definition = version.definition
    payload = {
        **version.payload(),
        "version_hash": definition.content_hash,
        "playbook_id": definition.id,
        "version": definition.version,
    }
    journal.append("playbook_version", ts_event=min(version.since, now), known_at=now, payload=payload)


def journal_renewal(journal: EventJournal, renewal: Renewal, now: int) -> None:
    """A measure that goes on; the version that holds it stays as it is."""
    version = renewal.version
    payload = {
        "playbook_id": version.definition.id,
        "version": version.definition.version,
        "version_hash": version.definition.content_hash,
        "measure": renewal.text,
        "since": renewal.since,
        "until": renewal.until,
        "expires_at": version.expires_at,
        "shown": dict(renewal.shown),
    }
    journal.append("measure_renewed", ts_event=now, known_at=now, payload=payload)
