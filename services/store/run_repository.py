"""Runs: numbered by the store, closed once, found by id, unique prefix or `latest`."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import LargeBinary, Row, Select, cast, func, select, text, update

from schemas.errors import ConfigError, StoreError, nearest
from services.journal.chain import GENESIS_HASH, JournalRow
from services.store.bar_rows import store_bars
from services.store.connections import AsyncConnection
from services.store.failures import MEND, StoreDamaged, losses_of, readable, require_readable
from services.store.journal_repository import append_rows
from services.store.records import Closing, NewRun, RunRecord, RunStatus
from services.store.repository import Lease, Repository
from services.store.seals import DESCRIPTION, HASHES, count_problems, hash_values, row_problems, seal_end
from services.store.tables import runs

if TYPE_CHECKING:
    from services.feeds.port import BarRow

LATEST = "latest"
PARTS = ("config", "data", "environment", "document")  # of a row, in JSON
SHOWN, BATCH = 5, 5_000
GOING_ON = {"status": "running", "end_hash": None}


class RunRepository(Repository):
    """Creates, closes and finds runs."""

    async def create(self, run: NewRun) -> RunRecord:
        """Store a new run as `running`; its number and id are unique among concurrent processes."""

        async def work(connection: AsyncConnection) -> RunRecord:
            await self._one_numbering(connection)
            return await self._insert(connection, run)

        return await self._run_write(work)

    async def keep(
        self,
        run: NewRun,
        rows: Sequence[JournalRow],
        bars: "Sequence[BarRow]",
        document: Callable[[str], dict[str, Any]],
    ) -> tuple[str, bool]:
        """Store a finished run with all that belongs to it, in one transaction.

        Args:
            run: what its row says.
            rows: its journal.
            bars: those that nothing but this run has; empty where a file or the program has them.
            document: what `--json` prints of it, by its id.

        Returns:
            Its id, and whether it was stored now: a finished run with this journal, configuration and bars
            is found instead of stored again.

        Raises:
            StoreError: the store cannot take it; then it holds nothing of it.
        """
        async with self._write() as connection:
            await self._one_numbering(connection)
            if (there := await self._same(connection, run, rows[-1].hash)) is not None:
                return there, False
            run_id = (await self._insert(connection, run)).run_id
            for start in range(0, len(rows), BATCH):
                await append_rows(connection, run_id, rows[start : start + BATCH])
            for start in range(0, len(bars), BATCH):
                numbered = list(enumerate(bars[start : start + BATCH], start))
                await store_bars(connection, self._url.dialect, run_id, numbered)
            closing = Closing("finished", document(run_id))
            await close_run(connection, run_id, closing)
        with losses_of(run_id):
            await require_readable(self._url)
        return run_id, True

    async def _same(self, connection: AsyncConnection, run: NewRun, head_hash: str) -> str | None:
        own = (runs.c.head_hash == head_hash) & (runs.c.config_hash == run.config_hash)
        query = select(runs.c.run_id).where(own, runs.c.status == "finished", runs.c.data == _json(run.data))
        return await connection.scalar(query.order_by(runs.c.number).limit(1))

    async def _insert(self, connection: AsyncConnection, run: NewRun) -> RunRecord:
        number = (await connection.scalar(select(func.max(runs.c.number))) or 0) + 1
        record = RunRecord(
            **vars(run),
            run_id=f"r{number:04d}",
            number=number,
            status="running",
            events=0,
            head_hash=GENESIS_HASH,
            document=None,
        )
        await connection.execute(runs.insert(), _columns(record))
        return record

    async def close(self, run_id: str, status: RunStatus, document: dict[str, Any] | None = None) -> None:
        """Mark a running run as finished, interrupted or failed, with its final document if there is one.

        Raises:
            StoreError: the run is not running.
            StoreDamaged: the store cannot be read to its end.
        """
        with losses_of(run_id):
            async with self._write() as connection:
                await close_run(connection, run_id, Closing(status, document))
            await require_readable(self._url)

    async def reopen(self, run_id: str, lease: Lease) -> None:
        """Let an interrupted run go on.

        Args:
            run_id: the run.
            lease: of the process that goes on with it; fenced.

        Raises:
            LeaseLost: another process trades this run.
            StoreError: the run is not interrupted.
        """
        interrupted = (runs.c.run_id == run_id) & (runs.c.status == "interrupted")
        async with self._write(lease) as connection:
            result = await connection.execute(update(runs).where(interrupted).values(GOING_ON))
        if result.rowcount != 1:
            raise StoreError(f"run {run_id!r} is not interrupted: it cannot go on")

    async def all(self) -> list[RunRecord]:
        """Every run, oldest first; one whose row is damaged or not as it was sealed says so."""
        query = self._rows().order_by(runs.c.number)
        return [self._record(row) for row in await self._select(query)]

    async def find(self, name: str, *, changed: bool = False) -> RunRecord:
        """The run with this id, this unique prefix of an id, or the newest for `latest`.

        Args:
            name: of the run.
            changed: take a row that is not as it was sealed too, to say what was changed.

        Raises:
            ConfigError: no such run, or several.
            StoreDamaged: its row cannot be read, or is not as it was sealed.
        """

        async def work(connection: AsyncConnection) -> RunRecord:
            known = (await connection.execute(select(runs.c.run_id).order_by(runs.c.number))).scalars().all()
            run_id = self._chosen(name, list(known))
            row = (await connection.execute(self._rows().where(runs.c.run_id == run_id))).one()
            return self._record(row, changed=changed)

        found = await self._run_read(work)
        if found.damage is not None:
            raise StoreDamaged(found.damage)
        return found

    def _rows(self) -> Select[Any]:
        """Rows of runs; in SQLite bytes may be no text, and one run hides no others."""
        raw = self._url.dialect == "sqlite"
        columns = [
            cast(column, LargeBinary).label(column.name) if raw and column.name in PARTS else column
            for column in runs.c
        ]
        return select(*columns)

    def _record(self, row: Row[Any], *, changed: bool = False) -> RunRecord:
        """A run; one that its hashes do not fit has no document, unless `changed` ones are wanted."""
        stored = {
            name: value.decode(errors="replace") if isinstance(value, bytes) else value
            for name, value in row._mapping.items()
        }
        values = {name: value for name, value in row._mapping.items() if name not in HASHES}
        run_id, damage = values["run_id"], None
        for name in PARTS:
            try:
                values[name] = _read(run_id, name, values[name])
            except StoreDamaged as error:
                values[name], damage = None if name == "document" else {}, damage or str(error)
        if broken := count_problems(values | {"bars": row.bars}):
            damage = damage or f"run {run_id} is damaged: {broken[0]}: {MEND}"
        problems = [] if damage or changed else row_problems(stored)
        if problems:
            values["document"] = None
            more = self._url.command(f"verify {run_id}")
            damage = f"run {run_id} is damaged: {problems[0]}: {more} says more; {MEND}"
        return RunRecord(**values, damage=damage)

    def _chosen(self, name: str, known: list[str]) -> str:
        if not known:
            raise ConfigError(
                f"no run {name!r}: {self._url.text} holds no run yet; `thinktwice backtest` makes one"
            )
        if name == LATEST:
            return known[-1]
        matches = (
            [name] if name in known else [run_id for run_id in known if name and run_id.startswith(name)]
        )
        if len(matches) == 1:
            return matches[0]
        some = ", ".join((matches or known)[-SHOWN:])
        if matches:
            raise ConfigError(f"run {name!r} is not unique: {len(matches)} runs start so, among them {some}")
        raise ConfigError(
            f"no run {name!r} in {self._url.text}: the newest are {some}; "
            f"see `thinktwice runs`.{nearest(name, known)}"
        )

    async def _one_numbering(self, connection: AsyncConnection) -> None:
        if self._url.dialect == "postgresql":
            await connection.execute(text("LOCK TABLE runs IN EXCLUSIVE MODE"))


async def is_closed(connection: AsyncConnection, run_id: str, closing: Closing, head: str | None) -> bool:
    """Whether a run was closed in this way already, with this row as its last; None: whatever its last is."""
    query = select(runs.c.status, runs.c.head_hash).where(runs.c.run_id == run_id).with_for_update()
    found = (await connection.execute(query)).one_or_none()
    return found is not None and found.status == closing.status and head in (None, found.head_hash)


async def close_run(connection: AsyncConnection, run_id: str, closing: Closing) -> None:
    """Close a run inside a transaction of the caller's, and seal its end.

    Raises:
        StoreError: it is not running.
    """
    values: dict[str, Any] = {"status": closing.status}
    if closing.document is not None:
        values["document"] = _json(closing.document)
    running = (runs.c.run_id == run_id) & (runs.c.status == "running")
    if (await connection.execute(update(runs).where(running).values(values))).rowcount != 1:
        raise StoreError(f"run {run_id!r} is not running: it cannot be marked {closing.status}")
    await seal_end(connection, run_id)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _columns(record: RunRecord) -> dict[str, Any]:
    values = {name: value for name, value in vars(record).items() if name != "damage"}
    for name in ("config", "data", "environment"):
        values[name] = _json(values[name])
    return values | {"bars": 0, "description_hash": hash_values(*(values[name] for name in DESCRIPTION))}


def _read(run_id: str, name: str, kept: str | bytes | None) -> dict[str, Any] | None:
    if kept is None:
        return None
    with readable(f"the {name} of run {run_id}"):
        return {**json.loads(kept.decode() if isinstance(kept, bytes) else kept)}
