import asyncio
import os
import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ConfigError, StoreError
from services.store import StoreMissing, mask_password, open_store
from services.store.failures import store_error
from services.store.urls import parse_url
from tests.services.store.stores import new_run


def opened(address, *, create=True, timeout_s=0.05):
    async def scenario():
        async with await open_store(address, create=create, timeout_s=timeout_s) as store:
            return await store.runs.all()

    return asyncio.run(scenario())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def test_store_locked_by_another_process_says_so_and_can_be_retried(path):
    opened(f"sqlite:///{path}")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match=r"is locked by another process .*--db") as caught:
            opened(f"sqlite:///{path}")
        assert caught.value.retryable
        assert opened(f"sqlite:///{path}", create=False) == []
    finally:
        other.close()
    assert opened(f"sqlite:///{path}") == []


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    "content", [b"not a database at all, only text" * 40, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_store_file_that_is_no_database_is_refused_and_left_alone(path, create, content):
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is not a SQLite database|is damaged"):
        opened(f"sqlite:///{path}", create=create)
    assert path.read_bytes() == content


def test_store_damaged_page_is_reported_as_damage(path):
    async def fill():
        async with await open_store(f"sqlite:///{path}", create=True) as store:
            for _ in range(200):
                await store.runs.create(new_run())

    asyncio.run(fill())
    content = bytearray(path.read_bytes())
    content[4096 * 3 :] = b"\x5a" * (len(content) - 4096 * 3)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        opened(f"sqlite:///{path}")


@pytest.mark.parametrize("create", [True, False])
def test_store_of_somebody_else_is_refused_and_left_alone(path, create):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE customers (id INTEGER)")
    other.close()
    with pytest.raises(StoreError, match=r"holds other tables \(customers\)"):
        opened(f"sqlite:///{path}", create=create)
    other = sqlite3.connect(path)
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("customers",)]
    other.close()


def test_store_of_another_version_is_refused(path):
    opened(f"sqlite:///{path}")
    other = sqlite3.connect(path)
    other.execute("ALTER TABLE runs DROP COLUMN mode")
    other.close()
    with pytest.raises(StoreError, match=r"another version \(table 'runs'\)"):
        opened(f"sqlite:///{path}")


def test_store_that_is_missing_is_not_made_by_a_reader(path):
    with pytest.raises(StoreMissing, match="there is no store"):
        opened(f"sqlite:///{path}", create=False)
    assert not path.exists()


def test_store_empty_file_is_missing_to_a_reader_and_filled_by_a_run(path):
    path.touch()
    with pytest.raises(StoreMissing, match="is empty"):
        opened(f"sqlite:///{path}", create=False)
    assert opened(f"sqlite:///{path}") == []


def test_store_in_a_missing_directory_is_refused(tmp_path):
    with pytest.raises(StoreError, match="directory of store .* does not exist"):
        opened(f"sqlite:///{tmp_path}/nowhere/store.db")
    assert not (tmp_path / "nowhere").exists()


def test_store_that_is_a_directory_is_refused(tmp_path):
    with pytest.raises(StoreError, match="is a directory"):
        opened(f"sqlite:///{tmp_path}")


def test_store_on_a_server_that_is_away_is_refused_without_the_password():
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        opened("postgresql://trader:s3cret@127.0.0.1:1/thinktwice", timeout_s=1.0)
    assert "s3cret" not in str(caught.value)
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "is read-only: make"),
        (sqlite3.SQLITE_IOERR_WRITE, "check the disk"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "is locked by another process"),
        (sqlite3.SQLITE_ERROR, "failed: database is locked"),
    ],
)
def test_store_error_says_what_is_wrong_in_one_line(code, problem):
    error = sqlite3.OperationalError("database is locked\nwith details")
    error.sqlite_errorcode = code
    message = str(store_error(error, parse_url("sqlite:///x.db")))
    assert problem in message
    assert message.startswith("store sqlite:///x.db ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("store.db", "has no scheme"),
        ("sqlte:///store.db", "Did you mean 'sqlite'"),
        ("mysql://u:s3cret@host/db", "scheme 'mysql'"),
        ("sqlite:///", "names no file"),
        ("sqlite://store.db", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///store.db?mode=ro", "options after"),
        ("postgresql://u:s3cret@host", "names no database"),
        ("postgresql://u:s3cret@host:port/db", "cannot be read"),
        ("u:s3cret@host/db", "has no scheme"),
        ("postgresql://u:s3cret@host:99999/db", "from 1 to 65535"),
        ("postgresql://u:s3cret@host/db?port=x", "from 1 to 65535"),
        ("postgresql://u:s3cret@host/db?sslmod=require", "'sslmod' is not known.*Did you mean 'sslmode'"),
        ("postgresql://u:s3cret@host/db?port=1&port=2", "'port' is given twice"),
    ],
)
def test_store_address_that_is_none_is_refused_without_the_password(address, problem):
    with pytest.raises(ConfigError, match=problem) as caught:
        parse_url(address)
    assert "s3cret" not in str(caught.value)


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=12))
def test_masked_address_never_shows_the_password(word):
    password = f"<{word}>"
    for address in (
        f"postgresql://user:{password}@host/db",
        f"postgres://host/db?user=me&password={password}",
    ):
        assert password not in mask_password(address)
        assert mask_password(address).startswith(address.split("://")[0] + "://")


def test_masked_address_without_a_password_is_unchanged():
    for address in ("sqlite:///a:b@c.db", "postgresql://user@host/db", "postgresql:///db", "store.db"):
        assert mask_password(address) == address


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_server_address_names_our_driver_and_keeps_its_parts(scheme):
    url = parse_url(f"{scheme}://me:pw@host:5433/db?sslmode=require").engine_url(create=True)
    assert (url.drivername, url.host, url.port, url.database) == ("postgresql+asyncpg", "host", 5433, "db")
    assert dict(url.query) == {"ssl": "require"}


@pytest.fixture
def sealed_off(path, monkeypatch):
    """A store in a folder that cannot be written, as on a mount that is read only."""
    opened(f"sqlite:///{path}")
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda asked, mode: str(asked) != str(path.parent) and access(asked, mode)
    )
    return path


def names_beside(path):
    return {other.name for other in path.parent.iterdir()}


def test_store_in_a_folder_that_cannot_be_written_is_read_without_a_log(sealed_off):
    async def scenario():
        async with await open_store(f"sqlite:///{sealed_off}", create=False) as store:
            return await store.runs.all(), names_beside(sealed_off)

    assert asyncio.run(scenario()) == ([], {"store.db"})


def test_store_that_is_read_without_a_log_is_left_when_a_writer_begins_one(sealed_off):
    async def scenario():
        async with await open_store(f"sqlite:///{sealed_off}", create=False) as store:
            sealed_off.with_name("store.db-wal").touch()
            with pytest.raises(StoreError, match="is written by another process by now"):
                await store.runs.all()

    asyncio.run(scenario())


def test_store_with_a_log_in_a_folder_that_cannot_be_written_is_to_be_copied(sealed_off):
    url = parse_url(f"sqlite:///{sealed_off}")
    failure = sqlite3.OperationalError("unable to open database file")
    failure.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    assert re.search(r"copy it with what lies beside it \(-wal\)", str(store_error(failure, url)))


def test_log_of_a_store_is_written_back_at_four_megabytes(path):
    async def scenario():
        longest = 0
        async with await open_store(f"sqlite:///{path}", create=True) as store:
            for _ in range(40):
                await store.runs.create(new_run(data={"text": "x" * 250_000}))
                longest = max(longest, path.with_name("store.db-wal").stat().st_size)
        return longest

    assert 4 << 20 < asyncio.run(scenario()) < 5 << 20
