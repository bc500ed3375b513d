"""What a REST request can meet instead of an answer."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

from aiohttp import web

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def rate_limited(retry_after: str | None = "2") -> Fault:
    """429, with or without a time to wait."""

    async def meet(request: web.Request) -> web.StreamResponse:
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return web.json_response({"code": -1003, "msg": "Too many requests."}, status=429, headers=headers)

    return meet


def server_error(status: int = 503) -> Fault:
    """A status of the 500s."""

    async def meet(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="upstream is away")

    return meet


def html(status: int = 200) -> Fault:
    """A page where JSON was expected."""

    async def meet(request: web.Request) -> web.StreamResponse:
        page = "<!DOCTYPE html><html><head><title>Maintenance</title></head><body>Soon back</body></html>"
        return web.Response(status=status, text=page, content_type="text/html")

    return meet


def answer(value: object) -> Fault:
    """JSON of a test's choice."""

    async def meet(request: web.Request) -> web.StreamResponse:
        return web.Response(text=json.dumps(value), content_type="application/json")

    return meet


def half() -> Fault:
    """The beginning of an answer, then nothing: the connection is cut."""

    async def meet(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'[[1700000040000,"100.0"')
        assert request.transport is not None
        request.transport.abort()
        return response

    return meet


def truncated() -> Fault:
    """JSON that ends too early, sent as if it were whole."""

    async def meet(request: web.Request) -> web.StreamResponse:
        return web.Response(text='[[1700000040000,"100.0"', content_type="application/json")

    return meet


def reset() -> Fault:
    """The connection is cut before a word."""

    async def meet(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return meet


async def hang(request: web.Request) -> web.StreamResponse:
    """No answer, for as long as the client waits."""
    await asyncio.Event().wait()
    return web.Response()


def drip() -> Fault:
    """Headers, then one byte at a time without end."""

    async def meet(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.01)
        return response

    return meet
