"""Hashes of what people read beside the journal, written with it in one transaction.

The journal has its chain, which holds nothing of one store: the same run has the same head everywhere. So the
description of a run, its end with its document, its bars and its orders hold hashes of their own in their
rows; those of bars are a chain, whose length the row of the run counts. Reports, the verdicts on them, change
plans and trials, which other processes write, are sealed in a table: one row per part and number. Whoever
changes a row and its hash is not found here; `verify` computes the document anew and holds the orders against
the journal.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Label,
    Row,
    Select,
    Table,
    Text,
    and_,
    cast,
    delete,
    literal,
    select,
    update,
)  # fmt: skip
from sqlalchemy.ext.asyncio import AsyncConnection

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

TRIAL = "trial"
REVISIONS = "revisions"  # a column of change plans
DESCRIPTION = (
    "number",
    "run_id",
    "name",
    "created_at",
    "mode",
    "config_hash",
    "config",
    "data",
    "environment",
)
END = ("status", "document", "events", "head_hash", "bars")
COUNTS = ("number", "created_at", "events", "bars")
HASHES = ("bars", "description_hash", "end_hash")  # columns of a run that nobody but this room reads
# Tables whose rows are sealed one by one, and what a row is.
SEALED = {
    slow_reports: "report",
    report_verdicts: "verdict on report",
    reports_on_demand: "report on demand",
    change_plans: "plan",
}
CHANGED = "was changed after it was written"
UNENDED = "it is over, and its status was set back to 'running'"
DESCRIBED_ANEW = "its description (name, data, configuration, environment) was changed"


def hash_values(*values: Any) -> str:
    """SHA-256 (64 hex digits) over values as they are stored."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


async def seal_row(connection: AsyncConnection, table: Table, own: ColumnElement[bool]) -> None:
    """Seal a row of a run in a table with a key of its own, inside the transaction that wrote it."""
    row = (await connection.execute(select(table).where(own))).one()
    await put_seal(connection, row.run_id, part_of(table, row), *hash_row(table, row))


async def put_seal(connection: AsyncConnection, run_id: str, part: str, *hashes: str, first: int = 0) -> None:
    """Seal a part of a run anew, its hashes numbered from `first`."""
    await connection.execute(delete(seals).where(seals.c.run_id == run_id, seals.c.part == part))
    rows = [
        {"run_id": run_id, "part": part, "number": n, "hash": found} for n, found in enumerate(hashes, first)
    ]
    await connection.execute(seals.insert(), rows)


def part_of(table: Table, row: Row[Any]) -> str:
    """The part of a run that a row is: its table and its key, such as `slow_reports high_level 17`."""
    key = (str(row._mapping[column.name]) for column in table.primary_key if column.name != "run_id")
    return " ".join((table.name, *key))


def hash_row(table: Table, row: Row[Any]) -> tuple[str, ...]:
    """The seals that a row has to have; revisions, which a list of plans does not read, have the second."""
    shown = row._mapping
    hashes = (hash_values(*(shown[name] for name in shown if name in table.c and name != REVISIONS)),)
    return (*hashes, hash_values(shown[REVISIONS])) if REVISIONS in shown else hashes


def own_seal(table: Table) -> Label[Any]:
    """The seal of a row, as a column of a query of a sealed table; None where it is gone."""
    part: ColumnElement[str] = literal(table.name)
    for column in (column for column in table.primary_key if column.name != "run_id"):
        part = part + " " + cast(column, Text)
    own = and_(seals.c.run_id == table.c.run_id, seals.c.part == part, seals.c.number == 0)
    return select(seals.c.hash).where(own).scalar_subquery().label("own_seal")


def demand_sealed(table: Table, row: Row[Any]) -> None:
    """Refuse a row, read with its `own_seal`, that is not as it was sealed.

    Raises:
        StoreDamaged: it was changed, or the program did not write it.
    """
    if row.own_seal != hash_row(table, row)[0]:
        how = "its seal is gone" if row.own_seal is None else f"it {CHANGED}"
        raise StoreDamaged(f"{name_row(table, row)} of run {row.run_id} is damaged, {how}: {MEND}")


def name_row(table: Table, row: Row[Any]) -> str:
    """What a row of a sealed table is, such as `report 'a5b1'`."""
    return f"{SEALED[table]} {row._mapping.get('report_id') or row._mapping.get('plan_id')!r}"


async def seal_end(connection: AsyncConnection, run_id: str) -> None:
    """Hash how a run ended, inside the transaction that wrote it."""
    own = runs.c.run_id == run_id
    row = (await connection.execute(select(*(runs.c[name] for name in END)).where(own))).one()
    await connection.execute(update(runs).where(own).values(end_hash=hash_values(*row)))


def seal_of_trial() -> Label[Any]:
    """The seal of a row of the ledger of trials, as a column of a query of it; the newest of a run has it."""
    own = and_(seals.c.run_id == trials.c.run_id, seals.c.part == TRIAL, seals.c.number == 0)
    return select(seals.c.hash).where(own).scalar_subquery().label("own_seal")


def trial_of(run_id: str) -> Select[Any]:
    """The newest row of the ledger of trials with a run's id; the id of a run that is gone may come again."""
    return select(*trials.c).where(trials.c.run_id == run_id).order_by(trials.c.number.desc()).limit(1)


async def seal_trial(connection: AsyncConnection, run_id: str) -> None:
    """Seal what the ledger of trials says of a run."""
    row = (await connection.execute(trial_of(run_id))).one()
    await put_seal(connection, run_id, TRIAL, hash_values(*row))


def run_of(account: str) -> str:
    """The run that sends orders to an account of the venue."""
    return account.rpartition("/")[2]


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
