"""F3: PostgreSQL stopped, killed and frozen for five seconds under a live paper run."""

import os

from tests.postgres.binaries import find
from tests.postgres.server import troubled
from tests.soak.findings import Finding
from tests.worker.live.outages import PACE_S, TROUBLES, Outage, lived

DOWN_S, ERROR_S, WRITE_S = 5.0, 5.0, 1.0
NAMES = {"immediate": "immediate stop", "fast": "fast stop", "freeze": "SIGSTOP of every process"}


def check() -> list[Finding]:
    """Each trouble on a server of its own."""
    found = []
    for trouble in TROUBLES:
        with troubled(find(os.environ)) as server:
            found.append(_finding(trouble, lived(server, trouble, DOWN_S)))
    return found


def _finding(trouble: str, seen: Outage) -> Finding:
    error_s = seen.first_error_s if seen.first_error_s is not None else float("inf")
    breaks = [f"the replay differs: {seen.problem}"] if seen.problem else []
    breaks += [f"{seen.lost} acknowledged rows are lost"] if seen.lost else []
    held = not breaks and error_s < ERROR_S and seen.written_s < WRITE_S and seen.blocked > 0
    return Finding(
        "F3",
        f"{NAMES[trouble]} for {DOWN_S:.0f} s under a live run with a row every {1e3 * PACE_S:.0f} ms",
        "0 acknowledged rows lost, first error within 5 s, first write within 1 s of the return, rows go on, "
        "entries blocked",
        f"{seen.lost} of {seen.acknowledged} lost, first error after {error_s:.2f} s, first write "
        f"{seen.written_s:.2f} s after the return, {seen.rows_meanwhile} rows meanwhile (longest gap "
        f"{1e3 * seen.slowest_row_s:.0f} ms), {seen.blocked} rows without entries",
        held,
        tuple(breaks),
    )
