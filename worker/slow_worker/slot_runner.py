"""One look at the slow loop of one run: finish what was left behind, examine what is due, record it once.

Whether a slot becomes a run is decided by `services.slow_loop.cadence.due` over facts of the journal and of
the worker's own tables. Everything is written under the lease and its epoch. A worker may die between any two
steps: whoever comes next finds the claim with its request and finishes that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from schemas.errors import InfrastructureError, InvariantViolation
from schemas.settings import Settings
from schemas.slow_reflection import HighLevelReflectionRequest
from services.ports import Clock
from services.slow_loop.cadence import Run, Skip, due, early_moment, surprise_moment, surprises
from services.slow_loop.loop_facts import LoopFacts
from services.slow_loop.past_runs import PastRun
from services.slow_loop.untraded_signals import PaperBars
from services.statistics.slots import last_slot
from services.store import Store
from services.store.claims import Claim, ClaimState, SlotKey
from services.store.reports import StoredReport
from services.store.repository import Lease
from worker.operations.logs import EventSink
from worker.slow_worker.ports import JOB, NO_CRASH, CrashPoints, Reflect, lease_name

MOST_ATTEMPTS = 5
HOLD_MS, LEASE_MS = 60_000, 90_000

PaperBarsAt = Callable[[int], Awaitable[PaperBars]]


@dataclass(frozen=True)
class RunOfSlots:
    """The run whose slow loop is kept, and the settings in force for it."""

    run_id: str
    settings: Settings

    @property
    def lease_name(self) -> str:
        """The lease under which its slots are examined."""
        return lease_name(self.run_id)


@dataclass(frozen=True)
class WorkerContext:
    """What the parts of one worker share.

    Attributes:
        store: open, with the worker's tables.
        run: whose slow loop.
        clock: the present; the lease runs on the database's clock all the same.
        note: told of everything that happens.
        owner: name in leases and claims; unique among processes.
        lease_ms: how long a worker that died keeps others waiting.
        hold_ms: how long a consumer that died keeps its report.
        points: told of every step; for tests.
    """

    store: Store
    run: RunOfSlots
    clock: Clock
    note: EventSink
    owner: str
    lease_ms: int = LEASE_MS
    hold_ms: int = HOLD_MS
    points: CrashPoints = NO_CRASH


class SlotRunner:
    """Looks once when it is told to; keeps nothing that the store does not hold, but a reading of it.

    `paper_bars` gives that of the run's bars that were closed at a time, ns; None where no bars are stored.
    """

    def __init__(
        self, context: WorkerContext, reflect: Reflect, paper_bars: PaperBarsAt | None = None
    ) -> None:
        self._store, self._run, self._clock = context.store, context.run, context.clock
        self._note, self._points = context.note, context.points
        self._reflect = reflect
        self._paper_bars = paper_bars
        self._reports: dict[int, StoredReport] = {}
        self._claims = ClaimState(None, None, None, None)
        self.facts = LoopFacts(context.run.settings)

    async def look(self, lease: Lease) -> None:
        """Finish claims that were left behind, then examine the newest slot, or an early moment.

        Raises:
            LeaseLost: another worker took over; it goes on from what is stored.
            StoreError: the store failed; the next look goes on from what is stored.
        """
        await self.refresh()
        if not self.facts.begun:
            return
        while self._claims.oldest_open is not None:
            await self._resume(lease, await self._claim_of(self._claims.oldest_open))
            await self.refresh()
        await self._examine(lease)

    @property
    def waiting(self) -> bool:
        """Whether some report has no verdict, as far as the last reading goes."""
        return any(report.verdict is None for report in self._reports.values())

    async def refresh(self) -> None:
        """Take what came since the last reading; a report that was delivered does not change any more."""
        run_id, facts = self._run.run_id, self.facts
        async for row in self._store.journal.rows(run_id, kinds=facts.kinds, after=facts.last_seq):
            facts.add(row)
        self._claims = await self._store.claims.newest_state(run_id, JOB)
        # A second reading of the same reports is what most looks would do.
        if self.waiting or self._claims.newest_done != max(self._reports, default=None):
            await self._read_reports()

    async def _read_reports(self) -> None:
        open_ones = [slot for slot, report in self._reports.items() if report.verdict is None]
        after = min(open_ones) - 1 if open_ones else max(self._reports, default=-1)
        for report in await self._store.reports.all(self._run.run_id, JOB, after=after):
            self._reports[report.key.slot] = report
        self.facts.runs.add_outside(_past_run(report) for _, report in sorted(self._reports.items()))

    async def _examine(self, lease: Lease) -> None:
        now, facts = self._clock.now, self.facts
        newest = -1 if self._claims.newest is None else self._claims.newest
        decided = max([newest, *(run.slot for run in facts.runs.all() if run.slot <= now)])
        slot = last_slot(now, self._run.settings.high_level.interval_for(facts.timeframe))
        if slot > max(decided, facts.started_at):
            await self._decide(lease, slot)
            return
        moment = self._early(now, decided)
        if moment is not None and now > decided:
            # What was known by a slot may have been journalled after it was skipped: then it counts from now.
            await self._decide(lease, moment if moment > decided else now)

    def _early(self, now: int, decided: int) -> int | None:
        """The earlier of two moments between slots: surprise has asked, or the batch came to be full."""
        facts = self.facts
        present = facts.cadence(now, now, self._claims.newest_failed, decided)
        fresh = facts.fresh(now, now)
        batch = early_moment(present, [(episode.known_at, episode.playbook_id) for episode in fresh])
        request = surprise_moment(present, surprises(fresh, self._run.settings))
        return min((moment for moment in (batch, request) if moment is not None), default=None)

    async def _decide(self, lease: Lease, slot: int) -> None:
        decision = due(self.facts.cadence(slot, slot, self._claims.newest_failed))
        self._points.reach("examined")
        if isinstance(decision, Skip):
            await self._skip(lease, decision)
        else:
            await self._claim(lease, decision)

    async def _skip(self, lease: Lease, skip: Skip) -> None:
        facts: dict[str, Any] = {
            "counted": skip.counted,
            "needed": skip.needed,
            "next_eligible": skip.next_eligible,
        }
        if skip.trigger != "slot":
            facts["trigger"] = skip.trigger
        if await self._store.claims.skip(lease, self._key(skip.slot), str(skip.reason), facts):
            self._note("slot_skipped", {"slot": skip.slot, "reason": str(skip.reason), **facts})

    async def _claim(self, lease: Lease, run: Run) -> None:
        on_paper = None if self._paper_bars is None else await self._paper_bars(run.slot)
        request = await asyncio.to_thread(self.facts.request, run, run.slot, on_paper)
        facts = {
            "trigger": run.trigger,
            "structural_allowed": run.structural_allowed,
            "episodes": len(request.episode_ids),
            "new_episodes": request.new_episodes,
        }
        key, text = self._key(run.slot), request.canonical_text()
        if not await self._store.claims.claim(lease, key, request.content_hash, text, facts):
            return
        self._points.reach("claimed")
        self._note("slot_claimed", {"slot": run.slot, "epoch": lease.epoch, **facts})
        await self._finish(lease, await self._claim_of(run.slot))

    async def _resume(self, lease: Lease, claim: Claim) -> None:
        payload = {"slot": claim.key.slot, "left_by": claim.owner, "attempts": claim.attempts}
        if claim.attempts >= MOST_ATTEMPTS:
            reason = f"given up after {claim.attempts} attempts that did not end"
            await self._store.claims.fail(lease, claim.key, reason)
            self._note("slot_failed", {**payload, "reason": reason})
            return
        await self._store.claims.resume(lease, claim)
        self._note("slot_resumed", {**payload, "epoch": lease.epoch})
        await self._finish(lease, claim)

    async def _finish(self, lease: Lease, claim: Claim) -> None:
        request = HighLevelReflectionRequest.model_validate_json(str(claim.request))
        slot = claim.key.slot
        try:
            episodes = self.facts.evidence(request.episode_ids)
            report = await self._reflect(request, episodes, self.facts.definitions(request.known_at))
        except InfrastructureError:
            raise
        except Exception as error:  # noqa: BLE001 - the one boundary of a slot: it fails, the worker goes on
            reason = f"{type(error).__name__}: {error}"
            await self._store.claims.fail(lease, claim.key, reason)
            self._note("slot_failed", {"slot": slot, "reason": reason, "attempts": claim.attempts})
            return
        self._points.reach("reflected")
        if await self._store.reports.write(lease, claim, report):
            self._points.reach("reported")
            self._note("report_written", {"slot": slot, "epoch": lease.epoch, **_brief(report)})

    async def _claim_of(self, slot: int) -> Claim:
        claim = await self._store.claims.get(self._key(slot))
        if claim is None:
            raise InvariantViolation(f"slot {slot} of {self._run.run_id} was claimed and has no claim")
        return claim

    def _key(self, slot: int) -> SlotKey:
        return SlotKey(self._run.run_id, JOB, slot)


def _brief(report: Any) -> dict[str, Any]:
    return {
        "report_id": report.content_hash[:16],
        "episodes": report.n_episodes,
        "recommended_action": str(report.recommended_action),
        "insufficient_sample": report.insufficient_sample,
        "latency_ms": report.latency_ms,
    }


def _past_run(one: StoredReport) -> PastRun:
    return PastRun(
        slot=one.key.slot,
        known_at=one.report.known_at,
        read_until=one.report.known_at,
        report_id=one.report_id,
        n_episodes=one.report.n_episodes,
        recommended_action=one.report.recommended_action,
        tried=one.report.grid_trials,
        verdict=one.verdict,
        verdict_id=one.verdict_id or "",
        judged_at=one.arrived_at or 0,
    )
