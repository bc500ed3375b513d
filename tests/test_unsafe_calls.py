"""The linter looks for unsafe calls: in every room nothing is found, and a planted one is."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("schemas", "trading_core", "services", "agents", "prompts", "worker")
UNSAFE = {
    "pickle": "import pickle\n\npickle.loads(b'')\n",
    "eval": "eval('1')\n",
    "yaml": "import yaml\n\nyaml.load('x', Loader=yaml.Loader)\n",
    "shell": "import subprocess\n\nsubprocess.run('ls ' + name, shell=True)\n",
    "sql": "connection.execute(\"SELECT * FROM runs WHERE run_id = '%s'\" % name)\n",
}


def unsafe_calls(*paths):
    """Lines of the linter about them, by the rules that the project declares."""
    words = [sys.executable, "-m", "ruff", "check", "--config", "pyproject.toml", "--no-cache", "--quiet"]
    done = subprocess.run(
        [*words, "--output-format", "concise", *paths], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if re.search(r": S\d{3} ", line)]


def test_no_room_calls_what_is_unsafe():
    assert unsafe_calls(*ROOMS) == []


def test_unsafe_calls_are_found_by_the_linter(tmp_path):
    for name, text in UNSAFE.items():
        (tmp_path / f"{name}.py").write_text(text)
    found = unsafe_calls(str(tmp_path))
    assert [name for name in UNSAFE if not any(f"{name}.py" in line for line in found)] == []


def test_every_exception_to_the_unsafe_call_rules_has_its_reason():
    marks = re.compile(r"#\s*(noqa:[^-\n]*\bS\d{3}[^-\n]*)(?P<reason>- \w.*)?$", re.MULTILINE)
    bare = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for match in marks.finditer(path.read_text("utf-8"))
        if match["reason"] is None
    ]
    assert bare == []
