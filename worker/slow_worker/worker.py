"""One look of a worker: take the lease, let the runner examine, let the judge answer what waits.

The judge's side of the inbox while no trading process takes part: every report gets its one verdict.

The verdict is stored and changes nothing by itself: playbook versions of a run are moved by the process that
trades it, which reads the same inbox (`services.slow_loop.inbox`).
"""

from collections.abc import Awaitable, Callable

from schemas.evidence_plan import RecommendationEvidence
from schemas.slow_reflection import HighLevelReflectionReport
from services.ports import Judge
from services.slow_loop.inbox import ReportInbox
from services.slow_loop.loop_facts import LoopFacts
from services.store.repository import LeaseLost
from worker.slow_worker.lease_holder import LeaseHolder
from worker.slow_worker.slot_runner import SlotRunner, WorkerContext

ReadEvidence = Callable[[HighLevelReflectionReport], Awaitable[tuple[RecommendationEvidence, ...]]]


class JudgeStep:
    """Takes waiting reports, oldest first, and delivers a verdict on each."""

    def __init__(
        self,
        context: WorkerContext,
        judge: Judge,
        evidence: ReadEvidence | None = None,
        begin: Callable[[], None] | None = None,
    ) -> None:
        self._inbox: ReportInbox = context.store.reports
        self._judge = judge
        self._clock, self._note, self._points = context.clock, context.note, context.points
        self._hold = context.owner, context.hold_ms
        self._evidence = evidence
        self._begin = begin

    async def run(self, run_id: str, facts: LoopFacts) -> int:
        """Number of reports that were delivered; a lost hold is another consumer's delivery."""
        delivered = 0
        while (taken := await self._inbox.take(run_id, *self._hold)) is not None:
            self._points.reach("taken")
            if self._begin is not None:
                self._begin()
            known_at = taken.report.known_at
            definitions, experiments = facts.definitions(known_at), facts.open_experiments(known_at)
            read = () if self._evidence is None else await self._evidence(taken.report)
            verdict = await self._judge.replan(taken.report, definitions, experiments, read)
            self._points.reach("judged")
            arrived_at = max(self._clock.now, known_at)
            if await self._inbox.deliver(taken, verdict, arrived_at):
                self._points.reach("delivered")
                delivered += 1
                payload = {
                    "slot": taken.slot,
                    "report_id": taken.report_id,
                    "decision": str(verdict.decision),
                }
                refused = [refusal.code for refusal in verdict.refused]
                self._note(
                    "report_delivered",
                    {**payload, "verdict_id": verdict.content_hash[:16], "actions": len(verdict.actions)}
                    | ({"refused": refused} if refused else {}),
                )
        return delivered


class SlowWorker:
    """What the waker wakes, and what `--once` runs.

    `judge` is None where a process trades the run: there reports wait until that process takes them.
    """

    def __init__(
        self, context: WorkerContext, tenure: LeaseHolder, runner: SlotRunner, judge: JudgeStep | None
    ) -> None:
        self._run_id, self._note = context.run.run_id, context.note
        self._tenure = tenure
        self._runner = runner
        self._judge = judge

    async def look(self) -> bool:
        """Whether this worker held the lease and has looked to the end.

        Raises:
            StoreError: the store failed; the next look goes on from what is stored.
        """
        lease = await self._tenure.take()
        if lease is None:
            return False
        try:
            async with self._tenure.keep_alive(lease):
                await self._runner.look(lease)
                await self._runner.refresh()
                if self._judge is not None and self._runner.waiting:
                    await self._judge.run(self._run_id, self._runner.facts)
        except LeaseLost as lost:
            self._tenure.held = None
            self._note("lease_lost", {"reason": str(lost)})
            return False
        return True

    async def close(self) -> None:
        """Release the lease."""
        await self._tenure.release()
