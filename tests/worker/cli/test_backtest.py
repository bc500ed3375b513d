import json
import signal
import sqlite3

import pytest

from tests.worker.cli.fake_runner import EPISODE, REPORT_ID, FakeRunner


def test_backtest_prints_a_summary_and_keeps_the_run(shell):
    result = shell.backtest("--full")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("run r0001   AAPL   1d")
    shown = " ".join(result.stdout.split())
    for text in (
        "12.3 % CAGR 30.0 %",
        "-5.0 % largest drawdown 10.0 %",
        "+0.97 R a trade",
        "regime_change 7, heartbeat 4",
        "hold_lock 2",
        "reflections pass 1, revise 1",
        "latency_ms.p50 0.4 latency_ms.p95 1.2",
        "insufficient_episodes 9",
        "approve 1",
        "sqlite:///thinktwice.db",
        "errors: 0",
    ):
        assert text in shown
    assert (shell.folder / "thinktwice.db").is_file()


def test_backtest_json_is_one_document_and_nothing_else(shell):
    result = shell.backtest("--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert document["run_id"] == "r0001"
    assert document["performance"]["sharpe"] is None
    assert document["journal"]["url"] == "sqlite:///thinktwice.db"
    stored = json.loads(shell.run("runs", "--json").stdout)
    assert stored[0]["head_hash"] == document["journal"]["head_hash"]
    assert stored[0]["events"] == document["journal"]["events"]


def test_backtest_with_reflection_off_says_so_first(shell):
    assert shell.backtest("--reflection", "off").stdout.startswith("reflection is off")
    assert not shell.backtest("--reflection", "deterministic").stdout.startswith("reflection is off")


def test_backtest_same_config_and_seed_give_the_same_head_and_another_seed_does_not(shell):
    heads = [
        json.loads(shell.backtest("--json", "--seed", seed).stdout)["journal"]["head_hash"] for seed in "112"
    ]
    assert heads[0] == heads[1] != heads[2]


def test_backtest_with_errors_names_them_and_exits_one(shell):
    shell.engine = FakeRunner(errors=7)
    result = shell.backtest()
    assert result.exit_code == 1
    assert "errors: 7" in result.stdout
    assert "policy_loop: ValueError: no level at bar 0" in result.stdout
    assert "and 2 more" in result.stdout
    assert "thinktwice journal r0001 --kind error" in result.stderr


def test_backtest_takes_config_then_environment_then_flags(shell, monkeypatch):
    (shell.folder / "mine.toml").write_text("seed = 1\n[execution]\nfee_bps = 9.0\nslippage_bps = 1.0\n")
    monkeypatch.setenv("THINKTWICE_SEED", "2")
    monkeypatch.setenv("THINKTWICE_EXECUTION__SLIPPAGE_BPS", "4")
    shell.backtest("mine.toml", "--seed", "3")
    with sqlite3.connect("thinktwice.db") as connection:
        name, text = connection.execute("SELECT name, config FROM runs").fetchone()
    connection.close()
    config = json.loads(text)
    assert (name, config["seed"]) == ("mine", 3)
    assert (config["execution"]["fee_bps"], config["execution"]["slippage_bps"]) == (9.0, 4.0)


def test_backtest_out_holds_summary_trades_equity_and_reports(shell):
    stale = shell.folder / "out" / "reports" / f"{'0' * 16}.md"
    stale.parent.mkdir(parents=True)
    stale.write_text("an earlier run")
    stale.with_suffix(".html").write_text("an earlier run")
    (stale.parent / "notes.md").write_text("mine")
    document = json.loads(shell.backtest("--json", "--out", "out").stdout)
    out = shell.folder / "out"
    found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert found == [
        "equity.csv",
        f"reports/{REPORT_ID}.html",
        f"reports/{REPORT_ID}.json",
        f"reports/{REPORT_ID}.md",
        "reports/index.html",
        "reports/notes.md",
        "summary.json",
        "trades.csv",
    ]
    assert json.loads((shell.folder / "out/summary.json").read_text()) == document
    trade = (shell.folder / "out/trades.csv").read_text().splitlines()[1]
    assert trade.startswith(f"{EPISODE.episode_id},AAPL,1d")
    equity = (shell.folder / "out/equity.csv").read_text().splitlines()
    assert equity[:2] == ["time,equity", "2000-03-02T00:00:00+00:00,100000.0"]
    report = json.loads((shell.folder / f"out/reports/{REPORT_ID}.json").read_text())
    assert report["verdict"]["decision"] == "hold"
    page = (shell.folder / f"out/reports/{REPORT_ID}.md").read_text()
    trades = (
        "| trend_pullback | all | 21 | 9 | +0.10 R | -0.20 R | +0.40 R | - | - | +0.00 R | - | - | 1.50 |"
    )
    held = "- | - | - | - |  | +0.60 R | - | - | - | count_only | hold | reference_not_excluded: 21 trades |"
    assert f"{trades} {held}" in page
    assert "- volume | drifts" in page


@pytest.mark.parametrize("out", ["file", "file/inside"])
def test_backtest_out_that_cannot_be_written_is_refused_before_the_run(shell, out):
    (shell.folder / "file").write_text("x")
    assert "--out" in shell.complaint("backtest", "--out", out)
    assert not (shell.folder / "thinktwice.db").exists()


def test_backtest_misspelt_option_in_the_config_names_the_nearest(shell):
    (shell.folder / "bad.toml").write_text("[reflection]\nmood = 'off'\n")
    assert "no setting 'mood' in section [reflection]. Did you mean 'mode'?" in shell.complaint(
        "backtest", "bad.toml"
    )


def test_backtest_foreign_database_is_refused_and_left_alone(shell):
    (shell.folder / "thinktwice.db").write_bytes(b"text " * 400)
    assert "is not a SQLite database" in shell.complaint("backtest", "--symbols", "AAPL")
    assert (shell.folder / "thinktwice.db").read_bytes() == b"text " * 400


def test_backtest_that_fails_midway_is_kept_as_failed_with_its_rows(shell):
    shell.engine = FakeRunner(fail_at=5)
    assert "bar 5 cannot be used" in shell.complaint("backtest", "--symbols", "AAPL")
    (run,) = json.loads(shell.run("runs", "--json").stdout)
    assert (run["status"], run["events"]) == ("failed", 11)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_backtest_stopped_by_a_signal_keeps_whole_bars_and_verifies(shell, signum, code):
    shell.engine = FakeRunner(at_bar=lambda t: signal.raise_signal(signum) if t == 4 else None)
    before = signal.getsignal(signum)
    result = shell.backtest()
    assert (result.exit_code, result.stdout) == (code, "")
    assert "run r0001 is kept up to here" in result.stderr
    assert signal.getsignal(signum) is before
    (run,) = json.loads(shell.run("runs", "--json").stdout)
    assert (run["status"], run["events"]) == ("interrupted", 11)
    shell.engine = FakeRunner()
    assert shell.run("verify", "r0001").exit_code == 0


def test_empty_name_of_bars_is_refused_and_is_not_the_folder_of_work(shell):
    (shell.folder / "AAPL.csv").write_text("time,open,high,low,close,volume\n2020-01-02,1,1,1,1,1\n", "utf-8")
    done = shell.run("backtest", "--data", "")
    assert done.exit_code == 2
    assert (
        done.stderr == "thinktwice: flag --data: runtime.data = '': string should have at least 1 character\n"
    )


def test_run_on_bars_of_a_file_is_named_by_it_and_by_its_configuration_where_it_has_one(shell):
    rows = [f"2020-01-{day:02d},{day},{day + 1},{day},{day},1" for day in range(2, 30)]
    (shell.folder / "mine.csv").write_text("\n".join(["time,open,high,low,close,volume", *rows]), "utf-8")
    (shell.folder / "setting.toml").write_text('[runtime]\ndata = "mine.csv"\n', "utf-8")
    for words in ((), ("--data", "mine.csv", "--tz", "UTC"), ("setting.toml", "--tz", "UTC")):
        assert shell.run("backtest", *words).exit_code == 0
    named = {run["run_id"]: run["name"] for run in json.loads(shell.run("runs", "--json").stdout)}
    assert named == {"r0001": "embedded", "r0002": "mine", "r0003": "setting"}


def test_backtest_flags_of_account_and_costs_override_the_file(shell):
    (shell.folder / "mine.toml").write_text("[account]\ncash = 1.0\n[execution]\nfee_bps = 9.0\n")
    costs = ("--cash", "5000", "--fee", "1.5", "--slippage", "0")
    shell.backtest("mine.toml", *costs, "--playbooks", "mean_reversion", "--json")
    with sqlite3.connect("thinktwice.db") as connection:
        [text] = connection.execute("SELECT config FROM runs").fetchone()
    connection.close()
    config = json.loads(text)
    assert config["account"]["cash"] == 5_000.0
    assert (config["execution"]["fee_bps"], config["execution"]["slippage_bps"]) == (1.5, 0.0)
    assert config["runtime"]["playbooks"] == "mean_reversion"


def test_backtest_on_longer_bars_says_what_it_left_out_and_trades_them(shell):
    result = shell.run("backtest", "--symbols", "AAPL", "--resample", "1w", "--json")
    assert json.loads(result.stdout)["data"]["timeframe"] == "1w"
    assert "the 1w bar from 2013-02-25T00:00:00Z on is not complete and left out" in result.stderr
