"""Revisions and `tables.py` agree on both dialects; a store that is behind is upgraded and keeps its rows."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, inspect, text
from sqlalchemy.schema import CreateTable

from schemas.errors import InvariantViolation, StoreError
from services.store import migrate, migrations, open_store
from services.store.engine import alone
from services.store.migrate import MARK, make_tables, revision_state
from services.store.migrations import HEAD, REVISIONS
from services.store.tables import metadata
from services.store.urls import parse_url
from tests.services.journal.rows import written_rows
from tests.services.store.revisions import SECOND, add_revision
from tests.services.store.stores import new_run

ROWS = written_rows(6)
TABLES = set(metadata.tables)
LOSES_ROWS = f"{SECOND}    op.execute('DELETE FROM journal WHERE seq > 2')\n"
BREAKS_OFF = f"{SECOND}    raise KeyboardInterrupt\n"


@asynccontextmanager
async def connected(address):
    async with alone(parse_url(address), create=True, writes=True) as connection:
        yield connection


def done(address, work):
    """What `work(connection)` gives, in one transaction."""

    async def scenario():
        async with connected(address) as connection:
            return await connection.run_sync(work)

    return asyncio.run(scenario())


def upgraded(address):
    return done(address, lambda connection: migrate.upgrade(connection, parse_url(address)))


def opened(address, *, create):
    async def scenario():
        async with await open_store(address, create=create):
            pass

    asyncio.run(scenario())


async def filled(store):
    run_id = (await store.runs.create(new_run())).run_id
    await store.journal.append(run_id, ROWS)
    return run_id


def filled_store(address):
    """A store of the present revision with one run in it."""

    async def fill():
        async with await open_store(address, create=True) as store:
            await filled(store)

    asyncio.run(fill())


def names(address):
    return set(done(address, lambda connection: inspect(connection).get_table_names()))


def stored(address):
    """The rows, whatever the revision of the store is."""
    query = text("SELECT seq, kind, payload, hash FROM journal ORDER BY seq")
    rows = done(address, lambda connection: [tuple(row) for row in connection.execute(query)])
    return rows == [(row.seq, row.kind, row.payload, row.hash) for row in ROWS]


def test_revisions_lead_in_one_line_to_the_newest():
    scripts = ScriptDirectory(str(migrations.__path__[0]))
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS
    assert scripts.get_heads() == [HEAD]


def test_revisions_make_the_tables_of_a_new_store_with_which_the_code_works(address):
    def statements(connection):
        found = MetaData()
        found.reflect(connection)
        return {name: str(CreateTable(table).compile(connection)) for name, table in found.tables.items()}

    def both(connection):
        migrate.migrate(connection, HEAD)
        context = MigrationContext.configure(connection, opts={"version_table": MARK})
        difference, by_revisions = compare_metadata(context, metadata), statements(connection)
        metadata.drop_all(connection)
        make_tables(connection)
        return difference, by_revisions, statements(connection)

    difference, by_revisions, new = done(address, both)
    assert difference == [], "a table changed without a revision in services/store/migrations"
    assert by_revisions.keys() == TABLES | {MARK}
    assert by_revisions == new


def test_new_store_is_marked_with_the_newest_revision(address):
    opened(address, create=True)
    found = done(address, lambda connection: revision_state(connection, parse_url(address)))
    assert (found.state, found.revision, found.tables) == ("current", HEAD, TABLES)
    assert upgraded(address) == migrate.Upgrade("current", HEAD, HEAD, ())


def test_store_that_is_empty_is_made_by_an_upgrade(address):
    made = upgraded(address)
    assert (made.state, made.before, made.applied) == ("empty", None, ("0001 Every table of 0.1.0",))
    filled_store(address)
    assert stored(address)


def test_store_that_is_behind_is_upgraded_once_and_keeps_its_rows(address, tmp_path, monkeypatch):
    filled_store(address)
    add_revision(tmp_path, monkeypatch)
    assert upgraded(address) == migrate.Upgrade("behind", "0001", "0002", ("0002 Notes on runs",))
    assert stored(address)
    assert names(address) == TABLES | {MARK, "notes"}
    assert upgraded(address) == migrate.Upgrade("current", "0002", "0002", ())
    opened(address, create=False)


@pytest.mark.parametrize("create", [True, False])
def test_store_that_is_behind_is_left_alone_by_readers_and_writers_who_name_the_command(
    address, create, tmp_path, monkeypatch
):
    filled_store(address)
    add_revision(tmp_path, monkeypatch)
    with pytest.raises(StoreError, match=r"revision '0001', .* with '0002': run `thinktwice db upgrade"):
        opened(address, create=create)
    assert names(address) == TABLES | {MARK}
    assert stored(address)


@pytest.mark.parametrize(
    "statement",
    [f"UPDATE {MARK} SET version_num = '9999'", f"DELETE FROM {MARK}", f"DROP TABLE {MARK}"],
)
def test_store_with_a_mark_that_is_not_known_is_refused_in_one_line_and_left_alone(address, statement):
    filled_store(address)
    done(address, lambda connection: connection.execute(text(statement)))
    before = names(address)
    for attempt in (
        lambda: opened(address, create=True),
        lambda: opened(address, create=False),
        lambda: upgraded(address),
    ):
        with pytest.raises(StoreError, match="was made by another version .*: give another --db") as shown:
            attempt()
        assert "\n" not in str(shown.value)
    assert names(address) == before
    assert stored(address)


def test_upgrade_that_would_lose_rows_leaves_the_store_as_it_was(address, tmp_path, monkeypatch):
    filled_store(address)
    add_revision(tmp_path, monkeypatch, text=LOSES_ROWS)
    with pytest.raises(InvariantViolation, match="changed runs or lost rows"):
        upgraded(address)
    assert stored(address)
    assert names(address) == TABLES | {MARK}


def test_upgrades_at_once_are_made_one_after_the_other(address, tmp_path, monkeypatch):
    async def upgrade():
        async with connected(address) as connection:
            return await connection.run_sync(migrate.upgrade, parse_url(address))

    async def scenario():
        return await asyncio.gather(*(upgrade() for _ in range(4)))

    filled_store(address)
    add_revision(tmp_path, monkeypatch)
    states = sorted(found.state for found in asyncio.run(scenario()))
    assert states == ["behind", "current", "current", "current"]
    assert stored(address)


def test_interrupted_upgrade_leaves_a_store_that_can_be_upgraded(tmp_path, monkeypatch):
    address = f"sqlite:///{tmp_path}/store.db"
    filled_store(address)
    (tmp_path / "first").mkdir()
    with monkeypatch.context() as first:
        add_revision(tmp_path / "first", first, text=BREAKS_OFF)
        with pytest.raises(KeyboardInterrupt):
            upgraded(address)
    with closing(sqlite3.connect(tmp_path / "store.db")) as left:
        found = {row[0] for row in left.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert found == TABLES | {MARK}
    add_revision(tmp_path, monkeypatch)
    assert upgraded(address).state == "behind"
