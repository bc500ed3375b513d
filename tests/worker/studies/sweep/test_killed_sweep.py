"""`thinktwice sweep --resume`, killed outright three times: the same table, and no task runs twice."""

import json
import subprocess
import sys
import time

from typer.testing import CliRunner

from worker.cli import app

GRID = '[grid]\n"execution.fee_bps" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n'
SETS, KILLS = 10, 3


def test_sweep_killed_three_times_gives_the_same_table_and_runs_no_task_twice(tmp_path):
    grid, kept = tmp_path / "GRID.toml", tmp_path / "answers"
    grid.write_text(GRID, "utf-8")
    words = [
        "sweep",
        "--level",
        "agent",
        "--grid",
        str(grid),
        "--symbols",
        "IBM",
        "--to",
        "2001-06-30",
        "--json",
    ]
    words += ["--processes", "1"]
    resumed = [*words, "--resume", str(kept)]
    seen: dict[str, tuple[int, int]] = {}
    for kill in range(1, KILLS + 1):
        process = subprocess.Popen(
            [sys.executable, "-m", "thinktwice", *resumed],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and len(answers(kept)) < kill:
            time.sleep(0.005)
        process.kill()
        process.wait()
        found = answers(kept)
        assert seen.items() <= found.items()
        seen = found
        assert kill <= len(seen) < SETS
    done, fresh = (CliRunner().invoke(app, given) for given in (resumed, words))
    assert (done.exit_code, fresh.exit_code) == (0, 0)
    assert json.loads(done.stdout) == json.loads(fresh.stdout)
    assert seen.items() <= answers(kept).items()
    assert len(answers(kept)) == SETS


def answers(folder):
    """Inode and time of each answer: one that is written again has others."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("*.npz")}
