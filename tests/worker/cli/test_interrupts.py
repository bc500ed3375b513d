"""Ctrl-C at a keyboard: while a command starts, in its middle, and when it is over: 130, and no traceback."""

import re
import sys
from pathlib import Path

import pytest

from tests.commands.started import run_to_end
from tests.worker.cli.terminals import Seen, in_terminal
from tools.docs_pages import ROOT

LINE = "thinktwice: stopped by SIGINT"
BACKTEST = ("thinktwice", "backtest", "--symbols", "AAPL,IBM", "--from", "2002-01-01")
# Ctrl-C in the middle of the import of a module, where it would surface as an error of that import.
AT_IMPORT = """
import os, signal, sys
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
sys.argv = ["thinktwice", {command}]
from thinktwice.__main__ import main
main()
"""
AT_EXIT = """
import os, signal, sys, threading
from thinktwice.__main__ import main
def late():
    threading.main_thread().join()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=late).start()
sys.argv = ["thinktwice", "schema"]
main()
"""


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100.0


def stopped(seen: Seen) -> list[str]:
    """Check the end of a command that was stopped; the lines that it told about that."""
    seen.demand_clean()
    assert seen.code == 130, seen.end
    shown = [line.removeprefix("^C") for line in seen.lines if "stopped by SIGINT" in line]
    assert len(shown) == 1, seen.end
    return shown


@pytest.mark.parametrize("after_s", [0.15, 0.3, 0.6, 1.0])
def test_ctrl_c_while_a_command_starts_is_one_line_and_130(tmp_path, after_s):
    """Seconds of the processor, because those of the wall say nothing on a machine under load."""
    seen = in_terminal(BACKTEST, tmp_path, fresh=True, press=lambda text, pid: cpu_s(pid) >= after_s)
    assert stopped(seen)[0].startswith(LINE)


@pytest.mark.parametrize(
    "module", ["typer", "pydantic", "worker.cli.backtest", "pandas", "numba", "sqlalchemy"]
)
def test_ctrl_c_in_the_middle_of_an_import_is_one_line_and_130(tmp_path, module):
    program = AT_IMPORT.format(module=module, command=", ".join(map(repr, BACKTEST[1:])))
    done = run_to_end([sys.executable, "-c", program], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{LINE}\n")


def test_ctrl_c_while_the_interpreter_ends_is_one_line_and_130(tmp_path):
    done = run_to_end([sys.executable, "-c", AT_EXIT], tmp_path)
    assert (done.returncode, done.stderr) == (130, f"{LINE}\n")
    assert done.stdout.startswith("AblationSettings") or "PolicyLevelReflectionRequest" in done.stdout


def test_ctrl_c_in_the_middle_of_a_backtest_a_verification_and_a_paper_run_keeps_what_was_done(tmp_path):
    seen = in_terminal(BACKTEST, tmp_path, press=lambda text, pid: " of 2,8" in text)
    assert "run r0001 is kept up to here" in stopped(seen)[0]
    done = in_terminal((*BACKTEST, "--to", "2004-12-31"), tmp_path)
    assert done.code == 0, done.end
    verify = ("thinktwice", "verify", "r0002")
    seen = in_terminal(verify, tmp_path, press=lambda text, pid: re.search(r"replay \d", text) is not None)
    assert stopped(seen) == [LINE]
    paper = ("thinktwice", "paper", *BACKTEST[2:], "--speed", "8640000", "--db", "sqlite:///paper.db")
    stored = tmp_path / "paper.db"
    seen = in_terminal(paper, tmp_path, press=lambda text, pid: _bars(stored) > 20)
    assert "run r0001 is stored up to here; the same command goes on" in stopped(seen)[0]


def _bars(store: Path) -> int:
    import sqlite3

    if not store.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as opened:
            return int(opened.execute("select count(*) from paper_bars").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_command_is_started_by_what_listens_first():
    """The script of the package starts its `__main__`, and nothing slow is imported before it listens."""
    assert 'thinktwice = "thinktwice.__main__:main"' in (ROOT / "pyproject.toml").read_text("utf-8")
    heavy = {"typer", "pydantic", "asyncio", "rich"}
    program = f"import sys, thinktwice.__main__; print(sorted(set(sys.modules) & {heavy}))"
    assert run_to_end([sys.executable, "-c", program], ROOT).stdout == "[]\n"
