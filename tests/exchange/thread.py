"""The loopback exchange beside code that runs an event loop of its own, such as a command."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.exchange.server import ExchangeServer


@contextmanager
def path_beside(server: ExchangeServer) -> Iterator[ExchangeServer]:
    """Run a server in a thread; change it only while nobody talks to it."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with server:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    try:
        assert ready.wait(10.0), "the server did not start"
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10.0)
        loop.close()
