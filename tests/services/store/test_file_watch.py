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
from typing import Any

import pytest

from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store import file_watch, open_store
from services.store.backup import back_up
from services.store.examination import examine
from services.store.failures import StoreDamaged
from services.store.file_watch import FileWatch, StoreLost
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


def overwritten(file: Path, other: Path) -> str:
    """As `cp OTHER FILE` does it: the file stays the same one."""
    number = file.stat().st_ino
    shutil.copyfile(other, file)
    assert file.stat().st_ino == number
    return "was overwritten"


def other_store_copied_over(file: Path, **changes: Any) -> str:
    other = file.with_name("other.db")

    async def made() -> None:
        async with await open_store(f"sqlite:///{other}", create=True) as store:
            for _ in range(3):
                run_id = (await store.runs.create(new_run(**({"created_at": 77} | changes)))).run_id
                await store.journal.append(run_id, ROWS)

    asyncio.run(made())
    return overwritten(file, other)


def further_store_of_the_same_run_copied_over(file: Path) -> str:
    """Its runs go on with those that were lost: nothing in them tells that it is another file."""
    return other_store_copied_over(file, mode="paper", created_at=new_run().created_at)


def text_written_over(file: Path) -> str:
    text = path_beside(file, "-text")
    text.write_text("no store\n" * 4_000)
    return overwritten(file, text)


def emptied(file: Path) -> str:
    os.truncate(file, 0)
    return "was overwritten"


def cut_off(file: Path) -> str:
    os.truncate(file, file.stat().st_size // 2)
    return "was damaged"


def written_into(file: Path) -> str:
    with file.open("r+b", buffering=0) as damaged:
        damaged.seek(file.stat().st_size // 2)
        damaged.write(bytes(range(256)) * 80)
    return "was damaged"


def folder_moved(file: Path) -> str:
    file.parent.rename(file.parent.with_name("elsewhere"))
    return "was deleted or moved"


def folder_removed(file: Path) -> str:
    shutil.rmtree(file.parent)
    return "was deleted or moved"


LOSSES = (
    all_deleted, main_deleted, log_deleted, index_deleted, log_replaced, copy_put_in_place,
    backup_put_in_place, folder_moved, folder_removed, other_store_copied_over, text_written_over,
    emptied, further_store_of_the_same_run_copied_over, cut_off, written_into,
)  # fmt: skip


@pytest.fixture
def file(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / NAME


def losing(file, lose, write, address=None):
    """What is said when something is written after a loss, and what the loss was."""

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
        assert "run r0001" in str(error)


@pytest.mark.parametrize("lose", [main_deleted, copy_put_in_place, log_deleted, all_deleted, cut_off])
def test_log_of_a_file_that_is_gone_is_to_be_moved_away_before_another_takes_its_place(file, lose):
    error, _shown = losing(file, lose, append)
    named = f"move '{file}-wal' and '{file}-shm' away first" in str(error)
    assert named == (lose in (main_deleted, copy_put_in_place))


@pytest.mark.parametrize("kept", ["copied", "backed_up"])
def test_store_overwritten_with_an_older_copy_of_itself_is_told_at_the_next_commit(file, tmp_path, kept):
    copy, address = tmp_path / "copy.db", f"sqlite:///{file}"

    async def scenario():
        async with await open_store(address, create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            await store.journal.append(run_id, ROWS[:10])
        if kept == "copied":
            shutil.copyfile(file, copy)
        else:
            await back_up(address, copy)
        async with await open_store(address, create=True) as store:
            await store.journal.append(run_id, ROWS[10:20])
            command = [sys.executable, "-c", OTHER_PROCESS, str(file), "PRAGMA wal_checkpoint(TRUNCATE)"]
            await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
            await store.journal.append(run_id, ROWS[20:30])
            overwritten(file, copy)
            with pytest.raises(StoreLost, match="was overwritten"):
                await store.journal.append(run_id, ROWS[30:40])

    asyncio.run(scenario())


def test_store_overwritten_with_its_file_as_it_was_at_the_last_look_is_told_by_what_it_lacks(file, tmp_path):
    """The runs of that file all go on; only that the log is in it, and its rows are not, tells the loss."""
    copy = tmp_path / "copy.db"

    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            await store.journal.append(run_id, ROWS[:10])
            # In processes of their own: a file that this one closes loses its locks, which SQLite needs.
            await asyncio.to_thread(subprocess.run, ["cp", file, copy], check=True, timeout=60)
            await store.journal.append(run_id, ROWS[10:20])
            command = [sys.executable, "-c", OTHER_PROCESS, str(file), "PRAGMA wal_checkpoint(PASSIVE)"]
            await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
            await asyncio.to_thread(subprocess.run, ["cp", copy, file], check=True, timeout=60)
            with pytest.raises(StoreLost, match="was overwritten"):
                await store.runs.find(run_id)

    asyncio.run(scenario())


@pytest.mark.parametrize("lose", [log_deleted, index_deleted, log_replaced])
def test_loss_of_log_or_index_names_no_row_lost_before_the_file_is_closed(file, lose):
    error, shown = losing(file, lose, append)
    assert shown in str(error)
    assert "is lost" not in str(error)
    assert "are not in the file" not in str(error)
    assert "`thinktwice verify r0001 --db sqlite:///" in str(error)

    async def closed():
        async with await open_store(f"sqlite:///{file}", create=False) as store:
            return [row.hash async for row in store.journal.rows("r0001")]

    assert asyncio.run(closed())[:10] == [row.hash for row in ROWS[:10]]


@pytest.mark.parametrize("lose", [cut_off, written_into, other_store_copied_over])
def test_store_written_to_from_outside_stays_lost_though_a_checkpoint_follows(file, lose):
    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            await store.journal.append(run_id, ROWS[:10])
            await asyncio.to_thread(lose, file)
            for first in (10, 20):
                with pytest.raises(StoreLost, match="under the running process"):
                    await store.journal.append(run_id, ROWS[first : first + 10])
                with closing(sqlite3.connect(file)) as other, suppress(sqlite3.Error):
                    other.execute("PRAGMA wal_checkpoint(PASSIVE)")

    asyncio.run(scenario())


def test_loss_of_a_damaged_file_says_that_its_rows_are_not_known_and_what_will_tell_them(file):
    error, _ = losing(file, cut_off, append)
    assert "which rows of run r0001, 0 to 19, can still be read is not known" in str(error)
    assert "`thinktwice db check --full`" in str(error)


@pytest.mark.parametrize("lose", [other_store_copied_over, further_store_of_the_same_run_copied_over])
def test_loss_to_a_store_with_another_run_of_that_id_counts_no_rows_of_it_as_ours(file, lose):
    error, _ = losing(file, lose, append)
    assert "run r0001 is lost with it, rows 0 to 19" in str(error)
    assert "the file at the address holds another run of that id, with 40 rows" in str(error)
    assert "copy it again then" in str(error)


def test_loss_of_a_file_that_is_back_by_then_calls_no_row_lost(file, monkeypatch):
    moved = path_beside(file, "-moved")

    def away(path: Path) -> str:
        path.rename(moved)
        found = FileWatch._loss

        def shown(self, became):
            if moved.exists():
                moved.rename(path)
            return found(self, became)

        monkeypatch.setattr(FileWatch, "_loss", shown)
        return "was deleted or moved away"

    error, shown = losing(file, away, append)
    assert shown in str(error)
    assert "the file is back at the address" in str(error)
    assert "is lost" not in str(error)
    assert "`thinktwice verify r0001 --db sqlite:///" in str(error)


def test_loss_of_a_file_that_is_away_says_that_nothing_lies_there(file):
    error, _ = losing(file, lambda path: str(path.rename(path_beside(path, "-moved"))), append)
    assert "rows 0 to 19, unless the file was moved: nothing lies at the address" in str(error)


@pytest.mark.parametrize("end", ["closed", "closed_paper"])
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
            await (close_backtest if end == "closed" else close_paper)(store, run_id, lease)

    with pytest.raises(StoreDamaged, match=r"is damaged: .*restore a backup.*run r0002.*db check --full"):
        asyncio.run(scenario())


def test_loss_says_which_rows_are_not_in_the_file_that_lies_there(file):
    def replaced(path: Path) -> str:
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return copy_put_in_place(path)

    error, _ = losing(file, replaced, append)
    since = "what was decided since 1970-01-01T00:00:00Z"
    assert f"run r0001: rows 10 to 19, {since} are not in the file at the address" in str(error)
    error, _ = losing(file.with_name("other.db"), all_deleted, append)
    assert "run r0001 is lost with it, rows 0 to 19" in str(error)


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
    assert str(link) in str(error)
    link.unlink()
    link.symlink_to(file)
    error, shown = losing(file, log_deleted, append, f"sqlite:///{link}")
    assert f"{str(file)}-wal" in str(error)


def copied_over_by_then(file: Path) -> str:
    return overwritten(file, file.with_name("other.db"))


@pytest.mark.parametrize("moment", [1, 2, 3])
@pytest.mark.parametrize("loss", [main_deleted, copied_over_by_then, written_into])
@pytest.mark.parametrize("write", [append, commit])
def test_loss_before_a_transaction_and_around_its_commit_is_not_acknowledged(
    file, tmp_path, moment, loss, write, monkeypatch
):
    looks = []
    (tmp_path / "other").mkdir()
    further_store_of_the_same_run_copied_over(file_of(tmp_path / "other"))
    (tmp_path / "other" / "other.db").replace(file.with_name("other.db"))

    def lose(path: Path) -> str:
        check = FileWatch.check

        def checked(self, user=None):
            looks.append(user)
            if len(looks) == moment:
                loss(path)
            check(self, user)

        monkeypatch.setattr(FileWatch, "check", checked)
        return "under the running process"

    error, shown = losing(file, lose, write)
    assert shown in str(error)
    assert len(looks) == moment


def file_of(folder: Path) -> Path:
    """An empty file, to be overwritten."""
    (folder / NAME).touch()
    return folder / NAME


def test_connection_made_after_the_loss_makes_no_new_file(file):
    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            held = store._engine.connect()
            async with held:
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
                    await reader.runs.find(run_id)
                assert (await examine(address, full=True)).problems == ()
                os.link(file, tmp_path / f"linked{step}.db")
                await store.journal.append(run_id, ROWS[10 * step + 5 : 10 * step + 10])
                if step == 1:
                    await store._engine.dispose()  # log and index go with the last connection, and come again
            await store.runs.close(run_id, "finished", {"errors": 0})
            return (await store.runs.find(run_id)).events

    assert asyncio.run(scenario()) == len(ROWS)


BUSY_PROCESS = """
import pathlib, sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
store.execute("PRAGMA wal_autocheckpoint=3")
store.execute("CREATE TABLE busy (number INTEGER, text TEXT)")
for number in range(100_000):
    if number >= 400 and pathlib.Path(sys.argv[2]).exists():
        break
    store.execute("INSERT INTO busy VALUES (?, ?)", (number, "x" * 3000))
    if number % 7 == 0:
        store.execute("DELETE FROM busy WHERE number % 3 = 0")
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if number % 90 == 0:
        store.execute("VACUUM")
store.close()
"""


def test_healthy_run_is_not_stopped_by_checkpoints_of_a_busy_process(file, tmp_path):
    """The busy process goes on until the run has committed often enough beside it, however slow that is."""
    enough = tmp_path / "enough"

    async def scenario():
        async with await open_store(f"sqlite:///{file}", create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            command = (sys.executable, "-c", BUSY_PROCESS, str(file), str(enough))
            busy = await asyncio.create_subprocess_exec(*command)
            ended = asyncio.create_task(busy.wait())
            commits = 0
            while not ended.done():
                await asyncio.gather(
                    store.leases.take("trading", "me", HOUR),
                    *(store.runs.find(run_id) for _ in range(3)),
                )
                commits += 1
                if commits > 10:
                    enough.touch()
            await store.journal.append(run_id, ROWS)
            return ended.result(), commits

    code, commits = asyncio.run(scenario())
    assert code == 0
    assert commits > 10


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


class CheckpointedByAnother:
    """A connection that asks for a checkpoint while another one is at it, and what SQLite answers then."""

    def execute(self, statement: str) -> "CheckpointedByAnother":
        assert statement == "PRAGMA wal_checkpoint(PASSIVE)"
        return self

    def fetchone(self) -> tuple[int, int, int]:
        return 1, -1, -1


def test_checkpoint_that_another_connection_is_at_says_nothing_of_what_is_in_the_file() -> None:
    assert not file_watch._all_in_file(CheckpointedByAnother())  # type: ignore[arg-type]
    with closing(sqlite3.connect(":memory:")) as alone:
        assert file_watch._all_in_file(alone)
