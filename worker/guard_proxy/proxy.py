"""Messages between a client and a broker's MCP server, over standard streams.

A message that goes on is written anew from the parts that the protocol has: two parsers that read one line
differently would see two calls. A method that is not known to read is answered here.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from schemas.errors import ConfigError, FeedError
from services.evidence.tools import quote_value
from worker.guard_proxy.gate import OrderGate

MOST_LINE = 4 * 2**20
CLOSE_S = 5.0
REQUEST_PARTS, ANSWER_PARTS = ("id", "method", "params"), ("id", "result", "error")
CALL_PARTS = ("name", "arguments", "_meta", "task", "inputResponses", "requestState")
READING = ("initialize", "ping", "notifications", "resources", "prompts", "completion", "logging", "server")
LOOK = "look at the broker before an order is sent again"
Write = Callable[[bytes], Awaitable[None]]


class ServerProxy:
    """Passes messages on; calls of tools pass the gate."""

    def __init__(self, gate: OrderGate, to_client: Write, to_server: Write) -> None:
        self._gate, self._to_client, self._to_server = gate, to_client, to_server
        self._pending: dict[str | int, str] = {}  # methods of requests that wait for their answers

    async def take_from_client(self, line: bytes | None) -> None:
        """Pass on one line of the client, or answer it; None: it was too long."""
        message = _parse(line)
        number, method = message.get("id"), message.get("method")
        if not message:
            await self._refuse(None, -32700, "a line is no JSON-RPC message: send one object on each")
        elif "method" not in message:
            await self._to_server(_line(message))  # the answer to a request of the server
        elif not isinstance(number, str | int | None) or number in self._pending:
            await self._refuse(None, -32600, f"id {quote_value(number)} is in use, or no id: give another")
        elif method == "tools/call":
            await self._call(number, message)
        elif method == "tools/list" or str(method).partition("/")[0] in (*READING, "subscriptions", "tasks"):
            await self._send(message)
        else:
            await self._refuse(number, -32601, f"method {quote_value(method)} is held back: it may not read")

    async def take_from_server(self, line: bytes | None) -> None:
        """Pass on one line of the server; what answers nothing is dropped. None: it was too long."""
        message = _parse(line)
        number, result = message.get("id"), message.get("result")
        if line is None:
            await self.break_off(f"an answer has more than {MOST_LINE:,} bytes: ask for less; {LOOK}")
        elif "method" in message:
            await self._to_client(_line(message))
        elif isinstance(number, str | int) and number in self._pending:
            if self._pending.pop(number) == "tools/list" and isinstance(result, dict):
                self._gate.learn(result.get("tools"))
            await self._to_client(_line(message))

    async def break_off(self, reason: str) -> None:
        """Answer every request that waits."""
        for number in list(self._pending):
            del self._pending[number]
            await self._refuse(number, -32000, reason)

    async def _call(self, number: str | int | None, message: dict[str, Any]) -> None:
        given = message.get("params")
        params = _parts(given, CALL_PARTS) if isinstance(given, dict) else {}
        tool, arguments = params.get("name"), params.get("arguments") or {}
        if number is None or not isinstance(tool, str) or not isinstance(arguments, dict):
            return await self._refuse(number, -32602, "a call has an id, the name of a tool and arguments")
        if (reason := await self._gate.hold(tool, arguments)) is None:
            return await self._send({**message, "params": {**params, "arguments": arguments}})
        text = {"type": "text", "text": reason}
        result = {"content": [text], "isError": True, "resultType": "complete"}  # the last: since 2026-07-28
        return await self._to_client(_line({"id": number, "result": result}))

    async def _send(self, message: dict[str, Any]) -> None:
        if message.get("id") is not None:
            self._pending[message["id"]] = message["method"]
        await self._to_server(_line(message))

    async def _refuse(self, number: str | int | None, code: int, reason: str) -> None:
        await self._to_client(_line({"id": number, "error": {"code": code, "message": reason}}))


async def run_proxy(command: Sequence[str], gate: OrderGate) -> None:
    """Stand between the client at our standard streams and a server that is started here.

    Raises:
        ConfigError: the server cannot be started.
        FeedError: it ended before the client did.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        server: Any = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=MOST_LINE)
    except OSError as error:
        raise ConfigError(f"cannot start {command[0]!r}: {error.strerror}; check the command") from error

    async def write_in(line: bytes) -> None:
        with suppress(ConnectionError):  # that it ended is heard from its other stream
            server.stdin.write(line)
            await server.stdin.drain()

    client = asyncio.StreamReader(limit=MOST_LINE)
    protocol = asyncio.StreamReaderProtocol(client)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin.buffer)
    proxy = ServerProxy(gate, _write_out, write_in)
    request = asyncio.create_task(_pump(client, proxy.take_from_client))
    heard = asyncio.create_task(_pump(server.stdout, proxy.take_from_server))
    try:
        await asyncio.wait({heard, request}, return_when=asyncio.FIRST_COMPLETED)
        if not request.done():
            reason = (
                f"the server {command[0]!r} ended with code {await server.wait()}: start it again; {LOOK}"
            )
            await proxy.break_off(reason)
            raise FeedError(reason)
        await request
        server.stdin.close()
        await asyncio.wait({heard}, timeout=CLOSE_S)
    finally:
        for task in (request, heard):
            task.cancel()
        if server.returncode is None:
            server.kill()
        await server.wait()


async def _pump(stream: asyncio.StreamReader, take: Callable[[bytes | None], Awaitable[None]]) -> None:
    """Hand over each line of a stream until its end; None for one that is too long."""
    while True:
        try:
            line: bytes | None = await stream.readline()
        except ValueError:
            line = None
        if line == b"":
            return
        await take(line)


async def _write_out(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _line(message: dict[str, Any]) -> bytes:
    known = _parts(message, REQUEST_PARTS if "method" in message else ANSWER_PARTS)
    return json.dumps({"jsonrpc": "2.0", **known}).encode() + b"\n"


def _parts(message: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: message[name] for name in names if name in message}


def _parse(line: bytes | None) -> dict[str, Any]:
    """The object of a line; an empty one where there is none."""
    try:
        message = json.loads(line or b"", parse_constant=str)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
