"""Reports from the inbox: judged beside the bars, heard between two rows, acknowledged once they are stored.

The worker that reflects never writes into the journal of a run. What this process has heard stands there: a
report that comes again after a crash is acknowledged with the verdict that was given.
"""

from dataclasses import dataclass, field

from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from services.journal.parking import ParkedRow
from services.slow_loop.inbox import ReportInbox, TakenReport
from worker.session import Session

HOLD_MS = 60_000


@dataclass(frozen=True)
class Judged:
    """A report with its verdict, ready to be heard.

    Attributes:
        rows: what the asking has to say.
        seen: how many rows of the run the judge could read.
        taken: None in a replay.
    """

    request: HighLevelReflectionRequest
    report: HighLevelReflectionReport
    verdict: ReplanVerdict
    rows: list[ParkedRow]
    seen: int
    taken: TakenReport | None = None


async def judge(
    session: Session,
    request: HighLevelReflectionRequest,
    report: HighLevelReflectionReport,
    taken: TakenReport | None = None,
    seen: int | None = None,
) -> Judged:
    """Ask the judge beside the bars; what the asking costs is parked.

    It reads the first `seen` rows of the run; None: those that are there now.
    """
    seen = session.journal.events if seen is None else seen
    with session.clock.pin(min(report.known_at, session.clock.now)), session.events.parking() as rows:
        session.models.account.open_event()
        verdict = await session.slow_loop.ask_judge(report, seen)
    return Judged(request, report, verdict, rows, seen, taken)


def apply_report(session: Session, judged: Judged) -> int:
    """Let a judged report arrive at the last validated row; the close of that row, ns."""
    row = session.engine.t - 1
    now = int(session.bars.close_times[row])
    payload = {"report_id": judged.report.content_hash[:16], "slot": judged.request.slot}
    if session.kept is not None:
        payload["seen"] = judged.seen
    session.journal.append("report_arrived", ts_event=now, known_at=now, payload=payload)
    session.events.deliver(judged.rows, now)
    session.slow_loop.apply_report(judged.request, judged.report, judged.verdict, row)
    return now


@dataclass(eq=False)
class ReportConsumer:
    """Takes one report at a time from the inbox and gives it back with its verdict.

    Attributes:
        inbox: where reports wait.
        run_id: whose.
        consumer: name of this process.
        known: reports that stand in the journal already, with their verdicts and the close of their row.
    """

    inbox: ReportInbox
    run_id: str
    consumer: str
    known: dict[str, tuple[ReplanVerdict, int]]
    _heard: tuple[TakenReport, ReplanVerdict, int] | None = field(default=None, init=False)
    _ready: Judged | None = field(default=None, init=False)

    @property
    def busy(self) -> bool:
        """Whether a report is in hand that is not heard and acknowledged yet."""
        return self._ready is not None or self._heard is not None

    async def look(self, session: Session) -> None:
        """Take and judge the next report, if none is in hand.

        Raises:
            StoreError: the store is away; the next look tries again.
        """
        if self.busy:
            return
        taken = await self.inbox.take(self.run_id, self.consumer, HOLD_MS)
        if taken is None:
            return
        if taken.report_id in self.known:
            verdict, arrived_at = self.known[taken.report_id]
            await self.inbox.deliver(taken, verdict, arrived_at)
            return
        self._ready = await judge(session, taken.request, taken.report, taken)

    def apply_report(self, session: Session) -> bool:
        """Let what is ready arrive, unless an evaluation is out: playbooks do not change under it.

        Returns:
            Whether something arrived.
        """
        judged = self._ready
        if judged is None or judged.taken is None or session.policy_loop.in_flight:
            return False
        self._ready = None
        arrived_at = apply_report(session, judged)
        self.known[judged.taken.report_id] = (judged.verdict, arrived_at)
        self._heard = (judged.taken, judged.verdict, arrived_at)
        return True

    async def acknowledge(self, *, stored: bool) -> None:
        """Give the verdict back once its rows are stored; a hold that was lost meanwhile is taken again.

        Raises:
            StoreError: the store is away; the next look tries again.
        """
        if self._heard is not None and stored:
            await self.inbox.deliver(*self._heard)
            self._heard = None
