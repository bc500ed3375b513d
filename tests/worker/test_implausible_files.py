"""A bar file with slips, end to end: `data check` lists them, `data.plausibility` decides what runs do."""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.store import open_store
from tests.commands.started import thinktwice
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import embedded_bars
from tools.docs_examples import shell_environment
from trading_core.bars import COLUMNS
from trading_core.spacing import show_label
from worker.cli import app
from worker.feeds.selected_bars import load_bars, settings_of_bars
from worker.pages.text_parts import text_of
from worker.runs.run_text import summary_parts
from worker.runs.stored_settings import stored_settings

SLIPS = {40: 10.0, 90: 1e250}


def run(*words: str) -> Any:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def printed(document: Any) -> list[str]:
    """The summary of a document, as a command prints it."""
    return text_of(summary_parts(document), 200).splitlines()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    bars = embedded_bars("2009-01-01", "2009-12-31").select(("IBM",))
    lines = ["time,symbol,open,high,low,close,volume"]
    for t in range(bars.shape[0]):
        factor = SLIPS.get(t, 1.0)
        values = [
            float(getattr(bars, name)[t, 0]) * (1.0 if name == "volume" else factor) for name in COLUMNS
        ]
        lines.append(",".join([show_label(int(bars.times[t])), "IBM", *map(repr, values)]))
    (tmp_path / "bars.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "always.toml").write_text('[data]\nplausibility = "always"\n')
    return tmp_path


def test_data_check_lists_the_bars_that_are_implausible(folder: Path) -> None:
    found = run("data", "check", "bars.csv", "--json")["symbols"]["IBM"]
    assert found["implausible"] == len(found["first_implausible"]) == 2
    assert found["first_implausible"][1]["highest"] > 1e250
    text = CliRunner().invoke(app, ["data", "check", "bars.csv"]).stdout
    assert "DOUBTFUL   IBM at 2009-03-03T00:00:00Z: 2 implausible bars" in text


def test_backtest_that_takes_implausible_bars_says_so_and_prints_no_warning_of_numpy(folder: Path) -> None:
    """In a process of its own, in which warnings are no errors, as a person runs it."""
    words = [thinktwice(), "backtest", "--data", "bars.csv", "--json"]
    done = subprocess.run(words, env=shell_environment({}), capture_output=True, text=True, check=True)
    [line] = [line for line in done.stderr.splitlines() if not line.startswith("[")]
    assert line.startswith("thinktwice: IBM at 2009-03-")
    assert ": 2 implausible bars: data.plausibility = 'always' leaves out such bars" in line
    data = json.loads(done.stdout)["data"]
    assert (data["left_out"], [doubt["kind"] for doubt in data["doubts"]]) == ({}, ["tick"])


def test_summary_says_how_many_bars_were_left_out_why_and_where_to_see_them(folder: Path) -> None:
    lines = (folder / "bars.csv").read_text().splitlines()
    other = [line.replace(",IBM,", ",B,") for line in lines[1:]]
    (folder / "two.csv").write_text("\n".join([*lines, *other[:60], *other[67:]]) + "\n")
    for words in (["backtest"], ["paper", "--speed", "max", "--new"]):
        words += ["always.toml", "--data", "two.csv"]
        document = run(*words, "--json")
        assert document["data"]["left_out"] == {"implausible": 4, "absent": 7}
        [line] = [line for line in printed(document) if line.startswith("bars left out: ")]
        assert line.startswith("bars left out: absent 7, implausible 4   thinktwice journal r0")
        assert line.endswith(" --kind feed_anomaly   thinktwice data check FILE")
    whole = run("backtest", "always.toml", "--from", "2012-01-01", "--json")
    assert whole["data"]["left_out"] == {}
    assert "left out" not in "\n".join(printed(whole))


def test_file_with_slips_gives_one_head_in_backtest_paper_verify_and_rebuilding(folder: Path) -> None:
    backtest = run("backtest", "always.toml", "--data", "bars.csv", "--json")
    paper = run("paper", "always.toml", "--data", "bars.csv", "--feed", "replay", "--speed", "max", "--json")
    heads = {item["journal"]["head_hash"] for item in (backtest, paper)}
    assert len(heads) == 1
    text = (
        CliRunner().invoke(app, ["journal", backtest["run_id"], "--kind", "feed_anomaly", "--jsonl"]).stdout
    )
    assert len(text.splitlines()) == len(SLIPS), text
    for item in (backtest, paper):
        assert run("verify", item["run_id"], "--json")["ok"]

    async def again() -> int:
        async with await open_store("sqlite:///thinktwice.db", create=False) as store:
            record = await store.runs.find(backtest["run_id"])
            settings = stored_settings(record)
            bars = load_bars(settings_of_bars(record, settings, None))
            return (await backtest_replay(settings, bars, store, record).rebuild()).compared

    assert asyncio.run(again()) == backtest["journal"]["events"]


@pytest.mark.parametrize("at", [2, 100, 249])
def test_step_that_stays_costs_its_first_two_bars_in_paper_as_in_backtest(folder: Path, at: int) -> None:
    bars = embedded_bars("2009-01-01", "2009-12-31").select(("IBM",))
    lines = ["time,symbol,open,high,low,close,volume"]
    for t, label in enumerate(bars.times.tolist()):
        values = [
            float(getattr(bars, name)[t, 0]) / (4.0 if t >= at and name != "volume" else 1.0)
            for name in COLUMNS
        ]
        lines.append(",".join([show_label(label), "IBM", *map(repr, values)]))
    (folder / "split.csv").write_text("\n".join(lines) + "\n")
    words = ["always.toml", "--data", "split.csv", "--json"]
    backtest, paper = run("backtest", *words), run("paper", *words, "--speed", "max", "--new")
    assert backtest["journal"]["head_hash"] == paper["journal"]["head_hash"]
    assert backtest["data"]["sha256"] == paper["data"]["sha256"]
    for document in (backtest, paper):
        assert document["data"]["left_out"] == {"implausible": 2}
        assert document["data"]["bars"] == bars.shape[0] - 2
    taken = run("backtest", "--data", "split.csv", "--json")["data"]
    assert (taken["bars"], taken["left_out"]) == (bars.shape[0], {})
