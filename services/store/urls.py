"""Store addresses: `sqlite:///PATH` and `postgresql://...`; the drivers are ours, passwords never printed."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from schemas.errors import ConfigError, nearest

SCHEMES = ("sqlite", "postgresql", "postgres")
OPTIONS = ("host", "password", "port", "ssl", "sslmode", "user")
FORMS = "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE"


@dataclass(frozen=True)
class StoreUrl:
    """A checked address. `text` is safe to print; `path` is set for SQLite, `server` for PostgreSQL."""

    dialect: Literal["sqlite", "postgresql"]
    text: str
    path: Path | None = None
    server: URL | None = None

    def command(self, words: str) -> str:
        """A command of the program on this store, as it is typed."""
        return f"`thinktwice {words} --db {shlex.quote(self.text)}`"

    def engine_url(self, *, create: bool, read_only: bool = False, at_rest: bool = False) -> URL:
        """The address for the engine; a SQLite file is made only when `create` is true."""
        if self.server is not None:
            return self.server
        query = {"mode": "ro" if read_only or at_rest else "rwc" if create else "rw", "uri": "true"}
        if at_rest:
            query["immutable"] = "1"  # SQLite makes no log and no index to read it
        return URL.create("sqlite+pysqlite", database=f"file:{quote(str(self.path))}", query=query)

    @property
    def is_sealed_off(self) -> bool:
        """Whether it is a file in a folder in which this process can make no log."""
        return self.path is not None and not os.access(os.path.dirname(os.path.realpath(self.path)), os.W_OK)

    @property
    def is_at_rest(self) -> bool:
        """Whether it is such a file, and nobody has begun a log beside it."""
        return self.is_sealed_off and not os.path.exists(f"{os.path.realpath(str(self.path))}-wal")


def mask_password(text: str) -> str:
    """`text` with the password of a server address replaced by `***`, wherever it stands in it."""
    scheme, separator, rest = text.partition("://")
    if scheme == "sqlite":
        return text
    if not separator:
        scheme, rest = "", text
    user_info, at, host = rest.rpartition("@")
    if at:
        rest = f"{user_info.split(':', 1)[0]}:***@{host}" if ":" in user_info else f"{user_info}@{host}"
    address, question, query = rest.partition("?")
    if question:
        pairs = (pair.partition("=") for pair in query.split("&"))
        address += "?" + "&".join(f"{k}={'***' if 'pass' in k.lower() else v}" for k, _, v in pairs)
    return f"{scheme}{separator}{address}"


def parse_url(text: str) -> StoreUrl:
    """The checked form of a `--db` value.

    Raises:
        ConfigError: no known scheme, no path, or an address that cannot be read.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ConfigError(f"--db {mask_password(text)!r} has no scheme: {FORMS}")
    if scheme not in SCHEMES:
        raise ConfigError(f"--db scheme {scheme!r} is not known: {FORMS}.{nearest(scheme, SCHEMES)}")
    return _sqlite(text, rest) if scheme == "sqlite" else _postgresql(text, rest)


def _sqlite(text: str, rest: str) -> StoreUrl:
    path = rest.removeprefix("/")
    if not rest.startswith("/") or not path or path == ":memory:":
        raise ConfigError(
            f"--db {text!r} names no file: write sqlite:///PATH, for example sqlite:///thinktwice.db"
        )
    if "?" in path or "\0" in path:
        raise ConfigError(
            f"--db {text!r}: options after '?' are not supported for SQLite: write sqlite:///PATH"
        )
    return StoreUrl("sqlite", text, path=Path(path))


def _postgresql(text: str, rest: str) -> StoreUrl:
    shown = mask_password(text)
    try:
        url = make_url(f"postgresql+asyncpg://{rest}")
    except (ArgumentError, ValueError) as error:
        raise ConfigError(f"--db {shown!r} cannot be read as an address: {FORMS}") from error
    if not url.database:
        raise ConfigError(f"--db {shown!r} names no database: {FORMS}")
    _check_options(url, shown)
    if not _is_port(url.port) or not _is_port(url.query.get("port")):
        raise ConfigError(f"--db {shown!r}: a port is a number from 1 to 65535: {FORMS}")
    if "sslmode" in url.query:
        url = url.update_query_dict({"ssl": url.query["sslmode"]}).difference_update_query(["sslmode"])
    return StoreUrl("postgresql", shown, server=url)


def _check_options(url: URL, shown: str) -> None:
    for name, value in url.query.items():
        if name not in OPTIONS or not isinstance(value, str):
            wrong = "is given twice" if name in OPTIONS else "is not known"
            raise ConfigError(
                f"--db {shown!r}: option {name!r} {wrong}: the options are {', '.join(OPTIONS)}, each once."
                f"{nearest(name, OPTIONS)}"
            )


def _is_port(value: object) -> bool:
    return value is None or (str(value).isdecimal() and 0 < int(str(value)) < 65536)
