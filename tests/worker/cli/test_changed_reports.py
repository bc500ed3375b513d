"""Reports and verdicts beside the journal: `verify` and the full check find a change of each."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.worker.cli.test_ask_again import Desk

CHANGES = {
    "report": """UPDATE reports_on_demand SET report = replace(report, '"n_episodes":', '"n_episodes":9')""",
    "id": "UPDATE reports_on_demand SET report_id = '61892d9a986551b4'",
    "request": """UPDATE reports_on_demand SET request = replace(request, '"slot":', '"slot":1')""",
    "hash_of_the_request": "UPDATE reports_on_demand SET request_hash = 'ff'",
    "moment": "UPDATE reports_on_demand SET known_at = known_at - 1",
    "verdict": """UPDATE reports_on_demand SET verdict = replace(verdict, '"decision":"', '"decision":"x')""",
    "verdict_of_another": "UPDATE reports_on_demand SET verdict_id = 'ffffffffffffffff'",
    "no_json": "UPDATE reports_on_demand SET report = 'x'",
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run, a report on demand about it, and the verdict on that."""
    folder = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        desk = Desk(folder, patch)
        assert desk.run("backtest", "--from", "2003-01-01", "--to", "2003-12-31").exit_code == 0
        payload = json.loads(desk.run("reflect", "latest", "--json").stdout)
        assert desk.run("replan", payload["report_id"]).exit_code == 0
    return folder / "thinktwice.db"


@pytest.fixture
def store(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The same, to be changed."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(judged, tmp_path / "thinktwice.db")
    return Desk(tmp_path, monkeypatch)


def changed(desk: Desk, statement: str) -> None:
    with closing(sqlite3.connect(desk.folder / "thinktwice.db")) as file, file:
        assert file.execute(statement).rowcount == 1


def test_reports_on_demand_as_they_were_written_hold(store):
    for words in (("verify", "latest"), ("db", "check", "--full")):
        assert store.run(*words).exit_code == 0


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_a_report_on_demand_is_found_by_the_full_check(store, change):
    changed(store, CHANGES[change])
    reply = store.run("db", "check", "--full")
    assert reply.exit_code == 1
    assert " report " in reply.stdout
    assert "was changed after it was written" in reply.stdout


def test_change_of_a_report_on_demand_is_found_by_verify(store):
    changed(store, CHANGES["report"])
    reply = store.run("verify", "latest")
    assert reply.exit_code == 1
    assert "was changed after it was written" in reply.output
