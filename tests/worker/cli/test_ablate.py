"""`thinktwice ablate` as a user runs it: real arms, stored and verifiable, and pages with the answers."""

import json
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.services.store.stores import opened
from tests.worker.cli.checking import run as command
from tests.worker.shared_runs import embedded_bars
from tests.worker.wire import GOOD, KEY_VARIABLE, wire
from worker.studies.ablation.runner import KIND

PERIOD = ("--symbols", "AAPL,MSFT", "--from", "2003-01-01", "--to", "2004-06-30")
MODEL = """
[llm]
model = "anthropic/claude-test"
prices = [{ model = "claude-test", input_usd = 0.1, output_usd = 0.5 }]
[reflection]
budget_event_ms = 20000
budget_heartbeat_ms = 20000
"""


class Made(NamedTuple):
    """A finished ablation: its store, its output folder and its document."""

    url: str
    out: Path
    document: dict[str, Any]

    def run_of(self, arm: str) -> dict[str, Any]:
        found: dict[str, Any] = next(entry["run"] for entry in self.document["arms"] if entry["arm"] == arm)
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    place = tmp_path_factory.mktemp("ablate")
    url = f"sqlite:///{place / 'a.db'}"
    done = command("ablate", *PERIOD, "--seeds", "2", "--db", url, "--out", str(place / "out"), "--json")
    assert done.exit_code == 0, done.stderr
    return Made(url, place / "out", json.loads(done.stdout))


def test_ablate_runs_every_arm_on_the_same_bars_and_asks_no_model(made):
    status = {arm["arm"]: arm["status"] for arm in made.document["arms"]}
    assert status == {
        "no_reflection": "run",
        "fast_only": "run",
        "deterministic": "run",
        "full": "not run: no model configured",
        "random_veto": "run",
    }
    assert len({entry["run"]["head_hash"] for entry in made.document["arms"] if entry["run"]}) >= 3
    assert [entry["answer"] for entry in made.document["tiers"]] == ["unknown", "unknown", "unknown", None]
    assert made.document["unit"] == "month"


def test_ablate_deterministic_arm_is_the_backtest_itself(made):
    bars = embedded_bars("2003-01-01", "2004-06-30")
    done = command("backtest", *PERIOD, "--db", f"sqlite:///{made.out.parent / 'b.db'}", "--json")
    assert made.document["data"]["bars"] < bars.bar_count
    assert made.run_of("deterministic")["head_hash"] == json.loads(done.stdout)["journal"]["head_hash"]


def test_ablate_stores_its_arms_as_runs_of_their_own_mode(made):
    with sqlite3.connect(made.url.removeprefix("sqlite:///")) as store:
        rows = store.execute("select run_id, mode, status, name from runs order by number").fetchall()
    assert [row[1:3] for row in rows] == [("ablation", "finished")] * 4
    assert rows[3][3] == "embedded: random_veto 0"
    seeds = made.document["random_veto"]["seeds"]
    assert [seed["run_id"] for seed in seeds] == [rows[3][0], None]


@pytest.mark.parametrize("arm", ["no_reflection", "random_veto"])
def test_ablate_arm_is_verified_like_any_run(made, arm):
    run_id = made.run_of(arm)["run_id"]
    done = command("verify", run_id, "--db", made.url, "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 0
    assert report["replay"]["ok"]
    assert report["replay"]["head_hash"] == made.run_of(arm)["head_hash"]


def test_ablate_arm_whose_coin_is_not_thrown_again_differs(made, monkeypatch):
    from worker.runs.backtest import run_backtest
    from worker.studies.ablation import runner

    monkeypatch.setattr(runner, "vetoed_runner", lambda veto: run_backtest)
    done = command("verify", made.run_of("random_veto")["run_id"], "--db", made.url, "--json")
    assert done.exit_code == 1
    assert not json.loads(done.stdout)["replay"]["ok"]


def test_ablate_coin_throws_at_the_rate_of_the_stored_reflections(made):
    url = made.url.removeprefix("sqlite:///")
    with opened(url) as store:
        (veto,) = store.execute("select unpacked(payload) from journal where kind = ?", (KIND,)).fetchall()
        query = "select unpacked(payload) from journal where kind = 'policy_reflection' and run_id = ?"
        results = store.execute(query, (made.run_of("fast_only")["run_id"],)).fetchall()
    rates = made.document["random_veto"]["rates"]
    assert json.loads(veto[0]) == {"seed": 0, "rates": rates}
    refused = sum(json.loads(text)["result"]["status"] != "pass" for (text,) in results)
    assert refused > 0
    assert rates[0]["revise"] + rates[0]["block"] > 0.0


def test_ablate_pages_hold_the_answers_and_every_arm(made):
    page, text = (made.out / name for name in ("ablation.html", "ablation.md"))
    assert json.loads((made.out / "ablation.json").read_text()) == made.document
    for message in (page.read_text(), text.read_text()):
        assert "Fast reflection: unknown" in message
        assert "Model: not run" in message
        assert all(arm["arm"] in message for arm in made.document["arms"])
        assert f"{made.run_of('fast_only')['trades']:,}" in message
    assert "<script" not in page.read_text()
    assert page.read_text().count("<circle") == 5


def test_ablate_prints_its_answers_as_text_and_without_a_seed_throws_no_coin(tmp_path):
    url, out = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "out"
    words = ("ablate", "--symbols", "AAPL", "--to", "2001-06-30", "--seeds", "0", "--db", url)
    done = command(*words, "--out", str(out))
    assert done.exit_code == 0
    for part in ("Fast reflection: unknown", "Slow loop: unknown", "Model: not run", "in the market"):
        assert part in done.stdout
    assert "are needed" in done.stdout or "holds 0" in done.stdout
    document = json.loads((out / "ablation.json").read_text("utf-8"))
    assert document["random_veto"]["seeds"] == []
    assert document["arms"][-1]["status"] == "not run: no seed asked for"
    assert all(entry["against_chance"] is None for entry in document["tiers"])


@pytest.mark.usefixtures("over_the_cap")
def test_ablate_with_a_model_runs_the_arm_that_asks_it(tmp_path, monkeypatch):
    config = tmp_path / "model.toml"
    config.write_text(MODEL)
    url = f"sqlite:///{tmp_path / 'a.db'}"
    words = ("ablate", str(config), "--symbols", "AAPL", "--from", "2003-01-01", "--to", "2003-12-31")
    with wire(monkeypatch, GOOD) as server:
        done = command(*words, "--seeds", "0", "--db", url, "--json")
    assert done.exit_code == 0, done.stderr
    arms = {load["arm"]: load for load in json.loads(done.stdout)["arms"]}
    assert arms["full"]["status"] == "run"
    assert len(server.requests) > 0
    model = next(load for load in json.loads(done.stdout)["tiers"] if load["tier"] == "model")
    assert model["answer"] == "unknown"
    assert model["reason"].startswith("contaminated: no knowledge cutoff is known for claude-test")
    assert arms["full"]["run"]["contamination"] == "unknown"
    verified = command("verify", arms["full"]["run"]["run_id"], "--db", url, "--json")
    assert verified.exit_code == 0


def test_ablate_with_a_model_and_no_key_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    config = tmp_path / "model.toml"
    config.write_text(MODEL)
    store = tmp_path / "a.db"
    done = command("ablate", str(config), "--db", f"sqlite:///{store}")
    assert done.exit_code == 2
    assert KEY_VARIABLE in done.stderr
    assert not store.exists()


def test_ablate_of_a_model_strategist_refuses_a_cassette(tmp_path):
    config = tmp_path / "model.toml"
    config.write_text('llm.model = "ollama/x"\npolicy_loop.strategist = "model"\n')
    tape = tmp_path / "tape.jsonl"
    tape.write_text("")
    done = command(
        "ablate", str(config), "--llm", "replay", "--cassette", str(tape), "--db", f"sqlite:///{tmp_path}/a"
    )
    assert done.exit_code == 2
    assert "other questions in every arm" in done.stderr


def test_ablate_help_says_what_the_answers_mean():
    text = command("ablate", "--help").stdout
    for words in ("helped, hurt or unknown", "no better than chance", "--seeds", "verify", "shadow ledger"):
        assert words in " ".join(text.split())
