"""Reports of the slow loop, their inbox, and the judge's verdicts.

A report, its place in the inbox and the end of its claim are one transaction under the lease; a verdict and
the end of a delivery are another. So there is no moment at which a slot has half a report.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, select, update

from schemas.canonical import canonical_json
from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from services.slow_loop.inbox import TakenReport
from services.store.claims import Claim, SlotKey, at_slot, claimed_slot
from services.store.connections import AsyncConnection
from services.store.database_time import insert_once, now_ms
from services.store.failures import MEND, StoreDamaged, readable
from services.store.repository import Lease, Repository
from services.store.seals import CHANGED, name_row, require_sealed, seal_row, sealed_rows
from services.store.tables import report_inbox, report_verdicts, reports_on_demand, slot_claims, slow_reports

ID_LENGTH = 16
ON_DEMAND = sealed_rows(reports_on_demand)


@dataclass(frozen=True)
class StoredReport:
    """A report with its delivery. `verdict` and its id are None until it is delivered."""

    key: SlotKey
    report_id: str
    report: HighLevelReflectionReport
    owner: str
    epoch: int
    delivery: str
    takes: int
    arrived_at: int | None
    verdict_id: str | None
    verdict: ReplanVerdict | None


@dataclass(frozen=True)
class OnDemandReport:
    """A report with its request.

    Attributes:
        known_at: bar close as of which it was made, ns.
        verdict: the judge's on it; None before one was asked for.
        calls: rows of what was read for the verdict and of the model calls it took, with raw replies.
    """

    run_id: str
    report_id: str
    known_at: int
    request: HighLevelReflectionRequest
    report: HighLevelReflectionReport
    verdict: ReplanVerdict | None
    calls: tuple[dict[str, Any], ...]


def _same(left: Table, right: Table) -> ColumnElement[bool]:
    return and_(*(left.c[name] == right.c[name] for name in ("run_id", "job", "slot")))


WAITING = (
    sealed_rows(slow_reports, slot_claims.c.request, report_inbox.c.epoch.label("takes"))
    .join(slot_claims, _same(slow_reports, slot_claims))
    .join(report_inbox, _same(slow_reports, report_inbox))
)


class ReportRepository(Repository):
    """Writes reports under a lease, hands them to consumers; a `ReportInbox` by shape.

    None is handed out that is not as it was sealed.
    """

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
            "report": report.canonical_text(),
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
            await seal_row(connection, slow_reports, at_slot(slow_reports, claim.key))
            await connection.execute(report_inbox.insert().values(waiting))
        return True

    async def take(self, run_id: str, consumer: str, hold_ms: int) -> TakenReport | None:
        """The oldest report that no consumer holds, held for `hold_ms` of database time; None without one.

        Raises:
            StoreDamaged: it or its request is not what was written; nobody holds it then.
        """
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
            await connection.execute(update(report_inbox).where(at_slot(report_inbox, key)).values(hold))
            row: Row[Any] = (await connection.execute(WAITING.where(at_slot(slow_reports, key)))).one()
            require_sealed(slow_reports, row)
            if sha256(row.request.encode()).hexdigest() != row.request_hash:
                request = f"the request of {name_row(slow_reports, row)} of run {run_id}"
                raise StoreDamaged(f"{request} is damaged, it {CHANGED}: {MEND}")
            return row

        row = await self._run_write(work)
        if row is None:
            return None
        with readable(f"{name_row(slow_reports, row)} of run {run_id}"):
            return TakenReport(
                run_id=run_id,
                job=row.job,
                slot=row.slot,
                report_id=row.report_id,
                request=HighLevelReflectionRequest.model_validate_json(row.request),
                report=HighLevelReflectionReport.model_validate_json(row.report),
                consumer=consumer,
                epoch=row.takes,
            )

    async def deliver(self, taken: TakenReport, verdict: ReplanVerdict, arrived_at: int) -> bool:
        """Store the verdict and mark the report as delivered, in one transaction; false for a lost hold."""
        key = SlotKey(taken.run_id, taken.job, taken.slot)
        box = report_inbox.c
        held = at_slot(report_inbox, key) & (box.state == "taken") & (box.epoch == taken.epoch)
        row = {
            **vars(key),
            "report_id": taken.report_id,
            "verdict_id": verdict.content_hash[:ID_LENGTH],
            "verdict": verdict.canonical_text(),
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
                await seal_row(connection, report_verdicts, at_slot(report_verdicts, key))
            return stored.rowcount == 1

    async def all(self, run_id: str, job: str, after: int = -1) -> list[StoredReport]:
        """Every report of a job with its delivery, by slot; only slots later than `after`.

        Raises:
            StoreDamaged: a report or its verdict is not as it was sealed, or cannot be read.
        """
        found, verdicts = (
            sealed_rows(table)
            .where(table.c.run_id == run_id, table.c.job == job, table.c.slot > after)
            .order_by(table.c.slot)
            for table in (slow_reports, report_verdicts)
        )
        box = report_inbox.c
        found = found.add_columns(box.state, box.epoch.label("takes"), box.arrived_at)
        found = found.join(report_inbox, _same(slow_reports, report_inbox))
        async with self._read(snapshot=True) as connection:
            decided = {row.slot: row for row in (await connection.execute(verdicts)).all()}
            rows = (await connection.execute(found)).all()
        return [_read_stored(row, decided.get(row.slot)) for row in rows]


class OnDemandRepository(Repository):
    """Keeps reports on demand and the verdicts on them, and shows none that is not as it was sealed."""

    async def put(
        self, run_id: str, request: HighLevelReflectionRequest, report: HighLevelReflectionReport
    ) -> bool:
        """Whether the report is new; false when it is kept already."""
        report_id = report.content_hash[:ID_LENGTH]
        row = {
            "run_id": run_id,
            "report_id": report_id,
            "known_at": report.known_at,
            "request_hash": request.content_hash,
            "request": request.canonical_text(),
            "report": report.canonical_text(),
            "telemetry": canonical_json(report.telemetry()),
            "written_ms": now_ms(self._url.dialect),
        }
        async with self._write() as connection:
            statement = insert_once(self._url.dialect, reports_on_demand).values(row)
            new = (await connection.execute(statement)).rowcount == 1
            if new:
                await seal_row(connection, reports_on_demand, _at_report(run_id, report_id))
        return new

    async def decide(
        self, run_id: str, report_id: str, verdict: ReplanVerdict, calls: list[dict[str, Any]]
    ) -> bool:
        """Whether this is the verdict on the report; false when there is one, or no such report.

        Raises:
            StoreDamaged: the report is not as it was sealed.
        """
        values = {
            "verdict_id": verdict.content_hash[:ID_LENGTH],
            "verdict": verdict.canonical_text(),
            "calls": canonical_json(calls),
            "decided_ms": now_ms(self._url.dialect),
        }
        own = _at_report(run_id, report_id)
        async with self._write() as connection:
            await connection.execute(select(reports_on_demand.c.report_id).where(own).with_for_update())
            row = (await connection.execute(ON_DEMAND.where(own))).one_or_none()
            if row is None or _on_demand(row).verdict is not None:
                return False
            await connection.execute(update(reports_on_demand).where(own).values(values))
            await seal_row(connection, reports_on_demand, own)
        return True

    async def of_run(self, run_id: str) -> list[OnDemandReport]:
        """Every report on demand of a run, by the moment it is about.

        Raises:
            StoreDamaged: one is not as it was sealed, or cannot be read.
        """
        return await self._find(reports_on_demand.c.run_id == run_id)

    async def find_by_prefix(self, prefix: str) -> list[OnDemandReport]:
        """Every report, of whatever run, whose id starts so; `prefix` holds hex digits only; see `of_run`."""
        return await self._find(reports_on_demand.c.report_id.startswith(prefix, autoescape=True))

    async def _find(self, wanted: ColumnElement[bool]) -> list[OnDemandReport]:
        columns = reports_on_demand.c
        query = ON_DEMAND.where(wanted).order_by(columns.run_id, columns.known_at, columns.report_id)
        return [_on_demand(row) for row in await self._select(query)]


def _read_stored(row: Row[Any], decided: Row[Any] | None) -> StoredReport:
    require_sealed(slow_reports, row)
    if decided is not None:
        require_sealed(report_verdicts, decided)
    with readable(f"{name_row(slow_reports, row)} of run {row.run_id}"):
        return StoredReport(
            key=SlotKey(row.run_id, row.job, row.slot),
            report_id=row.report_id,
            report=HighLevelReflectionReport.model_validate_json(row.report),
            owner=row.owner,
            epoch=row.epoch,
            delivery=row.state,
            takes=row.takes,
            arrived_at=row.arrived_at,
            verdict_id=None if decided is None else decided.verdict_id,
            verdict=None if decided is None else ReplanVerdict.model_validate_json(decided.verdict),
        )


def _at_report(run_id: str, report_id: str) -> ColumnElement[bool]:
    return (reports_on_demand.c.run_id == run_id) & (reports_on_demand.c.report_id == report_id)


def _on_demand(row: Row[Any]) -> OnDemandReport:
    require_sealed(reports_on_demand, row)
    with readable(f"{name_row(reports_on_demand, row)} of run {row.run_id}"):
        return OnDemandReport(
            run_id=row.run_id,
            report_id=row.report_id,
            known_at=row.known_at,
            request=HighLevelReflectionRequest.model_validate_json(row.request),
            report=HighLevelReflectionReport.model_validate_json(row.report),
            verdict=None if row.verdict is None else ReplanVerdict.model_validate_json(row.verdict),
            calls=tuple(json.loads(row.calls or "[]")),
        )
