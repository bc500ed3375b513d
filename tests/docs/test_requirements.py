"""The requirement table names every row once, and only tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.each_case import check_each
from tools.docs_pages import DOCS

PAGE = DOCS / "reference" / "requirements.md"
LINK = re.compile(r"\[`(test_\w+)`\]\(([^)]+)\)")
FAMILIES = {"R": 19, "T": 8, "P": 6, "Q": 8, "L": 8, "S": 6, "D": 17, "X": 7}
NEEDED = [f"R{number}" for number in range(1, 20)] + ["D2", "D3", "D9", "D12"]


def rows() -> dict[str, str]:
    """Text of each row by its id; a row of the last table stands for several."""
    found: dict[str, str] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| ") and (names := re.findall(r"\b[RTPQLSDX]\d+\b", line.split("|")[1])):
            for name in names:
                assert name not in found, name
                found[name] = line
    return found


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions)


def test_requirement_table_names_every_row_once():
    wanted = {f"{family}{number}" for family, count in FAMILIES.items() for number in range(1, count + 1)}
    assert set(rows()) == wanted


@check_each(("name", "path"), sorted(set(LINK.findall(PAGE.read_text("utf-8")))))
def test_requirement_table_names_tests_that_exist(name, path):
    file = (PAGE.parent / path).resolve()
    assert file.is_file()
    assert name in functions_of(file)


@check_each("row", NEEDED)
def test_requirement_of_the_first_build_has_a_test(row):
    assert LINK.search(rows()[row])


def test_row_without_a_test_is_a_later_issue():
    for name, line in rows().items():
        assert LINK.search(line) or "later issue" in line, name
