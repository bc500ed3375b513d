"""A console of this process, and what a browser or a program sends it."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from httpx import ASGITransport, AsyncClient

from schemas.settings import Settings
from services.store import open_store
from services.store.console_users import ConsoleUser
from tests.commands.started import thinktwice
from worker.console.app import console_app
from worker.console.guards import Address
from worker.console.people import hash_password
from worker.settings import load_settings

DB = "sqlite:///thinktwice.db"
URL = "http://127.0.0.1:8766"
PASSWORD = "correct horse battery"
Steps = Callable[[AsyncClient], Awaitable[Any]]


def settings_of(**runtime: Any) -> Settings:
    flags = {f"runtime.{name.replace('__', '.')}": (name, value) for name, value in runtime.items()}
    return load_settings(None, flags={"runtime.db": ("--db", DB), **flags}).settings


@asynccontextmanager
async def serving(
    address: Address | None = None, settings: Settings | None = None
) -> AsyncIterator[AsyncClient]:
    """A client of a console over the store in the working folder."""
    async with (
        await open_store(DB, create=True) as store,
        console_app(store, settings or settings_of(), address or Address("127.0.0.1"), {}) as app,
        AsyncClient(transport=ASGITransport(app), base_url=URL) as client,
    ):
        yield client


def ask(steps: Steps, address: Address | None = None, settings: Settings | None = None) -> Any:
    async def work() -> Any:
        async with serving(address, settings) as client:
            return await steps(client)

    return asyncio.run(work())


def get(path: str, **headers: str) -> Any:
    return ask(lambda client: client.get(path, headers=headers))


def add_user(name: str, role: Any, password: str = PASSWORD) -> None:
    async def work() -> None:
        async with await open_store(DB, create=True) as store:
            await store.console.put(ConsoleUser(name, role, hash_password(password)))

    asyncio.run(work())


async def token_of(client: AsyncClient, page: str = "/plans") -> dict[str, str]:
    """What a browser that has opened a page sends with its writes."""
    text = (await client.get(page, headers={"accept": "text/html"})).text
    found = re.search(r'data-token="([^"]+)"', text)
    assert found is not None
    return {"x-csrf-token": found[1], "origin": URL}


async def log_in(client: AsyncClient, name: str, password: str = PASSWORD) -> Any:
    return await client.post("/login", data={"name": name, "password": password})


@contextmanager
def started(*words: str, **environment: str) -> Iterator[str]:
    """The address of `thinktwice console` as a process over the store in the working folder."""
    process = subprocess.Popen(
        [thinktwice(), "console", "--port", "0", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line + process.stderr.read()
        yield found[0]
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stderr.close()
