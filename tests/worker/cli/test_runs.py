"""`runs` in stores and terminals unlike ours: damaged rows, and too few columns for the table."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from schemas.settings import Settings
from services.store.failures import StoreDamaged
from tests.services.store.stores import seal_again
from tests.worker.cli.paper_stores import feed, read_text
from tests.worker.cli.terminals import in_terminal
from tests.worker.live.paper_runs import address, killed, traded
from tools.docs_examples import shell_words
from worker.cli import app

BARS = ("--symbols", "AAPL", "--from", "2003-01-01", "--to", "2003-03-31")
DAMAGES = {
    "cut_off": "document = substr(document, 1, 400)",
    "no_text": "document = CAST(x'7bff7d' AS TEXT)",
    "bytes": "document = x'7bff7d'",
    "no_object": "document = '[1]'",
    "nested": f"document = '{'[' * 50_000}'",
    "figures_of_another_shape": "document = json_set(document, '$.performance', 5)",
    "figure_that_is_no_number": "document = json_set(document, '$.performance.total_return', 'much')",
    "data": "data = 'none'",
    "data_without_symbols": "data = '{}'",
    "environment": "environment = CAST(x'ff' AS TEXT)",
}


def made(folder: Path, runs: int) -> None:
    for _ in range(runs):
        read_text(folder, "backtest", *BARS, code=0)


def changed(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "paper.db")) as store, store:
        assert store.execute(statement).rowcount > 0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("runs")
    made(folder, 3)
    return (folder / "paper.db").read_bytes()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_run_is_listed_as_damaged_beside_the_others(store, tmp_path, damage):
    (tmp_path / "paper.db").write_bytes(store)
    changed(tmp_path, f"UPDATE runs SET {damage} WHERE run_id = 'r0002'")
    done = CliRunner().invoke(app, ["runs", "--db", address(tmp_path)])
    assert done.exit_code == 2
    assert "r0002 is damaged" in done.stderr
    assert "thinktwice db restore" in done.stderr
    listed = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
    assert [name for name in ("r0001", "r0002", "r0003") if "damaged" in listed[name]] == ["r0002"]
    found = CliRunner().invoke(app, ["runs", "--json", "--db", address(tmp_path)])
    assert found.exit_code == 2
    assert [run["damage"] is None for run in json.loads(found.stdout)] == [True, False, True]
    read_text(tmp_path, "status", "r0001", code=0)


def test_paper_starts_beside_a_damaged_run_that_is_over_and_not_over_one_that_is_its_own(tmp_path):
    made(tmp_path, 1)
    changed(tmp_path, "UPDATE runs SET document = 'none'")
    assert killed(tmp_path, Settings(), feed(), "committed", 20)
    changed(tmp_path, "UPDATE runs SET data = 'none' WHERE run_id = 'r0002'")
    with pytest.raises(StoreDamaged, match="the data of run r0002 is damaged.*thinktwice db restore"):
        traded(tmp_path, Settings(), feed())


@pytest.mark.parametrize("columns", [20, 120])  # widths between them: test_printing.py
def test_run_ids_are_whole_in_a_terminal_of_any_width(store, tmp_path, columns):
    (tmp_path / "paper.db").write_bytes(store)
    changed(tmp_path, "UPDATE runs SET run_id = 'r0123456789', number = 9 WHERE run_id = 'r0003'")
    seal_again(tmp_path / "paper.db")
    seen = in_terminal(shell_words(f"thinktwice runs --db {address(tmp_path)}"), tmp_path, columns=columns)
    seen.demand_clean()
    assert seen.code == 0
    lines = seen.text.splitlines()
    ids = {line.split()[0] for line in lines if line.strip().startswith("r0")}
    assert ids == {"r0001", "r0002", "r0123456789"}
    assert max(len(line) for line in lines) <= columns
    assert "return" in seen.text
