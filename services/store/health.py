"""What can be said about a store without running anything again: its file, its runs' heads, their chains."""

from dataclasses import dataclass

from sqlalchemy import Connection, Row, func, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from services.journal.chain import GENESIS_HASH, check_chain
from services.store.journal_repository import stored_rows
from services.store.tables import journal, metadata, runs
from services.store.urls import StoreUrl

SHOWN = 20


@dataclass(frozen=True)
class Head:
    """Where a run's journal ends, as its run row says."""

    events: int
    hash: str


Heads = dict[str, Head]


async def heads(connection: AsyncConnection) -> Heads:
    """The recorded head of every run, oldest run first."""
    query = select(runs.c.run_id, runs.c.events, runs.c.head_hash).order_by(runs.c.number)
    return {row.run_id: Head(row.events, row.head_hash) for row in await connection.execute(query)}


async def row_counts(connection: AsyncConnection, names: frozenset[str]) -> dict[str, int]:
    """Rows of each of our tables that is there."""
    tables = [table for table in metadata.sorted_tables if table.name in names]
    return {
        table.name: await connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables
    }


async def file_problems(connection: AsyncConnection, url: StoreUrl) -> list[str]:
    """What SQLite's own check finds in the file; a server looks after its files itself."""
    if url.dialect != "sqlite":
        return []
    try:
        found = (await connection.execute(text(f"PRAGMA integrity_check({SHOWN})"))).scalars().all()
        broken = (await connection.execute(text("PRAGMA foreign_key_check"))).all()
    except DBAPIError as error:
        return [f"the file is damaged: {error.orig}"]
    problems = [f"the file is damaged: {line}" for line in found if line != "ok"]
    return problems + [f"row {row[1]} of {row[0]} belongs to no row of {row[2]}" for row in broken[:SHOWN]]


def index_problems(connection: Connection) -> list[str]:
    """Indexes of our tables that are missing."""
    found = inspect(connection).get_multi_indexes(filter_names=sorted(metadata.tables))
    present = {str(index["name"]) for indexes in found.values() for index in indexes}
    wanted = {str(index.name): table for table in metadata.sorted_tables for index in table.indexes}
    return [
        f"index {name!r} of table {table.name!r} is missing"
        for name, table in sorted(wanted.items())
        if name not in present
    ]


async def head_problems(connection: AsyncConnection) -> list[str]:
    """Runs whose journal does not end where their run row says."""
    ends = select(journal.c.run_id, func.count().label("rows"), func.max(journal.c.seq).label("last"))
    counted = {row.run_id: row for row in await connection.execute(ends.group_by(journal.c.run_id))}
    at_head = journal.join(runs, (journal.c.run_id == runs.c.run_id) & (journal.c.seq == runs.c.events - 1))
    last = select(journal.c.run_id, journal.c.hash).select_from(at_head)
    hashes = {row.run_id: row.hash for row in await connection.execute(last)}
    recorded = await heads(connection)
    problems = [
        _misfit(run_id, head, counted.get(run_id), hashes.get(run_id)) for run_id, head in recorded.items()
    ]
    problems += [
        f"journal rows of {run_id!r}, which is no run" for run_id in counted if run_id not in recorded
    ]
    return [problem for problem in problems if problem is not None]


async def missing(connection: AsyncConnection, before: Heads) -> list[str]:
    """Runs that do not hold any more what they held before; they may have grown."""
    ends = {run_id: (head.events - 1, head.hash) for run_id, head in before.items() if head.events}
    known = set(await heads(connection))
    problems = [f"run {run_id} is missing" for run_id in before if run_id not in known]
    for run_id, (seq, expected) in ends.items():
        query = select(journal.c.hash).where(journal.c.run_id == run_id, journal.c.seq == seq)
        if await connection.scalar(query) != expected:
            problems.append(f"run {run_id} does not hold row {seq} as it was")
    return problems


async def journal_problems(connection: AsyncConnection) -> list[str]:
    """Everything wrong with the journals; every row is read."""
    return [*await head_problems(connection), *await chain_problems(connection)]


async def chain_problems(connection: AsyncConnection) -> list[str]:
    """Runs of which a stored row does not fit the hash chain; every row is read."""
    problems = []
    for run_id, head in (await heads(connection)).items():
        rows = stored_rows(lambda work: work(connection), run_id)
        report = await check_chain(rows, events=head.events, head_hash=head.hash)
        if not report.ok:
            problems.append(f"chain of {run_id}: {report.problem}")
    return problems


def _misfit(
    run_id: str, head: Head, counted: Row[tuple[str, int, int]] | None, found: str | None
) -> str | None:
    rows, last = (0, -1) if counted is None else (counted.rows, counted.last)
    if rows != head.events or last != head.events - 1:
        return f"{run_id} holds {rows} rows up to {last}, its run row says {head.events}"
    if head.hash != (found if head.events else GENESIS_HASH):
        return f"{run_id} ends with another hash than its run row says"
    return None
