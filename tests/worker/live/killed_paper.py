"""Kills `thinktwice paper` by SIGKILL at random bars and starts it again until its feed ends.

`python -m tests.worker.live.killed_paper JOBS` with a JSON list of objects: `words` of a command,
`address` of its store, `kills`, `seed`, and `gap_rows`, the mean number of bars that a process stores before
it dies. Every process is a real one, forked after the imports so that a start takes no seconds; the kill
comes from outside. Prints what each start came to.
"""

import asyncio
import json
import os
import random
import select
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # ships no types

DURING_RECOVERY = 0.2  # share of kills that do not wait until the process trades
RECOVERY_S = 0.7  # such a process dies within it
LONGEST_S = 600.0
LOOK_S = 0.01
COUNT = "SELECT count(*) FROM paper_bars"


class StoredRows:
    """How many rows of bars a store holds, seen from outside."""

    def __init__(self, address: str) -> None:
        self._path = address.removeprefix("sqlite:///") if address.startswith("sqlite") else None
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None

    def count(self) -> int:
        """The number at present; 0 while there is no table."""
        if self._path is None:
            return self._loop.run_until_complete(self._on_server())
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
                return int(connection.execute(COUNT).fetchone()[0])
        except sqlite3.OperationalError:
            return 0

    def at_least(self, target: int) -> Callable[[], bool]:
        """Asks whether so many are stored by now."""
        return lambda: self.count() >= target

    async def _on_server(self) -> int:
        if self._connection is None:
            self._connection = await asyncpg.connect(self._address)
        try:
            return int(await self._connection.fetchval(COUNT))
        except asyncpg.UndefinedTableError:
            return 0

    def close(self) -> None:
        """Give back the connection."""
        if self._connection is not None:
            self._loop.run_until_complete(self._connection.close())
        self._loop.close()


def child(words: list[str], out: str) -> tuple[int, int]:
    """Process id of a started command and the pipe with its log."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(reading)
    os.dup2(writing, 2)
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    from worker.cli import app

    code = 1
    try:
        app(words, standalone_mode=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Start:
    """One process from its start to its end.

    Attributes:
        started_s: from the start of the process until its run was recovered; None if it did not come to that,
            or had nothing.
        recovered_s: of it, from the lease on; as the process says itself.
        rows, played: rows of bars that were recovered, and of them those that were played again.
        said: the end of its log.
    """

    def __init__(self, words: list[str], out: str) -> None:
        self.began = time.perf_counter()
        self.pid, self._pipe = child(words, out)
        self._text = b""
        self.started_s: float | None = None
        self.recovered_s: float | None = None
        self.rows = 0
        self.played = 0
        self._last = b""

    def listen(self, seconds: float, heard: Callable[[], bool]) -> bool:
        """Read the log for so long, or until something is heard; whether the process is still there."""
        until = time.perf_counter() + seconds
        while not heard() and (left := until - time.perf_counter()) > 0:
            if select.select([self._pipe], [], [], min(left, LOOK_S))[0]:
                read = os.read(self._pipe, 65_536)
                if not read:
                    return False
                self._text += read
                self._look()
        return True

    def _look(self) -> None:
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            self._last = line
            if b'"recovered"' in line:
                self.started_s = time.perf_counter() - self.began
                payload = json.loads(line)
                self.recovered_s = payload["took_s"]
                self.rows, self.played = payload["rows"], payload["rows_played"]

    def end(self, *, kill: bool) -> int:
        """Exit code; minus the number of the signal that ended it."""
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._pipe)
        return code

    @property
    def quoted(self) -> str:
        """The last line that it logged."""
        return (self._text or self._last).decode("utf-8", "replace")


def never() -> bool:
    """Nothing is waited for but time."""
    return False


def killed(job: dict[str, Any], out: str) -> dict[str, Any]:
    """Kill and start again; the last process runs to the end of its feed."""
    rng, starts, rows = random.Random(job["seed"]), [], StoredRows(job["address"])
    for number in range(job["kills"] + 1):
        one = Start(job["words"], out)
        early = number > 0 and rng.random() < DURING_RECOVERY
        gap, moment = rng.randint(1, 2 * job["gap_rows"]), rng.uniform(0.0, RECOVERY_S)
        target = rows.count() + gap
        if number == job["kills"]:
            alive = one.listen(LONGEST_S, never)
        elif early:
            alive = one.listen(moment, never)
        else:
            alive = one.listen(LONGEST_S, rows.at_least(target))
        code = one.end(kill=alive)
        starts.append(
            {
                "started_s": one.started_s,
                "recovered_s": one.recovered_s,
                "rows": one.rows,
                "played": one.played,
                "code": code,
            }
        )
        if code != -signal.SIGKILL:
            break
    rows.close()
    return {"starts": starts, "code": code, "said": one.quoted, "kills": len(starts) - 1}


def load() -> None:
    """Everything that a command imports and compiles, once."""
    import pandas as pd  # noqa: F401 - loaded before the forks

    import services.store.store  # noqa: F401
    from worker.cli import app  # noqa: F401
    from worker.runs.warm_up import compile_engine

    compile_engine()


def read_shown(job: dict[str, Any]) -> dict[str, Any]:
    """What a job came to."""
    with tempfile.NamedTemporaryFile() as out:
        found = killed(job, out.name)
        text = out.read().decode()
    found["document"] = json.loads(text) if text.startswith("{") else text
    return found


if __name__ == "__main__":
    load()
    sys.stdout.write(json.dumps([read_shown(job) for job in json.loads(sys.argv[1])]))
