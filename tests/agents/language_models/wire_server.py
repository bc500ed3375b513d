"""A server on loopback that speaks just enough of the Messages API over plain asyncio streams."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


def message(text: str = "hello", **changes: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    } | changes


def answer(body: bytes | dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    lines = {"content-type": "application/json", "content-length": str(len(content))} | (headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

    async def handle(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + content)
        await writer.drain()

    return handle


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
    """What a started server saw: one (headers, body) for each request, and its address."""

    url: str
    requests: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)


@asynccontextmanager
async def serve(handler: Handler) -> AsyncIterator[WireServer]:
    seen = WireServer("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers["content-length"]))
            seen.requests.append((headers, json.loads(body)))
            await handler(writer)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    seen.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    try:
        yield seen
    finally:
        server.close()
