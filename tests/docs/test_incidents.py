"""The page of incidents names tests that exist, and more than one room of them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_incidents_page_names_tests_that_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/explanation/incidents.md").read_text("utf-8")))
    assert len(named) > 15
    written: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        written |= set(re.findall(r"def (test_\w+)\(", path.read_text("utf-8")))
    assert named - written == set()
