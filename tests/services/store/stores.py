"""Stores for tests: a run that is about to start, and where a conformance test may put a store."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from services.store import NewRun
from services.store.packed_text import bring_unpack
from services.store.seals import DESCRIPTION, END, hash_values

CONFIG_HASH = "c" * 64


def new_run(**changes: Any) -> NewRun:
    """A run row with small plausible content."""
    values: dict[str, Any] = {
        "name": "embedded",
        "created_at": 1_700_000_000_000_000_000,
        "mode": "backtest",
        "config_hash": CONFIG_HASH,
        "config": {"seed": 0},
        "data": {
            "source": "embedded",
            "path": None,
            "sha256": "d" * 64,
            "symbols": ["AAPL"],
            "timeframe": "1d",
            "bars": 5,
        },
        "environment": {"python": "3.11"},
    }
    return NewRun(**values | changes)


def opened(path: Path | str) -> sqlite3.Connection:
    """A connection to a SQLite store, in which `unpacked(payload)` is the text of a payload."""
    store = sqlite3.connect(path)
    bring_unpack(store)
    return store


def seal_again(path: Path) -> None:
    """Give the rows of runs that a test has changed the hashes that the program would have given them."""
    with closing(sqlite3.connect(path)) as store, store:
        rows = store.execute(f"SELECT run_id, {', '.join((*DESCRIPTION, *END))} FROM runs").fetchall()
        for run_id, *values in rows:
            described, ended = values[: len(DESCRIPTION)], values[len(DESCRIPTION) :]
            hashes = (hash_values(*described), None if ended[0] == "running" else hash_values(*ended))
            query = "UPDATE runs SET description_hash = ?, end_hash = ? WHERE run_id = ?"
            store.execute(query, (*hashes, run_id))
