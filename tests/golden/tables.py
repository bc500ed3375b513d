"""The rows of a SQLite file, table by table, told apart by their hashes."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any


def digests(file: Path, wanted: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, dict[str, Any]]:
    """Columns, number and hash of the rows of each table; of the wanted tables and columns only, if any."""
    with closing(sqlite3.connect(file)) as store:
        found = {}
        for name in sorted(wanted or _tables(store)):
            columns = list(wanted[name]["columns"]) if wanted else _columns(store, name)
            rows = sorted(json.dumps(row, default=bytes.hex) for row in _rows(store, name, columns))
            digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
            found[name] = {"columns": columns, "rows": len(rows), "sha256": digest}
    return found


def packed(file: Path) -> None:
    """One file without a log beside it and without free pages."""
    with closing(sqlite3.connect(file, isolation_level=None)) as store:
        store.execute("PRAGMA journal_mode=DELETE")
        store.execute("VACUUM")


def _tables(store: sqlite3.Connection) -> list[str]:
    names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
    return [name for (name,) in store.execute(names)]


def _columns(store: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in store.execute(f"PRAGMA table_info({table})")]


def _rows(store: sqlite3.Connection, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return store.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
