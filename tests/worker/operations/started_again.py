"""Starts `thinktwice paper` again and again while something is wrong, and once more when nothing is.

`python -m tests.worker.operations.started_again JOBS` with a JSON list of objects: `words` of a command,
`address` of its store, `times`, and `trouble`, which ends each of so many starts:

    kill     SIGKILL from outside once it has stored a row
    lease    another owner takes the run over
    store    a table is gone for a while
    feed     nothing is done here: its feed is wrong

The start after them is stopped once it has stored `enough` rows, or runs to its end; those before it get the
words `slowly` besides. Every process is a real one,
forked after the imports so that a start takes no seconds. Prints what each start came to.
"""

import importlib
import json
import os
import select
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from typing import Any

from tests.worker.live.killed_paper import StoredRows, child, load

LONGEST_S = 120.0


class Start:
    """One process and its log."""

    def __init__(self, words: list[str], out: str) -> None:
        self.pid, self._pipe = child(words, out)
        self._text = b""

    def lives(self, seconds: float) -> bool:
        """Read the log for so long; whether the process is still there."""
        if not select.select([self._pipe], [], [], seconds)[0]:
            return True
        read = os.read(self._pipe, 65_536)
        self._text += read
        return bool(read)

    def ended(self) -> dict[str, Any]:
        """Its exit code, the events of its log, and its last line, once it is over."""
        until = time.monotonic() + LONGEST_S
        while self.lives(1.0):
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._pipe)
        lines = self._text.decode("utf-8", "replace").splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{")]
        raised = [
            record
            for record in records
            if record["event"] == "safe_mode" and record["change"] in ("entered", "raised")
        ]
        modes = [reason["reason"] for reason in raised]
        return {"code": code, "safe_mode": modes, "said": lines[-1] if lines else ""}


def disturbed(start: Start, trouble: str, address: str) -> None:
    """What ends a process that trades."""
    if trouble == "kill":
        os.kill(start.pid, signal.SIGKILL)
        return
    wrong, right = {
        "lease": (
            "UPDATE leases SET epoch = epoch + 1, owner = 'other', until_ms = 0 WHERE name LIKE 'trading/%'",
            "",
        ),
        "store": ("ALTER TABLE paper_bars RENAME TO gone", "ALTER TABLE gone RENAME TO paper_bars"),
    }[trouble]
    path = address.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as store:
        store.execute(wrong)
        while start.lives(0.1):
            pass
        store.execute(right)


def started(job: dict[str, Any], out: str) -> list[dict[str, Any]]:
    """What the troubled starts came to, and the one after them."""
    rows, found = StoredRows(job["address"]), []
    for number in range(job["times"] + 1):
        last = number == job["times"]
        start, before = Start(job["words"] + ([] if last else job.get("slowly", [])), out), rows.count()
        if last and job.get("enough"):
            while start.lives(0.05) and rows.count() < before + job["enough"]:
                pass
            os.kill(start.pid, signal.SIGTERM)
        elif not last and job["trouble"] != "feed":
            while start.lives(0.01) and rows.count() <= before:
                pass
            disturbed(start, job["trouble"], job["address"])
        found.append(start.ended())
    rows.close()
    return found


def read_shown(job: dict[str, Any]) -> dict[str, Any]:
    """What a job came to: its starts, and what the last one printed."""
    with tempfile.NamedTemporaryFile() as out:
        starts = started(job, out.name)
        text = out.read().decode()
    return {"starts": starts, "document": json.loads(text) if text.startswith("{") else text}


if __name__ == "__main__":
    importlib.import_module("ccxt.async_support")  # loaded before the forks
    load()
    sys.stdout.write(json.dumps([read_shown(job) for job in json.loads(sys.argv[1])]))
