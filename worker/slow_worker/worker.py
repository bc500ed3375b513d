"""One look of a worker: take the lease, let the runner examine, let the judge answer what waits."""

from services.store.repository import LeaseLost
from worker.operations.logs import EventSink
from worker.slow_worker.judge_step import JudgeStep
from worker.slow_worker.lease_holder import LeaseHolder
from worker.slow_worker.slot_runner import SlotRunner


class SlowWorker:
    """What the waker wakes, and what `--once` runs.

    `judge` is None where a process trades the run: there reports wait until that process takes them.
    """

    def __init__(
        self, run_id: str, tenure: LeaseHolder, runner: SlotRunner, judge: JudgeStep | None, note: EventSink
    ) -> None:
        self._run_id = run_id
        self._tenure = tenure
        self._runner = runner
        self._judge = judge
        self._note = note

    async def look(self) -> bool:
        """Whether this worker held the lease and has looked to the end.

        Raises:
            StoreError: the store failed; the next look goes on from what is stored.
        """
        lease = await self._tenure.take()
        if lease is None:
            return False
        try:
            async with self._tenure.kept(lease):
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
