"""Rows of a run as they are written, as server-sent events: each has its sequence number as its id.

A browser that was away says the last number it saw, so that none is lost. One that does not read is dropped;
it begins again where it stopped. The process that trades is never asked and never waits: the store is read.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import StreamingResponse

from worker.console.reflections import document_of_row

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from worker.console.backtests import StartedBacktest

POLL_S, PING_S, SEND_S = 0.5, 10, 5.0


async def event_stream(
    store: "Store", ending: asyncio.Event, record: "RunRecord", request: Request, after: int
) -> StreamingResponse:
    """Rows behind a sequence number, or behind the last one that the browser saw."""
    last = request.headers.get("last-event-id", "")
    begin = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else after
    return _stream(_events(store, ending, record, begin))


def progress_stream(ending: asyncio.Event, started: "StartedBacktest") -> StreamingResponse:
    """A backtest whenever it has come further, and at its end."""
    return _stream(_progress(ending, started))


def _stream(events: AsyncIterator[ServerSentEvent]) -> StreamingResponse:
    response: StreamingResponse = EventSourceResponse(  # type: ignore[assignment]
        events, ping=PING_S, send_timeout=SEND_S
    )
    return response


async def _progress(ending: asyncio.Event, started: "StartedBacktest") -> AsyncIterator[ServerSentEvent]:
    last = None
    while not ending.is_set():
        document = started.document()
        if document != last:
            ended = started.state != "running" and started.exit_code is not None
            yield ServerSentEvent(event="end" if ended else "progress", data=json.dumps(document))
            if ended:
                return
            last = document
        await _rest(ending)


async def _rest(ending: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(ending.wait(), POLL_S)


async def _events(
    store: "Store", ending: asyncio.Event, record: "RunRecord", after: int
) -> AsyncIterator[ServerSentEvent]:
    yield ServerSentEvent(event="begin", data=json.dumps({"after": after}), retry=1_000)
    while not ending.is_set():
        async for row in store.journal.rows(record.run_id, after=after):
            after = row.seq
            yield ServerSentEvent(
                id=str(after), event="row", data=json.dumps(document_of_row(row), separators=(",", ":"))
            )
        now = await store.runs.find(record.run_id)
        if now.status != "running" and now.events == after + 1:
            yield ServerSentEvent(event="end", data=json.dumps({"status": now.status}))
            return
        await _rest(ending)
