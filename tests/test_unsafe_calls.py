"""Bandit and ruff look for unsafe calls: in every room nothing is found, and a planted one is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("schemas", "trading_core", "services", "agents", "prompts", "worker")
UNSAFE = {
    "pickle": "import pickle\n\npickle.loads(b'')\n",
    "eval": "eval('1')\n",
    "yaml": "import yaml\n\nyaml.load('x', Loader=yaml.Loader)\n",
    "shell": "import subprocess\n\nsubprocess.run('ls ' + name, shell=True)\n",
    "sql": "connection.execute(\"SELECT * FROM runs WHERE run_id = '%s'\" % name)\n",
}


def bandit(*paths):
    words = [
        sys.executable,
        "-m",
        "bandit",
        "--quiet",
        "--configfile",
        "pyproject.toml",
        "--recursive",
        *paths,
    ]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_no_room_calls_what_is_unsafe():
    done = bandit(*ROOMS)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_call_is_found_by_the_linter(name, tmp_path):
    (tmp_path / "planted.py").write_text(UNSAFE[name])
    words = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--config",
        "pyproject.toml",
        "--select",
        "S",
        "--no-cache",
    ]
    done = subprocess.run([*words, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout


def test_unsafe_calls_are_found_by_bandit(tmp_path):
    for name, text in UNSAFE.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = bandit(str(tmp_path))
    assert done.returncode == 1
    assert [name for name in UNSAFE if f"{name}.py" not in done.stdout] == []


def test_every_exception_to_the_unsafe_call_rules_has_its_reason():
    marks = re.compile(r"#\s*(nosec\b[^-\n]*|noqa:[^-\n]*\bS\d{3}[^-\n]*)(?P<reason>- \w.*)?$", re.MULTILINE)
    bare = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for match in marks.finditer(path.read_text("utf-8"))
        if match["reason"] is None
    ]
    assert bare == []
