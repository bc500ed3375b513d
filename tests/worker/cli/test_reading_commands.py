import json

import pytest

from schemas.canonical import canonical_json
from services.journal.chain import GENESIS_HASH, link


def lines(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_journal_lines_are_the_chain_in_order(shell):
    shell.backtest()
    rows = lines(shell.run("journal", "r0001", "--jsonl"))
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert list(rows[0]) == ["seq", "ts_event", "known_at", "kind", "symbol", "payload", "hash"]
    head = GENESIS_HASH
    for row in rows:
        fields = {name: row[name] for name in ("seq", "ts_event", "known_at", "kind", "symbol")}
        head = link(head, **fields, payload=canonical_json(row["payload"]))
        assert row["hash"] == head


def test_journal_kinds_select_and_keep_order(shell):
    shell.backtest()
    rows = lines(shell.run("journal", "latest", "--jsonl", "--kind", "policy_event", "--kind", "genesis"))
    assert rows[0]["kind"] == "genesis"
    assert {row["kind"] for row in rows[1:]} == {"policy_event"}


@pytest.mark.parametrize(
    "moment", ["2000-03-04", "2000-03-04 00:00", "2000-03-04T00:00:00Z", "2000-03-04 01:00+01:00"]
)
def test_journal_until_is_inclusive_and_reads_space_and_t(shell, moment):
    shell.backtest()
    rows = lines(shell.run("journal", "r0001", "--jsonl", "--until", moment))
    everything = lines(shell.run("journal", "r0001", "--jsonl"))
    assert rows == [row for row in everything if row["known_at"] <= 952_128_000_000_000_000]
    assert rows[-1]["known_at"] == 952_128_000_000_000_000


def test_journal_telemetry_only_when_asked(shell):
    shell.backtest()
    rows = lines(shell.run("journal", "r0001", "--jsonl", "--telemetry"))
    assert rows[1]["telemetry"] == {"latency_ms": 0.5}
    assert rows[0]["telemetry"] is None


def test_journal_without_jsonl_is_one_readable_line_an_event(shell):
    shell.backtest()
    result = shell.run("journal", "r0001", "--kind", "state_transition")
    assert result.stdout.splitlines()[0].split()[:5] == [
        "1",
        "2000-03-02",
        "state_transition",
        "AAPL",
        "bar_label=951868800000000000",
    ]


@pytest.mark.parametrize("words", [("runs",), ("reports", "latest")])
def test_listing_a_store_that_does_not_exist_says_so_in_one_line_and_makes_none(shell, words):
    result = shell.run(*words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (0, "", 1)
    assert "there is no store at sqlite:///thinktwice.db: `thinktwice backtest` makes one" in result.stderr
    assert json.loads(shell.run("runs", "--json").stdout) == []
    assert list(shell.folder.iterdir()) == []


def test_runs_lists_every_run_with_its_status(shell):
    shell.backtest()
    shell.backtest("--seed", "4")
    result = shell.run("runs")
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:]] == [
        ["r0001", "finished"],
        ["r0002", "finished"],
    ]


def test_config_show_names_where_each_value_came_from(shell, monkeypatch):
    (shell.folder / "mine.toml").write_text("seed = 1\n")
    monkeypatch.setenv("THINKTWICE_ACCOUNT__CASH", "5e4")
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", "postgresql://me:s3cret@host/db")
    shown = json.loads(shell.run("config", "show", "mine.toml", "--json").stdout)
    assert shown["settings"]["seed"] == {"value": 1, "origin": "file mine.toml"}
    assert shown["settings"]["account.cash"] == {"value": 50_000.0, "origin": "env THINKTWICE_ACCOUNT__CASH"}
    assert shown["settings"]["gate.q"]["origin"] == "default"
    assert shown["settings"]["runtime.db"]["value"] == "postgresql://me:***@host/db"
    text = shell.run("config", "show", "mine.toml").stdout
    assert shown["config_hash"] in text
    assert "s3cret" not in text


def test_no_command_prints_the_help(shell):
    result = shell.run()
    assert result.exit_code == 0
    assert "backtest" in result.stdout
