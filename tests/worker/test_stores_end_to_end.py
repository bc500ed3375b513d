"""The main job on PostgreSQL: the same run as in a SQLite file, and every command reads it."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from worker.cli import app

PERIOD = ("--from", "2003-01-01", "--to", "2003-12-31", "--symbols", "AAPL,MSFT")


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Runs commands in a folder of their own and keeps everything they print."""
    monkeypatch.chdir(tmp_path)
    lines = []

    def run(*words, code=0):
        done = CliRunner().invoke(app, [str(word) for word in words])
        lines.append(done.output)
        assert done.exit_code == code, done.output
        return done.stdout

    run.quoted = lines  # type: ignore[attr-defined]  # a function that remembers is all this is
    return run


def test_run_on_a_server_equals_the_run_in_a_file_and_every_command_reads_it(commands, postgres_url):
    def printed(address, *words):
        return json.loads(commands(*words, "--json", "--db", address))

    file, kept = "sqlite:///file.db", "sqlite:///kept.db"
    documents = [printed(address, "backtest", *PERIOD) for address in (file, postgres_url)]
    heads = {document["journal"]["head_hash"] for document in documents}
    assert len(heads) == 1
    assert documents[1]["performance"] == documents[0]["performance"]
    assert documents[1]["performance"]["trades"] > 0
    journals = {commands("journal", "latest", "--jsonl", "--db", where) for where in (file, postgres_url)}
    assert len(journals) == 1
    listed = printed(postgres_url, "runs")
    assert [(run["run_id"], run["status"], {run["head_hash"]} == heads) for run in listed] == [
        ("r0001", "finished", True)
    ]
    verified = printed(postgres_url, "verify", "latest")
    assert verified["ok"]
    assert {verified["replay"]["head_hash"]} == heads
    rows = [json.loads(line) for line in journals.pop().splitlines()]
    fill = next(row for row in rows if row["kind"] == "exit_filled")["payload"]["fill_id"]
    reasons = {commands("why", fill, "--db", where) for where in (file, postgres_url)}
    assert len(reasons) == 1
    assert fill[:8] in reasons.pop()
    answers = []
    for where in (file, postgres_url):
        payload = printed(where, "ask", "which trades of AAPL lost?", "--conversation", "desk")
        assert payload == printed(where, "ask", "--conversation", "desk", "--show")
        answers.append({**payload, "tool_calls": len(payload["tool_calls"])})
    assert answers[0] == answers[1]
    lines = [statement for part in answers[0]["sections"] for statement in part["statements"]]
    assert any(statement["rows"] for statement in lines)
    copied = printed(postgres_url, "db", "backup", "kept.db")
    assert copied["rows"]["journal"] == len(rows)
    assert {printed(kept, "verify", "latest")["chain"]["head_hash"]} == heads
    assert printed(postgres_url, "db", "check", "--full")["ok"]
    password = urlsplit(postgres_url).password
    assert password
    assert password not in "".join(commands.quoted)
    assert "thinktwice.db" not in {path.name for path in Path.cwd().iterdir()}
