"""The requirement page has every row and every point of the designs once, and names only what there is."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from schemas.settings import Settings
from services.journal.kinds import JOURNAL_KINDS
from tests.each_case import check_each
from tools.docs_pages import DOCS, ROOT
from worker.cli import app

PAGE = DOCS / "reference" / "requirements.md"
FAMILIES = {"R": 19, "T": 8, "P": 6, "Q": 8, "L": 8, "S": 6, "D": 17, "X": 7}
TEST = re.compile(r"`(tests/[^`]+\.py)::(test_\w+)`")
POINTS = {
    "000": set(range(1, 43)),
    "001": set(range(1, 30)),
    "003": set(range(1, 36)),
    "004": set(range(1, 28)),
}
# Where the JSON of a command is made. What a run's own document holds is on its page.
JSON_SOURCES = {
    "ask": ("worker/cli/ask.py", "worker/review", "schemas/evidence_plan.py"),
    "calibration": (
        "worker/cli/calibration.py",
        "worker/studies/calibration_document.py",
        "services/statistics/calibration.py",
    ),
    "deliberate": (
        "worker/cli/texts.py",
        "worker/studies/deliberated.py",
        "schemas/deliberation.py",
        "services/deliberation",
    ),
    "factcheck": ("worker/cli/texts.py", "worker/studies/deliberated.py", "schemas/claims.py"),
    "plans": ("worker/cli/plans.py", "worker/review", "schemas/plan.py", "services/plans", "services/store"),
}
NAMED = re.compile(r"`([^`]+)`")
NOTHING = re.compile(r"nothing to build: \w.{15,}")
NO_TEST = re.compile(r"no test: \w.{15,}")


def rows() -> dict[str, tuple[str, str, str]]:
    """Seed item, `here` and `shown by` of each row by its id."""
    found: dict[str, tuple[str, str, str]] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if re.match(r"\| \d{3}-\d+ \|", line):
            name, item, here, shown = (cell.strip() for cell in line.strip("| ").split(" | "))
            assert name not in found, name
            found[name] = item, here, shown
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def is_defined(path: str, name: str) -> bool:
    """Whether a module has a function, class, method or constant of this name."""
    file = ROOT / path
    if not file.is_file():
        return False
    body: list[ast.stmt] = parsed(file).body
    *classes, last = name.split(".")
    for outer in classes:
        inside = [node.body for node in body if isinstance(node, ast.ClassDef) and node.name == outer]
        body = inside[0] if inside else []
    return last in {entry for node in body for entry in _names(node)}


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.AnnAssign):
        return {node.target.id} if isinstance(node.target, ast.Name) else set()
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def is_setting(path: str) -> bool:
    model: object = Settings
    for name in path.split("."):
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return False
        fields = {field.alias or key: field.annotation for key, field in model.model_fields.items()}
        if name not in fields:
            return False
        model = fields[name]
    return True


@cache
def documented(page: str) -> dict[str, str]:
    """The first name of each row of a page, with its rows: a kind that comes in several forms has several."""
    found: dict[str, str] = {}
    for line in (DOCS / "reference" / page).read_text("utf-8").splitlines():
        if name := re.match(r"\| `([^`]+)` \|", line):
            found[name[1]] = found.get(name[1], "") + line
    return found


def is_journalled(name: str) -> bool:
    """A kind of row, or a field of one."""
    kind, _, field = name.partition(".")
    if kind not in JOURNAL_KINDS:
        return False
    return not field or field in re.split(r"[^a-z_]+", documented("journal.md").get(kind, ""))


@cache
def written_names(command: str) -> frozenset[str]:
    """Every text and every field that stands in the sources of a command's JSON."""
    files = [
        file
        for source in JSON_SOURCES[command]
        for file in ((ROOT / source).rglob("*.py") if (ROOT / source).is_dir() else [ROOT / source])
        if file.is_file()
    ]
    nodes = [node for file in files for node in ast.walk(parsed(file))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(
        texts | {name for node in nodes if isinstance(node, ast.AnnAssign) for name in _names(node)}
    )


@cache
def contract(command: str) -> frozenset[str]:
    """Names on the page of a command's document, or in its section of the page of documents; none without."""
    folder = DOCS / "reference"
    own = folder / f"{command}-document.md"
    if own.is_file():
        return frozenset(part for key in documented(own.name) for part in key.replace("[]", "").split("."))
    section = re.search(
        rf"^## {command}\n(.*?)(?=^## |\Z)", (folder / "json-document.md").read_text("utf-8"), re.M | re.S
    )
    return frozenset(NAMED.findall(section[1])) if section else frozenset()


def is_printed(name: str) -> bool:
    """A field of a command's JSON: of `backtest` by its page, else by what makes it and its contract."""
    command, _, path = name.partition(".")
    if command == "backtest":
        return any(re.match(rf"{re.escape(path)}(?![\w])", key) for key in documented("json-document.md"))
    made = (ROOT / JSON_SOURCES[command][0]).is_file()
    known = [names for names in (written_names(command), contract(command)) if names]
    return made and all(part in names for part in path.replace("[]", "").split(".") for names in known)


def is_command(words: str) -> bool:
    command: object = typer.main.get_command(app)
    for word in words.split()[1:]:
        below = getattr(command, "commands", {})
        if word.startswith("-"):
            options = {option for param in getattr(command, "params", ()) for option in param.opts}
            return word in options
        if word not in below:
            return False
        command = below[word]
    return True


def is_there(name: str) -> bool:
    """Whether what a name of the table stands for exists.

    Raises:
        AssertionError: it is no name of a kind that the page explains.
    """
    if name.startswith("thinktwice "):
        return is_command(name)
    if name.startswith("journal:"):
        return is_journalled(name.removeprefix("journal:"))
    if name.startswith("json:"):
        return is_printed(name.removeprefix("json:"))
    if found := re.fullmatch(r"([\w/.-]+\.py)::?([\w.]+)", name):
        return is_defined(found[1], found[2])
    if "/" in name:
        return (ROOT / name).exists()
    assert name.partition(".")[0] in Settings.model_fields, f"{name!r} is no name: see the head of the page"
    return is_setting(name)


def requirements() -> dict[str, str]:
    """Text of each row by its id; a row of the last table stands for several."""
    found: dict[str, str] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| ") and (names := re.findall(r"\b[RTPQLSDX]\d+\b", line.split("|")[1])):
            for name in names:
                assert name not in found, name
                found[name] = line
    return found


def test_requirement_table_names_every_row_once():
    wanted = {f"{family}{number}" for family, count in FAMILIES.items() for number in range(1, count + 1)}
    assert set(requirements()) == wanted


@check_each(("path", "name"), sorted(set(TEST.findall(PAGE.read_text("utf-8")))))
def test_requirement_page_names_tests_that_exist(path, name):
    assert is_defined(path, name)


def test_rows_without_a_test_are_those_of_later_issues():
    untested = {name for name, line in requirements().items() if not TEST.search(line)}
    assert untested == {"X4"}
    assert all("later issue" in requirements()[name] for name in untested)


def test_every_point_of_the_seeds_is_there_once():
    assert set(rows()) == {f"{seed}-{number}" for seed, numbers in POINTS.items() for number in numbers}
    assert len(rows()) == 42 + 29 + 35 + 27


@check_each("row", rows())
def test_point_names_what_is_there_and_what_shows_it(row):
    _, here, shown = rows()[row]
    assert [name for name in NAMED.findall(here) + NAMED.findall(shown) if not is_there(name)] == []
    assert all("::test_" in name or name.startswith("thinktwice ") for name in NAMED.findall(shown))
    assert NAMED.search(here) or NOTHING.match(here)
    assert NAMED.search(shown) or NO_TEST.match(shown)


@pytest.mark.parametrize(
    "name",
    [
        "thinktwice calibrate",
        "thinktwice calibration --nothing",
        "journal:episod",
        "journal:episode.nothing",
        "json:calibration.sources[].nothing",
        "json:backtest.nothing",
        "services/statistics/calibration.py:nothing",
        "services/statistics/nothing.py:calibrate",
        "services/nothing/",
        "deliberation.nothing",
        "tests/docs/test_requirements.py::test_nothing",
    ],
)
def test_name_of_nothing_is_told(name):
    assert not is_there(name)


@pytest.mark.parametrize(
    "name",
    [
        "thinktwice calibration --json",
        "journal:episode",
        "journal:fact_check.report_id",
        "json:calibration.sources[].bins[].n",
        "json:backtest.memory",
        "services/statistics/calibration.py:calibrate",
        "services/statistics/calibration.py:Calibration.brier",
        "services/statistics/calibration.py:BINS",
        "prompts/strategist.txt",
        "deliberation.quality",
        "llm.per_event.calls",
        "tests/docs/test_requirements.py::test_name_of_nothing_is_told",
    ],
)
def test_name_of_something_is_found(name):
    assert is_there(name)


def test_word_that_is_no_name_is_refused():
    with pytest.raises(AssertionError, match="is no name"):
        is_there("threshold")
