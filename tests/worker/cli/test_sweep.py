"""`thinktwice sweep` as a user runs it: the worth first, a refusal to show a lucky set, and the ledger."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import thinktwice as tt
from worker.cli import app

BARS = ("--symbols", "IBM", "--to", "2005-12-31")
GRID = """
entry = "crosses_above(sma_{f}, sma_{s})"
target_pct = 0.06

[grid]
f = [5, 10]
s = [20, 40]
"execution.fee_bps" = [1, 10]
"""


def command(*words, code=0):
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "GRID.toml"
    path.write_text(GRID, "utf-8")
    return str(path)


def test_sweep_prints_what_the_search_is_worth_before_any_set(grid, tmp_path):
    lines = command("sweep", "--grid", grid, *BARS).stdout.splitlines()
    assert lines[0].startswith("8 sets tried: ")
    assert lines[1].startswith("out of sample ")
    assert any(line.startswith("best in sample: ") for line in lines)
    assert list(tmp_path.iterdir()) == [tmp_path / "GRID.toml"]  # nothing is written unasked


def test_sweep_is_the_one_of_the_library_with_the_settings_of_a_file(grid, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("[execution]\nslippage_bps = 0.0\n", "utf-8")
    shown = json.loads(command("sweep", str(config), "--grid", grid, *BARS, "--json").stdout)
    found = tt.sweep(
        None, "crosses_above(sma_{f}, sma_{s})", {"f": [5, 10], "s": [20, 40], "fee_bps": [1, 10]},
        target_pct=0.06, slippage_bps=0.0, symbols=["IBM"], end="2005-12-31",
    )  # fmt: skip
    assert shown["sets"] == found.document()["sets"]
    assert shown["worth"] == found.document()["worth"]


def test_sweep_shows_the_best_of_an_overfitted_search_only_to_who_knows(grid, monkeypatch):
    from worker.studies.sweep import result
    from worker.studies.sweep.worth import worth_of as worth

    monkeypatch.setattr(result, "worth_of", lambda *given: worth(*given).__class__(
        **{**vars(worth(*given)), "pbo": 0.9}))  # fmt: skip
    assert json.loads(command("sweep", "--grid", grid, *BARS, "--json").stdout)["best"] is None
    assert "--i-know shows it" in command("sweep", "--grid", grid, *BARS).stdout
    assert json.loads(command("sweep", "--grid", grid, *BARS, "--json", "--i-know").stdout)["best"]["f"] in (
        5,
        10,
    )


def test_sweep_with_a_store_is_listed_as_tried(grid, tmp_path):
    url = f"sqlite:///{tmp_path / 't.db'}"
    for _ in range(2):
        command("sweep", "--grid", grid, *BARS, "--db", url)
    (tried,) = json.loads(command("trials", "--db", url, "--json").stdout)["ranges"]
    assert (tried["configurations"], tried["hypotheses"]) == (1, 8)
    assert tried["runs"][0].startswith("sweep:8:")
    assert command("db", "check", "--db", url).exit_code == 0


def test_sweep_draws_the_values_of_a_playbook(tmp_path):
    words = ("sweep", "--playbook", "channel_breakout", "--random", "6", *BARS, "--seed", "3", "--json")
    one, same = (json.loads(command(*words).stdout) for _ in range(2))
    assert one == same
    assert len(one["sets"]) == 6


def test_sweep_writes_its_page_its_document_and_its_table(grid, tmp_path):
    out = tmp_path / "out"
    shown = json.loads(command("sweep", "--grid", grid, *BARS, "--out", str(out), "--json").stdout)
    assert json.loads((out / "sweep.json").read_text()) == shown
    assert len(pd.read_parquet(out / "sweep.parquet")) == 8
    assert "8 sets tried" in (out / "sweep.html").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "what is swept? give --playbook ID, or --grid FILE"),
        ("entry = 'close > {n}'", "no values for {n}"),
        ("entry = 'close > {n}'\ngrid = 3", "grid is 3: give a table of lists"),
        ("playbook = 'chanel_breakout'", "channel_breakout"),
        ("entry = 'close > 1'\nplaybook = 'channel_breakout'", "give entry or playbook"),
        ("entry = 'close > 1'\n[grid]\n'execution.fee_bp' = [1]", "fee_bps"),
        ("entry = [", "cannot be read"),
    ],
)
def test_sweep_file_that_cannot_be_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "g.toml"
    path.write_text(text, "utf-8")
    assert message in command("sweep", "--grid", str(path), *BARS, code=2).stderr
