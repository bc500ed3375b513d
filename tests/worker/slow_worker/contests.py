"""A contest of worker processes over one store, and what it came to."""

import asyncio
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.store import open_store
from tests.commands.started import python
from tests.worker.slow_worker.prepared import DAY, START, Watched, prepared, resolved
from tests.worker.slow_worker.rivals import read_shown

ROOT = Path(__file__).parents[3]
DAYS = 4
EPISODES = [resolved(n, START + (n + 1) * DAY // 24) for n in range(24 * DAYS)]


@dataclass(frozen=True)
class Contest:
    """What a contest came to.

    Attributes:
        codes: exit codes of the workers.
        slots: days whose slot was run.
        reports: reports by slot that are delivered with a verdict.
        takeover_s: from the signal to the next holder of the lease.
        refused: how often a worker that was replaced was told so.
        leaders: processes that held the lease.
    """

    codes: list[int]
    slots: list[int]
    reports: int
    takeover_s: float
    refused: int
    leaders: int


def contest(address: str, folder: Path, workers: int, how: str, lease_ms: int) -> Contest:
    """Workers over the slots of four days; the leader is killed or frozen at its second."""
    folder.mkdir()
    run_id = asyncio.run(prepared(address, EPISODES))
    job: dict[str, Any] = {"address": address, "run_id": run_id, "workers": workers, "how": how}
    job |= {"lease_ms": lease_ms, "days": DAYS, "folder": str(folder)}
    command = [python(), "-m", "tests.worker.slow_worker.rivals", json.dumps(job)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise AssertionError(done.stderr[-3_000:])
    victim = json.loads((folder / "victim").read_text())
    taken = [event for event in read_shown(folder) if event["kind"] == "lease_taken"]
    heirs = [entry for entry in taken if entry["at"] > victim["at"] and entry["pid"] != victim["pid"]]
    slots, reports = asyncio.run(_stored(address, run_id))
    return Contest(
        json.loads(done.stdout),
        slots,
        reports,
        heirs[0]["at"] - victim["at"],
        sum(event["kind"] == "lease_lost" and event["pid"] == victim["pid"] for event in read_shown(folder)),
        len({entry["pid"] for entry in taken}),
    )


async def _stored(address: str, run_id: str) -> tuple[list[int], int]:
    async with await open_store(address, create=True) as store:
        one = Watched(store, run_id)
        claims, reports = await one.claims(), await one.reports()
        whole = [report for report in reports if report.delivery == "delivered" and report.verdict]
        return [(claim.key.slot - START) // DAY for claim in claims if claim.state == "done"], len(whole)
