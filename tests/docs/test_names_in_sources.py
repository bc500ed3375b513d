"""What comments and docstrings call by name is there: a module that moved takes its name along."""

import re

import pytest

from tools.docs_pages import ROOT

HOUSE = ("agents", "schemas", "services", "trading_core", "worker")
SOURCES = sorted(path for room in (*HOUSE, "tests", "thinktwice") for path in (ROOT / room).rglob("*.py"))
MODULE = re.compile(rf"`((?:{'|'.join(HOUSE)})\.\w+)[\w.]*`")
PATH = re.compile(r"(?<![\w/.])((?:docs|tests)/[\w/-]+(?:\.(?:py|md))?)")
INVENTED = {"tests/docs/test_names_in_sources.py", "tests/docs/test_requirements.py"}
FILES = (".toml", ".log", ".py", ".db")


def is_there(name: str) -> bool:
    places = (ROOT / name.strip("/"), ROOT / "tests" / name)
    return any(place.exists() or place.with_suffix(".py").exists() for place in places)


def missing(text: str) -> list[str]:
    modules = [name for name in MODULE.findall(text) if not name.endswith(FILES)]
    named = [name.replace(".", "/") for name in modules] + PATH.findall(text)
    return [name for name in named if not is_there(name)]


def test_modules_and_paths_that_sources_name_are_there():
    payload = {path.relative_to(ROOT).as_posix(): missing(path.read_text("utf-8")) for path in SOURCES}
    assert {name: found for name, found in payload.items() if found and name not in INVENTED} == {}


@pytest.mark.parametrize(
    "text", ["see `worker.trading`", "held by tests/worker/trading", "docs/how-to/none.md"]
)
def test_name_of_what_is_gone_is_told(text):
    assert missing(text)


@pytest.mark.parametrize(
    "text", ["`worker.session.Session`", "`worker.toml`", "tests/docs", "docs/README.md"]
)
def test_name_of_what_is_there_is_not_told(text):
    assert missing(text) == []
