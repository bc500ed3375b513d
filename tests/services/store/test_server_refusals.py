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
PASSES = {
    "08000": "closed the connection",
    "08001": "closed the connection",
    "08003": "closed the connection",
    "08004": "closed the connection",
    "08006": "closed the connection",
    "08007": "closed the connection",
    "25006": "is read-only, as a standby is",
    "25P03": "in use for too long",
    "25P04": "in use for too long",
    "40000": "in use by another transaction",
    "40001": "in use by another transaction",
    "40003": "in use by another transaction",
    "40P01": "in use by another transaction",
    "53000": "is short of memory",
    "53200": "is short of memory",
    "53300": "has no connection left",
    "55006": "in use by another transaction",
    "55P03": "waited too long for a lock",
    "57000": "is shutting down or starting again",
    "57014": "cancelled the command",
    "57P01": "is shutting down or starting again",
    "57P02": "is shutting down or starting again",
    "57P03": "is starting up or shutting down",
    "57P05": "in use for too long",
}
STAYS = {
    "28000": "does not let this user in",
    "28P01": "refused the user or password",
    "3D000": "has no such database",
    "40002": "a constraint was broken",
    "42501": "does not give this user the right",
    "53100": "the disk is full",
    "53400": "beyond a limit of its configuration",
    "57P04": "dropped the database",
    "58030": "disk I/O error",
    "XX001": "is damaged",
    "XX002": "is damaged",
    "23505": "failed: it said no",
    "42P01": "failed: it said no",
}


def refusal(state, reply="it said no"):
    return asyncpg_errors.PostgresError.new({"C": state, "M": reply})


def wrapped(error):
    """As SQLAlchemy hands it on."""
    return DBAPIError("SELECT 1", {}, error)


@check_each("wrap", [lambda error: error, wrapped])
@check_each(("state", "problem"), [*PASSES.items(), *STAYS.items()])
def test_refusal_of_a_server_is_judged_by_its_code_whatever_it_says(state, problem, wrap):
    found = store_error(wrap(refusal(state)), URL)
    assert problem in str(found)
    assert found.retryable == (state in PASSES)
    assert isinstance(found, StoreDamaged) == state.startswith("XX")


@pytest.mark.parametrize(
    ("state", "quoted", "problem", "retryable"),
    [
        (
            "53300",
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            "left",
            True,
        ),
        ("53300", 'too many connections for role "me"', "has no connection left", True),
        ("53300", 'too many connections for database "db"', "has no connection left", True),
        ("53300", "sorry, too many clients already", "has no connection left", True),
        ("55P03", "canceling statement due to lock timeout", "waited too long for a lock", True),
        ("28000", 'role "me" does not exist', "has no such role", False),
        ("28000", 'role "me" is not permitted to log in', "does not let this user in", False),
        ("28000", 'no pg_hba.conf entry for host "1.2.3.4"', "does not let this user in", False),
        ("55000", 'database "db" is not currently accepting connections', "lets nobody into", True),
        ("55000", 'cannot set parameter "x"', 'failed: cannot set parameter "x"', False),
        ("42501", 'permission denied for table "database locked"', "does not give this user", False),
    ],
)
def test_refusal_whose_words_resemble_another_is_not_taken_for_it(state, quoted, problem, retryable):
    found = store_error(wrapped(refusal(state, quoted)), URL)
    assert problem in str(found)
    assert found.retryable == retryable


def test_refusal_is_found_behind_what_came_of_it():
    def failed():
        try:
            raise refusal("57P01")
        except asyncpg_errors.PostgresError:
            raise asyncpg_errors.InterfaceError("a rollback on what is left of it")  # noqa: B904 - as drivers do

    with pytest.raises(asyncpg_errors.InterfaceError) as caught:
        failed()
    assert store_error(wrapped(caught.value), URL).retryable


@pytest.mark.parametrize(
    ("quoted", "retryable"),
    [
        ("connection is closed", True),
        ("cannot call Transaction.commit(): the underlying connection is closed", True),
        ("cannot perform operation: another operation is in progress", True),
        ("something about database is locked", False),
    ],
)
def test_failure_of_the_driver_itself_is_judged_by_how_its_message_begins(quoted, retryable):
    assert store_error(wrapped(asyncpg_errors.InterfaceError(quoted)), URL).retryable == retryable


@pytest.mark.parametrize(
    ("quoted", "retryable"),
    [
        ("cannot switch to state 12; another operation (2) is in progress", True),
        ('cannot switch to state 12; protocol is in the "failed" state', True),
        ("unknown codec", False),
    ],
)
def test_failure_inside_the_driver_is_one_of_the_store(quoted, retryable):
    with pytest.raises(StoreError) as caught, store_errors(URL):
        raise asyncpg_errors.InternalClientError(quoted)
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
        ("lock_timeout = '50ms'", None, "waited too long for a lock"),
        ("statement_timeout = '50ms'", None, "cancelled the command"),
        (None, "pg_cancel_backend", "cancelled the command"),
        (None, "pg_terminate_backend", "closed the connection"),
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
    with pytest.raises(StoreError, match="in use by another transaction") as caught:
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
            with pytest.raises(StoreError, match="has no connection left") as caught:
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
            async with store._engine.connect() as connection:
                await connection.execute(text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"))
                await connection.commit()
            with pytest.raises(StoreError, match="is read-only, as a standby is") as caught:
                await store.leases.take("x", "me", 1_000)
            return caught.value.retryable, await store.leases.take("x", "me", 1_000)

    retryable, taken = on(postgres_url, scenario)
    assert retryable
    assert taken.epoch == 1


@pytest.mark.parametrize(
    ("error", "quoted"),
    [
        (ConnectionError('PostgreSQL server at "h:1" rejected SSL upgrade'), "offers no encryption"),
        (
            ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"),
            "has a certificate that this machine does not trust",
        ),
    ],
)
def test_server_whose_encryption_is_refused_is_not_called_unreachable(error, quoted):
    shown = store_error(error, URL)
    assert quoted in str(shown)
    assert not shown.retryable


def test_missing_certificate_of_an_authority_is_not_an_unreachable_server(
    postgres_url, tmp_path, monkeypatch
):
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)

    async def requested():
        async with await open_store(f"{postgres_url}?sslmode=verify-full", create=True):
            pass

    with pytest.raises(StoreError, match="cannot be verified: sslmode wants its authority in"):
        asyncio.run(requested())
