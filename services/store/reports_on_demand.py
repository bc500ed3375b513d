"""Reports on demand of a run that is over: kept beside it with their requests, and judged at most once.

They are no rows of the run's journal, so a run stays what it was however often it is asked about. The
same question about the same moment gives the same report, which is kept once.
"""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, select, update

from schemas.canonical import canonical_json
from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from services.store.database_time import insert_once, now_ms
from services.store.engine import StoreEngine
from services.store.failures import readable
from services.store.repository import Repository
from services.store.seals import demand_sealed, name_row, own_seal, seal_row
from services.store.tables import reports_on_demand
from services.store.urls import StoreUrl

ID_LENGTH = 16


@dataclass(frozen=True)
class OnDemandReport:
    """A report with its request.

    Attributes:
        known_at: bar close as of which it was made, ns.
        verdict: the judge's on it, with its id; None before one was asked for.
        calls: rows of what was read for the verdict and of the model calls it took, with raw replies.
        written_ms, decided_ms: database time.
    """

    run_id: str
    report_id: str
    known_at: int
    request: HighLevelReflectionRequest
    report: HighLevelReflectionReport
    written_ms: int
    verdict_id: str | None
    verdict: ReplanVerdict | None
    calls: tuple[dict[str, Any], ...]
    decided_ms: int | None


class OnDemandRepository(Repository):
    """Keeps reports on demand and the verdicts on them, and shows none that is not as it was sealed."""

    def __init__(self, engine: StoreEngine, url: StoreUrl) -> None:
        super().__init__(engine, url)
        self._rows = select(reports_on_demand, own_seal(reports_on_demand))

    async def put(
        self, run_id: str, request: HighLevelReflectionRequest, report: HighLevelReflectionReport
    ) -> bool:
        """Whether the report is new; false when it is kept already."""
        row = {
            "run_id": run_id,
            "report_id": report.content_hash[:ID_LENGTH],
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
                await seal_row(connection, reports_on_demand, _at(run_id, report.content_hash[:ID_LENGTH]))
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
        own = _at(run_id, report_id)
        async with self._write() as connection:
            await connection.execute(select(reports_on_demand.c.report_id).where(own).with_for_update())
            row = (await connection.execute(self._rows.where(own))).one_or_none()
            if row is None or _report(row).verdict is not None:
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
        query = self._rows.where(wanted).order_by(columns.run_id, columns.known_at, columns.report_id)
        async with self._read() as connection:
            return [_report(row) for row in (await connection.execute(query)).all()]


def _at(run_id: str, report_id: str) -> ColumnElement[bool]:
    return (reports_on_demand.c.run_id == run_id) & (reports_on_demand.c.report_id == report_id)


def _report(row: Row[Any]) -> OnDemandReport:
    demand_sealed(reports_on_demand, row)
    with readable(f"{name_row(reports_on_demand, row)} of run {row.run_id}"):
        return OnDemandReport(
            run_id=row.run_id,
            report_id=row.report_id,
            known_at=row.known_at,
            request=HighLevelReflectionRequest.model_validate_json(row.request),
            report=HighLevelReflectionReport.model_validate_json(row.report),
            written_ms=row.written_ms,
            verdict_id=row.verdict_id,
            verdict=None if row.verdict is None else ReplanVerdict.model_validate_json(row.verdict),
            calls=tuple(json.loads(row.calls or "[]")),
            decided_ms=row.decided_ms,
        )
