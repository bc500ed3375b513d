"""Text that SQLite keeps compressed. PostgreSQL compresses long values by itself.

Hashes are of the text: what is stored decides nothing. A short text stays as it is, and a text that somebody
else has put in place of a compressed one is read as well.
"""

import zlib
from functools import partial
from typing import Any

from sqlalchemy import Dialect, Text, TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

LEAST = 512  # characters; below, the time that it takes gains hardly anything
LEVEL = 1  # the next ones save 5 % and take twice the time


class PackedText(TypeDecorator[str]):
    """The type of a column of long texts."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """What is stored of a text."""
        return pack(value) if dialect.name == "sqlite" and value is not None else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """The text of what is stored."""
        return unpack(value)


def pack(text: str) -> str | bytes:
    """What SQLite keeps of a text."""
    return text if len(text) < LEAST else zlib.compress(text.encode(), LEVEL)


def unpack(stored: Any, errors: str = "surrogateescape") -> Any:
    """The text of what is stored; bytes that are none come as lone surrogates, which fit no hash."""
    if not isinstance(stored, bytes):
        return stored
    try:
        return zlib.decompress(stored).decode()
    except (zlib.error, UnicodeDecodeError):
        return stored.decode("utf-8", errors)


def bring_unpack(connection: Any) -> None:
    """Give a connection to SQLite the function that `Unpacked` calls."""
    connection.create_function(Unpacked.name, 1, partial(unpack, errors="replace"), deterministic=True)


class Unpacked(FunctionElement[str]):
    """A packed column as a text, inside a query."""

    type = Text()
    name = "unpacked"
    inherit_cache = True


@compiles(Unpacked)
def _compile_column(element: Unpacked, compiler: Any, **named: Any) -> str:
    return str(compiler.process(element.clauses, **named))


@compiles(Unpacked, "sqlite")
def _compile_call(element: Unpacked, compiler: Any, **named: Any) -> str:
    column = compiler.process(element.clauses, **named)
    return f"CASE typeof({column}) WHEN 'blob' THEN {element.name}({column}) ELSE {column} END"
