"""Processes that die around an approved plan, on both dialects: what is stored is what was approved, once.

`uv run python -m benchmarks.plan_kills N` kills N processes in turn at every place (of `PLACES`), on SQLite
and on PostgreSQL, lets another process go on each time, and prints what was wrong.
"""

import os
import sys
import tempfile
from pathlib import Path

from tests.postgres.binaries import find
from tests.postgres.fixtures import Databases
from tests.postgres.server import running
from tests.worker.live.decided_plans import PLACES, what_is_wrong


def main() -> None:
    """Kill, go on, compare; exit code 1 where anything was wrong."""
    kills, wrong = int(sys.argv[1]) if len(sys.argv) > 1 else 200, 0
    places = list(PLACES)
    with running(find(os.environ)) as server:
        databases = Databases(server.url())
        for number in range(kills):
            place = places[number % len(places)]
            with tempfile.TemporaryDirectory() as folder:
                found = {"SQLite": what_is_wrong(Path(folder), place)}
            url = databases.take()
            found["PostgreSQL"] = what_is_wrong(url, place)
            databases.give_back(url)
            for dialect, reasons in found.items():
                wrong += bool(reasons)
                for reason in reasons:
                    sys.stdout.write(f"{number} {dialect} {place}: {reason}\n")
    sys.stdout.write(f"{kills} kills on each of two dialects at {len(places)} places: {wrong} went wrong\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
