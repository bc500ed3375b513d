"""The seven commands of the runbook's test plan run verbatim; one that selects nothing fails here."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = ("test_reflection_schema.py", "test_low_level_reflection.py", "test_high_level_reflection.py")
SELECTIONS = (
    "tick_validation and trigger_engine",
    "high_level_reflection and insufficient_sample",
    "plan_provider and policy_reflection",
    "judge and high_level_reflection",
)


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Node ids of the whole suite: of this session where it holds all files, else of one of its own."""
    items = request.session.items
    if {item.path for item in items} >= set((ROOT / "tests").rglob("test_*.py")):
        return tuple(item.nodeid for item in items)
    return collected_apart()


@cache
def collected_apart() -> tuple[str, ...]:
    """Node ids of the whole suite, collected once in a process of its own."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    return tuple(line for line in done.stdout.splitlines() if "::" in line)


@pytest.mark.parametrize("name", FILES)
def test_runbook_file_holds_tests(name: str, collected: tuple[str, ...]) -> None:
    assert len([node for node in collected if node.startswith(f"tests/{name}::")]) >= 5


@pytest.mark.parametrize("selection", SELECTIONS)
def test_runbook_selection_selects_tests(selection: str, collected: tuple[str, ...]) -> None:
    words = selection.split(" and ")
    chosen = [node for node in collected if all(word in node for word in words)]
    assert len(chosen) >= 3, f"-k {selection!r} selects {len(chosen)} tests"
