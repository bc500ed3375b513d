"""Whether reports and verdicts beside the journal fit their ids, which are hashes of their text."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.canonical import ID_LENGTH
from services.store.tables import report_verdicts, reports_on_demand, slow_reports

CHANGED = "was changed after it was written"


async def report_problems(connection: AsyncConnection, run_id: str) -> list[str]:
    """What is not as it was written, of the reports of a worker or on demand and of the verdicts on them."""
    problems: list[str] = []
    for table in (slow_reports, report_verdicts, reports_on_demand):
        query = select(table).where(table.c.run_id == run_id).order_by(*table.primary_key)
        for row in await connection.execute(query):
            problems += (f"{what} {name!r} {CHANGED}" for what, name in _changed(table, row))
    return problems


def _changed(table: Table, row: Row[Any]) -> Iterator[tuple[str, str]]:
    """Kind and id of each text of a row that does not fit the columns beside it."""
    told = row._mapping
    asked = {name: told[name] for name in ("request_hash", "known_at") if name in told}
    if "report" in told and not _is(told["report"], told["report_id"], asked):
        yield "report", told["report_id"]
    if "request" in told and not _is(told["request"], told["request_hash"], {}):
        yield "request of report", told["report_id"]
    about = {"report_id": told["report_id"]}
    if told.get("verdict") is not None and not _is(told["verdict"], told["verdict_id"], about):
        yield "verdict on report", told["report_id"]


def _is(text: str, name: str, fields: dict[str, Any]) -> bool:
    """Whether a text has the hash that its name begins, and says in its fields what the columns say."""
    try:
        held = json.loads(text)
        fits = all(held[key] == value for key, value in fields.items())
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    found = sha256(text.encode()).hexdigest()
    return fits and name in (found, found[:ID_LENGTH])
