"""The commands of the main job as a user runs them: real processes, a real store, the real engine."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.commands.started import thinktwice

PERIOD = ("--from", "2003-01-01", "--to", "2004-03-31", "--symbols", "AAPL,MSFT")


def run(*arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [thinktwice(), *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, (
        f"{arguments} ended with {done.returncode}\n{done.stdout[-800:]}\n{done.stderr[-800:]}"
    )
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with one finished run and its output folder."""
    place = tmp_path_factory.mktemp("cli")
    done = run("backtest", *PERIOD, "--out", "out", "--json", cwd=place)
    (place / "document.json").write_text(done.stdout)
    return place


def test_command_line_backtest_json_is_one_document_and_nothing_else(folder: Path) -> None:
    document = json.loads((folder / "document.json").read_text())
    assert document["errors"] == 0
    assert document["performance"]["trades"] == document["episodes"] > 0
    assert document == json.loads((folder / "out" / "summary.json").read_text())
    assert (folder / "thinktwice.db").exists()
    trades = (folder / "out" / "trades.csv").read_text().splitlines()
    assert len(trades) == document["episodes"] + 1
    equity = (folder / "out" / "equity.csv").read_text().splitlines()
    assert len(equity) - 1 == document["data"]["bars"] / 2


def test_command_line_verify_reports_chain_references_and_replay(folder: Path) -> None:
    done = run("verify", "latest", "--json", cwd=folder)
    report = json.loads(done.stdout)
    head = json.loads((folder / "document.json").read_text())["journal"]["head_hash"]
    assert report["chain"]["ok"]
    assert report["replay"]["ok"]
    assert report["replay"]["head_hash"] == report["chain"]["head_hash"] == head


def test_command_line_verify_finds_a_changed_byte(folder: Path, tmp_path: Path) -> None:
    import sqlite3

    copy = tmp_path / "changed.db"
    with sqlite3.connect(folder / "thinktwice.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
    with sqlite3.connect(copy) as store:
        store.execute(
            "update journal set payload = replace(payload, 'long', 'lang') where kind = 'order_accepted'"
        )
    done = run("verify", "latest", "--db", f"sqlite:///{copy}", "--json", cwd=folder, code=1)
    assert not json.loads(done.stdout)["chain"]["ok"]


def test_command_line_journal_until_shows_what_was_known(folder: Path) -> None:
    lines = run("journal", "latest", "--jsonl", cwd=folder).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert list(events[0]) == ["seq", "ts_event", "known_at", "kind", "symbol", "payload", "hash"]
    assert [event["seq"] for event in events] == list(range(len(events)))
    until = run("journal", "latest", "--until", "2003-10-01 00:00", "--jsonl", cwd=folder).stdout.splitlines()
    assert 0 < len(until) < len(lines)
    limit = 1_064_966_400_000_000_000
    assert [json.loads(line)["seq"] for line in until] == [
        event["seq"] for event in events if event["known_at"] <= limit
    ]


def test_command_line_why_leads_from_a_fill_back_to_its_bar_and_findings(folder: Path) -> None:
    lines = run("journal", "latest", "--kind", "exit_filled", "--jsonl", cwd=folder).stdout.splitlines()
    fill = json.loads(lines[0])["payload"]["fill_id"]
    text = run("why", fill[:10], "--json", cwd=folder).stdout
    for word in (
        "order_accepted",
        "policy_event",
        "policy_snapshot",
        "policy_reflection",
        "boundary_verdict",
        "playbook_version",
    ):
        assert word in text


def test_command_line_same_run_again_has_the_same_head_hash(folder: Path) -> None:
    again = json.loads(run("backtest", *PERIOD, "--json", cwd=folder).stdout)
    first = json.loads((folder / "document.json").read_text())
    assert again["run_id"] != first["run_id"]
    assert again["journal"]["head_hash"] == first["journal"]["head_hash"]


def test_command_line_interrupt_leaves_a_journal_that_verify_accepts(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [thinktwice(), "backtest", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "THINKTWICE_RUNTIME__FLUSH_ROWS": "200"},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while process.poll() is None and _rows(tmp_path / "thinktwice.db") < 400:
        assert time.monotonic() < deadline, "the run wrote nothing"
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == ""
    report = json.loads(run("verify", "latest", "--json", cwd=tmp_path).stdout)
    assert report["chain"]["ok"]
    assert report["replay"]["ok"]


def _rows(path: Path) -> int:
    import sqlite3

    if not path.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
            return int(store.execute("select count(*) from journal").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_command_line_full_without_a_key_exits_2_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THINKTWICE_LLM__MODEL", "anthropic/claude-haiku-5-5")
    done = run("backtest", "--reflection", "full", cwd=tmp_path, code=2)
    assert len(done.stderr.splitlines()) == 1
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('no_trade_windows = [{reason = "x", symbol = "APPL", from_minute = 0, to_minute = 9}]', "windows"),
        ('correlation_buckets = [{name = "a", symbols = ["APPL"], max_exposure = 0.5}]', "buckets 'a'"),
    ],
)
def test_command_line_unknown_symbol_in_a_limit_exits_2_and_makes_nothing(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "limits.toml").write_text(f"[envelope]\n{text}\n")
    done = run("backtest", "limits.toml", *PERIOD, cwd=tmp_path, code=2)
    assert words in done.stderr
    assert "unknown symbol 'APPL'" in done.stderr
    assert not (tmp_path / "thinktwice.db").exists()
