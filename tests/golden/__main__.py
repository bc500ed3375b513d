"""`python -m tests.golden`: release a golden store of the present revision, and of older ones that have none.

The present one holds whole runs; those of older revisions hold the beginnings of them in the tables of their
day. Nothing that lies there is overwritten.
"""

import asyncio
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from services.store import open_store
from services.store.migrations import HEAD, REVISIONS
from tests.golden.fingerprint import fingerprint
from tests.golden.stored import next_name, release, released
from tests.golden.tables import copied, cut_short, digests, packed
from tests.golden.world import made, settings

TOLD = ("run_id", "mode", "status", "events", "head_hash", "config_hash")


async def _heads(file: Path) -> list[dict[str, Any]]:
    async with await open_store(f"sqlite:///{file}", create=False) as store:
        return [{name: getattr(run, name) for name in TOLD} for run in await store.runs.all()]


def facts(file: Path, revision: str) -> dict[str, Any]:
    """What is known of a store today."""
    return {
        "revision": revision,
        "runs": asyncio.run(_heads(file)),
        "tables": digests(file),
        "made_on": fingerprint(),
    }


def main() -> None:
    """Make and release."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # no path of this machine is stored
        whole, short = Path("golden.db"), Path("short.db")
        asyncio.run(made(settings().runtime.db))
        packed(whole)
        shutil.copy(whole, short)
        cut_short(short)
        there = {golden.revision for golden in released()}
        for revision in (entry for entry in REVISIONS if entry != HEAD and entry not in there):
            older = Path(f"{revision}.db")
            copied(short, older, revision)
            packed(older)
            release(revision, older, facts(older, revision))
            sys.stdout.write(f"released {revision}\n")
        name = next_name(HEAD)
        release(name, whole, facts(whole, HEAD))
        sys.stdout.write(f"released {name}\n")


if __name__ == "__main__":
    main()
