"""Hashes of what people read beside the journal, written with it in one transaction.

The journal has its chain, which holds nothing of one store: the same run has the same head everywhere. So the
description of a run, its end with its document, its bars and its orders hold hashes of their own in their
rows; those of bars are a chain, whose length the row of the run counts. Reports, the verdicts on them, change
plans and trials, which other processes write, are sealed in a table, so that a row that is gone is missed.
Whoever changes a row and its hash is not found here; `verify` computes the document anew and holds the orders
against the journal.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Table,
    Text,
    and_,
    cast,
    delete,
    exists,
    literal,
    select,
    update,
)  # fmt: skip

from services.store.connections import AsyncConnection
from services.store.failures import MEND, StoreDamaged
from services.store.tables import (
    change_plans,
    report_verdicts,
    reports_on_demand,
    runs,
    seals,
    slow_reports,
    trials,
)  # fmt: skip

DESCRIPTION = (
    "number", "run_id", "name", "created_at", "mode", "config_hash", "config", "data", "environment",
)  # fmt: skip
END = ("status", "document", "events", "head_hash", "bars")
COUNTS = ("number", "created_at", "events", "bars")
HASHES = ("bars", "description_hash", "end_hash")  # columns of a run that nobody but this room reads
# Tables whose rows are sealed one by one, what a row is, and the column that names it.
SEALED = {
    slow_reports: ("report", "report_id"),
    report_verdicts: ("verdict on report", "report_id"),
    reports_on_demand: ("report on demand", "report_id"),
    change_plans: ("plan", "plan_id"),
    trials: ("row in the ledger of trials", "run_id"),
}
CHANGED = "was changed after it was written"
UNENDED = "it is over, and its status was set back to 'running'"
DESCRIBED_ANEW = "its description (name, data, configuration, environment) was changed"


def hash_values(*values: Any) -> str:
    """SHA-256 (64 hex digits) over values as they are stored."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


async def seal_row(connection: AsyncConnection, table: Table, own: ColumnElement[bool]) -> None:
    """Seal a row of a sealed table, inside the transaction that wrote it."""
    row = (await connection.execute(select(table, _part(table).label("part")).where(own))).one()
    await put_seal(connection, row.run_id, row.part, _hash_row(table, row))


async def put_seal(connection: AsyncConnection, run_id: str, part: str, found: str, number: int = 0) -> None:
    """Seal a part of a run anew."""
    await connection.execute(delete(seals).where(seals.c.run_id == run_id, seals.c.part == part))
    row = {"run_id": run_id, "part": part, "number": number, "hash": found}
    await connection.execute(seals.insert(), row)


def sealed_rows(table: Table, *more: ColumnElement[Any]) -> Select[Any]:
    """Rows of a sealed table, each with its seal, None where that is gone, for `require_sealed`."""
    seal = select(seals.c.hash).where(_seals_of(table)).scalar_subquery()
    return select(*table.c, *more, seal.label("own_seal"))


def seal_problem(table: Table, row: Row[Any]) -> str | None:
    """What is not as it was sealed, of one of `sealed_rows`."""
    if row.own_seal is None:
        return "was not written by the program, or its seal is gone"
    return None if row.own_seal == _hash_row(table, row) else CHANGED


def require_sealed(table: Table, row: Row[Any]) -> None:
    """Refuse one of `sealed_rows` that is not as it was sealed.

    Raises:
        StoreDamaged: it was changed, or the program did not write it.
    """
    if (problem := seal_problem(table, row)) is not None:
        raise StoreDamaged(f"{name_row(table, row)} of run {row.run_id} is damaged, it {problem}: {MEND}")


def missing_rows(table: Table) -> Select[Any]:
    """Run and key of each row of a sealed table that is gone; its seal is there."""
    there = exists().select_from(table).where(_seals_of(table))
    gone = seals.c.part.startswith(f"{table.name} ", autoescape=True) & ~there
    return select(seals.c.run_id, seals.c.part).where(gone).order_by(seals.c.run_id, seals.c.part)


def name_row(table: Table, row: Row[Any]) -> str:
    """What a row of a sealed table is, such as `report 'a5b1'`."""
    what, name = SEALED[table]
    return f"{what} {row._mapping[name]!r}"


def _hash_row(table: Table, row: Row[Any]) -> str:
    return hash_values(*(row._mapping[column.name] for column in table.c))


def _part(table: Table) -> ColumnElement[str]:
    """The part of a run that a row is: its table and its key, such as `slow_reports high_level 17`."""
    part: ColumnElement[str] = literal(table.name)
    for column in table.primary_key:
        if column.name != "run_id":
            part = part + " " + cast(column, Text)
    return part


def _seals_of(table: Table) -> ColumnElement[bool]:
    return and_(seals.c.run_id == table.c.run_id, seals.c.part == _part(table))


async def seal_end(connection: AsyncConnection, run_id: str) -> None:
    """Hash how a run ended, inside the transaction that wrote it."""
    own = runs.c.run_id == run_id
    row = (await connection.execute(select(*(runs.c[name] for name in END)).where(own))).one()
    await connection.execute(update(runs).where(own).values(end_hash=hash_values(*row)))


def count_problems(run: Mapping[str, Any]) -> list[str]:
    """Columns of the row of a run that hold no number; SQLite takes any text for one."""
    return [f"its {name} {run[name]!r} is no number" for name in COUNTS if not isinstance(run[name], int)]


def row_problems(run: Mapping[str, Any]) -> list[str]:
    """What is not as it was written, of the row of a run."""
    problems, over = [], run["status"] != "running"
    if not over and run["document"] is not None:
        problems.append(UNENDED)
    if run["description_hash"] != hash_values(*(run[name] for name in DESCRIPTION)):
        problems.append(DESCRIBED_ANEW)
    if run["end_hash"] is None and over:
        problems.append(f"it is {run['status']!r}, and its end was not written by the program")
    elif run["end_hash"] is not None and not (
        over and run["end_hash"] == hash_values(*(run[name] for name in END))
    ):
        problems.append(
            "its document, its status, its number of rows or bars, or the hash of its last one was changed "
            "after it was written"
        )
    return problems
