"""What of a store is not as it was written: what stands beside the journal, held against its hashes.

A row that was changed, that is gone or that the program never wrote is named with its run. Reports and
verdicts are held against the hashes in their names too, orders and trials against the journal.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, Table, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.canonical import ID_LENGTH
from services.journal.chain import GENESIS_HASH
from services.journal.kinds import RUN_FINISHED
from services.store.bar_rows import PAGE_ROWS, bars_page, hash_before, misfit_bars
from services.store.failures import MEND, StoreDamaged
from services.store.repository import Repository
from services.store.retention import pruning_problems
from services.store.seals import (
    CHANGED,
    SEALED,
    TRIAL,
    UNENDED,
    count_problems,
    hash_row,
    hash_values,
    name_row,
    part_of,
    row_problems,
    run_of,
    trial_of,
)
from services.store.tables import (
    ORDER_KINDS,
    journal,
    paper_orders,
    report_verdicts,
    reports_on_demand,
    runs,
    seals,
    slot_claims,
    slow_reports,
    venue_orders,
)

SHOWN = 20


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


async def store_problems(connection: AsyncConnection) -> list[str]:
    """What is not as it was written, of every run of a store."""
    known = (await connection.execute(select(runs.c.run_id).order_by(runs.c.number))).scalars().all()
    problems = []
    for run_id in known:
        found = await run_problems(connection, run_id)
        problems += [f"{run_id}: {problem}" for problem in found]
    accounts = (await connection.execute(select(venue_orders.c.account).distinct())).scalars().all()
    problems += [
        f"orders at the venue of {account!r}, which is of no run"
        for account in sorted(accounts)
        if run_of(account) not in known
    ]
    return problems


async def run_problems(connection: AsyncConnection, run_id: str) -> list[str]:
    """What is not as it was written, of one run, inside a transaction that sees one moment."""
    run = (await connection.execute(select(runs).where(runs.c.run_id == run_id))).one()
    if broken := count_problems(dict(run._mapping)):
        return broken
    parts: dict[str, dict[int, str]] = {}
    query = select(seals.c.part, seals.c.number, seals.c.hash).where(seals.c.run_id == run_id)
    for part, number, found in await connection.execute(query):
        parts.setdefault(part, {})[number] = found
    problems = row_problems(dict(run._mapping))
    problems += await _end_problems(connection, run)
    problems += await _trial_problems(connection, run, parts.get(TRIAL, {}).get(0))
    problems += await _bar_problems(connection, run_id, run.bars)
    problems += await _order_problems(connection, run)
    problems += await pruning_problems(connection, run_id)
    problems += await report_problems(connection, run_id)
    problems += await _sealed_problems(connection, run_id, parts)
    return list(dict.fromkeys(problems))[:SHOWN]


async def _end_problems(connection: AsyncConnection, run: Row[Any]) -> list[str]:
    """A run that trades is closed in the transaction of its last row; a backtest may be killed in between."""
    last = (
        select(journal.c.kind).where(journal.c.run_id == run.run_id).order_by(journal.c.seq.desc()).limit(1)
    )
    over = run.mode == "paper" and await connection.scalar(last) == RUN_FINISHED
    return [UNENDED] if over and run.status == "running" else []


async def _trial_problems(connection: AsyncConnection, run: Row[Any], seal: str | None) -> list[str]:
    """The row of a run in the ledger of trials, held against its seal and the first row of the journal.

    A paper run enters the ledger before its first row; of the others only those that are trials of their own.
    """
    row = (await connection.execute(trial_of(run.run_id))).one_or_none()
    if row is None:
        entered = seal is not None or (run.mode == "paper" and run.head_hash != GENESIS_HASH)
        return ["it is missing in the ledger of trials"] if entered else []
    if seal is None:
        return ["it was not entered in the ledger of trials by the program, or its seal is gone"]
    if seal != hash_values(*row):
        return ["what the ledger of trials says of it was changed after it was written"]
    first = select(journal.c.payload).where(journal.c.run_id == run.run_id, journal.c.seq == 0)
    begun = await connection.scalar(first)
    try:
        payload = json.loads(row.ledger)
        if begun is not None and json.loads(begun).get("ledger") != (
            payload if payload["configurations"] else None
        ):
            return ["it did not start with what the ledger of trials says"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []  # a first row that cannot be read is told by the chain
    return []


async def _bar_problems(connection: AsyncConnection, run_id: str, count: int) -> list[str]:
    problems, expected = [], 0
    before = await hash_before(connection, run_id, 0)
    while page := await bars_page(connection, run_id, expected):
        for row in page:
            problem = misfit_bars(row, expected, before, count)
            problems += [problem] if problem else []
            expected, before = row.number + 1, row.hash
        if len(page) < PAGE_ROWS:
            break
    return problems + ([f"row {expected} of its bars is missing"] if count > expected else [])


async def _order_problems(connection: AsyncConnection, run: Row[Any]) -> list[str]:
    """Orders as they are kept and as the venue has them, held against the journal in both directions."""
    meant = await _meant(connection, run.run_id) if run.mode == "paper" else {}
    query = select(paper_orders).where(paper_orders.c.run_id == run.run_id).order_by(paper_orders.c.seq)
    kept = {row.order_id: row for row in await connection.execute(query)}
    own = venue_orders.c.account.like(f"%/{run.run_id}")
    query = select(venue_orders).where(own).order_by(venue_orders.c.order_id)
    sent = {row.order_id: row for row in await connection.execute(query) if run_of(row.account) == run.run_id}
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
    """Row and payload of the orders in a journal, by id; a row that is no JSON is told by the chain."""
    own = and_(journal.c.run_id == run_id, journal.c.kind.in_(ORDER_KINDS))
    query = select(journal.c.seq, journal.c.payload).where(own).order_by(journal.c.seq)
    found: dict[str, tuple[int, str]] = {}
    for seq, payload in await connection.execute(query):
        try:
            found.setdefault(json.loads(payload)["order_id"], (seq, payload))
        except (ValueError, TypeError, KeyError):
            continue
    return found


async def report_problems(connection: AsyncConnection, run_id: str) -> list[str]:
    """What does not fit the hash in its name, of requests, reports and verdicts of a worker or on demand."""
    problems: list[str] = []
    for table in (slot_claims, slow_reports, report_verdicts, reports_on_demand):
        query = select(table).where(table.c.run_id == run_id).order_by(*table.primary_key)
        for row in await connection.execute(query):
            problems += (f"{what} {name!r} {CHANGED}" for what, name in _find_changes(table, row))
    return problems


async def _sealed_problems(
    connection: AsyncConnection, run_id: str, parts: Mapping[str, Mapping[int, str]]
) -> list[str]:
    """Rows with seals of their own that were changed, are gone, or were not written by the program."""
    problems: list[str] = []
    for table in SEALED:
        kept = {
            part: tuple(found for _, found in sorted(hashes.items()))
            for part, hashes in parts.items()
            if part.split()[0] == table.name
        }
        query = select(table).where(table.c.run_id == run_id).order_by(*table.primary_key)
        for row in await connection.execute(query):
            name = name_row(table, row)
            found = kept.pop(part_of(table, row), None)
            if found is None:
                problems.append(f"{name} was not written by the program, or its seal is gone")
            elif found != hash_row(table, row):
                problems.append(f"{name} {CHANGED}")
        problems += [f"{SEALED[table]} {part.partition(' ')[2]!r} is missing" for part in kept]
    return problems


def _find_changes(table: Table, row: Row[Any]) -> Iterator[tuple[str, str]]:
    """Kind and id of each text of a row that does not fit the columns beside it."""
    payload = row._mapping
    of = payload.get("report_id") or f"{payload['job']} {payload['slot']}"
    request = {name: payload[name] for name in ("request_hash", "known_at") if name in payload}
    if "report" in payload and not _is(payload["report"], payload["report_id"], request):
        yield "report", of
    if payload.get("request") is not None and not _is(payload["request"], payload["request_hash"], {}):
        yield "request of report", of
    if payload.get("verdict") is not None and not _is(
        payload["verdict"], payload["verdict_id"], {"report_id": of}
    ):
        yield "verdict on report", of


def _is(text: str, name: str, fields: dict[str, Any]) -> bool:
    """Whether a text has the hash that its name begins, and says in its fields what the columns say."""
    try:
        held = json.loads(text)
        fits = all(held[key] == value for key, value in fields.items())
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    found = sha256(text.encode()).hexdigest()
    return fits and name in (found, found[:ID_LENGTH])
