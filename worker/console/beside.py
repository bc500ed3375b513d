"""The console inside of a process that trades or reflects: a thread with a loop and a store of its own.

What the process does never waits for it: pages are drawn in the thread, which ends with the process, and what
the process says of itself is asked of its own loop.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from services.store import open_store
from worker.console.app import Answer, console_app
from worker.console.guards import Address
from worker.operations.endpoint import Endpoint
from worker.operations.logs import logger
from worker.runs.http_serving import HttpServer, http_server, listening, url_of

if TYPE_CHECKING:
    from schemas.settings import Settings
    from services.journal.chain import JournalRow
    from worker.live.monitor import Monitor
    from worker.operations.monitoring import Prepared
    from worker.operations.status import VitalSource

HOST = "127.0.0.1"
OPTION = "--console-port"
PATIENCE_S = 5.0


@dataclass(eq=False)
class ConsoleThread:
    """A console that answers while `around` is open.

    Args:
        settings: of the process; its store is opened once more.
        prepared: what operates the process.
        port: of 127.0.0.1; 0 takes any.
        opened: told the address and the run, in the thread; None: the log is.

    Raises:
        ConfigError: the port cannot be had.
    """

    settings: "Settings"
    prepared: "Prepared"
    port: int
    opened: Callable[[str, str], None] | None = None
    _server: HttpServer | None = field(default=None, init=False)
    _ending: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        listening(HOST, self.port, OPTION).close()

    def over(self, inner: "Monitor") -> "Monitor":
        """A monitor around which this console is served, too."""
        return WithConsole(inner, self)

    @asynccontextmanager
    async def around(self, source: "VitalSource", run_id: str) -> AsyncIterator[None]:
        """Serve while the block runs; open streams are broken off at its end."""
        prepared, loop = self.prepared, asyncio.get_running_loop()
        endpoint = Endpoint(source, prepared.settings, prepared.token, prepared.redactor)
        thread = threading.Thread(
            target=self._run, args=(_answer_in(endpoint, loop), run_id), name="console", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._ending = True
            if self._server is not None:
                self._server.should_exit = True
            await asyncio.to_thread(thread.join, PATIENCE_S)

    def _run(self, process: Answer, run_id: str) -> None:
        try:
            asyncio.run(self._serve(process, run_id))
        except Exception as error:  # noqa: BLE001 - a console that fails must not end what it shows
            reason = f"{type(error).__name__}: {error}"
            logger("console", run_id=run_id).error("console_died", reason=reason)

    async def _serve(self, process: Answer, run_id: str) -> None:
        settings, address = self.settings, Address(HOST)
        async with (
            await open_store(settings.runtime.db, create=False) as store,
            console_app(store, settings, address, os.environ, process) as app,
        ):
            with listening(HOST, self.port, OPTION) as place:
                url, tell = url_of(HOST, place), self.opened or _log_opened
                self._server = http_server(
                    app, lambda: tell(url, run_id), lambda stop: None, app.state.desk.end
                )
                if not self._ending:
                    await self._server.serve(sockets=[place])


def _log_opened(url: str, run_id: str) -> None:
    logger("console", run_id=run_id).info("console_open", url=url)


def _answer_in(endpoint: Endpoint, loop: asyncio.AbstractEventLoop) -> Answer:
    """What the endpoint answers to another thread; it reads the process in the loop of the process."""

    async def answer(request: Request) -> Response:
        asked = asyncio.run_coroutine_threadsafe(endpoint.response_to(request), loop)
        return await asyncio.wrap_future(asked)

    return answer


@dataclass(frozen=True)
class WithConsole:
    """Monitor around which a console is served, too."""

    inner: "Monitor"
    console: ConsoleThread

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        """Something happened beside the bars."""
        self.inner.note(kind, detail)

    def note_stored(self, row: "JournalRow") -> None:
        """A journal row is stored."""
        self.inner.note_stored(row)

    @asynccontextmanager
    async def around(self, source: "VitalSource", run_id: str) -> AsyncIterator[None]:
        """What the inner one opens, and the console."""
        async with self.inner.around(source, run_id), self.console.around(source, run_id):
            yield
