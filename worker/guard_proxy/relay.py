"""Messages between a client and a broker's MCP server, over standard streams.

A message that goes on is written anew from the parts that the protocol has: two parsers that read one line
differently would see two calls. A method that is not known to read is answered here.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from schemas.errors import ConfigError, FeedError, InvariantViolation
from services.evidence.tools import quote_value
from worker.guard_proxy.gate import OrderGate

MOST_LINE, MOST_PAGES = 4 * 2**20, 50
ANSWER_S, CLOSE_S = 10.0, 5.0
REQUEST_PARTS, ANSWER_PARTS = ("id", "method", "params"), ("id", "result", "error")
CALL_PARTS = ("name", "arguments", "_meta", "task", "inputResponses", "requestState")
READING = (
    *("initialize", "ping", "notifications", "resources", "prompts", "completion", "logging", "server"),
    *("subscriptions", "tasks"),
)
LOOK = "look at the broker before an order is sent again"
Message = dict[str, Any]
Stream = TypeVar("Stream", asyncio.StreamReader, asyncio.StreamWriter)
Write = Callable[[bytes], Awaitable[None]]


class Relay:
    """Passes messages on; calls of tools pass the gate."""

    def __init__(self, gate: OrderGate, to_client: Write, to_server: Write) -> None:
        self._gate, self._to_client, self._to_server = gate, to_client, to_server
        self._pending: dict[str | int, str | asyncio.Future[Any]] = {}  # method, or who waits for the answer
        self._listings = 0

    async def take_from_client(self, line: bytes | None) -> None:
        """Pass on one line of the client, or answer it; None: it was too long."""
        message = _parse(line)
        number, method = (message or {}).get("id"), (message or {}).get("method")
        if message is None:
            await self._refuse(None, "a line is no JSON-RPC message: send one object on each", -32700)
        elif "method" not in message:
            await self._to_server(_line(message))  # the answer to a request of the server
        elif not isinstance(number, str | int | None) or number in self._pending:
            await self._refuse(None, f"id {quote_value(number)} is in use, or no id: give another", -32600)
        elif method == "tools/call":
            await self._call(number, message)
        elif method == "tools/list" or str(method).partition("/")[0] in READING:
            await self._send(message)
        else:
            told = f"method {quote_value(method)} is held back: it is not known to change nothing"
            await self._refuse(number, told, -32601)

    async def take_from_server(self, line: bytes | None) -> None:
        """Pass on one line of the server; what answers nothing is dropped."""
        message = _parse(line)
        if line is None:
            await self.break_off(f"an answer has more than {MOST_LINE:,} bytes: ask for less; {LOOK}")
        elif message is not None and "method" in message:
            await self._to_client(_line(message))
        elif message is not None and isinstance(message.get("id"), str | int):
            waiting, result = self._pending.pop(message["id"], None), message.get("result")
            if waiting == "tools/list" or isinstance(waiting, asyncio.Future):
                self._gate.learn(result.get("tools") if isinstance(result, dict) else None)
            if isinstance(waiting, asyncio.Future):
                waiting.set_result(result)
            elif waiting is not None:
                await self._to_client(_line(message))

    async def break_off(self, told: str) -> None:
        """Answer every request that waits."""
        pending, self._pending = self._pending, {}
        for number, waiting in pending.items():
            if isinstance(waiting, asyncio.Future):
                waiting.set_result(None)
            else:
                await self._refuse(number, told, -32000)

    async def _call(self, number: str | int | None, message: Message) -> None:
        given = message.get("params")
        params = (
            {part: given[part] for part in CALL_PARTS if part in given} if isinstance(given, dict) else {}
        )
        tool, arguments = params.get("name"), params.get("arguments") or {}
        if number is None or not isinstance(tool, str) or not isinstance(arguments, dict):
            return await self._refuse(number, "a call has an id, the name of a tool and arguments", -32602)
        if not self._gate.knows(tool):
            await self._list_tools(params.get("_meta"))
        if (told := await self._gate.hold(tool, arguments)) is None:
            return await self._send({**message, "params": {**params, "arguments": arguments}})
        text = {"type": "text", "text": told}
        result = {"content": [text], "isError": True, "resultType": "complete"}  # the last: since 2026-07-28
        return await self._to_client(_line({"id": number, "result": result}))

    async def _list_tools(self, meta: Any) -> None:
        """Learn what the server says of its tools; of one that does not answer in time, nothing."""
        params = {} if meta is None else {"_meta": meta}
        for _ in range(MOST_PAGES):
            self._listings += 1
            number, answer = f"thinktwice-{self._listings}", asyncio.get_running_loop().create_future()
            self._pending[number] = answer
            await self._to_server(_line({"id": number, "method": "tools/list", "params": params}))
            await asyncio.wait({answer}, timeout=ANSWER_S)
            result = answer.result() if answer.done() else None
            self._pending.pop(number, None)
            if not isinstance(result, dict) or result.get("nextCursor") is None:
                return
            params = {**params, "cursor": result["nextCursor"]}

    async def _send(self, message: Message) -> None:
        if message.get("id") is not None:
            self._pending[message["id"]] = message["method"]
        await self._to_server(_line(message))

    async def _refuse(self, number: str | int | None, told: str, code: int) -> None:
        await self._to_client(_line({"id": number, "error": {"code": code, "message": told}}))


async def run_proxy(command: Sequence[str], gate: OrderGate) -> None:
    """Stand between the client at our standard streams and a server that is started here.

    Raises:
        ConfigError: the server cannot be started.
        FeedError: it ended before the client did.
    """
    try:
        server = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=MOST_LINE
        )
    except OSError as error:
        raise ConfigError(f"cannot start {command[0]!r}: {error.strerror}; check the command") from error
    client = asyncio.StreamReader(limit=MOST_LINE)
    protocol = asyncio.StreamReaderProtocol(client)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin.buffer)
    relay = Relay(gate, _write_out, partial(_write_to, server.stdin))
    asked = asyncio.create_task(_pump(client, relay.take_from_client))
    heard = asyncio.create_task(_pump(server.stdout, relay.take_from_server))
    try:
        await asyncio.wait({heard, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            told = f"the server {command[0]!r} ended with code {await server.wait()}: start it again; {LOOK}"
            await relay.break_off(told)
            raise FeedError(told)
        await asked
        _stream(server.stdin).close()
        await asyncio.wait({heard}, timeout=CLOSE_S)
    finally:
        asked.cancel()
        heard.cancel()
        if server.returncode is None:
            server.kill()
        await server.wait()


async def _pump(stream: asyncio.StreamReader | None, take: Callable[[bytes | None], Awaitable[None]]) -> None:
    """Hand over each line of a stream until its end; None for one that is too long."""
    while True:
        try:
            line = await _stream(stream).readline()
        except ValueError:
            await take(None)
            continue
        if not line:
            return
        await take(line)


async def _write_to(server: asyncio.StreamWriter | None, line: bytes) -> None:
    with suppress(ConnectionError):  # a server that ended is heard of by its other stream
        _stream(server).write(line)
        await _stream(server).drain()


async def _write_out(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _line(message: Message) -> bytes:
    parts = REQUEST_PARTS if "method" in message else ANSWER_PARTS
    known = {part: message[part] for part in parts if part in message}
    return json.dumps({"jsonrpc": "2.0", **known}).encode() + b"\n"


def _parse(line: bytes | None) -> Message | None:
    try:
        message = json.loads(line or b"", parse_constant=_refuse_number)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _stream(stream: Stream | None) -> Stream:
    if stream is None:
        raise InvariantViolation("a stream to the server was asked for and is not there")
    return stream
