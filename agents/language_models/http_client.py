"""The HTTP client that an SDK is given: no redirect is followed with the key, and no reply is unbounded.

What comes in is gathered beside the SDK, so that a reply which is none can be shown. A compressed reply is
not unpacked: a kilobyte of it may hold a gigabyte. Imported with the first call, as the SDKs are.
"""

import os
from collections.abc import AsyncIterator
from contextvars import ContextVar
from functools import cache
from typing import Any

from httpx2 import AsyncByteStream, create_ssl_context

LONGEST_REPLY = 1_000_000  # bytes; parsing more would take longer than a deadline may be passed by
LONGEST_COMPLAINT = 20_000  # bytes read of the body of an error
SUCCESS = 200
RECEIVED: ContextVar[bytearray] = ContextVar("RECEIVED")


class BoundedBody(AsyncByteStream):
    """The body of a response, which ends at its bound: a reply that is longer is cut, and so is none."""

    def __init__(self, response: Any) -> None:
        self._body = response.stream
        self._most = LONGEST_REPLY if response.status_code == SUCCESS else LONGEST_COMPLAINT

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = RECEIVED.get()
        async for chunk in self._body:
            taken = chunk[: self._most - len(received)]
            received += taken
            yield taken
            if len(received) == self._most:
                return

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        await self._body.aclose()


async def _bound(response: Any) -> None:
    response.headers.pop("content-encoding", None)
    response.stream = BoundedBody(response)


def http_client(sdk: Any) -> Any:
    """A client of the kind that the SDK takes."""
    hooks = {"response": [_bound]}
    return sdk.DefaultAsyncHttpxClient(verify=certificates(), follow_redirects=False, event_hooks=hooks)


def certificates() -> Any:
    """The trusted certificates of the environment, read once: that takes longer than a short request."""
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _read(file: str | None, folder: str | None) -> Any:
    return create_ssl_context()
