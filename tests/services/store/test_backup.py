"""A backup holds what the store held, whichever database it lies in, and a restore brings it back."""

import asyncio
import resource
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import text

from schemas.errors import ConfigError, StoreError
from services.store import StoreMissing, backup, open_store
from services.store.backup import back_up, restore
from services.store.engine import alone, build_engine
from services.store.integrity import examine
from services.store.migrate import revision_state
from services.store.migrations import HEAD
from services.store.tables import metadata
from services.store.urls import parse_url
from tests.services.journal.rows import written_rows
from tests.services.store.artefacts import MONDAY, WEEK, reported
from tests.services.store.revisions import add_revision
from tests.services.store.stores import new_run
from tests.services.store.test_leases import HOUR

ROWS = written_rows(40)
NO_ROW = text("SELECT 1")


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path):
    """An address without a store, to restore to."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/restored.db"
    return request.getfixturevalue("fresh_postgres")()


def in_store(address, scenario, *, create=True):
    async def opened():
        async with await open_store(address, create=create) as store:
            return await scenario(store)

    return asyncio.run(opened())


def changed(address, statement):
    """Change a store by another program: a file loses no row under the eyes of a connection of ours."""
    if address.startswith("sqlite:///"):
        with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as store, store:
            store.execute(statement)
        return

    async def change():
        async with alone(parse_url(address), writes=True) as connection:
            await connection.execute(text(statement))

    asyncio.run(change())


async def filled(store):
    """Two runs, one of them still running and one without rows, and rows in every other table."""
    run_id = (await store.runs.create(new_run(config={"x": 0.1, "ä": "\U0001f600"}))).run_id
    await store.journal.append(run_id, ROWS)
    await store.runs.close(run_id, "finished", {"errors": 0})
    run_id = (await store.runs.create(new_run(name="second"))).run_id
    await store.journal.append(run_id, ROWS[:7])
    await store.runs.create(new_run(name="empty"))
    lease = await store.leases.take("x", "a", HOUR)
    for n in range(3):
        await reported(store, lease, run_id, MONDAY + n * WEEK)


def contents(address):
    """Every row of every table, in an order of its own."""

    async def read():
        async with alone(parse_url(address)) as connection:
            return {
                table.name: sorted(map(tuple, await connection.execute(table.select())), key=repr)
                for table in metadata.sorted_tables
            }

    return asyncio.run(read())


def test_backup_and_restore_keep_every_row_between_any_two_databases(address, target, tmp_path):
    in_store(address, filled)
    original = contents(address)
    copied = asyncio.run(back_up(address, tmp_path / "backup.db"))
    assert copied.revision == HEAD
    assert copied.problems == ()
    assert copied.rows == {name: len(rows) for name, rows in original.items()}
    assert copied.rows["journal"] == 47
    assert contents(f"sqlite:///{tmp_path}/backup.db") == original
    assert asyncio.run(restore(tmp_path / "backup.db", target)) == copied
    assert contents(target) == original
    assert asyncio.run(examine(target, full=True)).ok


def test_backup_can_be_read_as_a_store_and_is_one_file(address, tmp_path):
    in_store(address, filled)
    folder = tmp_path / "kept"
    folder.mkdir()
    asyncio.run(back_up(address, folder / "backup.db"))

    async def read(store):
        return [row async for row in store.journal.rows("r0001")]

    assert in_store(f"sqlite:///{folder}/backup.db", read, create=False) == ROWS
    asyncio.run(restore(folder / "backup.db", f"sqlite:///{tmp_path}/restored.db"))
    assert [path.name for path in folder.iterdir()] == ["backup.db"]
    versions = (folder / "backup.db").read_bytes()[18:20]  # of the file format; 2 wants a log beside the file
    assert versions == b"\x01\x01"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(("-wal", "-shm"))] == []


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_copy_beside_the_log_of_another_file_is_refused_before_anything_is_written(tmp_path, suffix):
    """The log of a store that was killed would be written into whatever is put in its place."""
    in_store(f"sqlite:///{tmp_path}/store.db", filled)
    asyncio.run(back_up(f"sqlite:///{tmp_path}/store.db", tmp_path / "backup.db"))
    stale = tmp_path / f"new.db{suffix}"
    stale.write_bytes(b"of another file")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match=f"nothing was written.*move '{stale}' away first"):
        asyncio.run(restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/new.db"))
    with pytest.raises(ConfigError, match=f"nothing was written.*move '{stale}' away first"):
        asyncio.run(back_up(f"sqlite:///{tmp_path}/store.db", tmp_path / "new.db"))
    assert sorted(tmp_path.iterdir()) == before
    stale.unlink()
    asyncio.run(restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/new.db"))
    assert contents(f"sqlite:///{tmp_path}/new.db") == contents(f"sqlite:///{tmp_path}/store.db")


def test_restored_store_is_worked_on(target, tmp_path):
    async def go_on(store):
        await store.journal.append("r0002", ROWS[7:])
        return (await store.runs.create(new_run())).run_id, (await store.runs.find("r0002")).events

    in_store(f"sqlite:///{tmp_path}/store.db", filled)
    asyncio.run(restore(tmp_path / "store.db", target))
    assert in_store(target, go_on) == ("r0004", 40)


def test_store_that_is_behind_is_backed_up_as_it_is_and_restored_as_the_present_one(
    address, tmp_path, monkeypatch
):
    in_store(address, filled)
    add_revision(tmp_path, monkeypatch)
    copied = asyncio.run(back_up(address, tmp_path / "backup.db"))
    assert copied.revision == "0001"
    restored = asyncio.run(restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/restored.db"))
    assert restored.revision == "0002"
    assert restored.rows == copied.rows


def test_backup_of_a_store_in_use_holds_one_moment(address, tmp_path, monkeypatch):
    """Rows are appended after the backup has first looked at the store, and before it copies them."""
    server = address.startswith("postgresql")

    async def scenario():
        async with await open_store(address, create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            await store.journal.append(run_id, ROWS[:10])

            def grown(connection, url):
                monkeypatch.undo()
                found = revision_state(connection, url)
                connection.execute(text("SELECT count(*) FROM journal"))
                with ThreadPoolExecutor(1) as others:
                    others.submit(asyncio.run, appended(run_id)).result()
                return found

            monkeypatch.setattr(backup, "revision_state", grown)
            return await back_up(address, tmp_path / "backup.db")

    async def appended(run_id):
        async with await open_store(address, create=False) as store:
            await store.journal.append(run_id, ROWS[10:])

    copied = asyncio.run(scenario())
    assert copied.problems == ()
    # A server shows the moment of the first statement; a file is copied as it is by then.
    assert copied.rows["journal"] == (10 if server else 40)


def test_broken_chain_is_copied_as_it_is_and_told(target, tmp_path):
    address = f"sqlite:///{tmp_path}/store.db"
    in_store(address, filled)
    changed(address, "UPDATE journal SET payload = '{}' WHERE run_id = 'r0001' AND seq = 3")
    copied = asyncio.run(back_up(address, tmp_path / "backup.db"))
    assert copied.problems == (
        "chain of r0001: row 3 (entry_filled) is damaged: it was changed after it was written",
    )
    assert asyncio.run(restore(tmp_path / "backup.db", target)) == copied
    assert contents(target) == contents(address)


@pytest.mark.parametrize("lost", ["r0002 is missing", "r0001 does not hold row 39"])
def test_copy_that_lacks_something_is_not_kept(address, lost, tmp_path, monkeypatch):
    def expecting_more(connection):
        monkeypatch.setattr(backup, "_ends", ends)
        [(run_id, seq, held)] = ends(connection)
        return [(run_id, seq, held), ("r0002", seq, held)] if "missing" in lost else [(run_id, seq, "0" * 64)]

    async def one_run(store):
        run_id = (await store.runs.create(new_run())).run_id
        await store.journal.append(run_id, ROWS)

    in_store(address, one_run)
    ends = backup._ends
    monkeypatch.setattr(backup, "_ends", expecting_more)
    with pytest.raises(StoreError, match=rf"not what the store held: run {lost}"):
        asyncio.run(back_up(address, tmp_path / "copies.db"))
    assert [path.name for path in tmp_path.iterdir() if "copies" in path.name] == []


def test_restore_whose_journal_ends_otherwise_leaves_the_database_empty(postgres_url, tmp_path, monkeypatch):
    def altering(reading, writing):
        copy_rows(reading, writing)
        writing.execute(text("UPDATE journal SET hash = 'x' WHERE run_id = 'r0002'"))

    in_store(f"sqlite:///{tmp_path}/store.db", filled)
    copy_rows = backup._copy_rows
    monkeypatch.setattr(backup, "_copy_rows", altering)
    with pytest.raises(StoreError, match="did not take the backup: run r0002 does not hold row"):
        asyncio.run(restore(tmp_path / "store.db", postgres_url))
    with pytest.raises(StoreMissing, match="is empty"):
        asyncio.run(examine(postgres_url, full=False))


def test_restore_that_loses_a_row_leaves_the_database_empty(postgres_url, tmp_path, monkeypatch):
    in_store(f"sqlite:///{tmp_path}/store.db", filled)
    monkeypatch.setattr(backup, "insert", lambda table: NO_ROW)
    with pytest.raises(StoreError, match="did not take every row of table"):
        asyncio.run(restore(tmp_path / "store.db", postgres_url))
    with pytest.raises(StoreMissing, match="is empty"):
        asyncio.run(examine(postgres_url, full=False))


def test_damaged_file_gives_no_backup(tmp_path):
    async def many(store):
        for _ in range(200):
            await store.runs.create(new_run())

    path = tmp_path / "store.db"
    in_store(f"sqlite:///{path}", many)
    content = bytearray(path.read_bytes())
    content[4096 * 12 :] = b"\x5a" * (len(content) - 4096 * 12)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        asyncio.run(back_up(f"sqlite:///{path}", tmp_path / "backup.db"))
    with pytest.raises(StoreError, match="damaged"):
        asyncio.run(restore(path, f"sqlite:///{tmp_path}/backup.db"))
    assert sorted(found.name for found in tmp_path.iterdir() if "backup" in found.name) == []


def test_backup_overwrites_nothing(address, tmp_path):
    in_store(address, filled)
    (tmp_path / "backup.db").write_text("mine")
    with pytest.raises(ConfigError, match="is there already"):
        asyncio.run(back_up(address, tmp_path / "backup.db"))
    assert (tmp_path / "backup.db").read_text() == "mine"
    with pytest.raises(ConfigError, match="directory of"):
        asyncio.run(back_up(address, tmp_path / "nowhere" / "backup.db"))


def test_restore_into_a_store_changes_nothing(target, tmp_path):
    in_store(f"sqlite:///{tmp_path}/store.db", filled)
    in_store(target, lambda store: store.runs.create(new_run(name="mine")))
    before = contents(target)
    with pytest.raises(ConfigError, match=r"there already|has tables already"):
        asyncio.run(restore(tmp_path / "store.db", target))
    assert contents(target) == before


def test_backup_of_nothing_and_restore_of_no_backup_make_no_file(address, tmp_path):
    async def made():
        # An empty file for SQLite, an empty database for a server.
        engine = build_engine(parse_url(address), create=True, timeout_s=5)
        async with engine.begin():
            pass
        await engine.dispose()

    with pytest.raises(StoreMissing):
        asyncio.run(back_up(f"sqlite:///{tmp_path}/none.db", tmp_path / "backup.db"))
    (tmp_path / "store.db").touch()
    with pytest.raises(StoreMissing, match="is empty"):
        asyncio.run(back_up(address, tmp_path / "backup.db"))
    with pytest.raises(StoreMissing):
        asyncio.run(restore(tmp_path / "none.db", address))
    (tmp_path / "notes.db").write_text("these are notes, not a database " * 40)
    with pytest.raises(StoreError, match="is not a SQLite database"):
        asyncio.run(restore(tmp_path / "notes.db", f"sqlite:///{tmp_path}/restored.db"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.db", "store.db"]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "DELETE FROM journal WHERE run_id = 'r0001' AND seq = 5",
            "row 5 is missing",
        ),
        (
            "DELETE FROM journal WHERE run_id = 'r0001' AND seq = 39",
            "row 39 is missing",
        ),
        (
            "UPDATE runs SET head_hash = 'x' WHERE run_id = 'r0001'",
            "r0001: it ends with another hash",
        ),
        (
            "UPDATE runs SET head_hash = 'x' WHERE run_id = 'r0003'",
            "r0003: it ends with another hash",
        ),
        ("UPDATE runs SET events = 0 WHERE run_id = 'r0002'", "row 0 is one too many"),
    ],
)
def test_examination_finds_a_journal_that_does_not_end_as_its_run_says(address, statement, problem):
    in_store(address, filled)
    assert asyncio.run(examine(address, full=False)).ok
    changed(address, statement)
    found = asyncio.run(examine(address, full=False))
    assert not found.ok
    assert [line for line in found.problems if problem in line] == list(found.problems[:1])


def test_examination_reads_every_row_only_when_asked(address):
    in_store(address, filled)
    changed(address, "UPDATE journal SET kind = 'other' WHERE run_id = 'r0002' AND seq = 2")
    assert asyncio.run(examine(address, full=False)).ok
    assert asyncio.run(examine(address, full=True)).problems == (
        "chain of r0002: row 2 (other) is damaged: it was changed after it was written",
    )


def test_examination_tells_what_an_upgrade_would_do(address, tmp_path, monkeypatch):
    in_store(address, filled)
    rows = asyncio.run(examine(address, full=True)).rows
    add_revision(tmp_path, monkeypatch)
    found = asyncio.run(examine(address, full=True))
    assert (found.ok, found.state, found.revision, found.problems) == (False, "behind", "0001", ())
    assert found.pending == ("0002 Notes on runs",)
    assert found.rows == rows


def test_examination_finds_a_damaged_page_and_rows_without_parents(tmp_path):
    path = tmp_path / "store.db"
    in_store(f"sqlite:///{path}", filled)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE slow_reports SET job = 'other'")
        other.commit()
    problems = asyncio.run(examine(f"sqlite:///{path}", full=False)).problems
    assert any("belongs to no row of slot_claims" in line for line in problems)
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\x5a" * 4096
    path.write_bytes(content)
    assert any("damaged" in line for line in asyncio.run(examine(f"sqlite:///{path}", full=False)).problems)


def test_copy_for_which_there_is_no_room_names_the_new_file_and_not_the_store(tmp_path):
    address = f"sqlite:///{tmp_path}/full.db"
    in_store(address, filled)
    (tmp_path / "away").mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_960, before[1]))
    try:
        with pytest.raises(
            StoreError, match="the copy cannot be written in '.*away' .disk I/O error"
        ) as shown:
            asyncio.run(back_up(address, tmp_path / "away" / "kept.db"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "full.db" not in str(shown.value)
    assert list((tmp_path / "away").iterdir()) == []
