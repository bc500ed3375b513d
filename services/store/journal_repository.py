"""Journal rows of a run: appended in one transaction with the run's counters, read back in order."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    false,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import DBAPIError

from schemas.canonical import canonical_json
from schemas.errors import StoreError
from schemas.plan import ChangePlan
from services.journal.chain import GENESIS_HASH, JournalRow, damage, follow, is_pruned
from services.journal.kinds import PLAN_KINDS
from services.journal.sparse_index import RowSpan, Sought
from services.store.connections import AsyncConnection
from services.store.failures import MEND, NO_TEXT, StoreDamaged, losses_of
from services.store.packed_text import PackedText, Unpacked, unpack
from services.store.plan_records import (
    PlanDecision,
    StoredPlan,
    new_columns,
    of_plan,
    put_plan,
    revision_columns,
    stored_plan,
    with_decision,
)
from services.store.repository import Repository
from services.store.seals import seal_row
from services.store.tables import PRUNED_TEXT, change_plans, journal, runs

PAGE_ROWS = 5_000
MOST_TEXTS = 20  # of one kind in a query: more would cost more than to read the kind
ROW_NAMES = tuple(column.name for column in journal.c if column.name != "run_id")
# What a row follows is not stored: it is the hash of the row before.
BEFORE = journal.alias("before")
LINKED = journal.outerjoin(
    BEFORE, (BEFORE.c.run_id == journal.c.run_id) & (BEFORE.c.seq == journal.c.seq - 1)
)
ROW_COLUMNS: tuple[ColumnElement[Any], ...] = tuple(
    func.coalesce(BEFORE.c.hash, GENESIS_HASH).label(name) if name == "prev_hash" else journal.c[name]
    for name in JournalRow.__slots__
)
RAW_COLUMNS = tuple(
    cast(column, LargeBinary) if isinstance(column.type, Text | PackedText) else column
    for column in ROW_COLUMNS
)

OF_RUN = runs.c.run_id == bindparam("run")
HEAD = select(runs.c.events, runs.c.head_hash, runs.c.status).where(OF_RUN).with_for_update()
COUNTED = update(runs).where(OF_RUN)  # sets what else it is executed with

ReadPage = Callable[
    [Callable[[AsyncConnection], Coroutine[Any, Any, list[JournalRow]]]], Awaitable[list[JournalRow]]
]


class PlaceTaken(StoreError):
    """Another writer has stored a row where these were to go."""


class JournalRepository(Repository):
    """Reads and appends journal rows."""

    async def append(self, run_id: str, rows: Sequence[JournalRow], *, first: bool = False) -> None:
        """Store rows after those that are there; rows that are stored already are left alone.

        Args:
            run_id: the run.
            rows: in order.
            first: take them only where none of their places is taken, whatever stands there.

        Raises:
            PlaceTaken: another writer was first.
            StoreError: the rows leave a gap, differ from what is stored, or the run is closed or unknown.
        """
        if not rows:
            return
        with losses_of(run_id):
            await self._run_write(lambda connection: append_rows(connection, run_id, rows, first=first))

    async def rows(
        self,
        run_id: str,
        *,
        kinds: Collection[str] | None = None,
        until: int | None = None,
        after: int = -1,
        sought: Collection[Sought] | None = None,
    ) -> AsyncIterator[JournalRow]:
        """Rows in order of sequence, each held against its hash; those without a text are left out.

        Args:
            run_id: the run.
            kinds: only these kinds; None for all.
            until: only rows with `known_at <= until`, ns.
            after: only rows with a greater sequence number.
            sought: only what is looked for, and perhaps some more rows of those kinds; None for all.

        Raises:
            StoreDamaged: a row is not what was written, is missing, or is one too many.
        """
        problem = await self._run_read(lambda connection: numbering_problem(connection, run_id))
        if problem is not None:
            raise self._describe_damage(run_id, problem)
        bounds: dict[str, Any] = {"kinds": kinds, "until": until, "sought": sought}
        stored = stored_rows(self._run_read, run_id, after=after, **bounds)
        every = not any(bound is not None for bound in bounds.values())
        checked = follow(stored, after) if every else ((row, damage(row)) async for row in stored)
        async for row, problem in checked:
            if problem is not None:
                raise self._describe_damage(run_id, problem)
            if not is_pruned(row):
                yield row

    def as_stored(self, run_id: str, kinds: Collection[str] | None = None) -> AsyncIterator[JournalRow]:
        """Rows as they lie there, held against nothing: for whoever checks or only draws them."""
        return stored_rows(self._run_read, run_id, kinds=kinds)

    async def some(
        self, run_id: str, kinds: Collection[str], span: range, most: int, *, symbol: str | None = None
    ) -> list[JournalRow]:
        """At most so many rows of each kind, in order, as they lie there: for whoever draws a part of a run.

        Args:
            run_id: the run.
            kinds: of rows.
            span: their numbers.
            most: of each kind.
            symbol: only rows of it and of none; None for all.
        """
        return await self._read_each(kinds, _few(run_id, span, symbol).order_by(journal.c.seq).limit(most))

    async def last_before(
        self, run_id: str, kinds: Collection[str], before: int, most: int, *, symbol: str | None = None
    ) -> list[JournalRow]:
        """As `some`, the last rows of each kind before a number."""
        query = _few(run_id, range(before), symbol).order_by(journal.c.seq.desc()).limit(most)
        return await self._read_each(kinds, query)

    async def _read_each(self, kinds: Collection[str], query: Select[Any]) -> list[JournalRow]:
        async def work(connection: AsyncConnection) -> list[JournalRow]:
            found: list[Any] = []
            for kind in kinds:  # each from the index of kinds, which has its rows in order
                found += (await connection.execute(query.where(journal.c.kind == kind))).all()
            return sorted((JournalRow(*record) for record in found), key=lambda row: row.seq)

        return await self._run_read(work)

    async def place(self, run_id: str, at: int) -> int:
        """How many rows of a run, which are known in order, were known before a time, ns."""
        known_at = select(journal.c.known_at).where(
            journal.c.run_id == run_id, journal.c.seq == bindparam("seq")
        )

        async def work(connection: AsyncConnection) -> int:
            low, high = 0, await connection.scalar(select(runs.c.events).where(runs.c.run_id == run_id)) or 0
            while low < high:
                middle = (low + high) // 2
                known = await connection.scalar(known_at, {"seq": middle})
                low, high = (middle + 1, high) if known is not None and known < at else (low, middle)
            return low

        return await self._run_read(work)

    async def count_by_symbol(self, run_id: str, kinds: Collection[str]) -> dict[str | None, int]:
        """How many rows of some kinds a run has of each symbol."""
        own = (journal.c.run_id == run_id) & journal.c.kind.in_(sorted(kinds))
        query = select(journal.c.symbol, func.count()).where(own).group_by(journal.c.symbol)
        found = await self._select(query)
        return {symbol: count for symbol, count in found}

    async def hashes(self, run_id: str, first: int, last: int) -> list[str]:
        """Stored hashes of rows first..last, inclusive, ascending; fewer when the journal ends before."""
        query = (
            select(journal.c.hash)
            .where(journal.c.run_id == run_id, journal.c.seq.between(first, last))
            .order_by(journal.c.seq)
        )
        return list((await self._select(query)).scalars())

    async def newest(self, run_ids: Collection[str]) -> int | None:
        """When the last row of some runs was known, the latest of them, ns; None where there is no row."""
        is_last = (journal.c.run_id == runs.c.run_id) & (journal.c.seq == runs.c.events - 1)
        query = select(func.max(journal.c.known_at)).join(runs, is_last).where(runs.c.run_id.in_(run_ids))
        latest: int | None = (await self._select(query)).scalar()
        return latest

    def _describe_damage(self, run_id: str, problem: str) -> StoreDamaged:
        return StoreDamaged(
            f"store {self._url.text}: the journal of run {run_id} is damaged: {problem}; {MEND}"
        )


async def stored_rows(
    read: ReadPage, run_id: str, *, after: int = -1, **bounds: Any
) -> AsyncIterator[JournalRow]:
    """Rows as they lie there, page by page, within the bounds of `page_query`."""
    while True:
        page = await read(partial(stored_page, run_id=run_id, after=after, **bounds))
        for row in page:
            yield row
        if len(page) < PAGE_ROWS:
            return
        after = page[-1].seq


async def stored_page(connection: AsyncConnection, run_id: str, **bounds: Any) -> list[JournalRow]:
    """The next rows as they lie there, within the bounds of `page_query`.

    Bytes that are no text come back as lone surrogates, so that they can be told and fit no hash.
    """
    try:
        found = (await connection.execute(page_query(ROW_COLUMNS, run_id, **bounds))).all()
    except DBAPIError as error:
        if NO_TEXT not in str(error.orig):
            raise
        raw = (await connection.execute(page_query(RAW_COLUMNS, run_id, **bounds))).all()
        return [JournalRow(*map(unpack, record)) for record in raw]
    return [JournalRow(*record) for record in found]


def page_query(
    columns: Sequence[ColumnElement[Any]],
    run_id: str,
    *,
    kinds: Collection[str] | None = None,
    until: int | None = None,
    after: int = -1,
    sought: Collection[Sought] | None = None,
) -> Select[Any]:
    """The next rows behind `after`, in order."""
    # Of few rows that are sought SQLite has to take the index of kinds, not the key of the run and its order.
    place = journal.c.seq if sought is None else journal.c.seq + 0
    chosen = [journal.c.run_id == run_id, place > after]
    if kinds is not None:
        chosen.append(journal.c.kind.in_(sorted(kinds)))
    if until is not None:
        chosen.append(journal.c.known_at <= until)
    if sought is not None:
        chosen += [journal.c.kind.in_(_kinds_of(sought)), or_(false(), *_matching(sought))]
    return select(*columns).select_from(LINKED).where(*chosen).order_by(place).limit(PAGE_ROWS)


def _kinds_of(sought: Collection[Sought]) -> list[str]:
    kinds = {kind for row in sought for kind in (row.kinds if isinstance(row, RowSpan) else (row.kind,))}
    return sorted(kinds)


def _matching(sought: Collection[Sought]) -> Iterator[ColumnElement[bool]]:
    """Conditions, one for each place or kind; beyond `MOST_TEXTS` keys the whole kind is read."""
    texts: dict[str, set[str]] = {}
    for wanted in sought:
        if isinstance(wanted, RowSpan):
            yield and_(
                journal.c.seq > wanted.after,
                journal.c.seq < wanted.before,
                journal.c.kind.in_(wanted.kinds),
                journal.c.symbol == wanted.symbol,
            )
        else:
            key = canonical_json(wanted.key)
            texts.setdefault(wanted.kind, set()).add(f'"{wanted.field}":{key if wanted.whole else key[:-1]}')
    for kind, found in sorted(texts.items()):
        any_of = [Unpacked(journal.c.payload).contains(text, autoescape=True) for text in sorted(found)]
        yield and_(journal.c.kind == kind, or_(*any_of) if len(any_of) <= MOST_TEXTS else true())


async def numbering_problem(connection: AsyncConnection, run_id: str) -> str | None:
    """Why the rows of a run cannot be those that its run row counts; None when they can."""
    own = journal.c.run_id == run_id
    count = select(func.count()).where(own).scalar_subquery()
    newest = select(func.max(journal.c.seq)).where(own).scalar_subquery()
    query = select(runs.c.events, count, newest).where(runs.c.run_id == run_id)
    found = (await connection.execute(query)).one_or_none()
    if found is None:
        return None
    events, stored, last = found
    if stored == events and last in (None, events - 1):
        return None
    kept = (
        (await connection.execute(select(journal.c.seq).where(own).order_by(journal.c.seq))).scalars().all()
    )
    gap, seq = next(((number, seq) for number, seq in enumerate(kept) if seq != number), (stored, stored))
    if seq < gap:
        what = f"row {seq} is stored twice"
    else:
        what = f"row {events} is one too many" if gap >= events else f"row {gap} is missing"
    return f"{what}: the run counts {events} rows and {stored} are stored"


async def append_rows(
    connection: AsyncConnection, run_id: str, rows: Sequence[JournalRow], *, first: bool = False
) -> None:
    """Store rows inside a transaction of the caller's; see `JournalRepository.append`."""
    new = await _not_stored(connection, run_id, rows)
    if first and len(new) < len(rows):
        raise PlaceTaken(f"run {run_id!r}: row {rows[0].seq} is stored already", retryable=True)
    if new:
        records = [{name: getattr(row, name) for name in ROW_NAMES} | {"run_id": run_id} for row in new]
        await connection.execute(journal.insert(), records)
        counters = {"run": run_id, "events": new[-1].seq + 1, "head_hash": new[-1].hash}
        await connection.execute(COUNTED, counters)
        await project(connection, run_id, [row for row in new if row.kind in PLAN_KINDS])


async def _not_stored(
    connection: AsyncConnection, run_id: str, rows: Sequence[JournalRow]
) -> Sequence[JournalRow]:
    run = (await connection.execute(HEAD, {"run": run_id})).one_or_none()
    if run is None or run.status != "running":
        state = "unknown" if run is None else run.status
        raise StoreError(f"run {run_id!r} is {state}: nothing can be appended to it")
    first = rows[0].seq
    if first > run.events:
        raise StoreError(
            f"run {run_id!r} holds {run.events} rows: row {first} would leave a gap; was an older copy "
            "of the store put in its place?"
        )
    if first == run.events:
        if rows[0].prev_hash != run.head_hash:
            raise StoreError(f"run {run_id!r}: row {first} does not follow the stored head")
        return rows
    known = rows[: run.events - first]
    stored = await connection.scalar(
        select(journal.c.hash).where(journal.c.run_id == run_id, journal.c.seq == known[-1].seq)
    )
    if stored != known[-1].hash:
        raise PlaceTaken(
            f"run {run_id!r}: row {known[-1].seq} is stored with other content; is another writer active?"
        )
    return rows[len(known) :]


async def project(connection: AsyncConnection, run_id: str, rows: Sequence[JournalRow]) -> None:
    """Move the plans of a run by rows about them, in order; the journal has the last word."""
    for row in rows:
        payload = json.loads(row.payload)
        if payload.get("plan_id") is None:
            continue
        stored = await stored_plan(connection, run_id, payload["plan_id"])
        if stored is None and row.kind == "two_phase_phase1_complete" and payload["plan"] is not None:
            plan = ChangePlan.model_validate(payload["plan"])
            elapsed_ms = (json.loads(row.telemetry or "null") or {}).get("elapsed_ms")
            fields = {"reasoning": payload["reasoning"], "elapsed_ms": elapsed_ms and round(elapsed_ms)}
            fields["journalled"] = True
            await connection.execute(change_plans.insert().values(new_columns(run_id, plan, **fields)))
            await seal_row(connection, change_plans, of_plan(run_id, plan.plan_id))
        elif stored is not None:
            values = {"journalled": 1} | _change_of_plan(stored, row, payload)
            await put_plan(connection, run_id, payload["plan_id"], values)


def _change_of_plan(stored: StoredPlan, row: JournalRow, payload: dict[str, Any]) -> dict[str, Any]:
    """What a row changes of a plan that is there."""
    if row.kind == "two_phase_phase1_complete" and payload["plan_hash"] not in stored.hashes:
        rest = ChangePlan.model_validate(payload["plan"])  # behind a checkpoint
        return revision_columns((*stored.revisions, rest)) | {"state": "awaiting_approval"}
    if row.kind == "plan_decided":
        return _decision_of_plan(stored, row, payload)
    if row.kind == "plan_step":
        steps = {str(number): state for number, state in stored.record.steps.items()}
        steps[str(payload["number"])] = payload["state"]
        values = {"steps": json.dumps(steps), "phase": payload["phase"]}
        return values | {"reasons": json.dumps([payload["reason"]])} if payload["reason"] else values
    if row.kind == "two_phase_phase2_complete":
        values = {"state": payload["status"], "phase": payload["phase"]}
        back = payload["status"] == "rolled_back"
        undone = json.dumps(dict.fromkeys(map(str, stored.record.steps), "undone"))
        return values | {"steps": undone} if back else values
    return {}


def _decision_of_plan(stored: StoredPlan, row: JournalRow, payload: dict[str, Any]) -> dict[str, Any]:
    """A decision; the one that a command has taken before keeps its own time."""
    record = stored.record
    values: dict[str, Any] = {"state": payload["state"], "reasons": json.dumps(payload["reasons"])}
    if payload["plan"] is not None and payload["plan_hash"] != record.hash:
        plan = ChangePlan.model_validate(payload["plan"])
        values |= revision_columns((*stored.revisions, plan))
    lines = (payload["decision"], payload["plan_hash"], payload["by"])
    last = record.decisions[-1] if record.decisions else None
    if last is None or (last.decision, last.hash, last.by) != lines:
        decision = PlanDecision(lines[0], payload["revision"], lines[1], lines[2], row.known_at)
        values["decisions"] = with_decision(record.decisions, decision)
    return values


def _few(run_id: str, span: range, symbol: str | None) -> Select[Any]:
    own = [journal.c.run_id == run_id, journal.c.seq.between(span.start, span.stop - 1)]
    if symbol is not None:
        own.append(or_(journal.c.symbol == symbol, journal.c.symbol.is_(None)))
    return select(*ROW_COLUMNS).select_from(LINKED).where(*own, ~PRUNED_TEXT)
