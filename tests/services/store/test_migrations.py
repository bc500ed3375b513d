"""Revisions and `tables.py` agree on both dialects; a store of any age is upgraded without losing a row."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from schemas.errors import InvariantViolation, StoreError
from services.store import migrate, migrations, open_store
from services.store.migrate import first_difference, shape_of
from services.store.migrations import HEAD, REVISIONS
from services.store.opening import alone
from services.store.revision import MARK, make_tables, mark, revision_state
from services.store.tables import metadata
from services.store.urls import parse_url
from tests.services.journal.rows import written_rows
from tests.services.store.stores import new_run

ROWS = written_rows(6)
TABLES = set(metadata.tables)


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


def unmarked(connection):
    connection.execute(text(f"DROP TABLE {MARK}"))


async def filled(store):
    run_id = (await store.runs.create(new_run())).run_id
    await store.journal.append(run_id, ROWS)
    return run_id


def old_store(address, revision, *, marked):
    """A store of an earlier revision with one run in it."""

    async def fill():
        # A reader accepts the older store; its repositories write what that revision had.
        async with await open_store(address, create=False) as store:
            await filled(store)

    done(address, lambda connection: migrate.migrate(connection, revision))
    asyncio.run(fill())
    if not marked:
        done(address, unmarked)


def stored(address):
    async def scenario():
        async with await open_store(address, create=False) as store:
            rows = [row async for row in store.journal.rows("r0001")]
            return rows, store.has_worker_tables

    return asyncio.run(scenario())


def test_revisions_lead_in_one_line_to_the_newest():
    scripts = ScriptDirectory(str(migrations.__path__[0]))
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS
    assert scripts.get_heads() == [HEAD]


def test_revisions_make_the_tables_that_the_code_works_with(address):
    def compare(connection):
        migrate.migrate(connection, HEAD)
        context = MigrationContext.configure(connection, opts={"version_table": MARK})
        return compare_metadata(context, metadata)

    assert done(address, compare) == [], "a table changed without a revision in services/store/migrations"


def test_revisions_make_the_tables_of_a_new_store(address):
    def migrated(connection):
        migrate.migrate(connection, HEAD)
        return shape_of(connection, TABLES | {MARK})

    def remade(connection):
        metadata.drop_all(connection)
        unmarked(connection)
        make_tables(connection)
        return shape_of(connection, TABLES | {MARK})

    by_revisions = done(address, migrated)
    assert by_revisions.keys() == TABLES | {MARK}
    assert first_difference(by_revisions, done(address, remade)) is None


def test_shapes_that_differ_are_told_apart():
    shape = migrate.shape_at(HEAD)
    assert first_difference(migrate.shape_at("0001"), shape) == "table 'change_plans' is missing"
    assert first_difference(shape, migrate.shape_at("0001")) == "table 'change_plans' is not known"
    for aspect in shape["slow_reports"]:
        other = {**shape, "slow_reports": {**shape["slow_reports"], aspect: "other"}}
        assert first_difference(other, shape) == f"{aspect} of table 'slow_reports'"


def test_new_store_is_marked_with_the_newest_revision(address):
    async def opened():
        async with await open_store(address, create=True):
            pass

    asyncio.run(opened())
    found = done(address, lambda connection: revision_state(connection, parse_url(address)))
    assert (found.state, found.revision, found.tables) == ("current", HEAD, TABLES)
    assert upgraded(address) == migrate.Upgrade("current", HEAD, HEAD, ())


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("revision", REVISIONS)
def test_store_of_any_revision_is_upgraded_once_and_keeps_its_rows(address, revision, marked):
    old_store(address, revision, marked=marked)
    before = "unmarked" if not marked else "current" if revision == HEAD else "behind"
    first = upgraded(address)
    assert (first.state, first.before, first.after) == (before, revision, HEAD)
    assert [line.split()[0] for line in first.applied] == list(migrate.pending(revision))
    assert stored(address) == (ROWS, True)
    assert upgraded(address) == migrate.Upgrade("current", HEAD, HEAD, ())


def test_store_that_is_empty_is_made_by_an_upgrade(address):
    assert upgraded(address).state == "empty"

    async def scenario():
        async with await open_store(address, create=False) as store:
            return await filled(store)

    assert asyncio.run(scenario()) == "r0001"
    assert stored(address) == (ROWS, True)


def test_older_sqlite_file_is_upgraded_by_the_next_writer_and_read_as_it_is_by_a_reader(tmp_path):
    address = f"sqlite:///{tmp_path}/store.db"
    old_store(address, "0001", marked=False)
    assert stored(address) == (ROWS, False)

    async def write():
        async with await open_store(address, create=True) as store:
            return (await store.runs.create(new_run())).run_id

    assert asyncio.run(write()) == "r0002"
    assert stored(address) == (ROWS, True)


@pytest.mark.parametrize("marked", [True, False])
def test_older_database_is_not_changed_by_a_writer_that_names_the_command(postgres_url, marked):
    old_store(postgres_url, "0001", marked=marked)

    async def write():
        async with await open_store(postgres_url, create=True):
            pass

    at = "is at revision '0001'" if marked else "has tables without a revision"
    with pytest.raises(StoreError, match=rf"{at}, .*'{HEAD}': run `thinktwice db upgrade"):
        asyncio.run(write())
    assert stored(postgres_url) == (ROWS, False)


@pytest.mark.parametrize("create", [True, False])
def test_store_of_a_newer_program_is_refused_and_left_alone(address, create):
    def newer(connection):
        make_tables(connection)
        connection.execute(text(f"UPDATE {MARK} SET version_num = '9999'"))

    async def opened():
        async with await open_store(address, create=create):
            pass

    done(address, newer)
    with pytest.raises(StoreError, match=r"revision '9999'.*update thinktwice"):
        asyncio.run(opened())
    with pytest.raises(StoreError, match="revision '9999'"):
        upgraded(address)


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("ALTER TABLE runs ADD COLUMN mine TEXT", "columns of table 'runs'"),
        ("ALTER TABLE leases RENAME TO other", "table 'leases' is missing"),
        ("CREATE INDEX mine ON journal (kind)", "indexes of table 'journal'"),
    ],
)
def test_unmarked_store_with_the_tables_of_no_revision_is_not_adopted(address, statement, where):
    def altered(connection):
        make_tables(connection)
        unmarked(connection)
        connection.execute(text(statement))

    done(address, altered)
    with pytest.raises(StoreError, match=rf"those of none \({where}\)"):
        upgraded(address)
    assert done(address, lambda connection: shape_of(connection, {MARK})) == {}


def test_upgrade_that_would_lose_rows_leaves_the_store_as_it_was(address, monkeypatch):
    def forgetful(connection, target):
        connection.execute(text("DELETE FROM journal WHERE seq > 2"))
        mark(connection, target)

    old_store(address, "0001", marked=False)
    monkeypatch.setattr(migrate, "migrate", forgetful)
    monkeypatch.setattr(
        migrate, "shape_at", {revision: migrate.shape_at(revision) for revision in REVISIONS}.get
    )
    with pytest.raises(InvariantViolation, match="changed runs or lost rows"):
        upgraded(address)
    assert stored(address) == (ROWS, False)


def test_upgrades_at_once_are_made_one_after_the_other(address):
    async def one():
        async with connected(address) as connection:
            return await connection.run_sync(migrate.upgrade, parse_url(address))

    async def scenario():
        return await asyncio.gather(*(one() for _ in range(4)))

    old_store(address, "0001", marked=True)
    states = sorted(found.state for found in asyncio.run(scenario()))
    assert states == ["behind", "current", "current", "current"]
    assert stored(address) == (ROWS, True)


def test_interrupted_upgrade_leaves_an_old_store_that_can_be_upgraded(tmp_path, monkeypatch):
    address = f"sqlite:///{tmp_path}/store.db"
    old_store(address, "0001", marked=False)

    def interrupted(connection, target):
        migrate_whole(connection, target)
        raise KeyboardInterrupt

    migrate_whole = migrate.migrate
    migrate.shape_at("0001")
    monkeypatch.setattr(migrate, "migrate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        upgraded(address)
    monkeypatch.setattr(migrate, "migrate", migrate_whole)
    with sqlite3.connect(tmp_path / "store.db") as left:
        names = {row[0] for row in left.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    left.close()
    assert names == {"runs", "journal"}
    assert upgraded(address).state == "unmarked"
