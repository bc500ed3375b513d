"""Seals: hashes of what people read beside the journal, written with it in one transaction.

The journal has its chain. The description of a run, its end with its document, the bars that it took and
the orders that it sent are sealed here: one row per part and number. Rows of bars are chained, so that none
can be changed, dropped or added unseen. Whoever changes a row and its seal is not found here; `verify`
computes the document anew and holds the orders against the journal. A run of an older version has no seals.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, Select, Table, and_, bindparam, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from schemas.canonical import ID_LENGTH
from services.journal.chain import GENESIS_HASH
from services.store.failures import MEND, StoreDamaged
from services.store.repository import Repository
from services.store.tables import (
    ORDER_KINDS,
    journal,
    paper_bars,
    paper_orders,
    report_verdicts,
    reports_on_demand,
    runs,
    seals,
    slow_reports,
    trials,
    venue_orders,
)
from services.store.urls import StoreUrl

RUN, END, BARS, VENUE, ACKNOWLEDGED = "run", "end", "bars", "venue", "acknowledged"
TRIAL = "trial"
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
REVISION = "0006"  # of the first store that sealed; a run notes the revision that it was stored at
PAGE_ROWS = 5_000
SHOWN = 20
UNSEALED = "made by an older version, which sealed neither document nor bars: they are not covered"
DESCRIBED_ANEW = "its description (name, data, configuration, environment) was changed"
GONE = "it is damaged: it was stored with seals of its document, bars and orders, and they are gone"

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


async def seal_run(connection: AsyncConnection, run_id: str) -> None:
    """Seal what the run row says from its beginning."""
    columns = [runs.c[name] for name in DESCRIPTION]
    row = (await connection.execute(select(*columns).where(runs.c.run_id == run_id))).one()
    await put_seals(connection, run_id, RUN, {0: hash_values(*row)})


async def seal_end(connection: AsyncConnection, run_id: str, status: str, document: str | None) -> None:
    """Seal how a run ended; the seal goes when the run goes on."""
    if status == "running":
        await connection.execute(delete(seals).where(seals.c.run_id == run_id, seals.c.part == END))
    else:
        await put_seals(connection, run_id, END, {0: hash_values(status, document)})


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


class SealRepository(Repository):
    """Holds what is stored beside the journal against its seals and the journal.

    Attributes:
        there: whether the store has a table of seals; one that was not upgraded has none.
    """

    def __init__(self, engine: AsyncEngine, url: StoreUrl, *, there: bool, traded: bool = True) -> None:
        super().__init__(engine, url)
        self.there = there
        self._traded = traded  # whether the store has the tables of paper runs

    async def is_covered(self, run_id: str) -> bool:
        """Whether a run was sealed from its beginning."""
        if not self.there:
            return False
        async with self._read() as connection:
            return await seal_of(connection, run_id, RUN, 0) is not None

    async def demand(self, run_id: str) -> None:
        """Refuse a run whose seals are gone.

        Raises:
            StoreDamaged: it was stored with seals, and is not sealed from its beginning any more.
        """
        own = select(runs.c.environment).where(runs.c.run_id == run_id)
        async with self._read() as connection:
            noted = await connection.scalar(own)
        if was_sealed(noted or "{}") and not await self.is_covered(run_id):
            raise StoreDamaged(f"store {self._url.text}: run {run_id!r}: {GONE}; {MEND}")

    async def problems(self, run_id: str) -> list[str]:
        """What is not as it was written, of one run."""
        async with self._read(snapshot=True) as connection:
            return await run_problems(connection, run_id, sealed_parts=self.there, traded=self._traded)


async def store_problems(connection: AsyncConnection, tables: Iterable[str]) -> list[str]:
    """What is not as it was written, of every run of a store with these tables."""
    present = set(tables)
    known = (await connection.execute(select(runs.c.run_id).order_by(runs.c.number))).scalars().all()
    problems = []
    for run_id in known:
        found = await run_problems(
            connection, run_id, sealed_parts=seals.name in present, traded=venue_orders.name in present
        )
        problems += [f"{run_id}: {problem}" for problem in found]
    if trials.name in present:
        problems += await _unsealed_trials(connection)
    if venue_orders.name in present:
        accounts = (await connection.execute(select(venue_orders.c.account).distinct())).scalars().all()
        problems += [
            f"orders at the venue of {account!r}, which is of no run"
            for account in sorted(accounts)
            if run_of(account) not in known
        ]
    return problems


async def list_unsealed(connection: AsyncConnection, tables: Iterable[str]) -> list[str]:
    """Runs of older versions, which were not sealed from their beginning, oldest first."""
    query = select(runs.c.run_id, runs.c.environment).order_by(runs.c.number)
    if seals.name in set(tables):
        query = query.where(runs.c.run_id.not_in(select(seals.c.run_id).where(seals.c.part == RUN)))
    return [run_id for run_id, noted in await connection.execute(query) if not was_sealed(noted)]


def was_sealed(environment: str) -> bool:
    """Whether a run was stored by a version that seals, by what it noted then; true where that is damaged."""
    try:
        noted = json.loads(environment)
        return str(noted.get("store_revision") or "") >= REVISION
    except (ValueError, TypeError, AttributeError, RecursionError):
        return True


async def run_problems(
    connection: AsyncConnection, run_id: str, *, sealed_parts: bool, traded: bool = True
) -> list[str]:
    """What is not as it was written, of one run, inside a transaction that sees one moment."""
    run = (await connection.execute(select(runs).where(runs.c.run_id == run_id))).one()
    parts: dict[str, dict[int, str]] = {part: {} for part in (RUN, END, BARS, VENUE, ACKNOWLEDGED)}
    if sealed_parts:
        query = select(seals.c.part, seals.c.number, seals.c.hash).where(seals.c.run_id == run_id)
        for part, number, found in await connection.execute(query):
            parts.setdefault(part, {})[number] = found
    problems = _row_problems(run, parts)
    if TRIAL in parts:
        problems += await _trial_problems(connection, run_id, parts[TRIAL].get(0))
    if traded:
        problems += await _bar_problems(connection, run_id, parts, covered=bool(parts[RUN]))
        problems += await _order_problems(connection, run, parts)
        problems += await report_problems(connection, run_id)
    return problems[:SHOWN]


def _row_problems(run: Row[Any], parts: Mapping[str, Mapping[int, str]]) -> list[str]:
    problems = []
    described = parts[RUN].get(0)
    if described is not None and described != hash_values(*(run._mapping[name] for name in DESCRIPTION)):
        problems.append(DESCRIBED_ANEW)
    if described is None and was_sealed(run.environment):
        problems.append(GONE)
    end, over = parts[END].get(0), run.status != "running"
    if end is None and over and described is not None:
        problems.append(f"it is {run.status!r}, and its end was not written by the program")
    elif end is not None and (not over or end != hash_values(run.status, run.document)):
        problems.append("its document or status was changed after it was written")
    return problems


async def _trial_problems(connection: AsyncConnection, run_id: str, seal: str | None) -> list[str]:
    """The row of a run in the ledger of trials, held against its seal and the first row of the journal."""
    row = (await connection.execute(trial_of(run_id))).one_or_none()
    if row is None:
        return ["it is missing in the ledger of trials"]
    if seal != hash_values(*row):
        return ["what the ledger of trials says of it was changed after it was written"]
    first = select(journal.c.payload).where(journal.c.run_id == run_id, journal.c.seq == 0)
    begun = await connection.scalar(first)
    try:
        told = json.loads(row.ledger)
        if begun is not None and json.loads(begun).get("ledger") != (
            told if told["configurations"] else None
        ):
            return ["it did not start with what the ledger of trials says"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []  # a first row that cannot be read is told by the chain
    return []


async def _unsealed_trials(connection: AsyncConnection) -> list[str]:
    """Runs that another process entered in the ledger of trials."""
    by_program = select(seals.c.run_id).where(seals.c.part == TRIAL)
    query = select(trials.c.run_id).where(trials.c.run_id.in_(select(runs.c.run_id)))
    found = (await connection.execute(query.where(trials.c.run_id.not_in(by_program)))).scalars().all()
    return [
        f"{run_id}: it was not entered in the ledger of trials by the program" for run_id in sorted(found)
    ]


async def _bar_problems(
    connection: AsyncConnection, run_id: str, parts: Mapping[str, Mapping[int, str]], *, covered: bool
) -> list[str]:
    columns = (paper_bars.c.number, paper_bars.c.label, paper_bars.c.bars)
    kept, problems, seen, last = parts[BARS], [], set(), -1
    while True:
        own = and_(paper_bars.c.run_id == run_id, paper_bars.c.number > last)
        query = select(*columns).where(own).order_by(paper_bars.c.number).limit(PAGE_ROWS)
        page = (await connection.execute(query)).all()
        for number, label, bars in page:
            problem = bars_problem(kept.get(number), kept.get(number - 1), (number, label, bars), covered)
            problems += [problem] if problem else []
            seen.add(number)
        if len(page) < PAGE_ROWS:
            break
        last = page[-1][0]
    return problems + [f"row {number} of its bars is missing" for number in sorted(set(kept) - seen)]


def bars_problem(
    kept: str | None, before: str | None, row: tuple[int, int, str], covered: bool
) -> str | None:
    """What is wrong with a stored row of bars by its seal and the one before it; None when nothing is."""
    if kept is None:
        return f"row {row[0]} of its bars was not taken by the run" if covered else None
    if kept != sealed_bars(before, *row):
        return f"row {row[0]} of its bars is damaged: it was changed after it was written"
    return None


async def _order_problems(
    connection: AsyncConnection, run: Row[Any], parts: Mapping[str, Mapping[int, str]]
) -> list[str]:
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
        problem = _intended_problem(kept.get(order_id), seq, parts, finished=run.status == "finished")
        problem = problem or _sent_problem(
            kept.get(order_id), sent.get(order_id), payload, parts[VENUE].get(seq), covered=bool(parts[RUN])
        )
        problems += [f"order {order_id} (row {seq}) {problem}"] if problem else []
    return problems


def _intended_problem(
    kept: Row[Any] | None, seq: int, parts: Mapping[str, Mapping[int, str]], *, finished: bool
) -> str | None:
    if kept is None:
        return "is not among those that were intended"
    if kept.seq != seq or kept.state not in ("intended", "acknowledged"):
        return "was changed after it was written"
    told = seq in parts[ACKNOWLEDGED]
    if kept.state == "intended" and (told or finished):
        return "was set back to 'intended'"
    if kept.state == "acknowledged" and parts[RUN] and not told:
        return "was set to 'acknowledged'"
    return None


def _sent_problem(
    kept: Row[Any] | None, sent: Row[Any] | None, payload: str, seal: str | None, *, covered: bool
) -> str | None:
    if sent is None:
        missing = seal is not None or (kept is not None and kept.state == "acknowledged")
        return "is missing at the venue" if missing else None
    if sent.instruction != payload:
        return "differs at the venue from what the journal says"
    if seal is None:
        return "was not sent to the venue by the run, or its seal is gone" if covered else None
    if seal != hash_values(sent.order_id, sent.instruction, sent.sends):
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


async def newest_bars(connection: AsyncConnection, run_id: str) -> tuple[int, int]:
    """Numbers of the last row of bars and of the last seal of one, -1 where there is none, at one moment."""
    bars = select(func.max(paper_bars.c.number)).where(paper_bars.c.run_id == run_id).scalar_subquery()
    own = and_(seals.c.run_id == run_id, seals.c.part == BARS)
    kept = select(func.max(seals.c.number)).where(own).scalar_subquery()
    row = (await connection.execute(select(bars, kept))).one()
    return (-1 if row[0] is None else row[0]), (-1 if row[1] is None else row[1])


CHANGED = "was changed after it was written"


async def report_problems(connection: AsyncConnection, run_id: str) -> list[str]:
    """What is not as it was written, of the reports of a worker or on demand and of the verdicts on them."""
    problems: list[str] = []
    for table in (slow_reports, report_verdicts, reports_on_demand):
        query = select(table).where(table.c.run_id == run_id).order_by(*table.primary_key)
        for row in await connection.execute(query):
            problems += (f"{what} {name!r} {CHANGED}" for what, name in _find_changes(table, row))
    return problems


def _find_changes(table: Table, row: Row[Any]) -> Iterator[tuple[str, str]]:
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
