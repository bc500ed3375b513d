"""The tools over MCP on PostgreSQL answer what they answer on SQLite, over a connection that only reads."""

import asyncio

import pytest
from mcp import Client
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from services.store import NewRun, open_store
from tests.worker.evidence_stores import client_of
from tests.worker.mcp_server.test_tools_over_mcp import answers, calls_of, texts
from worker.mcp_server.server import build_server
from worker.review.evidence import store_tools
from worker.review.rule_trial import trial_noting
from worker.review.run_views import open_views


async def copied(source, address):
    """A run with its rows and its end as another store has them."""
    async with await open_store(f"sqlite:///{source}", create=False, read_only=True) as store:
        (one,) = await store.runs.all()
        rows = [row async for row in store.journal.rows(one.run_id)]
    new = NewRun(one.name, 0, one.mode, one.config_hash, one.config, one.data, one.environment)
    async with await open_store(address, create=True) as store:
        run = (await store.runs.create(new)).run_id
        for at in range(0, len(rows), 2_000):
            await store.journal.append(run, rows[at : at + 2_000])
        await store.runs.close(run, one.status, one.document)


def test_tools_on_postgres_answer_as_on_sqlite_and_their_connection_cannot_write(ended_earlier, postgres_url):
    calls = calls_of(ended_earlier)

    async def scenario():
        await copied(ended_earlier, postgres_url)
        async with client_of(ended_earlier) as client:
            expected = texts(await answers(client, calls))
        async with await open_store(postgres_url, create=False, read_only=True) as store:
            server = build_server(
                store_tools(await open_views(store, None, None), trial_noting(postgres_url))
            )
            async with Client(server) as client:
                found = texts(await answers(client, calls))
            with pytest.raises(DBAPIError, match="read-only|ReadOnly"):
                async with store._engine.begin() as connection:
                    await connection.execute(text("delete from journal"))
        assert found == expected
        assert not any(is_error for is_error, _ in found.values())

    asyncio.run(scenario())
