"""The rows of a SQLite file, table by table: copied into older tables, and told apart by their hashes."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from services.store import migrate
from services.store.revision import MARK

KEPT_ROWS, KEPT_BARS = 40, 40
BROKEN_OFF = "interrupted"


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


def cut_short(file: Path) -> None:
    """Keep the first rows of each journal and the first bars, as of runs that were broken off."""
    with closing(sqlite3.connect(file)) as store, store:
        store.execute("DELETE FROM journal WHERE seq >= ?", (KEPT_ROWS,))
        store.execute("DELETE FROM paper_bars WHERE number >= ?", (KEPT_BARS,))
        store.execute("DELETE FROM paper_orders WHERE seq >= ?", (KEPT_ROWS,))
        heads = "SELECT hash FROM journal WHERE journal.run_id = runs.run_id ORDER BY seq DESC LIMIT 1"
        change = f"UPDATE runs SET events = ?, status = ?, head_hash = ({heads})"
        store.execute(change, (KEPT_ROWS, BROKEN_OFF))


def copied(file: Path, older: Path, revision: str) -> None:
    """A store of an older revision with the rows that it could hold."""
    engine = create_engine(f"sqlite:///{older}")
    with engine.begin() as connection:
        migrate.migrate(connection, revision)
    engine.dispose()
    with closing(sqlite3.connect(file)) as store, closing(sqlite3.connect(older)) as target, target:
        for name in _tables(target):
            if name == MARK:
                continue
            columns = _columns(target, name)
            marks = ", ".join("?" * len(columns))
            target.executemany(f"INSERT INTO {name} VALUES ({marks})", _rows(store, name, columns))


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
