"""Stores for tests: a run that is about to start, and where a conformance test may put a store."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from services.store import NewRun
from services.store.seals import DESCRIPTION, HEAD, hash_values

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


def seal_again(path: Path) -> None:
    """Give the rows of runs that a test has changed the seals that the program would have given them."""
    with closing(sqlite3.connect(path)) as store, store:
        query = f"SELECT {', '.join(DESCRIPTION)}, status, document, events, head_hash FROM runs"
        for *described, status, document, events, head_hash in store.execute(query).fetchall():
            run_id = described[DESCRIPTION.index("run_id")]
            rows = [(run_id, "run", 0, hash_values(*described))]
            if status != "running":
                rows.append((run_id, "end", 0, hash_values(status, document)))
                rows.append((run_id, "end", HEAD, hash_values(events, head_hash)))
            store.execute("DELETE FROM seals WHERE run_id = ? AND part IN ('run', 'end')", (run_id,))
            store.executemany("INSERT INTO seals VALUES (?, ?, ?, ?)", rows)
