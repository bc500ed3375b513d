"""The certificates that are trusted, read once a process: reading them takes longer than a short request."""

import os
from functools import cache
from typing import Any


def certificates() -> Any:
    """As `httpx2` reads them by default, of `SSL_CERT_FILE` or `SSL_CERT_DIR` where they are set."""
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _read(file: str | None, folder: str | None) -> Any:
    from httpx2 import create_ssl_context

    return create_ssl_context()
