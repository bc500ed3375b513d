"""F10: 2, 4 and 8 workers on one PostgreSQL, the leader killed or frozen."""

import signal
import tempfile
from pathlib import Path

from tests.soak.findings import Finding
from tests.soak.killed_processes import databases
from tests.worker.slow_worker.contests import DAYS, Contest, contest

LEASE_MS, SLACK_S = 3_000, 1.0


def check() -> list[Finding]:
    """Every number of workers, both ways to go."""
    found = []
    with tempfile.TemporaryDirectory() as folder, databases() as made:
        for workers in (2, 4, 8):
            for how in ("SIGKILL", "SIGSTOP"):
                place = Path(folder) / f"{workers}{how}"
                found.append(_finding(workers, how, contest(made.take(), place, workers, how, LEASE_MS)))
    return found


def _finding(workers: int, how: str, found: Contest) -> Finding:
    gone = -signal.SIGKILL if how == "SIGKILL" else 0
    breaks = []
    if sorted(found.codes) != sorted([gone, *[0] * (workers - 1)]):
        breaks.append(f"the workers ended with {found.codes}")
    if found.slots != list(range(1, DAYS + 1)) or found.reports != DAYS:
        breaks.append(f"slots {found.slots} were run and {found.reports} reports delivered")
    if how == "SIGSTOP" and found.refused != 1:
        breaks.append(f"the frozen leader was refused {found.refused} times")
    limit_s = LEASE_MS / 1e3 + SLACK_S
    refused = f", {found.refused} late write of the old leader refused" if how == "SIGSTOP" else ""
    return Finding(
        "F10",
        f"{workers} workers on one PostgreSQL, leader gets {how}, lease {LEASE_MS / 1e3:.0f} s",
        f"each slot at most once, takeover within {limit_s:.0f} s, a stale leader's write refused",
        f"{len(found.slots)} of {DAYS} slots once each, takeover after {found.takeover_s:.2f} s{refused}",
        not breaks and found.takeover_s <= limit_s,
        tuple(breaks),
    )
