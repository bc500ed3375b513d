"""A store with a run of a million rows: the embedded run, every row repeated under ids of its own.

What was made of a policy, a trade or a report lies beside its repetitions, at the same moment, so that every
kind grows alike and time runs on. Versions of playbooks and the first and last row stand once.
"""

import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from services.journal.chain import link

ROWS = 1_000_000
ONCE = frozenset({"genesis", "playbook_version", "measure_renewed", "run_finished"})
ID = re.compile(r'"([0-9a-f]{16}|[0-9a-f]{64})"')
VERSION = re.compile(r'"(?:version_hash|parent_hash)":"([0-9a-f]{64})"')
Row = tuple[int, int, str, str | None, str]


def grow(path: Path, rows: int = ROWS) -> int:
    """Repeat the rows of the only run of a store, and return how many rows it has then."""
    with sqlite3.connect(path) as store:
        (run,) = store.execute("select run_id from runs").fetchone()
        query = "select ts_event, known_at, kind, symbol, payload from journal order by seq"
        recorded: list[Row] = store.execute(query).fetchall()
        store.execute("delete from journal")
        head, seq = "0" * 64, 0
        for ts_event, known_at, kind, symbol, payload in _repeated(recorded, rows // len(recorded) + 1):
            fields = {"ts_event": ts_event, "known_at": known_at, "kind": kind, "symbol": symbol}
            own = link(head, seq=seq, payload=payload, **fields)  # type: ignore[arg-type]
            values = (run, seq, ts_event, known_at, kind, symbol, payload, None, head, own)
            store.execute("insert into journal values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            head, seq = own, seq + 1
        store.execute("update runs set events = ?, head_hash = ?", (seq, head))
    return seq


def _repeated(recorded: list[Row], times: int) -> Iterator[Row]:
    kept = {found for row in recorded if row[2] == "playbook_version" for found in VERSION.findall(row[4])}
    for *fields, payload in recorded:
        for number in range(1 if fields[2] in ONCE else times):
            told = ID.sub(partial(_own, number=number, kept=kept), payload) if number else payload
            yield (*fields, told)  # type: ignore[misc]


def _own(found: re.Match[str], number: int, kept: set[str]) -> str:
    """An id of a repetition; those of versions are what they are."""
    return found[0] if found[1] in kept else f'"{number:03x}{found[1][3:]}"'
