"""A server on loopback that speaks the Messages API, whole and streamed, over plain asyncio streams."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]

READ = 5_000  # tokens that a server counts of a question; none in tests is longer than 100,000 bytes


def message(text: str = "hello", **changes: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": READ, "output_tokens": 7},
    } | changes


def answer(body: bytes | dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    lines = {"content-type": "application/json", "content-length": str(len(content))} | (headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

    async def handle(writer: asyncio.StreamWriter) -> None:
        # One request for each connection, and it says so: else a client may take it up again too late.
        writer.write(f"HTTP/1.1 {status} X\r\nconnection: close\r\n{head}\r\n".encode() + content)
        await writer.drain()

    return handle


def events(text: str = "hello", pieces: int = 3, **changes: Any) -> list[dict[str, Any]]:
    """The events of one streamed message; `changes` are those of `message`."""
    whole = message(text, **changes)
    start = whole | {"content": [], "stop_reason": None, "usage": {"input_tokens": READ, "output_tokens": 1}}
    size = max(1, -(-len(text) // pieces))
    deltas = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text[i : i + size]},
        }
        for i in range(0, len(text), size)
    ]
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": whole["usage"]["output_tokens"]},
        },
        {"type": "message_stop"},
    ]


def frame(event: dict[str, Any] | bytes) -> bytes:
    """One event as it goes over the wire."""
    if isinstance(event, bytes):
        return event
    return f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode()


STREAM_HEAD = (
    b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n"
)


def chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


def stream(sent: list[dict[str, Any]] | list[bytes] | list[Any], then: Handler | None = None) -> Handler:
    """Send events one by one; then end the reply, or go on as `then` does."""

    async def handle(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for event in sent:
            writer.write(chunk(frame(event)))
            await writer.drain()
        if then is not None:
            await then(writer)
        else:
            writer.write(chunk(b""))
            await writer.drain()

    return handle


def in_turn(*handlers: Handler) -> Handler:
    """The first request meets the first handler, and so on; the last one stays."""
    left = list(handlers)

    async def handle(writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(writer)

    return handle


def by_turns(*handlers: Handler) -> Handler:
    """Each request meets the next handler, and the first comes again after the last."""
    turns = cycle(handlers)

    async def handle(writer: asyncio.StreamWriter) -> None:
        await next(turns)(writer)

    return handle


async def ping_for_ever(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(chunk(frame({"type": "ping"})))
        await writer.drain()
        await asyncio.sleep(0.005)


async def hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.005)


async def reset(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@dataclass
class WireServer:
    """What a started server saw: one (headers, body) for each question, what was read, and its address."""

    url: str
    requests: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)
    read: list[str] = field(default_factory=list)


@asynccontextmanager
async def serve(
    handler: Handler, streamed: Handler | None = None, shown: Handler | None = None
) -> AsyncIterator[WireServer]:
    """Serve until the block ends; requests for a stream meet `streamed`, what is only read `shown`."""
    seen = WireServer("")
    busy: set[asyncio.Task[Any] | None] = set()  # nothing else holds a handler that hangs

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        busy.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            if head[0].startswith("GET "):
                seen.read.append(head[0].split()[1])
                await (shown or answer({}, 404))(writer)
                return
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers["content-length"]))
            request = json.loads(body)
            seen.requests.append((headers, request))
            await (streamed if streamed is not None and request.get("stream") else handler)(writer)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()
            busy.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    seen.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    try:
        yield seen
    finally:
        server.close()
        left = [task for task in busy if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
