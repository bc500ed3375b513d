"""Rows of the list of targets that other tests hold, or that nothing holds yet."""

ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    (
        "F2",
        "killed between each pair of steps",
        "`tests/worker/live/test_paper_crashes.py`, `tests/worker/slow_worker/test_takeover.py`",
    ),
    (
        "F6",
        "model hangs, drips, storms",
        "`tests/worker/test_session_over_the_wire.py`; within F13",
    ),
    ("F7", "malformed replies", "`tests/agents`"),
    (
        "F9",
        "clocks that jump by an hour, zones and summer time, a leap second",
        "`tests/worker/live/test_paper_clocks.py`, `tests/services/feeds/test_clock_watch.py`",
    ),
    ("F11", "the waker raises", "`tests/worker/slow_worker/test_waker.py`"),
    ("F12", "disk full, read-only, WAL removed", "`tests/worker/live/test_paper_broken_disk.py`"),
    ("F14", "state machines", "`tests/services/playbooks/test_lifecycle_machine.py`, `tests/trading_core`"),
    ("F15", "injected instructions", "`tests/services/policy_checks/test_injection.py`"),
    ("F16", "canary secrets", "`tests/worker/operations`"),
    ("F17", "golden journals", "`tests/golden`, released by `python -m tests.golden`"),
    ("L2", "policy reflection", "`make bench`, docs/reference/benchmarks.md"),
    ("L7", "MCP", "the server belongs to another part"),
)
