"""`python -m tests.golden`: release a golden store of the present revision, with whole runs.

Nothing that lies there is overwritten.
"""

import asyncio
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from services.store import open_store
from services.store.migrations import HEAD
from tests.golden.fingerprint import fingerprint
from tests.golden.stored import next_name, release
from tests.golden.tables import digests, packed
from tests.golden.world import made, settings

SHOWN = ("run_id", "mode", "status", "events", "head_hash", "config_hash")


async def _heads(file: Path) -> list[dict[str, Any]]:
    async with await open_store(f"sqlite:///{file}", create=False) as store:
        return [{name: getattr(run, name) for name in SHOWN} for run in await store.runs.all()]


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
        whole = Path("golden.db")
        asyncio.run(made(settings().runtime.db))
        packed(whole)
        name = next_name(HEAD)
        release(name, whole, facts(whole, HEAD))
        sys.stdout.write(f"released {name}\n")


if __name__ == "__main__":
    main()
