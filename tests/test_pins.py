import re
import tomllib

import pytest

from tools.lock import (
    EXPORT,
    NOT_EXPORTED,
    PROJECT,
    constraint_lines,
    locked_versions,
    pinned_versions,
    versions_by_name,
)

PROJECT_TEXT = PROJECT.read_text("utf-8")
EXPORT_LINES = EXPORT.read_text("utf-8").splitlines()


def declared(*, groups: bool) -> set[str]:
    project = tomllib.loads(PROJECT_TEXT)
    lists = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    lists += project["dependency-groups"].values() if groups else []
    names = (re.split(r"[\[<>=~! ;]", line, maxsplit=1)[0] for lines in lists for line in lines)
    return {name.lower().replace("_", "-") for name in names}


def test_export_and_pins_name_the_same_versions():
    pins, exported = pinned_versions(PROJECT_TEXT), versions_by_name(EXPORT_LINES)
    differing = {
        name: (versions, pins.get(name)) for name, versions in exported.items() if pins.get(name) != versions
    }
    assert not differing, "run `make lock`"


def test_every_declared_package_is_pinned_and_what_runs_is_exported():
    assert declared(groups=True) <= pinned_versions(PROJECT_TEXT).keys()
    # As tools/lock.py says: pip cannot install the first beside others, the image runs no agent.
    left_out = {"inspect-ai", "langchain", "openai-agents"}
    assert declared(groups=False) - versions_by_name(EXPORT_LINES).keys() == left_out
    assert len(NOT_EXPORTED) == len(left_out)


def test_pins_and_export_name_no_host():
    assert not [
        line for line in EXPORT_LINES if "://" in line or line.startswith(("-i ", "--index", "--find-links"))
    ]
    assert not [line for line in PROJECT_TEXT.splitlines() if "://" in line]


def test_every_exported_package_has_a_hash():
    requirement_lines = [n for n, line in enumerate(EXPORT_LINES) if re.match(r"[A-Za-z0-9]", line)]
    assert requirement_lines
    assert all(EXPORT_LINES[n + 1].strip().startswith("--hash=sha256:") for n in requirement_lines)


def test_every_pin_is_exact():
    constraints = tomllib.loads(PROJECT_TEXT)["tool"]["uv"]["constraint-dependencies"]
    assert sum(map(len, versions_by_name(constraints).values())) == len(constraints)


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        (
            ["scipy==1.17 ; python_full_version < '3.12'", "scipy==1.18 ; python_full_version >= '3.12'"],
            "as given",
        ),
        (["colorama==0.4.6 ; sys_platform == 'win32'"], ["colorama==0.4.6"]),
        (["# via nothing", "numpy==2.4.6 \\", "    --hash=sha256:00"], ["numpy==2.4.6"]),
    ],
)
def test_constraint_keeps_its_marker_only_where_versions_differ(requirements, expected):
    assert constraint_lines(requirements) == (requirements if expected == "as given" else expected)


def test_locked_versions_leave_out_the_project_itself():
    lock = """
    [[package]]
    name = "Typing_Extensions"
    version = "4.1"
    source = { registry = "somewhere" }
    [[package]]
    name = "thinktwice"
    version = "0.1.0"
    source = { editable = "." }
    """
    assert locked_versions(lock) == {"typing-extensions": {"4.1"}}
