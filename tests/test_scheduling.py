"""Files that share runs go to one process, and each of them is there and uses such a run."""

import re
from pathlib import Path

from tests.scheduling import SAME_RUNS, scope_of

TESTS = Path(__file__).resolve().parent
USES = {
    "embedded and losing runs": r"\b(embedded_run|losing_run|planted_run)\b",
    "slice of the embedded bars": r"\bslice_run\b",
    "stored planted run": r"\bplanted\b",
}


def test_files_that_share_runs_are_taken_together_and_others_alone():
    for runs, names in SAME_RUNS.items():
        assert {scope_of(f"tests/{name}") for name in names} == {runs}
    assert scope_of("tests/test_scheduling.py") == "tests/test_scheduling.py"


def test_files_taken_together_use_the_runs_they_are_said_to_share():
    assert SAME_RUNS.keys() == USES.keys()
    for runs, names in SAME_RUNS.items():
        for name in names:
            assert re.search(USES[runs], (TESTS / name).read_text("utf-8")), name


def test_every_file_that_uses_a_long_run_of_all_bars_is_taken_together_with_the_others():
    """Called there or handed on: a file imports what it uses."""
    using = {
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("test_*.py")
        if re.search(r"\b(embedded_run|losing_run|planted_run)\b", path.read_text("utf-8"))
    }
    assert using - {"test_scheduling.py"} == set(SAME_RUNS["embedded and losing runs"])
