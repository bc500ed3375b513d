"""The wheel: one top-level name, the same files with the same lines, and a command beside clashing files."""

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_wheel

from hatch_build import ROOMS, below_package
from tests.each_case import check_each

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [path for room in (*ROOMS, "thinktwice") for path in sorted((ROOT / room).rglob("*.py"))]
CLASHING = 'raise RuntimeError("the user has a file of this name")\n'


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target, here = tmp_path_factory.mktemp("wheel"), Path.cwd()
    os.chdir(ROOT)  # a build back end works where the project lies
    try:
        return target / build_wheel(str(target))
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("from worker.session import Session\n", "from thinktwice.worker.session import Session\n"),
        ("import schemas\n", "from thinktwice import schemas\n"),
        ("if TYPE_CHECKING:\n    from services import ports\n",
         "if TYPE_CHECKING:\n    from thinktwice.services import ports\n"),
        ("def f():\n    from agents.x import (\n        y,\n    )\n",
         "def f():\n    from thinktwice.agents.x import (\n        y,\n    )\n"),
        ('text = """\nfrom worker import x\n"""\n', 'text = """\nfrom worker import x\n"""\n'),
        ("from workers import x\nworker = 1\n", "from workers import x\nworker = 1\n"),
        ("a = 1; from prompts import load_prompt\n", "a = 1; from thinktwice.prompts import load_prompt\n"),
    ],
)  # fmt: skip
def test_imports_of_rooms_move_below_the_package_and_nothing_else_does(source, shown):
    assert below_package(source, "x.py") == shown


def test_import_that_has_no_form_below_the_package_is_refused_with_its_line():
    with pytest.raises(ValueError, match=r"x\.py:2: import rooms by `from ROOM import`: import worker\.a"):
        below_package("a = 1\nimport worker.a\n", "x.py")


@check_each("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_source_keeps_its_lines_and_names_no_module_in_a_text(path):
    text = path.read_text("utf-8")
    shown = below_package(text, path.name)
    assert shown.count("\n") == text.count("\n")
    texts = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    named = [
        entry
        for entry in texts
        if isinstance(entry, str) and entry.partition(".")[0] in ROOMS and "." in entry
    ]
    modules = [name for name in named if (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()
               or (ROOT / name.replace(".", "/")).is_dir()]  # fmt: skip
    assert modules == [], "a wheel has the module elsewhere: use __package__ or the module's __name__"


def test_wheel_brings_one_name_and_every_file_of_the_rooms(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].split("-")[0] for name in names} == {"thinktwice"}
    files = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files == {name.removeprefix("thinktwice/") for name in names} & files
    assert "thinktwice/py.typed" in names


def test_wheel_beside_clashing_files_answers_as_the_checkout_does(wheel, tmp_path):
    installed, here = tmp_path / "installed", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(installed)
    here.mkdir()
    for room in ROOMS:
        (here / f"{room}.py").write_text(CLASHING, "utf-8")
    answers = []
    for where, alone in ((installed, []), (ROOT, ["-P"])):  # the checkout has the names that clash
        done = subprocess.run(
            [sys.executable, *alone, "-m", "thinktwice", "schema"],
            cwd=here, env=os.environ | {"PYTHONPATH": str(where)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) >= 100
