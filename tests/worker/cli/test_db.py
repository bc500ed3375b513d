"""`thinktwice db` on both databases: what it prints, what it exits with, and what it never prints."""

import json
import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.store.migrations import HEAD
from tests.services.store.revisions import add_revision


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return request.getfixturevalue("postgres_url")


def password(address):
    return urlsplit(address).password or "no password"


def printed(shell, *words, code=0):
    done = shell.run("db", *words, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_db_upgrade_makes_a_store_and_changes_nothing_the_second_time(shell, address):
    first = printed(shell, "upgrade", "--db", address)
    assert (first["state"], first["before"], first["revision"]) == ("empty", None, HEAD)
    assert first["applied"]
    again = printed(shell, "upgrade", "--db", address)
    assert (again["state"], again["before"], again["applied"]) == ("current", HEAD, [])
    assert password(address) not in json.dumps([first, again])
    listed = shell.run("runs", "--db", address)
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert "the store holds no run yet" in listed.stderr


def test_db_check_is_behind_until_the_upgrade(shell, address, tmp_path, monkeypatch):
    printed(shell, "upgrade", "--db", address)
    add_revision(tmp_path, monkeypatch)
    later = shell.run("db", "check", "--db", address)
    assert later.exit_code == 1
    assert "pending    0002 Notes on runs: run `thinktwice db upgrade`" in later.stdout
    assert "applied    0002 Notes on runs" in shell.run("db", "upgrade", "--db", address).stdout
    current = shell.run("db", "check", "--full", "--db", address)
    assert current.exit_code == 0
    assert "revision   0002 (current)" in current.stdout
    assert "nothing is broken" in current.stdout
    assert password(address) not in later.output + current.output


def test_db_backup_restore_and_the_reading_commands_agree(shell, address, tmp_path):
    run = ("--db", address)
    assert shell.backtest(*run).exit_code == 0
    copied = printed(shell, "backup", "kept.db", *run)
    assert copied["ok"]
    assert copied["store"] == "sqlite:///kept.db"
    restored = printed(shell, "restore", "kept.db", "--db", "sqlite:///again.db")
    assert restored["rows"] == copied["rows"]
    journals = {
        shell.run("journal", "latest", "--jsonl", "--db", where).stdout
        for where in (address, "sqlite:///kept.db", "sqlite:///again.db")
    }
    assert len(journals) == 1
    assert len(next(iter(journals)).splitlines()) == copied["rows"]["journal"] > 0
    assert "is there already" in shell.complaint("db", "backup", "kept.db", *run)


def test_db_commands_tell_a_broken_chain_by_exit_code_1(shell):
    assert shell.backtest().exit_code == 0
    with closing(sqlite3.connect("thinktwice.db")) as store:
        store.execute("UPDATE journal SET payload = '{}' WHERE seq = 1")
        store.commit()
    assert shell.run("db", "check").exit_code == 0
    for words in (
        ["check", "--full"],
        ["backup", "kept.db"],
        ["restore", "kept.db", "--db", "sqlite:///b.db"],
    ):
        done = shell.run("db", *words)
        assert done.exit_code == 1
        assert "BROKEN     chain of r0001: row 1" in done.stdout
    assert printed(shell, "check", "--full", code=1)["ok"] is False


READERS = ("runs", "verify", "journal", "trials", "status", "reports", "report", "why aa")


def test_commands_on_a_store_that_is_behind_name_the_next_step_and_leave_it(
    shell, address, tmp_path, monkeypatch
):
    words = ("backtest", "--symbols", "AAPL", "--to", "2000-03-31", "--db", address)
    assert shell.run(*words).exit_code == 0
    add_revision(tmp_path, monkeypatch)
    for command in (words, *((*name.split(), "--db", address) for name in READERS)):
        complaint = shell.complaint(*command)
        assert "is at revision '0001', this program works with '0002'" in complaint, command
        assert "run `thinktwice db upgrade --db URL`" in complaint
        assert password(address) not in complaint
    assert shell.run("db", "upgrade", "--db", address).exit_code == 0
    assert shell.run("runs", "--db", address).stdout.count("r0001") == 1
    assert shell.run(*words).exit_code == 0


def test_database_that_refuses_the_password_is_named_without_it(shell, postgres_url):
    wrong = postgres_url.replace(password(postgres_url), "wr0ng-s3cret")
    for words in (["runs"], ["db", "check"], ["db", "upgrade"], ["journal", "latest"]):
        complaint = shell.complaint(*words, "--db", wrong)
        assert "refused the user or password" in complaint
        assert "wr0ng-s3cret" not in complaint
        assert ":***@" in complaint


SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg", "sqlite", "", "POSTGRESQL")
USERS = ("", "me@", "me:S3CRET@", ":S3CRET@", "me:S3CRET@S3CRET@", "me:S3CRET:S3CRET@", "%zz:S3CRET@")
HOSTS = ("127.0.0.1:1", "[::1]:1", "", "127.0.0.1:x", "127.0.0.1:99999999", "[", "127.0.0.1:1,127.0.0.1:2")
DATABASES = ("", "/", "/db", "/%00", "/d b#x", "/\0")
QUERIES = (
    "",
    "?",
    "?=",
    "?sslmode=disable",
    "?ssl=maybe",
    "?port=1&port=2",
    "?port=x",
    "?password=S3CRET",
    "?a=b",
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(*map(st.sampled_from, (SCHEMES, USERS, HOSTS, DATABASES, QUERIES)))
def test_any_address_ends_in_one_line_without_the_password(shell, scheme, user, host, database, query):
    complaint = shell.complaint("db", "check", "--db", f"{scheme}://{user}{host}{database}{query}")
    if scheme != "sqlite":
        assert "S3CRET" not in complaint
