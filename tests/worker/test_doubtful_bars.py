"""A split, a tick, a flat week and a repeated row are named in Python, command, page and JSON."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import thinktwice as tt
from schemas.errors import DataError
from schemas.settings import DataSettings, Settings
from tests.worker.live.paper_runs import Item, RunningFeed, rows_of, rows_stored, traded
from tests.worker.shared_runs import embedded_bars
from worker.cli import app

KINDS = ["repeated", "flat", "tick", "split"]  # in order of time
QUOTED = {
    "repeated": "BARS at 2024-01-21T00:00:00Z: 1 row stood twice, and one of each is left out",
    "flat": "BARS at 2024-02-10T00:00:00Z: no movement in 6 bars: were they filled in? Remove them",
    "tick": "BARS at 2024-03-11T00:00:00Z: 1 implausible bar: data.plausibility = 'always' leaves out such",
    "split": "BARS at 2024-04-10T00:00:00Z: the price steps by 4 from close to open and stays, as",
}


@pytest.fixture
def frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    close = 100.0 + np.random.default_rng(5).uniform(-1.0, 1.0, 200).cumsum()
    opens = np.concatenate([[100.0], close[:-1]])
    prices = {"open": opens, "high": np.maximum(opens, close) + 0.5, "low": np.minimum(opens, close) - 0.5}
    index = pd.date_range("2024-01-01", periods=200, freq="D", tz="UTC", name="time")
    bars = pd.DataFrame(prices | {"close": close, "volume": 5.0}, index=index)
    bars.iloc[40:46, :4] = bars["close"].iloc[39]
    bars.iloc[70, :4] *= 10.0
    bars.iloc[100:, :4] /= 4.0
    return pd.concat([bars.iloc[:21], bars.iloc[20:]])


def test_doubtful_bars_are_named_by_the_command_its_document_the_page_and_the_list_of_runs(frame):
    frame.to_csv("bars.csv")
    words = ["backtest", "--data", "bars.csv", "--reflection", "off", "--json", "--html", "run.html"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    page, document = Path("run.html").read_text(), json.loads(done.stdout)
    assert [doubt["kind"] for doubt in document["data"]["doubts"]] == KINDS
    listed = json.loads(CliRunner().invoke(app, ["runs", "--json"]).stdout)
    assert listed[0]["doubts"] == document["data"]["doubts"]
    assert "200 (4 doubts)" in CliRunner().invoke(app, ["runs"], terminal_width=200).stdout
    for kind, text in QUOTED.items():
        assert text in done.stderr, kind
        assert text.replace("'", "&#39;") in page, kind
        assert any(doubt["text"].startswith(text) for doubt in document["data"]["doubts"]), kind


def test_doubtful_bars_of_a_frame_are_warned_of_and_stand_in_the_document(frame):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = tt.backtest(frame, reflection="off")
        tt.simulate(frame, "close > open")
    lines = [str(warning.message) for warning in caught]
    for kind, text in QUOTED.items():
        assert len([line for line in lines if line.startswith(text)]) == 2, kind
    assert [doubt["kind"] for doubt in result.document["data"]["doubts"]] == KINDS
    printed = str(result)
    assert all(f"doubtful: {doubt['text']}" in printed for doubt in result.document["data"]["doubts"])


def test_doubtful_bars_are_refused_where_the_settings_say_so(frame):
    frame.to_csv("bars.csv")
    Path("refuse.toml").write_text('[data]\non_doubt = "refuse"\n')
    done = CliRunner().invoke(app, ["backtest", "refuse.toml", "--data", "bars.csv"])
    assert done.exit_code == 2
    assert f"{QUOTED['repeated']} (and 3 more); data.on_doubt = 'warn' trades them" in done.stderr
    with pytest.raises(DataError, match="one of each is left out .and 3 more.; data.on_doubt"):
        tt.backtest(frame, data__on_doubt="refuse")


def test_paper_names_doubtful_bars_of_a_recording_or_refuses_them(frame):
    frame.to_csv("bars.csv")
    words = ["paper", "--data", "bars.csv", "--reflection", "off", "--db", "sqlite:///paper.db"]
    Path("refuse.toml").write_text('[data]\non_doubt = "refuse"\n')
    refused = CliRunner().invoke(app, [*words, "refuse.toml"])
    assert refused.exit_code == 2
    assert f"{QUOTED['repeated']} (and 3 more); data.on_doubt = 'warn' trades them" in refused.stderr
    assert not Path("paper.db").exists()
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert [done.stderr.count(text) for text in QUOTED.values()] == [1, 1, 1, 1]


def test_live_feed_whose_history_is_doubtful_is_refused_before_its_first_bar_is_traded(tmp_path):
    bars = embedded_bars("2009-01-01", "2009-12-31").select(("AAPL",))
    prices = {name: getattr(bars, name).copy() for name in ("open", "high", "low", "close")}
    for values in prices.values():
        values[40:46] = prices["close"][39].copy()
        values[100:] /= 4.0  # two bars are left out by the guard of a live feed, and no doubt any more
    rows: list[Item] = [
        replace(row, history=number < 150) for number, row in enumerate(rows_of(replace(bars, **prices)))
    ]
    refuse = Settings(data=DataSettings(on_doubt="refuse"))
    for _ in range(2):  # the run is left where its history ends, and is refused when it goes on
        with pytest.raises(DataError, match="^AAPL at 2009-.*: no movement in 6 bars.*; data.on_doubt"):
            traded(tmp_path, refuse, RunningFeed(bars, items=rows))
    assert {row.kind for row in rows_stored(tmp_path)}.isdisjoint({"policy_evaluation", "thesis_armed"})
    warned = traded(tmp_path, Settings(), RunningFeed(bars, items=rows)).document
    assert warned is not None
    assert warned["data"]["left_out"] == {"implausible": 2}
    assert "tick" not in [doubt["kind"] for doubt in warned["data"]["doubts"]]


def test_notes_of_a_file_are_said_where_the_run_is_made_and_not_by_verify_and_page(frame):
    frame.iloc[:20, :4].to_csv("bars.csv")
    say = CliRunner().invoke
    made = say(app, ["backtest", "--data", "bars.csv", "--reflection", "off"])
    assert made.stderr.count("no volume of BARS") == 1
    for words in (["verify", "latest"], ["page", "latest", "--html", "run.html"], ["report", "latest"]):
        assert "no volume" not in say(app, words).stderr, words
    assert "no volume of BARS" in Path("run.html").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["backtest", "--reflection", "off"],
        ["backtest", "--dry-run", "model.toml"],
        ["ablate", "--seeds", "1"],
        ["paper", "--reflection", "off"],
    ],
    ids=["backtest", "dry-run", "ablate", "paper"],
)
def test_document_of_every_command_that_reads_bars_names_those_in_doubt(frame, words):
    frame.to_csv("bars.csv")
    Path("model.toml").write_text('[llm]\nmodel = "ollama/x"\n[reflection]\nmode = "full"\n')
    done = CliRunner().invoke(app, [*words, "--data", "bars.csv", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["data"]["doubts"]
    checked = json.loads(CliRunner().invoke(app, ["data", "check", "bars.csv", "--json"]).stdout)
    # A feed hands each bar out once: what stood twice in its file is said on stderr at the start of paper.
    wanted = [
        doubt
        for doubt in checked["symbols"]["BARS"]["doubts"]
        if words[0] != "paper" or doubt["kind"] != KINDS[0]
    ]
    assert found == wanted
    assert [doubt["kind"] for doubt in wanted] == KINDS[words[0] == "paper" :]
