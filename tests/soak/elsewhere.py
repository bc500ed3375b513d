"""Rows of the list of targets that are held by other tests, or that wait for a part that does not exist."""

ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    (
        "F2",
        "killed between each pair of steps",
        "`tests/worker/trading/test_paper_crashes.py`, `tests/worker/scheduler/test_takeover.py`: every point",
    ),
)
