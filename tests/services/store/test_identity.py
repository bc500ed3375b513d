"""Files of a SQLite store that are deleted or replaced under a process: no commit to them is acknowledged."""

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store import open_store
from services.store.backup import back_up
from services.store.failures import StoreDamaged
from services.store.identity import StoreFile, StoreLost
from services.store.integrity import examine
from services.store.records import Closing
from tests.services.store.stores import new_run

HOUR = 3_600_000
PAGE = 4_096
NAME = "store.db"


def made_rows(count: int = 40) -> list[JournalRow]:
    sink = MemorySink()
    journal = JournalWriter(sink)
    for number in range(count):
        journal.append("policy_skip", ts_event=number, known_at=number, payload={"number": number})
    asyncio.run(journal.flush())
    return sink.rows


ROWS = made_rows()


def path_beside(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)


def all_deleted(file: Path) -> str:
    for suffix in ("", "-wal", "-shm"):
        path_beside(file, suffix).unlink()
    return "was deleted"


def main_deleted(file: Path) -> str:
    file.unlink()
    return "was deleted"


def main_renamed(file: Path) -> str:
    file.rename(path_beside(file, "-moved"))
    return "was deleted or moved away"


def log_deleted(file: Path) -> str:
    path_beside(file, "-wal").unlink()
    return "-wal' was deleted"


def index_deleted(file: Path) -> str:
    path_beside(file, "-shm").unlink()
    return "-shm' was deleted"


def log_replaced(file: Path) -> str:
    copy = path_beside(file, "-copy")
    shutil.copy(path_beside(file, "-wal"), copy)
    copy.replace(path_beside(file, "-wal"))
    return "-wal' was replaced"


def copy_put_in_place(file: Path) -> str:
    copy = path_beside(file, "-copy")
    shutil.copy(file, copy)
    copy.replace(file)
    return "was replaced"


def backup_put_in_place(file: Path) -> str:
    copy = path_beside(file, "-copy")
    asyncio.run(back_up(f"sqlite:///{file}", copy))
    file.unlink()
    shutil.copy(copy, file)
    return "was replaced"


def folder_moved(file: Path) -> str:
    file.parent.rename(file.parent.with_name("elsewhere"))
    return "was deleted or moved"


LOSSES = (
    all_deleted, main_deleted, main_renamed, log_deleted, index_deleted, log_replaced, copy_put_in_place,
    backup_put_in_place, folder_moved,
)  # fmt: skip


@pytest.fixture
def file(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / NAME


def losing(file, lose, write, address=None):
    """The error of a write after a loss, and what the loss was."""

    async def scenario():
        async with await open_store(address or f"sqlite:///{file}", create=True) as store:
            run_id = (await store.runs.create(new_run(mode="paper"))).run_id
            lease = await store.leases.take("trading", "me", HOUR)
            await store.journal.append(run_id, ROWS[:10])
            shown = await asyncio.to_thread(lose, file)
            with pytest.raises(StoreLost) as caught:
                await write(store, run_id, lease)
            return caught.value, shown

    return asyncio.run(scenario())


async def append(store, run_id, _lease):
    await store.journal.append(run_id, ROWS[10:20])


async def commit(store, run_id, lease):
    await store.trading.commit(lease, run_id, [], ROWS[10:20])


async def close_backtest(store, run_id, _lease):
    await store.runs.close(run_id, "finished", {"errors": 0})


async def close_interrupted(store, run_id, _lease):
    await store.runs.close(run_id, "interrupted")


async def close_paper(store, run_id, lease):
    await store.trading.commit(lease, run_id, [], [], Closing("finished", {"errors": 0}))


async def renew(store, _run_id, _lease):
    await store.leases.take("trading", "me", HOUR)


async def read(store, run_id, _lease):
    await store.runs.find(run_id)


WRITES = (append, commit, close_backtest, close_interrupted, close_paper, renew, read)


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("write", WRITES)
def test_lost_files_are_told_at_the_next_commit_and_nothing_is_acknowledged(file, lose, write):
    error, shown = losing(file, lose, write)
    assert shown in str(error)
    assert str(file) in str(error)
    assert "`thinktwice db restore`" in str(error)
    assert not error.retryable
    if write not in (renew, read):
        assert "`thinktwice verify r0001 --db sqlite:///" in str(error)


@pytest.mark.parametrize(
    "lose", [main_deleted, copy_put_in_place, backup_put_in_place, log_deleted, all_deleted]
)
def test_log_of_a_file_that_is_gone_is_moved_aside_and_the_message_says_where(file, lose):
    error, _shown = losing(file, lose, append)
    moved = [path_beside(file, f"{suffix}.lost").exists() for suffix in ("-wal", "-shm")]
    named = f"its log was moved to '{file}-wal.lost' and '{file}-shm.lost'" in str(error)
    expected = lose in (main_deleted, copy_put_in_place, backup_put_in_place)
    assert [*moved, named] == [expected] * 3
    if expected:
        assert not path_beside(file, "-wal").exists()


def test_store_put_in_place_of_a_running_one_holds_what_it_held_at_the_next_start(file):
    def restored(path: Path) -> str:
        async def make() -> None:
            async with await open_store(f"sqlite:///{path}-other", create=True) as store:
                await store.runs.create(new_run(name="restored"))

        asyncio.run(make())
        path_beside(path, "-other").replace(path)
        return "was replaced"

    losing(file, restored, append)

    async def names():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            return [run.name for run in await store.runs.all()]

    assert asyncio.run(names()) == ["restored"]
    assert asyncio.run(examine(f"sqlite:///{file}", full=True)).problems == ()


def test_log_that_another_process_began_beside_the_new_file_is_left_alone(file):
    def taken_over(path: Path) -> str:
        copy_put_in_place(path)
        for suffix in ("-wal", "-shm"):
            path_beside(path, suffix).rename(path_beside(path, f"{suffix}.first"))
            path_beside(path, suffix).write_bytes(b"of another process")
        return "was replaced"

    losing(file, taken_over, append)
    assert path_beside(file, "-wal").read_bytes() == b"of another process"


def test_second_log_that_is_moved_aside_takes_no_name_that_is_taken(file):
    path_beside(file, "-wal.lost").write_bytes(b"an earlier one")
    losing(file, copy_put_in_place, append)
    assert path_beside(file, "-wal.lost").read_bytes() == b"an earlier one"
    assert path_beside(file, "-wal.lost1").exists()


@pytest.mark.parametrize("lose", [log_deleted, index_deleted, log_replaced])
def test_loss_of_log_or_index_loses_no_row_that_was_acknowledged_before(file, lose):
    losing(file, lose, append)

    async def closed():
        async with await open_store(f"sqlite:///{file}", create=False) as store:
            return [row.hash async for row in store.journal.rows("r0001")]

    assert asyncio.run(closed())[:10] == [row.hash for row in ROWS[:10]]


@pytest.mark.parametrize("end", [close_backtest, close_paper])
def test_run_does_not_end_well_in_a_store_with_pages_that_cannot_be_read(file, end):
    """The damage lies in an older run, was there before, and is read by nothing that the newer one does."""

    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            older = (await store.runs.create(new_run())).run_id
            for first in range(0, len(ROWS), 10):
                await store.journal.append(older, ROWS[first : first + 10])
        page = file.read_bytes().index(ROWS[20].hash.encode()) // PAGE
        with file.open("r+b", buffering=0) as damaged:
            damaged.seek(page * PAGE)
            damaged.write(b"\xff" * PAGE)
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            lease = await store.leases.take("trading", "me", HOUR)
            await end(store, run_id, lease)

    with pytest.raises(StoreDamaged, match=r"is damaged: .*restore a backup.*run r0002.*db check --full"):
        asyncio.run(scenario())


def test_rows_that_another_program_writes_into_the_open_file_are_found_by_the_check(file):
    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            await store.journal.append(run_id, ROWS[:10])
            with closing(sqlite3.connect(file)) as other, other:
                other.execute("UPDATE journal SET payload = '{}' WHERE seq = 5")
            await store.journal.append(run_id, ROWS[10:20])
        return (await examine(f"sqlite:///{file}", full=True)).problems

    assert any("chain of r0001: row 5" in problem for problem in asyncio.run(scenario()))


def test_link_that_leads_to_another_file_is_a_loss_and_one_that_stays_is_none(file, tmp_path):
    other, link = tmp_path / "other.db", tmp_path / "link.db"
    link.symlink_to(file)

    def turned(path: Path) -> str:
        shutil.copy(path, other)
        link.unlink()
        link.symlink_to(other)
        return "was replaced"

    error, shown = losing(file, turned, append, f"sqlite:///{link}")
    assert shown in str(error)
    assert not path_beside(file, "-wal.lost").exists()  # the log stays with its file, which is still there
    assert str(link) in str(error)
    link.unlink()
    link.symlink_to(file)
    error, shown = losing(file, log_deleted, append, f"sqlite:///{link}")
    assert f"{str(file)}-wal" in str(error)


@pytest.mark.parametrize("moment", [1, 2])
@pytest.mark.parametrize("loss", [main_deleted, copy_put_in_place, log_deleted])
@pytest.mark.parametrize("write", [append, commit])
def test_loss_before_and_behind_a_commit_is_not_acknowledged(file, moment, loss, write, monkeypatch):
    looks = []

    def lose(path: Path) -> str:
        check = StoreFile.check

        def checked(self, known):
            looks.append(known)
            if len(looks) == moment:
                loss(path)
            return check(self, known)

        monkeypatch.setattr(StoreFile, "check", checked)
        return "under the running process"

    error, shown = losing(file, lose, write)
    assert shown in str(error)
    assert len(looks) == moment


def test_connection_made_after_the_loss_makes_no_new_file(file):
    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            with suppress(StoreLost):
                async with store.runs._read():
                    all_deleted(file)
                    with pytest.raises(StoreLost, match="was deleted"):
                        await store.runs.create(new_run())
                    with pytest.raises(StoreLost, match="was deleted"):
                        await asyncio.gather(*(store.runs.all() for _ in range(3)))
        return file.exists()

    assert asyncio.run(scenario()) is False


OTHER_PROCESS = """
import sqlite3, sys
for statement in sys.argv[2:]:
    store = sqlite3.connect(sys.argv[1], isolation_level=None)
    store.execute("SELECT count(*) FROM journal").fetchall()
    store.execute(statement).fetchall()
    store.close()
"""


def test_healthy_run_is_not_stopped_by_what_others_do_with_its_file(file, tmp_path):
    async def scenario():
        address = f"sqlite:///{file}"
        async with await open_store(address, create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            for step in range(4):
                await store.journal.append(run_id, ROWS[10 * step : 10 * step + 5])
                statements = ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA optimize")
                into = f"VACUUM INTO '{tmp_path}/into{step}.db'"
                command = [sys.executable, "-c", OTHER_PROCESS, str(file), *statements, into]
                await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
                await back_up(address, tmp_path / f"kept{step}.db")
                async with await open_store(address, create=False) as reader:
                    await asyncio.gather(*(reader.runs.find(run_id) for _ in range(3)))
                assert (await examine(address, full=True)).problems == ()
                os.link(file, tmp_path / f"linked{step}.db")
                await store.journal.append(run_id, ROWS[10 * step + 5 : 10 * step + 10])
                if step == 1:
                    await store._engine.dispose()  # log and index go with the last connection, and come again
            await store.runs.close(run_id, "finished", {"errors": 0})
            return (await store.runs.find(run_id)).events

    assert asyncio.run(scenario()) == len(ROWS)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_files_of_a_new_store_are_read_by_their_owner_alone(file, suffix):
    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            await store.runs.create(new_run())
            return stat.S_IMODE(path_beside(file, suffix).stat().st_mode)

    before = os.umask(0)
    try:
        assert asyncio.run(scenario()) == 0o600
    finally:
        os.umask(before)
