"""`thinktwice trials` and `--fresh-ledger` as a user sees them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from worker.cli import app
from worker.studies.scenarios import SCENARIOS

BARS = ("--symbols", "AAPL,IBM", "--from", "2003-01-01", "--to", "2003-06-30")


def command(folder: Path, *words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, [*words, "--db", f"sqlite:///{folder}/t.db"])
    assert done.exit_code == code, done.output
    return done


def read_shown(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(command(folder, "trials", "--json").stdout)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Two configurations, the first twice, and one symbol alone; what the runs said."""
    folder = tmp_path_factory.mktemp("trials")
    lines = [
        command(folder, "backtest", *BARS, *more).stdout
        for more in ((), ("--seed", "1"), (), ("--symbols", "IBM"), ("--seed", "2", "--fresh-ledger"))
    ]
    return folder, lines


def test_trials_lists_what_was_tried_by_range_and_what_the_next_run_starts_with(made):
    found = read_shown(made[0])
    both, one = found["ranges"]
    hypotheses = both["hypotheses"] // 3
    assert both | {"hypotheses": 0, "next": None} == {
        "timeframe": "1d", "symbols": ["AAPL", "IBM"], "start": "2003-01-02T00:00:00+00:00",
        "end": "2003-06-30T00:00:00+00:00", "runs": ["r0001", "r0002", "r0003", "r0005"],
        "configurations": 3, "hypotheses": 0, "candidates": 0, "promotions": 0, "next": None,
    }  # fmt: skip
    assert (one["symbols"], one["configurations"], one["runs"]) == (["IBM"], 1, ["r0004"])
    assert both["next"] == one["next"]
    coming = {"configurations": 4, "hypotheses": 4 * hypotheses, "candidates": 0, "promotions": 0}
    assert both["next"] == coming
    assert hypotheses > 10


def test_trials_prints_a_line_for_each_range(made):
    lines = command(made[0], "trials").stdout.splitlines()
    assert any("AAPL IBM 2003-01-02" in line for line in lines)
    assert "4 configurations" in " ".join(lines)


def test_trials_of_one_configuration_are_told_in_the_singular(tmp_path):
    command(tmp_path, "backtest", *BARS)
    text = " ".join(command(tmp_path, "trials").stdout.split())
    assert "1 configuration, " in text
    assert "1 configurations" not in text


def test_run_says_in_a_line_what_is_counted_and_what_is_not(made):
    _, lines = made
    assert "ledger" not in lines[0] + lines[2]
    assert "ledger of trials: 1 earlier configuration on these bars is counted" in lines[1]
    assert "fresh ledger: 3 earlier configurations on these bars are not counted" in lines[4]


def test_runs_of_the_ledger_verify_and_the_store_is_whole(made):
    for run in ("r0002", "r0005"):
        command(made[0], "verify", run)
    command(made[0], "db", "check", "--full")


def test_ablate_registers_nothing(tmp_path):
    period = ("--symbols", "AAPL", "--from", "2003-01-01", "--to", "2003-06-30")
    command(tmp_path, "ablate", *period, "--seeds", "1", "--out", str(tmp_path / "out"))
    assert read_shown(tmp_path) == {"ranges": []}


def test_scenarios_register_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("worker.studies.scenarios.SCENARIOS", SCENARIOS[:1])  # others run for seconds
    command(tmp_path, "backtest", *BARS)
    done = CliRunner().invoke(app, ["scenarios"])
    assert done.exit_code == 0, done.output
    assert [item["runs"] for item in read_shown(tmp_path)["ranges"]] == [["r0001"]]
    assert [path.name for path in tmp_path.glob("*.db")] == ["t.db"]


def test_trials_without_a_store_says_so(tmp_path):
    done = command(tmp_path, "trials")
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_trials_of_a_damaged_ledger_is_one_line(made, tmp_path):
    (tmp_path / "t.db").write_bytes((made[0] / "t.db").read_bytes())
    with closing(sqlite3.connect(tmp_path / "t.db")) as store, store:
        store.execute("UPDATE trials SET symbols = CAST(x'ff' AS TEXT) WHERE number = 2")
    done = command(tmp_path, "trials", code=2)
    assert done.stderr.count("\n") == 1
    assert "damaged" in done.stderr


def test_fresh_ledger_without_a_feed_is_refused(tmp_path):
    done = command(tmp_path, "worker", "--once", "--fresh-ledger", code=2)
    assert "--fresh-ledger" in done.stderr
