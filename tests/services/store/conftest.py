"""An empty store of each dialect; PostgreSQL takes part when TEST_DATABASE_URL names a server."""

import asyncio
import os

import pytest

from services.store.engine import build_engine
from services.store.tables import metadata
from services.store.urls import parse_url

DIALECTS = ["sqlite", *(["postgresql"] if "TEST_DATABASE_URL" in os.environ else [])]


@pytest.fixture(params=DIALECTS)
def address(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server = os.environ["TEST_DATABASE_URL"]
    asyncio.run(emptied(server))
    return server


async def emptied(server: str) -> None:
    engine = build_engine(parse_url(server), create=True, timeout_s=5)
    async with engine.begin() as connection:
        await connection.run_sync(metadata.drop_all)
    await engine.dispose()
