"""The wire server beside a run: on a thread and a loop of its own, because a run makes its own loop."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from schemas.settings.providers import PROVIDERS
from tests.agents.language_models.wire_server import Handler, WireServer, answer, message, serve

KEY_VARIABLE, URL_VARIABLE = PROVIDERS["anthropic"].key, "ANTHROPIC_BASE_URL"
NOBODY = "http://127.0.0.1:9"
AGREES = {"verdict": "pass", "comment": "Fine.", "findings": [], "deferred_needs": []}
GOOD = answer(message(json.dumps(AGREES)))


@contextmanager
def wire(
    monkeypatch: pytest.MonkeyPatch,
    handler: Handler,
    streamed: Handler | None = None,
    provider: str = "anthropic",
    key: str = "test-key-of-the-wire",
) -> Iterator[WireServer]:
    """Serve while the block lasts; after it there is neither a key nor anybody at the address."""
    key_variable, url_variable = PROVIDERS[provider].key, f"{provider.upper()}_BASE_URL"
    loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    started: list[WireServer] = []

    async def main() -> None:
        async with serve(handler, streamed) as server:
            started.append(server)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    assert ready.wait(10)
    monkeypatch.setenv(key_variable, key)
    monkeypatch.setenv(url_variable, started[0].url)
    try:
        yield started[0]
    finally:
        monkeypatch.delenv(key_variable)
        monkeypatch.setenv(url_variable, NOBODY)
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
