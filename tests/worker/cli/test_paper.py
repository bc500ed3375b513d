"""`thinktwice paper`, `status` and `worker --feed` as an operator uses them."""

import json
import re

from typer.testing import CliRunner

from tests.worker.cli.terminals import in_terminal
from worker.cli import app

BARS = ("--symbols", "AAPL,IBM", "--from", "2009-01-01", "--to", "2009-06-30")


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


def test_paper_prints_the_document_of_the_backtest_and_status_and_verify_know_the_run(tmp_path) -> None:
    db = ("--db", f"sqlite:///{tmp_path}/a.db")
    paper = json.loads(run("paper", "--feed", "replay", *BARS, *db, "--json"))
    backtest = json.loads(run("backtest", *BARS, *db, "--json"))
    assert paper["journal"]["head_hash"] == backtest["journal"]["head_hash"]
    assert paper["performance"] == backtest["performance"]
    assert set(paper) == set(backtest)
    status = json.loads(run("status", "r0001", *db, "--json"))
    assert (status["mode"], status["status"]) == ("paper", "finished")
    assert status["head_hash"] == paper["journal"]["head_hash"]
    pages = (tmp_path / "a.db").stat().st_size
    assert status["store_bytes"] == pages
    assert 0 < status["store_bytes_per_day"] < pages / 300, "two runs of a year share the store"
    assert "more with each day of this run's bars" in run("status", "r0001", *db)
    status = status["process"]["signs"]
    assert (status["buffered_rows"], status["bars_validated"]) == (0, paper["data"]["bars"])
    assert "no process has traded it" in run("status", "r0002", *db)
    assert re.search(r"replay +same: ", run("verify", "r0001", *db))
    assert "paper" in run("runs", *db, "--json")


def test_paper_run_without_a_trade_says_why_as_the_backtest_does(tmp_path) -> None:
    """In its summary, in a terminal as elsewhere, and with --json."""
    few = ("--symbols", "AAPL", "--from", "2013-02-01", "--to", "2013-02-28", "--new")
    db = ("--db", f"sqlite:///{tmp_path}/a.db")
    shown = json.loads(run("paper", *few, *db, "--json"))["why_no_trade"]
    expected = json.loads(run("backtest", *few[:-1], *db, "--json"))["why_no_trade"]
    assert shown == expected
    assert [(cause["reason"], cause["count"]) for cause in shown] == [("warming_up", 19)]
    seen = in_terminal(("thinktwice", "paper", *few, *db), tmp_path, columns=200)
    seen.demand_clean()
    assert seen.code == 0
    first = seen.lines.index("no trade, and what would change it:")
    assert seen.lines[first + 1] == f"  warming_up 19: {shown[0]['remedy']}"
    account = next(line for line in seen.lines if "trend_pullback: entry rule true" in line)
    assert seen.lines.index(account) < first


def test_paper_that_is_given_again_after_its_end_is_another_run(tmp_path) -> None:
    db = ("--db", f"sqlite:///{tmp_path}/a.db")
    first = json.loads(run("paper", *BARS, *db, "--json"))
    second = json.loads(run("paper", *BARS, *db, "--json"))
    assert (first["run_id"], second["run_id"]) == ("r0001", "r0002")
    assert first["journal"]["head_hash"] == second["journal"]["head_hash"]


def test_worker_on_a_feed_that_waits_is_the_paper_run(tmp_path) -> None:
    db = ("--db", f"sqlite:///{tmp_path}/a.db")
    bars = tmp_path / "bars.csv"
    rows = ["time,open,high,low,close,volume"]
    for day in range(1, 29):
        rows.append(f"2020-02-{day:02d}T00:00:00Z,{100 + day},{101 + day},{99 + day},{100 + day},10")
    bars.write_text("\n".join(rows) + "\n", "utf-8")
    given = ("--feed", "replay", "--data", str(bars), "--timeframe", "1d")
    paper = json.loads(run("paper", *given, *db, "--json"))
    worker = json.loads(run("worker", *given, *db, "--json"))
    for command in ("paper", "worker"):
        short, full = run(command, *given, *db), run(command, *given, *db, "--full")
        assert "What the agent thought" in short
        assert "llm_calls" in full
        assert "llm_calls" not in short
    assert "it goes with --feed" in run("worker", "--full", *db, code=2)
    assert paper["journal"]["head_hash"] == worker["journal"]["head_hash"]
    assert paper["data"]["bars"] == 28
    assert {stored["name"] for stored in json.loads(run("runs", "--json", *db))} == {"bars"}
