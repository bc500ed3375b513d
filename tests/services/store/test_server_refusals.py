"""What a PostgreSQL refuses at times: classified by its code, and waited for where it passes by itself."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg  # type: ignore[import-untyped]  # ships no types
import pytest
from asyncpg import exceptions as asyncpg_errors
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from schemas.errors import StoreError
from services.store import open_store
from services.store.engine import build_engine
from services.store.failures import StoreDamaged, store_error, store_errors
from services.store.urls import parse_url
from tests.each_case import check_each
from tests.services.store.stores import new_run

WAITS = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted"
URL = parse_url("postgresql://me@host/db")
AWAY = "closed the connection or takes none at present"
IN_USE = "is locked by another process or transaction"
PASSES = {
    AWAY: ("08000", "08006", "25P03", "25P04", "53200", "53300", "57000", "57P01", "57P02", "57P03", "57P05"),
    IN_USE: ("40001", "40P01", "55006", "55P03", "57014"),
    "is read-only, as a standby is": ("25006",),
}
STAYS = {
    "refused the user or password": ("28000", "28P01"),
    "has no such database": ("3D000", "57P04"),
    "does not give this user the right": ("42501",),
    "the disk is full": ("53100",),
    "disk I/O error": ("58030",),
    "is damaged": ("XX001", "XX002"),
    "failed: database is locked": ("23505", "40002", "42P01", "53400"),
}
REFUSALS = [(state, text) for table in (PASSES, STAYS) for text, states in table.items() for state in states]


def refusal(state, reply="any words"):
    return asyncpg_errors.PostgresError.new({"C": state, "M": reply})


def wrapped(error):
    """As SQLAlchemy hands it on."""
    return DBAPIError("SELECT 1", {}, error)


@check_each("wrap", [lambda error: error, wrapped])
@check_each(("state", "problem"), REFUSALS)
def test_refusal_of_a_server_is_judged_by_its_code_whatever_it_says(state, problem, wrap):
    found = store_error(wrap(refusal(state, "database is locked")), URL)
    assert problem in str(found)
    assert found.retryable == any(state in states for states in PASSES.values())
    assert isinstance(found, StoreDamaged) == state.startswith("XX")


def test_refusal_is_found_behind_what_came_of_it():
    def failed():
        try:
            raise refusal("57P01")
        except asyncpg_errors.PostgresError:
            raise asyncpg_errors.InterfaceError("a rollback on what is left of it")  # noqa: B904 - as drivers do

    with pytest.raises(asyncpg_errors.InterfaceError) as caught:
        failed()
    assert store_error(wrapped(caught.value), URL).retryable


@pytest.mark.parametrize("kind", [asyncpg_errors.InterfaceError, asyncpg_errors.InternalClientError])
@pytest.mark.parametrize(
    ("quoted", "retryable"),
    [
        ("cannot call Transaction.commit(): the underlying connection is closed", True),
        ("cannot switch to state 12; another operation (2) is in progress", True),
        ('cannot switch to state 12; protocol is in the "failed" state', True),
        ("unknown codec", False),
    ],
)
def test_failure_of_the_driver_itself_is_judged_by_its_message(kind, quoted, retryable):
    with pytest.raises(StoreError) as caught, store_errors(URL):
        raise kind(quoted)
    assert caught.value.retryable == retryable


class Server:
    """A database with an operator on a connection of his own."""

    def __init__(self, address, admin):
        self.address = address
        self.admin = admin
        self.url = parse_url(address)

    @asynccontextmanager
    async def transaction(self, setting=None):
        """A transaction as a repository has it, on a connection of its own; with the id of its backend."""
        engine = build_engine(self.url, create=True, timeout_s=5.0)
        try:
            with store_errors(self.url):
                async with engine.begin() as connection:
                    if setting is not None:
                        await connection.execute(text(f"SET {setting}"))
                    yield connection, await connection.scalar(text("SELECT pg_backend_pid()"))
        finally:
            await engine.dispose()

    async def waits(self, backend):
        """Wait until a backend waits for a lock."""
        async with asyncio.timeout(20.0):
            while not await self.admin.fetchval(WAITS, backend):
                pass


def on(address, scenario):
    async def run():
        admin = await asyncpg.connect(address)
        try:
            return await scenario(Server(address, admin))
        finally:
            await admin.close()

    return asyncio.run(run())


async def wait_for_a_lock(server, setting, meanwhile):
    """Ask for what the operator has locked; he may do something to the one who waits."""
    await server.admin.execute("CREATE TABLE wanted (x integer)")
    async with server.admin.transaction():
        await server.admin.execute("LOCK TABLE wanted")
        async with server.transaction(setting) as (connection, backend):
            request = asyncio.create_task(connection.execute(text("SELECT * FROM wanted")))
            if meanwhile is not None:
                await server.waits(backend)
                await server.admin.execute(f"SELECT {meanwhile}({backend})")
            await request


@pytest.mark.parametrize(
    ("setting", "meanwhile", "problem"),
    [
        ("lock_timeout = '50ms'", None, IN_USE),
        ("statement_timeout = '50ms'", None, IN_USE),
        (None, "pg_cancel_backend", IN_USE),
        (None, "pg_terminate_backend", AWAY),
    ],
)
def test_wait_for_a_lock_that_a_real_server_ends_can_be_tried_again(
    postgres_url, setting, meanwhile, problem
):
    with pytest.raises(StoreError, match=problem) as caught:
        on(postgres_url, lambda server: wait_for_a_lock(server, setting, meanwhile))
    assert caught.value.retryable


async def deadlock(server):
    """Two who wait for each other; the operator would do so for an hour."""
    await server.admin.execute("CREATE TABLE one (x integer); CREATE TABLE two (x integer)")
    async with server.transaction("deadlock_timeout = '10ms'") as (connection, _):
        await connection.execute(text("LOCK TABLE one"))
        async with server.admin.transaction():
            await server.admin.execute("LOCK TABLE two; SET LOCAL deadlock_timeout = '1h'")
            other = asyncio.create_task(server.admin.execute("LOCK TABLE one"))
            try:
                await connection.execute(text("LOCK TABLE two"))
            finally:
                await connection.rollback()
                await other


async def both_write(server):
    """Two who write the same row, one of them on what was there before."""
    await server.admin.execute("CREATE TABLE one (x integer); INSERT INTO one VALUES (0)")
    async with server.transaction("TRANSACTION ISOLATION LEVEL REPEATABLE READ") as (connection, _):
        await connection.execute(text("SELECT * FROM one"))
        await server.admin.execute("UPDATE one SET x = 1")
        await connection.execute(text("UPDATE one SET x = 2"))


@pytest.mark.parametrize("scenario", [deadlock, both_write])
def test_transactions_of_a_real_server_that_exclude_each_other_can_be_tried_again(postgres_url, scenario):
    with pytest.raises(StoreError, match=IN_USE) as caught:
        on(postgres_url, scenario)
    assert caught.value.retryable


def of_role(address, role, password):
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=f"{role}:{password}@{parts.hostname}:{parts.port}"))


@pytest.mark.parametrize("whose", ["ROLE", "DATABASE"])
def test_limit_of_connections_of_a_real_server_can_be_waited_out(postgres_url, whose):
    async def scenario(server):
        database = urlsplit(postgres_url).path.removeprefix("/")
        role = f"few_{database}"
        await server.admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        name = role if whose == "ROLE" else database
        try:
            await server.admin.execute(f"ALTER {whose} {name} CONNECTION LIMIT 0")
            with pytest.raises(StoreError, match=AWAY) as caught:
                await open_store(of_role(postgres_url, role, "x"), create=True)
        finally:
            await server.admin.execute(f"ALTER DATABASE {database} CONNECTION LIMIT -1")
            await server.admin.execute(f"DROP ROLE {role}")
        return caught.value.retryable

    assert on(postgres_url, scenario)


def test_store_on_connections_that_were_ended_between_two_calls_notices_nothing(postgres_url):
    async def scenario(server):
        async with await open_store(postgres_url, create=True) as store:
            await asyncio.gather(*(store.runs.all() for _ in range(3)))
            ended = await server.admin.fetchval(
                "SELECT count(pg_terminate_backend(pid, 20000)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            created = await store.runs.create(new_run())
            return ended, created.run_id

    ended, run_id = on(postgres_url, scenario)
    assert ended >= 1
    assert run_id == "r0001"


def test_store_on_a_connection_to_what_has_become_a_standby_takes_another(postgres_url):
    async def scenario(server):
        async with await open_store(postgres_url, create=True) as store:
            async with store._engine.begin() as connection:
                await connection.execute(text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"))
            with pytest.raises(StoreError, match="is read-only, as a standby is") as caught:
                await store.leases.take("x", "me", 1_000)
            return caught.value.retryable, await store.leases.take("x", "me", 1_000)

    retryable, taken = on(postgres_url, scenario)
    assert retryable
    assert taken.epoch == 1


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError('PostgreSQL server at "h:1" rejected SSL upgrade'),
        ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"),
    ],
)
def test_server_whose_encryption_is_refused_is_not_called_unreachable(error):
    shown = store_error(error, URL)
    assert "offers no encryption as the address demands it" in str(shown)
    assert not shown.retryable


def test_missing_certificate_of_an_authority_is_not_an_unreachable_server(
    postgres_url, tmp_path, monkeypatch
):
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)

    async def requested():
        async with await open_store(f"{postgres_url}?sslmode=verify-full", create=True):
            pass

    with pytest.raises(StoreError, match="offers no encryption as the address demands it"):
        asyncio.run(requested())
