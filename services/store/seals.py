"""Seals: hashes of what people read beside the journal, written with it in one transaction.

The journal has its chain. The description of a run, its end with its document, the bars that it took, the
orders that it sent, its reports, the verdicts on them and its change plans are sealed here: one row per part
and number. Rows of bars are chained, so that none can be changed, dropped or added unseen. Whoever changes a
row and its seal is not found here; `verify` computes the document anew and holds the orders against the
journal.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Label,
    Row,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    func,
    literal,
    select,
)  # fmt: skip
from sqlalchemy.ext.asyncio import AsyncConnection

from services.journal.chain import GENESIS_HASH
from services.store.failures import MEND, StoreDamaged
from services.store.tables import (
    change_plans,
    paper_bars,
    paper_orders,
    report_verdicts,
    reports_on_demand,
    runs,
    seals,
    slow_reports,
    trials,
    venue_orders,
)  # fmt: skip

RUN, END, BARS, VENUE, ACKNOWLEDGED = "run", "end", "bars", "venue", "acknowledged"
TRIAL = "trial"
HEAD = 1  # number of the seal of an end that covers count and last hash of the rows; the first has none
REVISIONS = "revisions"  # a column of change plans
KEPT = ("seal_of_description", "seal_of_end", "seal_of_head")  # columns of `seals_of_row`
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
# Tables whose rows are sealed one by one, and what a row is.
SEALED = {
    slow_reports: "report",
    report_verdicts: "verdict on report",
    reports_on_demand: "report on demand",
    change_plans: "plan",
}
CHANGED = "was changed after it was written"
DESCRIBED_ANEW = "its description (name, data, configuration, environment) was changed"
GONE = "the seals of its document, bars and orders are gone"

SEAL = select(seals.c.hash).where(
    seals.c.run_id == bindparam("run"), seals.c.part == bindparam("of"), seals.c.number == bindparam("at")
)


def hash_values(*values: Any) -> str:
    """SHA-256 (64 hex digits) over values as they are stored."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def sealed_bars(before: str | None, number: int, label: int, bars: str) -> str:
    """The seal of a row of bars behind another one."""
    return hash_values(before or GENESIS_HASH, number, label, bars)


async def put_seals(
    connection: AsyncConnection, run_id: str, part: str, hashes: Mapping[int, str], *, anew: bool = True
) -> None:
    """Store seals by number inside a transaction of the caller's; `anew` replaces those that are there."""
    own = and_(seals.c.run_id == run_id, seals.c.part == part, seals.c.number.in_(hashes))
    if anew:
        await connection.execute(delete(seals).where(own))
    else:
        there = (await connection.execute(select(seals.c.number).where(own))).scalars().all()
        hashes = {number: found for number, found in hashes.items() if number not in set(there)}
    if hashes:
        rows = [{"run_id": run_id, "part": part, "number": n, "hash": found} for n, found in hashes.items()]
        await connection.execute(seals.insert(), rows)


async def seal_of(connection: AsyncConnection, run_id: str, part: str, number: int) -> str | None:
    """One seal; None where there is none."""
    return await connection.scalar(SEAL, {"run": run_id, "of": part, "at": number})


async def seal_row(connection: AsyncConnection, table: Table, own: ColumnElement[bool]) -> None:
    """Seal a row of a run in a table with a key of its own, inside the transaction that wrote it."""
    row = (await connection.execute(select(table).where(own))).one()
    await put_seals(connection, row.run_id, part_of(table, row), dict(enumerate(hash_row(table, row))))


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


def seals_of_row() -> list[Label[Any]]:
    """The seals of the description, the end and the head of a run, as columns of a query of runs."""
    own = seals.c.run_id == runs.c.run_id
    found = (
        select(seals.c.hash).where(own, seals.c.part == part, seals.c.number == number)
        for part, number in ((RUN, 0), (END, 0), (END, HEAD))
    )
    return [query.scalar_subquery().label(name) for query, name in zip(found, KEPT, strict=True)]


async def seal_run(connection: AsyncConnection, run_id: str) -> None:
    """Seal what the run row says from its beginning."""
    columns = [runs.c[name] for name in DESCRIPTION]
    row = (await connection.execute(select(*columns).where(runs.c.run_id == run_id))).one()
    await put_seals(connection, run_id, RUN, {0: hash_values(*row)})


async def seal_end(connection: AsyncConnection, run_id: str) -> None:
    """Seal how a run ended, inside the transaction that wrote it; the seal goes when the run goes on."""
    columns = (runs.c.status, runs.c.document, runs.c.events, runs.c.head_hash)
    status, document, *head = (
        await connection.execute(select(*columns).where(runs.c.run_id == run_id))
    ).one()
    if status == "running":
        await connection.execute(delete(seals).where(seals.c.run_id == run_id, seals.c.part == END))
    else:
        hashes = {0: hash_values(status, document), HEAD: hash_values(*head)}
        await put_seals(connection, run_id, END, hashes)


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
    await put_seals(connection, run_id, TRIAL, {0: hash_values(*row)})


async def seals_of_bars(
    connection: AsyncConnection, run_id: str, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Seals of rows of bars behind those that are stored; whoever stores them lets one that is there be."""
    last = rows[0]["number"] - 1
    before = await seal_of(connection, run_id, BARS, last)
    found = []
    for row in rows:
        number = row["number"]
        before = sealed_bars(before if number == last + 1 else None, number, row["label"], row["bars"])
        found.append({"run_id": run_id, "part": BARS, "number": number, "hash": before})
        last = number
    return found


async def seal_venue(connection: AsyncConnection, account: str, numbers: Mapping[str, int]) -> None:
    """Seal orders as the venue of a run has them; `numbers` are their journal rows by order id."""
    run_id = run_of(account)
    if await connection.scalar(select(runs.c.run_id).where(runs.c.run_id == run_id)) is None:
        return
    columns = (venue_orders.c.order_id, venue_orders.c.instruction, venue_orders.c.sends)
    own = and_(venue_orders.c.account == account, venue_orders.c.order_id.in_(numbers))
    rows = (await connection.execute(select(*columns).where(own))).all()
    await put_seals(connection, run_id, VENUE, {numbers[row[0]]: hash_values(*row) for row in rows})


async def seal_acknowledged(connection: AsyncConnection, run_id: str, order_ids: Sequence[str]) -> None:
    """Seal that the venue has these orders of a run."""
    columns = (paper_orders.c.seq, paper_orders.c.order_id)
    own = and_(paper_orders.c.run_id == run_id, paper_orders.c.order_id.in_(order_ids))
    rows = (await connection.execute(select(*columns).where(own))).all()
    await put_seals(connection, run_id, ACKNOWLEDGED, {seq: order_id for seq, order_id in rows}, anew=False)


def run_of(account: str) -> str:
    """The run that sends orders to an account of the venue."""
    return account.rpartition("/")[2]


def row_problems(
    run: Mapping[str, Any], described: str | None, end: str | None, head: str | None
) -> list[str]:
    """What is not as it was written, of the row of a run with the seals of its description, end and head."""
    if described is None:
        return [GONE]
    problems = []
    if described != hash_values(*(run[name] for name in DESCRIPTION)):
        problems.append(DESCRIBED_ANEW)
    over = run["status"] != "running"
    if end is None and over:
        problems.append(f"it is {run['status']!r}, and its end was not written by the program")
    elif end is not None and (not over or end != hash_values(run["status"], run["document"])):
        problems.append("its document or status was changed after it was written")
    elif head is not None and head != hash_values(run["events"], run["head_hash"]):
        problems.append("its number of rows or the hash of its last one was changed after it was written")
    return problems


def bars_problem(kept: str | None, before: str | None, row: tuple[int, int, str]) -> str | None:
    """What is wrong with a stored row of bars by its seal and the one before it; None when nothing is."""
    if kept is None:
        return f"row {row[0]} of its bars was not taken by the run"
    if kept != sealed_bars(before, *row):
        return f"row {row[0]} of its bars is damaged: it was changed after it was written"
    return None


async def newest_bars(connection: AsyncConnection, run_id: str) -> tuple[int, int]:
    """Numbers of the last row of bars and of the last seal of one, -1 where there is none, at one moment."""
    bars = select(func.max(paper_bars.c.number)).where(paper_bars.c.run_id == run_id).scalar_subquery()
    own = and_(seals.c.run_id == run_id, seals.c.part == BARS)
    kept = select(func.max(seals.c.number)).where(own).scalar_subquery()
    row = (await connection.execute(select(bars, kept))).one()
    return (-1 if row[0] is None else row[0]), (-1 if row[1] is None else row[1])
