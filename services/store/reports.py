"""Reports of the slow loop, their inbox, and the judge's verdicts.

A report, its place in the inbox and the end of its claim are one transaction under the lease; a verdict and
the end of a delivery are another. So there is no moment at which a slot has half a report.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.canonical import canonical_json
from schemas.judge import ReplanVerdict
from schemas.reflection import HighLevelReflectionReport
from services.slow_loop.artefacts import read_report, read_request, read_verdict, stored_text
from services.slow_loop.inbox import TakenReport
from services.store.claims import Claim, SlotKey, claimed_slot
from services.store.database_time import insert_once, now_ms
from services.store.repository import Lease, Repository
from services.store.seals import seal_row
from services.store.tables import report_inbox, report_verdicts, slot_claims, slow_reports

ID_LENGTH = 16


@dataclass(frozen=True)
class StoredReport:
    """A report with its delivery. `verdict` and `verdict_id` are None until it is delivered."""

    key: SlotKey
    report_id: str
    request_hash: str
    report: HighLevelReflectionReport
    owner: str
    epoch: int
    written_ms: int
    delivery: str
    consumer: str | None
    takes: int
    arrived_at: int | None
    verdict_id: str | None
    verdict: ReplanVerdict | None


class ReportRepository(Repository):
    """Writes reports under a lease, hands them to consumers; a `ReportInbox` by shape."""

    async def write(self, lease: Lease, claim: Claim, report: HighLevelReflectionReport) -> bool:
        """Store the report of a claim, put it into the inbox and close the claim: all or nothing.

        False when the claim is over already.

        Raises:
            LeaseLost: the lease is another worker's by now.
        """
        owner = {"owner": lease.owner, "epoch": lease.epoch}
        now = now_ms(self._url.dialect)
        row = {
            **vars(claim.key),
            **owner,
            "report_id": report.content_hash[:ID_LENGTH],
            "request_hash": report.request_hash,
            "report": stored_text(report),
            "telemetry": canonical_json(report.telemetry()),
            "written_ms": now,
        }
        waiting = {**vars(claim.key), "state": "waiting", "epoch": 0, "until_ms": 0}
        done = update(slot_claims).where(claimed_slot(claim.key))
        async with self._write(lease) as connection:
            closed = await connection.execute(done.values(state="done", changed_ms=now, **owner))
            if closed.rowcount != 1:
                return False
            await connection.execute(slow_reports.insert().values(row))
            await seal_row(connection, slow_reports, _at(slow_reports, claim.key))
            await connection.execute(report_inbox.insert().values(waiting))
        return True

    async def take(self, run_id: str, consumer: str, hold_ms: int) -> TakenReport | None:
        """The oldest report that no consumer holds, held for `hold_ms` of database time; None without one."""
        now = now_ms(self._url.dialect)
        box = report_inbox.c
        free = (box.state == "waiting") | ((box.state == "taken") & (box.until_ms <= now))
        oldest = (
            select(box.job, box.slot)
            .where((box.run_id == run_id) & free)
            .order_by(box.slot, box.job)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        hold = {"state": "taken", "consumer": consumer, "epoch": box.epoch + 1, "until_ms": now + hold_ms}

        async def work(connection: AsyncConnection) -> Row[Any] | None:
            found = (await connection.execute(oldest)).one_or_none()
            if found is None:
                return None
            key = SlotKey(run_id, found.job, found.slot)
            await connection.execute(update(report_inbox).where(_at(report_inbox, key)).values(hold))
            return (await connection.execute(_waiting(key))).one()

        row = await self._run_write(work)
        if row is None:
            return None
        return TakenReport(
            run_id=run_id,
            job=row.job,
            slot=row.slot,
            report_id=row.report_id,
            request=read_request(row.request),
            report=read_report(row.report),
            consumer=consumer,
            epoch=row.epoch,
        )

    async def deliver(self, taken: TakenReport, verdict: ReplanVerdict, arrived_at: int) -> bool:
        """Store the verdict and mark the report as delivered, in one transaction; false for a lost hold."""
        key = SlotKey(taken.run_id, taken.job, taken.slot)
        box = report_inbox.c
        held = _at(report_inbox, key) & (box.state == "taken") & (box.epoch == taken.epoch)
        row = {
            **vars(key),
            "report_id": taken.report_id,
            "verdict_id": verdict.content_hash[:ID_LENGTH],
            "verdict": stored_text(verdict),
            "consumer": taken.consumer,
            "epoch": taken.epoch,
            "decided_ms": now_ms(self._url.dialect),
        }
        async with self._write() as connection:
            marked = await connection.execute(
                update(report_inbox)
                .where(held & (box.consumer == taken.consumer))
                .values(state="delivered", arrived_at=arrived_at)
            )
            if marked.rowcount != 1:
                return False
            stored = await connection.execute(insert_once(self._url.dialect, report_verdicts).values(row))
            if stored.rowcount == 1:
                await seal_row(connection, report_verdicts, _at(report_verdicts, key))
            return stored.rowcount == 1

    async def all(self, run_id: str, job: str, after: int = -1) -> list[StoredReport]:
        """Every report of a job with its delivery, by slot; only slots later than `after`."""
        query = (
            select(
                slow_reports,
                report_inbox.c.state,
                report_inbox.c.consumer,
                report_inbox.c.epoch.label("takes"),
                report_inbox.c.arrived_at,
                report_verdicts.c.verdict_id,
                report_verdicts.c.verdict,
            )
            .join(report_inbox, _same(slow_reports, report_inbox))
            .outerjoin(report_verdicts, _same(slow_reports, report_verdicts))
            .where(slow_reports.c.run_id == run_id, slow_reports.c.job == job, slow_reports.c.slot > after)
            .order_by(slow_reports.c.slot)
        )
        async with self._read() as connection:
            found = (await connection.execute(query)).all()
        return [_read_stored(row) for row in found]


def _at(table: Table, key: SlotKey) -> ColumnElement[bool]:
    return and_(table.c.run_id == key.run_id, table.c.job == key.job, table.c.slot == key.slot)


def _same(left: Table, right: Table) -> ColumnElement[bool]:
    return and_(*(left.c[name] == right.c[name] for name in ("run_id", "job", "slot")))


def _waiting(key: SlotKey) -> Any:
    return (
        select(slow_reports.c.report_id, slow_reports.c.report, slot_claims.c.request)
        .add_columns(report_inbox.c.job, report_inbox.c.slot, report_inbox.c.epoch)
        .join(slot_claims, _same(slow_reports, slot_claims))
        .join(report_inbox, _same(slow_reports, report_inbox))
        .where(_at(slow_reports, key))
    )


def _read_stored(row: Row[Any]) -> StoredReport:
    return StoredReport(
        key=SlotKey(row.run_id, row.job, row.slot),
        report_id=row.report_id,
        request_hash=row.request_hash,
        report=read_report(row.report),
        owner=row.owner,
        epoch=row.epoch,
        written_ms=row.written_ms,
        delivery=row.state,
        consumer=row.consumer,
        takes=row.takes,
        arrived_at=row.arrived_at,
        verdict_id=row.verdict_id,
        verdict=None if row.verdict is None else read_verdict(row.verdict),
    )
