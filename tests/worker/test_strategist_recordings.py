"""The command line with a model as strategist: recorded, verified, replayed, refused with the next step."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import answer, events, in_turn, message, stream
from tests.agents.strategies.questions import Question, change, propose
from tests.worker.strategist_wire import StrategistOnTheWire, first_plan
from tests.worker.test_model_recordings import Desk
from tests.worker.wire import wire

CONFIG = """
[llm]
model = "anthropic/claude-test"
strategist_deadline_ms = {deadline}
attempts = 1
prices = [{{ model = "claude-test", input_usd = 1.0, output_usd = 5.0 }}]

[deliberation.pass]
enabled = false
"""
SPAN = ("--from", "2003-01-01", "--to", "2003-09-30")
RECORD = ("--llm", "record", "--cassette", "c.jsonl")
REPLAY = ("--llm", "replay", "--cassette", "c.jsonl")


class StrategistDesk(Desk):
    """Commands whose strategist is a model; the reflection is the default one."""

    def backtest(self, *words: str, budget: float = 20_000.0) -> Any:
        (self.folder / "s.toml").write_text(CONFIG.format(deadline=budget), "utf-8")
        return self.run("backtest", "s.toml", "--strategist", "model", *SPAN, *words)

    def document(self, *words: str, **options: float) -> dict[str, Any]:
        return super().document("--json", *words, **options)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StrategistDesk:
    for name in [name for name in os.environ if name.startswith(("THINKTWICE_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return StrategistDesk(tmp_path)


def uneven(question: Question) -> dict[str, Any] | str:
    """Sometimes no reply, sometimes too sure, else a plan."""
    day = datetime.fromisoformat(question.snapshot["ts_event"]).toordinal() % 3
    if day == 0 and question.correction is None:
        return "Let me think about it."
    if day == 1 and question.task == "choose":
        return propose(question.base(), change("conviction", 0.99))
    return first_plan(question)


def recorded(desk: StrategistDesk, monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    strategist = StrategistOnTheWire(uneven)
    with wire(monkeypatch, strategist, stream(events("no narrative"))) as server:
        strategist.server = server
        return desk.document(*words)


def test_recorded_strategist_verifies_and_replays_to_the_same_rows_without_key_or_network(desk, monkeypatch):
    first = recorded(desk, monkeypatch, *RECORD)
    assert first["model"]["calls"] > first["policy_loop"]["evaluations"] > 10
    lines = [json.loads(line) for line in (desk.folder / "c.jsonl").read_text("utf-8").splitlines()]
    assert len(lines) == first["model"]["calls"]
    assert {line["payload"]["call"]["prompt"] for line in lines} == {"strategist"}
    check = desk.verified()
    assert check["ok"], check
    assert check["replay"]["compared"] == first["journal"]["events"]
    again = desk.document(*REPLAY, "--db", "sqlite:///other.db")
    assert again["journal"]["head_hash"] == first["journal"]["head_hash"]
    assert again["strategist"] == first["strategist"]
    del again["model"]["forecast"], first["model"]["forecast"]  # hours are measured
    assert again["model"] == first["model"]
    assert desk.run("verify", "latest", "--db", "sqlite:///other.db").exit_code == 0


@pytest.mark.parametrize("mode", ["off", "full"])
def test_live_strategist_verifies_from_its_own_journal_in_the_other_modes(desk, monkeypatch, mode):
    first = recorded(desk, monkeypatch, "--reflection", mode, "--to", "2003-08-15")
    assert first["strategist"]["answers"]["claude-test"] > 3
    check = desk.verified()
    assert check["ok"], check


def test_recorded_failures_of_a_strategist_are_replayed_where_they_happened(desk, monkeypatch):
    nonsense, late = answer(message("hm")), WHOLE["hang"].handler
    refusal, overload = WHOLE["refusal"].handler, WHOLE["status_529"].handler
    mixed = in_turn(nonsense, nonsense, overload, nonsense, late, refusal)
    with wire(monkeypatch, mixed):
        done = desk.backtest("--json", *RECORD, budget=400.0)
    assert done.exit_code == 1, "no answer of the model was of use"
    first = json.loads(done.stdout)
    assert {"refusal", "overloaded"} <= set(first["strategist"]["fallbacks"])
    assert set(first["strategist"]["answers"]) == {"rules"}
    check = desk.verified()
    assert check["ok"], check
    again = json.loads(desk.backtest("--json", *REPLAY, budget=400.0).stdout)
    assert again["journal"]["head_hash"] == first["journal"]["head_hash"]


def test_replay_of_a_strategist_on_other_bars_is_a_miss_that_names_its_prompt(desk, monkeypatch):
    recorded(desk, monkeypatch, *RECORD)
    missed = desk.backtest(*REPLAY, "--symbols", "AAPL")
    assert missed.exit_code == 2
    for part in ("no recorded reply", "prompts/strategist.txt", "--llm record"):
        assert part in missed.stderr


def test_summary_says_who_answered(desk, monkeypatch):
    strategist = StrategistOnTheWire(uneven)
    with wire(monkeypatch, strategist) as server:
        strategist.server = server
        shown = desk.backtest("--to", "2003-08-15").stdout
    assert "model   answers by claude-test" in " ".join(shown.split(" "))
    assert "rules instead of it" in shown
    assert "return after it" in shown  # what the model cost


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "strategist 'model' needs a key: set ANTHROPIC_API_KEY"),
        (REPLAY, "does not exist"),
        (("--llm", "record"), "--cassette FILE"),
        (("--strategist", "oracle"), "policy_loop.strategist"),
        (("--strategist", "rules", *REPLAY), "policy_loop.strategist 'model'"),
        (("--model", "claude-test"), "flag --model: llm.model = 'claude-test'"),
    ],
)
def test_strategist_options_that_do_not_fit_error_before_anything_is_made(desk, words, part):
    result = desk.backtest(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr
    assert not (desk.folder / "thinktwice.db").exists()
