"""Clients that hold connections or break off: an honest one is answered, and the log stays short."""

import asyncio
import json
import signal
import socket
import struct
import subprocess
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from schemas.tool import ToolReply
from services.evidence.tools import TOOLS
from tests.commands.started import thinktwice
from worker.mcp_server.server import build_server
from worker.mcp_server.serving import HttpAddress, http_app
from worker.runs import http_serving

HELD = 130
HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
HEAD += b"accept: application/json, text/event-stream\r\n"
STREAM = b"GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def call(name):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}


def post(message, *fields):
    body = json.dumps(message).encode()
    return HEAD + b"".join(fields) + b"content-length: %d\r\n\r\n" % len(body) + body


KINDS = {
    "stream": STREAM,
    "nothing": b"",
    "head": HEAD,
    "body": post(LIST)[:-1],
    "chunks": HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n{",
    "upgrade": STREAM[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "call": post(call("hang")),
}


class Host:
    """A tool that never answers, and one that answers at length."""

    def __init__(self):
        self.cancelled = asyncio.Event()

    async def tools(self):
        return tuple(tool.definition for tool in TOOLS.values())

    async def call(self, name, arguments, progress=None):
        if name == "hang":
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        return ToolReply(text=json.dumps({"told": "a" * 16_000_000}))


@asynccontextmanager
async def served(monkeypatch, host, **bounds):
    """The port of a server in this process, with other deadlines."""
    stops: list[Any] = []
    lines: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(http_serving, "hear_stops", stops.append)
    for name, value in bounds.items():
        monkeypatch.setattr(http_serving, name, value)
    app = http_app(build_server(host), HttpAddress("127.0.0.1", 0, None))
    task = asyncio.create_task(http_serving.serve_http(app, "127.0.0.1", 0, lines.put_nowait))
    try:
        yield int((await lines.get()).rpartition(":")[2].partition("/")[0])
    finally:
        stops[0](signal.SIGTERM)
        await task


async def answer_to(port, *parts):
    """What is read to the end of a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = b""
    with suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
        found = await reader.read()
    writer.close()
    return found


async def status(port):
    """The status that an honest client gets."""
    return int((await answer_to(port, post(LIST, b"connection: close\r\n"))).split(maxsplit=2)[1])


@pytest.mark.parametrize("kind", KINDS)
def test_130_held_connections_of_any_kind_keep_no_honest_client_out(kind, monkeypatch):
    async def scenario():
        async with served(monkeypatch, Host(), DEADLINE_S=0.5) as port, asyncio.timeout(60):
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(HELD)]
            try:
                for _, writer in held:
                    writer.write(KINDS[kind])
                found = await status(port)
                while kind == "call" and found == 503:  # whoever is answered may take a moment
                    found = await status(port)
            finally:
                for _, writer in held:
                    writer.transport.abort()
            return found

    assert asyncio.run(scenario()) == 200


def test_get_and_delete_are_answered_with_405_and_what_is_allowed(monkeypatch):
    async def scenario():
        async with served(monkeypatch, Host()) as port, asyncio.timeout(60):
            found = []
            for method in (b"GET", b"HEAD", b"DELETE", b"PUT"):
                question = STREAM.replace(b"GET", method)[:-2] + b"connection: close\r\n\r\n"
                found.append((await answer_to(port, question)).lower())
            return found

    for answer in asyncio.run(scenario()):
        assert answer.startswith(b"http/1.1 405 ")
        assert b"\r\nallow: post\r\n" in answer


def test_answer_that_takes_too_long_is_ended_and_its_tool_cancelled(monkeypatch):
    host = Host()

    async def scenario():
        async with served(monkeypatch, host, DEADLINE_S=0.05, ANSWER_S=0.1) as port, asyncio.timeout(60):
            answer = await answer_to(port, KINDS["call"])
            await host.cancelled.wait()
            return answer

    assert b"result" not in asyncio.run(scenario())


MALFORMED = {
    "a chunk": (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"zz\r\nqq\r\n"),
    "of a stream": (STREAM[:-2] + b"transfer-encoding: chunked\r\n\r\nzz\r\nqq\r\n",),
    "after a refusal": (HEAD + b"content-length: 70000\r\n\r\n" + 70_000 * b"x", b"\0\0\r\n\r\n"),
    "after a request": (post(LIST), b"\0\0\r\n\r\n"),
    "no request": (b"\0\0\r\n\r\n",),
}


@pytest.mark.parametrize("parts", MALFORMED.values(), ids=MALFORMED)
def test_upload_that_is_malformed_makes_no_traceback(parts, monkeypatch, caplog):
    async def scenario():
        async with served(monkeypatch, Host(), DEADLINE_S=0.5) as port, asyncio.timeout(60):
            await answer_to(port, *parts)
            return await status(port)

    assert asyncio.run(scenario()) == 200
    assert [record.getMessage() for record in caplog.records if record.levelname != "WARNING"] == []
    assert "Invalid HTTP request received." in caplog.text


def test_answer_that_nobody_reads_gives_way(monkeypatch):
    async def scenario():
        two = {"most_connections": lambda: 2}
        async with served(monkeypatch, Host(), **two) as port, asyncio.timeout(60):
            unread, asking = await asyncio.open_connection("127.0.0.1", port, limit=1)
            asking.write(post(call("speak")))
            await unread.readexactly(1)  # the answer has begun, and is far longer than what is read of it
            found = await status(port)
            while found == 503:  # until so much was written that the rest waits
                found = await status(port)
            asking.transport.abort()
            return found

    assert asyncio.run(scenario()) == 200


MODERN = b"mcp-protocol-version: 2026-07-28\r\n"
BROKEN = {
    "body": (b"content-length: 9\r\n", b"{}"),
    "no body": (b"content-length: 9\r\n", b""),
    "chunks": (b"transfer-encoding: chunked\r\n", b"5\r\n{"),
    "modern": (MODERN + b"content-length: 9\r\n", b"{}"),
}
QUIET = {
    "head": HEAD,
    "whole": post(LIST),
    "whole, modern": post(LIST, MODERN),
    "called": post(call("runs")),
    "stream": STREAM,
}


@contextmanager
def leaving(port, sent, resets):
    """A connection that sends something, and that its end resets or closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as held:
        held.sendall(sent)
        yield held
        if resets:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("resets", [False, True], ids=["ended", "reset"])
def test_upload_that_is_broken_off_makes_one_log_line(stored, resets):
    words = ["mcp", "--transport", "http", "--port", "0", "--db", f"sqlite:///{stored}"]
    with subprocess.Popen([thinktwice(), *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            port = int(process.stderr.readline().rpartition(":")[2].partition("/")[0])
            for fields, body in BROKEN.values():
                with leaving(port, HEAD + fields + b"expect: 100-continue\r\n\r\n", resets) as held:
                    assert held.recv(100).startswith(b"HTTP/1.1 100 ")  # the upload is waited for
                    held.sendall(body)
            for sent in QUIET.values():
                with leaving(port, sent, resets):
                    pass
            assert asyncio.run(status(port)) == 200
        finally:
            process.terminate()
        logged = process.stderr.read().splitlines()
    broken = [line for line in logged if "mcp_upload_broken_off" in line]
    assert len(broken) == len(BROKEN)
    assert all("127.0.0.1" in line for line in broken)
    assert [line for line in logged if line not in broken] == ["thinktwice: stopped by SIGTERM"]
