"""The command line records a model's replies, verifies and replays them without key, network or waiting."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import prompts
from schemas.settings import ReflectionSettings
from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import Handler, answer, events, in_turn, message, stream
from tests.worker.cli.checking import run
from tests.worker.wire import AGREES, GOOD, wire
from worker.cli import backtest
from worker.runs.interrupts import RunInterrupted

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

SPAN = ("--from", "2003-01-01", "--to", "2003-09-30")
CONFIG = """
[reflection]
mode = "full"
budget_event_ms = {budget}
budget_heartbeat_ms = {budget}
model_deadline_ms = {budget}

[llm]
model = "anthropic/claude-test"
attempts = 1
prices = [{{ model = "claude-test", input_usd = 1.0, output_usd = 5.0 }}]
"""
MIXED = in_turn(GOOD, WHOLE["status_529"].handler, WHOLE["prose"].handler, GOOD, WHOLE["hang"].handler, GOOD)


class Desk:
    """Commands in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str) -> Result:
        return run(*words)

    def backtest(self, *words: str, budget: float = 20_000.0) -> Result:
        (self.folder / "full.toml").write_text(CONFIG.format(budget=budget), "utf-8")
        return self.run("backtest", "full.toml", *SPAN, "--json", *words)

    def document(self, *words: str, **options: float) -> dict[str, Any]:
        result = self.backtest(*words, **options)
        assert result.exit_code == 0, result.output
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    def verified(self, run: str = "latest") -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.run("verify", run, "--json").stdout)
        return report


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in [name for name in os.environ if name.startswith(("THINKTWICE_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


def recorded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, handler: Handler, **options: float
) -> dict[str, Any]:
    with wire(monkeypatch, handler, stream(events("no narrative"))):
        return desk.document("--llm", "record", "--cassette", "c.jsonl", **options)


def test_recorded_run_verifies_and_replays_to_the_same_rows_without_key_or_network(desk, monkeypatch):
    first = recorded(desk, monkeypatch, GOOD)
    assert first["model"]["outcomes"] == {"reply": first["model"]["calls"]}
    assert len((desk.folder / "c.jsonl").read_text("utf-8").split("\n")) == first["model"]["calls"] + 1
    check = desk.verified()
    assert check["ok"], check
    assert check["replay"]["compared"] == first["journal"]["events"]
    again = desk.document("--llm", "replay", "--cassette", "c.jsonl", "--db", "sqlite:///other.db")
    assert again["journal"]["head_hash"] == first["journal"]["head_hash"]
    del again["model"]["forecast"], first["model"]["forecast"]  # hours are measured
    assert again["model"] == first["model"]
    assert desk.run("verify", "latest", "--db", "sqlite:///other.db").exit_code == 0


def test_recorded_failures_and_timeouts_are_replayed_where_they_happened(desk, monkeypatch):
    first = recorded(desk, monkeypatch, MIXED, budget=400.0)
    assert {"overloaded", "timeout", "malformed", "reply"} >= set(first["model"]["outcomes"]) - {
        "budget_spent"
    }
    assert len(first["model"]["outcomes"]) >= 2
    check = desk.verified()
    assert check["ok"], check
    again = desk.document("--llm", "replay", "--cassette", "c.jsonl", budget=400.0)
    assert again["journal"]["head_hash"] == first["journal"]["head_hash"]


def test_live_run_verifies_from_its_own_journal_and_its_rows_are_a_cassette(desk, monkeypatch):
    with wire(monkeypatch, GOOD, stream(events("no narrative"))):
        first = desk.document()
    assert desk.verified()["ok"]
    lines = desk.run("journal", "latest", "--jsonl", "--telemetry", "--kind", "model_call").stdout
    (desk.folder / "printed.jsonl").write_text(lines, "utf-8", newline="\n")
    again = desk.document("--llm", "replay", "--cassette", "printed.jsonl")
    assert again["journal"]["head_hash"] == first["journal"]["head_hash"]


def test_interrupted_run_with_a_model_verifies_up_to_its_last_row(desk, monkeypatch):
    @contextmanager
    def stopping(title: str, interrupts: object, **named: object) -> Iterator[Callable[[int, int], None]]:
        def progress(done: int, rows: int) -> None:
            if done > 0.9 * rows:
                raise RunInterrupted(signal.SIGINT)

        yield progress

    with wire(monkeypatch, GOOD), monkeypatch.context() as patch:
        patch.setattr(backtest, "progress_bar", stopping)
        assert desk.backtest().exit_code == 130
    check = desk.verified()
    assert check["status"] == "interrupted"
    assert check["ok"], check
    assert desk.run("journal", "latest", "--kind", "model_call").stdout.count("model_call") > 1


def test_replay_of_another_run_than_was_recorded_is_a_miss_with_the_next_step(desk, monkeypatch):
    recorded(desk, monkeypatch, GOOD)
    changed = desk.backtest("--symbols", "AAPL", "--llm", "replay", "--cassette", "c.jsonl")
    assert (changed.exit_code, changed.stdout) == (2, "")
    for part in ("no recorded reply", "prompts/policy_level_reflection.txt", "c.jsonl", "--llm record"):
        assert part in changed.stderr


def test_replay_with_a_changed_prompt_is_a_miss_for_backtest_and_verify(desk, monkeypatch):
    recorded(desk, monkeypatch, GOOD)
    shutil.copytree(prompts.FOLDER, desk.folder / "prompts")
    edited = desk.folder / "prompts" / "policy_level_reflection.txt"
    edited.write_text("Be kind. " + edited.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(prompts, "FOLDER", desk.folder / "prompts")
    prompts.load_prompt.cache_clear()
    try:
        missed = desk.backtest("--llm", "replay", "--cassette", "c.jsonl", "--db", "sqlite:///other.db")
        check = desk.verified("r0001")
    finally:
        prompts.load_prompt.cache_clear()
    assert missed.exit_code == 2
    assert "no recorded reply" in missed.stderr
    assert not check["replay"]["ok"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--llm", "replay"), "--cassette FILE"),
        (("--llm", "record"), "--cassette FILE"),
        (("--cassette", "c.jsonl"), "record or replay"),
        (("--llm", "replay", "--cassette", "none.jsonl"), "does not exist"),
        (("--llm", "replay", "--cassette", "c.jsonl", "--reflection", "deterministic"), "full"),
        (("--llm", "played", "--cassette", "c.jsonl"), "live"),
        ((), "ANTHROPIC_API_KEY"),
    ],
)
def test_model_options_that_do_not_fit_error_before_anything_is_made(desk, words, part):
    result = desk.backtest(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr
    assert not (desk.folder / "thinktwice.db").exists()


def test_budget_spent_before_the_model_is_asked_is_recorded_and_replayed(desk, monkeypatch):
    with wire(monkeypatch, GOOD) as server:
        done = desk.backtest("--llm", "record", "--cassette", "c.jsonl", budget=0.001)
    assert done.exit_code == 1, "a model that never answered"
    first = json.loads(done.stdout)
    assert server.requests == []
    assert set(first["model"]["outcomes"]) == {"budget_spent"}
    assert first["model"]["cost"] == 0.0
    # The replay has time enough for a call, and still ends where the recorded run ended.
    monkeypatch.setattr(ReflectionSettings, "deadline_ms", lambda *_, **__: 1e6)
    check = desk.verified()
    assert check["ok"], check


def test_model_without_a_price_is_reported_and_its_run_goes_on(desk, monkeypatch):
    monkeypatch.setenv("THINKTWICE_LLM__FAST", "anthropic/claude-next")
    with wire(monkeypatch, answer(message(json.dumps(AGREES), model="claude-next"))):
        document = json.loads(desk.backtest().stdout)
        done = desk.run("backtest", "full.toml", *SPAN)
    assert done.exit_code == 0, done.output
    assert "claude-next: as llm.unknown_price has it; set llm.prices" in " ".join(done.stdout.split())
    assert document["model"]["unpriced"] == ["claude-next"]
    assert document["model"]["usd"] > 0.0


def test_recording_over_a_cassette_error_before_anything_is_made(desk, monkeypatch):
    (desk.folder / "c.jsonl").write_text("{}", "utf-8")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    result = desk.backtest("--llm", "record", "--cassette", "c.jsonl")
    assert result.exit_code == 2
    assert "c.jsonl" in result.stderr
    assert not (desk.folder / "thinktwice.db").exists()
