"""What of a store is not as it was written: its file, its journals, and what stands beside them.

A row that was changed, that is gone or that the program never wrote is named with its run. What several
processes write is held against its seals, reports and verdicts also against the hashes in their names, orders
and trials against the journal. `db check`, `verify` and whoever goes on with a run read rows in this one way.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, and_, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from schemas.canonical import ID_LENGTH
from services.journal.chain import GENESIS_HASH, check_chain
from services.journal.kinds import RUN_FINISHED
from services.store import migrate
from services.store.bar_rows import checked_bars
from services.store.connections import AsyncConnection
from services.store.engine import alone
from services.store.failures import MEND, StoreDamaged, StoreMissing
from services.store.journal_repository import numbering_problem, stored_rows
from services.store.migrate import revision_state
from services.store.repository import Repository
from services.store.retention import pruning_problems
from services.store.seals import (
    CHANGED,
    SEALED,
    UNENDED,
    count_problems,
    hash_values,
    missing_rows,
    name_row,
    row_problems,
    seal_problem,
    sealed_rows,
)
from services.store.tables import (
    ORDER_KINDS,
    journal,
    metadata,
    paper_orders,
    runs,
    seals,
    slot_claims,
    trials,
    venue_orders,
)
from services.store.trials import newest_trial
from services.store.urls import StoreUrl, parse_url

SHOWN = 20


@dataclass(frozen=True)
class Examination:
    """A store as `thinktwice db check` found it.

    Attributes:
        store: its address, without a password.
        state: behind, current, or damaged when it cannot be read to its end.
        revision: of its tables; None when it is damaged.
        pending: titles of the revisions that an upgrade would apply, oldest first.
        rows: by table.
        problems: what is broken.
    """

    store: str
    state: str
    revision: str | None
    pending: tuple[str, ...]
    rows: dict[str, int]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the store can be worked with as it is."""
        return self.state == "current" and not self.problems


async def examine(address: str, *, full: bool) -> Examination:
    """Look at a store and change nothing.

    Args:
        address: the `--db` value.
        full: recompute every hash of every run, and hold what people read against seals and journal.

    Raises:
        StoreMissing: there is no store.
        StoreError: it cannot be opened, or is another program's or another version's.
    """
    url = parse_url(address)
    try:
        async with alone(url, snapshot=True) as connection:
            return await examine_tables(connection, url, full=full)
    except StoreDamaged as error:
        return Examination(url.text, "damaged", None, (), {}, (str(error),))


async def examine_tables(connection: AsyncConnection, url: StoreUrl, *, full: bool) -> Examination:
    """As `examine`, inside a transaction that sees one moment."""
    found = await connection.run_sync(revision_state, url)
    if found.state == "empty":
        raise StoreMissing(f"store {url.text} is empty: `thinktwice db upgrade` makes its tables")
    problems = await file_problems(connection, url)
    problems += await journal_problems(connection, full=full)
    if full and found.state == "current":
        problems += await connection.run_sync(_index_problems)
        problems += await _store_problems(connection)
    ours = [table for table in metadata.sorted_tables if table.name in found.tables]
    rows = {
        table.name: await connection.scalar(select(func.count()).select_from(table)) or 0 for table in ours
    }
    pending = migrate.pending(found.revision)
    return Examination(url.text, found.state, found.revision, pending, rows, tuple(problems))


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


async def journal_problems(connection: AsyncConnection, *, full: bool) -> list[str]:
    """Runs whose journal does not end as their rows say; `full`: of which a row does not fit its chain."""
    problems = []
    for run in (await connection.execute(select(runs).order_by(runs.c.number))).all():
        problem = next(iter(count_problems(dict(run._mapping))), None)
        if problem is None and (misnumbered := await numbering_problem(connection, run.run_id)) is not None:
            problem = f"the journal is damaged: {misnumbered}"
        if full and problem is None:
            rows = stored_rows(lambda work: work(connection), run.run_id)
            problem = (await check_chain(rows, events=run.events, head_hash=run.head_hash)).problem
        elif problem is None:
            at = (journal.c.run_id == run.run_id) & (journal.c.seq == run.events - 1)
            last = await connection.scalar(select(journal.c.hash).where(at)) or GENESIS_HASH
            problem = None if last == run.head_hash else "it ends with another hash than its run row says"
        problems += [] if problem is None else [f"chain of {run.run_id}: {problem}"]
    return problems


def _index_problems(connection: Connection) -> list[str]:
    """Indexes of our tables that are missing."""
    found = inspect(connection).get_multi_indexes(filter_names=sorted(metadata.tables))
    present = {str(index["name"]) for indexes in found.values() for index in indexes}
    wanted = {str(index.name): table for table in metadata.sorted_tables for index in table.indexes}
    return [
        f"index {name!r} of table {table.name!r} is missing"
        for name, table in sorted(wanted.items())
        if name not in present
    ]


async def _store_problems(connection: AsyncConnection) -> list[str]:
    """What is not as it was written, of every run of a store, and of rules and sweeps in its ledger."""
    known = (await connection.execute(select(runs.c.run_id).order_by(runs.c.number))).scalars().all()
    problems = [
        f"{run_id}: {problem}" for run_id in known for problem in await run_problems(connection, run_id)
    ]
    named = select(trials.c.run_id).union(select(seals.c.run_id))
    others = set((await connection.execute(named)).scalars()).difference(known)
    for name in sorted(others):
        problems += [f"{name}: {problem}" for problem in await _sealed_problems(connection, name)]
    accounts = (await connection.execute(select(venue_orders.c.account).distinct())).scalars().all()
    return problems + [
        f"orders at the venue of {account!r}, which is of no run"
        for account in sorted(accounts)
        if _run_of(account) not in known
    ]


class SealRepository(Repository):
    """Holds what is stored beside the journal against its seals and the journal."""

    async def demand(self, run_id: str) -> None:
        """Refuse a run of which something is not as it was written.

        Raises:
            StoreDamaged: with the first of `problems`.
        """
        if problems := await self.problems(run_id):
            raise StoreDamaged(f"store {self._url.text}: run {run_id!r}: {problems[0]}; {MEND}")

    async def problems(self, run_id: str) -> list[str]:
        """What is not as it was written, of one run."""
        async with self._read(snapshot=True) as connection:
            return await run_problems(connection, run_id)


async def run_problems(connection: AsyncConnection, run_id: str) -> list[str]:
    """What is not as it was written, of one run, inside a transaction that sees one moment."""
    run = (await connection.execute(select(runs).where(runs.c.run_id == run_id))).one()
    if broken := count_problems(dict(run._mapping)):
        return broken
    problems = row_problems(dict(run._mapping))
    problems += await _end_problems(connection, run)
    problems += await _trial_problems(connection, run)
    bars = checked_bars(lambda work: work(connection), run_id)
    problems += [problem async for _, problem in bars if problem is not None]
    problems += await _order_problems(connection, run)
    problems += await pruning_problems(connection, run_id)
    problems += await _sealed_problems(connection, run_id)
    return list(dict.fromkeys(problems))[:SHOWN]


async def _end_problems(connection: AsyncConnection, run: Row[Any]) -> list[str]:
    """A run that trades is closed in the transaction of its last row; a backtest may be killed in between."""
    last = (
        select(journal.c.kind).where(journal.c.run_id == run.run_id).order_by(journal.c.seq.desc()).limit(1)
    )
    over = run.mode == "paper" and await connection.scalar(last) == RUN_FINISHED
    return [UNENDED] if over and run.status == "running" else []


async def _trial_problems(connection: AsyncConnection, run: Row[Any]) -> list[str]:
    """The row of a run in the ledger of trials, held against the first row of the journal.

    A paper run enters the ledger before its first row; of the others only those that are trials of their own.
    """
    row = (await connection.execute(newest_trial(run.run_id))).one_or_none()
    if row is None:
        entered = run.mode == "paper" and run.head_hash != GENESIS_HASH
        return ["it is missing in the ledger of trials"] if entered else []
    first = select(journal.c.payload).where(journal.c.run_id == run.run_id, journal.c.seq == 0)
    begun = await connection.scalar(first)
    try:
        ledger = json.loads(row.ledger)
        agrees = begun is None or json.loads(begun).get("ledger") == (
            ledger if ledger["configurations"] else None
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []  # the chain names a first row that cannot be read
    return [] if agrees else ["it did not start with what the ledger of trials says"]


async def _order_problems(connection: AsyncConnection, run: Row[Any]) -> list[str]:
    """Orders as they are kept and as the venue has them, held against the journal in both directions."""
    meant = await _meant(connection, run.run_id) if run.mode == "paper" else {}
    query = select(paper_orders).where(paper_orders.c.run_id == run.run_id).order_by(paper_orders.c.seq)
    kept = {row.order_id: row for row in await connection.execute(query)}
    own = venue_orders.c.account.like(f"%/{run.run_id}")
    query = select(venue_orders).where(own).order_by(venue_orders.c.order_id)
    sent = {
        row.order_id: row for row in await connection.execute(query) if _run_of(row.account) == run.run_id
    }
    problems = [f"order {order_id} is in no row of the journal" for order_id in kept if order_id not in meant]
    problems += [
        f"order {order_id} at the venue is in no row of the journal"
        for order_id in sent
        if order_id not in meant
    ]
    for order_id, (seq, payload) in meant.items():
        problem = _intended_problem(kept.get(order_id), seq, finished=run.status == "finished")
        problem = problem or _sent_problem(kept.get(order_id), sent.get(order_id), payload)
        problems += [f"order {order_id} (row {seq}) {problem}"] if problem else []
    return problems


def _intended_problem(kept: Row[Any] | None, seq: int, *, finished: bool) -> str | None:
    if kept is None:
        return "is not among those that were intended"
    if kept.state == "intended" and finished:
        return "was set back to 'intended'"
    if kept.seq != seq or kept.hash != hash_values(kept.order_id, kept.seq, kept.state):
        return CHANGED
    return None


def _sent_problem(kept: Row[Any] | None, sent: Row[Any] | None, payload: str) -> str | None:
    if sent is None:
        return "is missing at the venue" if kept is not None and kept.state == "acknowledged" else None
    if sent.instruction != payload:
        return "differs at the venue from what the journal says"
    if sent.hash != hash_values(sent.order_id, sent.instruction, sent.sends):
        return "was changed at the venue after it was sent"
    return None


async def _meant(connection: AsyncConnection, run_id: str) -> dict[str, tuple[int, str]]:
    """Row and payload of the orders in a journal, by id; a row that is no JSON the chain names."""
    own = and_(journal.c.run_id == run_id, journal.c.kind.in_(ORDER_KINDS))
    query = select(journal.c.seq, journal.c.payload).where(own).order_by(journal.c.seq)
    found: dict[str, tuple[int, str]] = {}
    for seq, payload in await connection.execute(query):
        try:
            found.setdefault(json.loads(payload)["order_id"], (seq, payload))
        except (ValueError, TypeError, KeyError):
            continue
    return found


def _run_of(account: str) -> str:
    """The run that sends orders to an account of the venue."""
    return account.rpartition("/")[2]


async def _sealed_problems(connection: AsyncConnection, run_id: str) -> list[str]:
    """Rows that were changed, are gone, or were not written by the program, and texts under other names."""
    problems: list[str] = []
    for table in (slot_claims, *SEALED):
        sealed = table in SEALED
        query = sealed_rows(table) if sealed else select(table)
        for row in await connection.execute(
            query.where(table.c.run_id == run_id).order_by(*table.primary_key)
        ):
            problem = seal_problem(table, row) if sealed else None
            problems += [f"{name_row(table, row)} {problem}"] if problem else []
            problems += (f"{what} {CHANGED}" for what in _find_changes(row))
        if sealed:
            gone = await connection.execute(missing_rows(table).where(seals.c.run_id == run_id))
            problems += [f"{SEALED[table][0]} {part.partition(' ')[2]!r} is missing" for _, part in gone]
    return problems


def _find_changes(row: Row[Any]) -> Iterator[str]:
    """Kind and id of each text of a row that does not fit the columns beside it."""
    columns = row._mapping
    of = columns.get("report_id") or f"{columns.get('job')} {columns.get('slot')}"
    request = {name: columns[name] for name in ("request_hash", "known_at") if name in columns}
    texts: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        ("report", "report", "report_id", request),
        ("request of report", "request", "request_hash", {}),
        ("verdict on report", "verdict", "verdict_id", {"report_id": of}),
    )
    for what, column, name, fields in texts:
        if columns.get(column) is not None and not _is(columns[column], columns[name], fields):
            yield f"{what} {of!r}"


def _is(text: str, name: str, fields: dict[str, Any]) -> bool:
    """Whether a text has the hash that its name begins, and says in its fields what the columns say."""
    try:
        held = json.loads(text)
        fits = all(held[key] == value for key, value in fields.items())
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    found = sha256(text.encode()).hexdigest()
    return fits and name in (found, found[:ID_LENGTH])
