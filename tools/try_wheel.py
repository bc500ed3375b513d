"""Builds the wheel and tries it in fresh environments beside a user's own files.

`make wheel-check` (`uv run python -m tools.try_wheel 3.11 3.13`) takes minutes and reaches the package index.
For each Python, named by its version or its program, the wheel alone is installed. From a folder that holds
`worker.py`, `schemas.py` and the like the main jobs run: a backtest, its replay, a report, its page, and the
library over the same bars, whose result has to be the run that the command stored. Prints the head hash of
each; all have to be the same.
"""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from hatch_build import ROOMS
from tools.docs_pages import ROOT

CLASHING = 'raise RuntimeError("the user has a file of this name")\n'
JOBS = (
    ("backtest",),
    ("verify", "latest"),
    ("reflect", "latest"),
    ("runs",),
    ("page", "latest", "--html", "run.html"),
    ("init", "demo"),
)
SCRIPT = """import thinktwice as tt
result = tt.backtest()
kept = tt.load(result.save())
assert kept.run_id == "r0001" and kept.equity.equals(result.equity), kept.run_id
"""
STORE, HEAD = "thinktwice.db", "SELECT head_hash FROM runs"


def try_wheel(wheel: Path, python: str, folder: Path) -> str:
    """The head hash of a backtest of the embedded bars by the installed wheel.

    Raises:
        subprocess.CalledProcessError: a job failed; what it said stands on stderr.
    """
    home, here = folder / "environment", folder / "work"
    here.mkdir(parents=True)
    for room in ROOMS:
        (here / f"{room}.py").write_text(CLASHING, "utf-8")
    uv = shutil.which("uv") or "uv"
    subprocess.run([uv, "venv", "-q", "--python", python, str(home)], check=True)
    program = home / "bin" / "python"
    subprocess.run([uv, "pip", "install", "-q", "--python", str(program), str(wheel)], check=True)
    for words in JOBS:
        command = [str(program), "-m", "thinktwice", *words]
        subprocess.run(command, cwd=here, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(program), "-c", SCRIPT], cwd=here, check=True)
    with closing(sqlite3.connect(here / STORE)) as store:
        ((head,),) = store.execute(HEAD).fetchall()
    return str(head)


def main(versions: list[str]) -> int:
    """Build once, try on each; exit code 1 where the heads differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        uv = shutil.which("uv") or "uv"
        subprocess.run([uv, "build", "-q", "--wheel", "-o", str(folder)], cwd=ROOT, check=True)
        [wheel] = folder.glob("*.whl")
        tries = enumerate(versions or ["3.11", "3.13"])
        heads = {python: try_wheel(wheel, python, folder / str(number)) for number, python in tries}
    for python, head in heads.items():
        sys.stdout.write(f"Python {python}: head {head[:16]}\n")
    return 0 if len(set(heads.values())) == 1 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
