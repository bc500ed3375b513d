"""Asks an endpoint over a socket of its own, byte by byte as given; and status to serve."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request

from schemas.settings.live import OperationsSettings
from worker.operations.endpoint import Endpoint
from worker.operations.status import SECOND, ProcessStatus
from worker.secrets.redaction import Redactor

NOW = 1_700_000_000 * SECOND


def status(**given):
    standing: dict[str, Any] = {
        "run_id": "r0001",
        "mode": "paper",
        "role": "trading",
        "owner": "host:1:ab",
        "started": NOW - 3_600 * SECOND,
        "bar_seconds": 60,
        "last_bars": {"BTC/USDT": NOW - 60 * SECOND},
        "last_bar_at": NOW - 5 * SECOND,
        "feed_ok": True,
    }
    return ProcessStatus(**(standing | given))


@dataclass
class Shown:
    """A source that says what it was told to."""

    now: ProcessStatus = field(default_factory=status)

    def status(self):
        return self.now


@dataclass
class Reply:
    status: int
    fields: Headers
    body: str


def endpoint(source=None, token=None, *, known=(), deadline_s=5.0, check=None, **settings):
    made = OperationsSettings(**({"port": 0} | settings))
    given = {"now": lambda: NOW, "deadline_s": deadline_s, "check": check}
    return Endpoint(source or Shown(), made, token, Redactor(known), **given)


async def sent(port, data, host="127.0.0.1", *, ends=False):
    """Everything that comes back for some bytes, until the other side closes; `ends`: no more follow."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(data)
        if ends:
            writer.write_eof()
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


def parsed(raw):
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    fields = Headers(dict(line.split(": ", 1) for line in lines))
    return Reply(int(first.split()[1]), fields, body.decode())


def get(path, host="127.0.0.1", method="GET", **fields):
    extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode()


def request(path, fields):
    """A request as uvicorn hands it on."""
    scope = {"http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode()}
    return Request({"type": "http", "query_string": b"", "headers": fields, **scope})


async def read_requests(one, path, **given):
    return parsed(await sent(one.port, get(path, **given)))
