"""`thinktwice model` on a run of the real engine: questions are rebuilt from its rows and asked again."""

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import prompts
from services.journal.chain import GENESIS_HASH, JournalRow, relink
from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import Handler, answer, in_turn, message
from tests.agents.strategies.questions import HOLD, Question, propose, reason
from tests.services.policy_checks.injections import answer as stated
from tests.services.store.stores import seal_again
from tests.worker.cli.checking import run
from tests.worker.strategist_wire import StrategistOnTheWire
from tests.worker.wire import GOOD, wire
from worker.settings import load_settings

CONFIG = """
[data]
symbols = ["AAPL"]
[policy_loop]
strategist = "model"
[reflection]
mode = "full"
budget_event_ms = 20000
budget_heartbeat_ms = 20000
[high_level]
enabled = false
[llm]
model = "anthropic/claude-test"
attempts = 1
breaker_failures = 1000
prices = [{ model = "claude-test", input_usd = 1.0, output_usd = 5.0 }]
[deliberation.pass]
enabled = false
"""
PROMPT = (prompts.FOLDER / "policy_level_reflection.txt").read_text("utf-8")
WEAK = [
    reason("feature", "close"),
    reason("case_rate", "all"),
]  # of the second, code cannot say that it holds
OBJECTIONS = [{"reason": 1, "code": "reason_too_weak"}]
OBJECTS = answer(
    message(stated(verdict="revise", comment="No.", findings=["memory_insufficient"], objections=OBJECTIONS))
)
INVENTED = answer(message(stated(verdict="block", findings=["made_up"])))
PROSE = answer(message("I would pass."))


def give_weak_reasons(asked: Question) -> dict[str, Any]:
    return HOLD if asked.task == "manage" else propose(asked.bases[0]["id"], because=WEAK)


class Desk:
    """Commands in a folder that holds one recorded run of a model that agrees."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch

    def run(self, *words: str) -> Result:
        return run(*words)

    def record(self, *words: str) -> Result:
        """A run whose plans have a weak reason, and whose second reader agrees."""
        strategist = StrategistOnTheWire(give_weak_reasons)
        with wire(self._monkeypatch, strategist) as server:
            strategist.server = server
            return self.run(*words)

    def asked(self, handler: Handler, *words: str) -> tuple[Result, list[dict[str, Any]]]:
        """A command while a model answers on the wire, and the requests that the model saw."""
        with wire(self._monkeypatch, handler) as server:
            result = self.run(*words)
        return result, [body for _, body in server.requests]

    def document(self, handler: Handler, *words: str, code: int = 0) -> dict[str, Any]:
        result, _ = self.asked(handler, *words, "--json")
        assert result.exit_code == code, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def complaint(self, *words: str) -> str:
        result = self.run(*words)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        return result.stderr

    def rows(self) -> str:
        return self.run("journal", "latest", "--jsonl", "--telemetry").stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run whose model agreed with the rules each time."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "full.toml").write_text(CONFIG, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        span = ("--from", "2003-01-01", "--to", "2003-09-30")
        result = Desk(folder, patch).record("backtest", "full.toml", *span)
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def desk(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in [name for name in os.environ if name.startswith(("THINKTWICE_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    for name in ("thinktwice.db", "full.toml"):
        (tmp_path / name).write_bytes((recorded / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, monkeypatch)


def test_spread_of_a_model_that_always_agrees_is_none_and_asks_exactly_what_the_run_asked(desk):
    before = desk.rows()
    calls = [json.loads(line) for line in before.splitlines() if '"model_call"' in line]
    found = [row["payload"]["call"] for row in calls]
    keys = {call["key"] for call in found if call["prompt"] == "policy_level_reflection"}
    document = desk.document(GOOD, "model", "spread", "latest", "--samples", "2")
    assert document["questions"] == len(keys) > 3
    assert document["asked"] == document["answered"] == 2 * len(keys)
    assert (document["agreement"], document["unstable"]) == (1.0, 0)
    assert (document["malformed_share"], document["late_share"]) == (0.0, 0.0)
    assert document["tokens"] == 18 * document["asked"]
    assert document["usd"] == pytest.approx(document["asked"] * (11 * 1.0 + 7 * 5.0) / 1e6)
    assert document["latency_ms"]["p50"] > 0
    first = document["by_question"][0]
    assert first["rules"] == first["recorded"]
    assert first["verdicts"][first["recorded"]] == 2
    assert desk.rows() == before


def test_spread_counts_other_verdicts_replies_that_count_for_nothing_and_failures(desk):
    turns = in_turn(GOOD, OBJECTS, INVENTED, PROSE, WHOLE["status_529"].handler, GOOD)
    document = desk.document(turns, "model", "spread", "latest", "--samples", "6", "--limit", "1")
    (question,) = document["by_question"]
    assert question["recorded"] == "pass"
    assert question["verdicts"] == {"pass": 4, "revise": 1, "block": 0}
    assert question["refused"] == {"model_cited_unknown_finding": 1, "model_reply_malformed": 1}
    assert question["failed"] == {"overloaded": 1}
    assert (question["asked"], question["answered"], question["agreement"]) == (6, 5, 0.8)
    assert document["malformed_share"] == 0.2
    assert document["unstable"] == document["questions"] == 1


def test_spread_is_read_by_a_person(desk):
    result, _ = desk.asked(OBJECTS, "model", "spread", "latest", "--samples", "1", "--limit", "2")
    assert result.exit_code == 0
    for part in ("spread of r0001", "claude-test", "unstable", "2 of 2 questions", "revise 1", "0.0 %"):
        assert part in result.stdout, part


def test_spread_recorded_into_a_cassette_replays_and_is_read_alone(desk):
    words = ("model", "spread", "latest", "--samples", "3", "--limit", "2")
    live = desk.document(
        in_turn(GOOD, OBJECTS, PROSE, GOOD), *words, "--llm", "record", "--cassette", "s.jsonl"
    )
    played = json.loads(desk.run(*words, "--llm", "replay", "--cassette", "s.jsonl", "--json").stdout)
    assert played == live
    alone = json.loads(desk.run("model", "spread", "s.jsonl", "--json").stdout)
    assert (alone["basis"], alone["questions"], alone["asked"]) == ("stated", 2, 4)
    assert alone["refused"] == {"model_reply_malformed": 1}
    assert alone["verdicts"] == {"pass": 2, "revise": 1, "block": 0}
    assert alone["agreement"] == pytest.approx(2 / 3)
    assert alone["usd"] is None
    assert "verdicts as stated" in desk.run("model", "spread", "s.jsonl").stdout
    more = desk.complaint(
        "model", "spread", "latest", "--samples", "4", "--llm", "replay", "--cassette", "s.jsonl"
    )
    assert "no recorded reply" in more


def test_spread_stops_at_the_budget_of_the_run(desk):
    (desk.folder / "poor.toml").write_text("[llm.per_run]\ncalls = 2\n", "utf-8")
    words = ("model", "spread", "latest", "poor.toml", "--samples", "2", "--limit", "2")
    result, requests = desk.asked(GOOD, *words, "--json")
    document = json.loads(result.stdout)
    assert len(requests) == 2
    assert document["failed"] == {"budget": 2}


def test_spread_of_more_samples_than_an_event_may_ask_asks_them_all(desk):
    document = desk.document(GOOD, "model", "spread", "latest", "--samples", "12", "--limit", "1")
    assert (document["answered"], document["failed"]) == (12, {})


def test_spread_counts_replies_for_which_the_run_would_not_have_waited(desk):
    config = CONFIG.replace("20000", "0.001")
    (desk.folder / "hurried.toml").write_text(config, "utf-8")
    settings = load_settings(desk.folder / "hurried.toml").settings
    plain = json.dumps(settings.payload()).replace("'", "''")
    in_store(desk, f"UPDATE runs SET config = '{plain}', config_hash = '{settings.config_hash}'")
    seal_again(desk.folder / "thinktwice.db")
    document = desk.document(GOOD, "model", "spread", "latest", "--samples", "1", "--limit", "1")
    assert (document["answered"], document["late_share"]) == (1, 1.0)


def in_store(desk: Desk, *statements: str) -> None:
    """Change stored rows behind the back of the program."""
    with sqlite3.connect(desk.folder / "thinktwice.db") as store:
        for statement in statements:
            store.execute(statement)
    store.close()


def chain_anew(desk: Desk) -> None:
    """Give changed rows the hashes that they would have had, as of a run of another version."""
    with sqlite3.connect(desk.folder / "thinktwice.db") as store:
        head = GENESIS_HASH
        columns = "seq, ts_event, known_at, kind, symbol, payload, telemetry, prev_hash, hash"
        for values in store.execute(f"SELECT {columns} FROM journal ORDER BY seq").fetchall():
            row = replace(JournalRow(*values), prev_hash=head)
            head = relink(row)
            update = "UPDATE journal SET prev_hash = ?, hash = ? WHERE seq = ?"
            store.execute(update, (row.prev_hash, head, row.seq))
        store.execute("UPDATE runs SET head_hash = ?", (head,))
    store.close()
    seal_again(desk.folder / "thinktwice.db")


def test_spread_without_any_answer_says_so_and_exits_1(desk):
    document = desk.document(
        WHOLE["status_529"].handler, "model", "spread", "latest", "--samples", "1", "--limit", "1", code=1
    )
    assert (document["answered"], document["agreement"], document["failed"]) == (0, None, {"overloaded": 1})


def changed_prompt(desk: Desk) -> str:
    (desk.folder / "kinder.txt").write_text("Be kind. " + PROMPT, "utf-8")
    return "kinder.txt"


def test_compare_with_a_changed_prompt_shows_every_verdict_that_moved_and_exits_1(desk):
    words = ("model", "compare", "latest", "--prompt", changed_prompt(desk), "--limit", "3")
    before = desk.rows()
    result, requests = desk.asked(in_turn(OBJECTS, OBJECTS, GOOD), *words, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert all(request["system"][0]["text"].startswith("Be kind.") for request in requests)
    assert document["prompt"]["asked"] != document["prompt"]["recorded"]
    assert (document["same"], document["questions"], document["unchanged"]) == (False, 3, 1)
    assert (document["stricter"], document["milder"], document["p_value"]) == (2, 0, 0.5)
    moves = {(entry["from"], entry["to"]): entry for entry in document["transitions"]}
    assert sum(move["count"] for move in moves.values()) == 2
    assert moves["pass", "revise"]["findings"]["memory_insufficient"] == moves["pass", "revise"]["count"]
    assert {(entry["from"], entry["to"]) for entry in document["changed"]} == set(moves)
    assert {tuple(entry["cited"]) for entry in document["changed"]} == {("memory_insufficient",)}
    assert desk.rows() == before


def test_compare_with_the_same_verdicts_exits_0(desk):
    document = desk.document(GOOD, "model", "compare", "latest", "--prompt", changed_prompt(desk))
    assert document["same"]
    assert (document["changed"], document["p_value"]) == ([], None)


def test_compare_of_a_plan_that_was_not_answered_is_no_sameness(desk):
    turns = in_turn(GOOD, WHOLE["status_529"].handler)
    words = ("model", "compare", "latest", "--prompt", changed_prompt(desk), "--limit", "2")
    document = desk.document(turns, *words, code=1)
    assert (document["same"], document["answered"], document["failed"]) == (False, 1, {"overloaded": 1})


def test_compare_with_another_model_asks_that_one(desk):
    prices = "".join(
        f'{{ model = "claude-{name}", input_usd = 2.0, output_usd = 1.0 }},' for name in ("next", "test")
    )
    config = f'[llm]\nmodel = "anthropic/claude-next"\nprices = [{prices}]\n'
    (desk.folder / "other.toml").write_text(config, "utf-8")
    good = answer(message(stated(), model="claude-next"))
    result, requests = desk.asked(good, "model", "compare", "latest", "other.toml", "--limit", "1", "--json")
    assert result.exit_code == 0, result.output
    assert requests[0]["model"] == "claude-next"
    assert json.loads(result.stdout)["model"] == {"recorded": "claude-test", "asked": "claude-next"}


def test_compare_is_read_by_a_person(desk):
    words = ("model", "compare", "latest", "--prompt", changed_prompt(desk), "--limit", "2")
    result, _ = desk.asked(OBJECTS, *words)
    for part in (
        "comparison with r0001",
        "stricter",
        "p = 0.5",
        "pass",
        "revise",
        "memory_insufficient 2",
        "AAPL",
    ):
        assert part in result.stdout, part


def without_a_model(desk: Desk) -> str:
    desk.run("backtest", "--symbols", "AAPL", "--to", "2000-06-30")
    return "latest"


def broken(text: str) -> Callable[[Desk], str]:
    def write(desk: Desk) -> str:
        (desk.folder / "broken.txt").write_text(text, "utf-8")
        return "broken.txt"

    return write


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("spread", "latest"), "ANTHROPIC_API_KEY"),
        (("spread", "r9"), "no run 'r9'"),
        (("spread", without_a_model), "thinktwice backtest --reflection full"),
        (("spread", "latest", "--llm", "replay"), "--cassette FILE"),
        (("spread", "latest", "--llm", "replay", "--cassette", "none.jsonl"), "does not exist"),
        (("spread", "latest", "--prompt", changed_prompt), "thinktwice model compare"),
        (("spread", "full.toml"), "not a row of a journal"),
        (("spread", "full.toml", "--prompt", "full.toml"), "is a cassette"),
        (("compare", "latest"), "--prompt FILE"),
        (("compare", "latest", "--prompt", "none.txt"), "none.txt"),
        (("compare", "latest", "--prompt", broken("no divider")), "=== request ==="),
        (("compare", "latest", "--prompt", broken("a\n=== request ===\n{{verdict}}")), "{{findings}}"),
        (("compare", "latest", "full.toml"), "ANTHROPIC_API_KEY"),
    ],
)
def test_model_command_that_cannot_be_done_error_names_the_next_step(desk, words, part):
    said = desk.complaint("model", *(word if isinstance(word, str) else word(desk) for word in words))
    assert part in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ('"conviction":0', '"conviction":1', "does not fit this version (conviction"),
        ('"thesis":"', '"thesis":"Surely: ', "was asked in other words"),
    ],
)
def test_spread_of_a_run_whose_rows_were_changed_error_says_which(desk, before, after, part):
    in_store(desk, f"UPDATE journal SET payload = replace(payload, '{before}', '{after}')")
    assert "is damaged: it was changed after it was written" in desk.complaint("model", "spread", "latest")
    chain_anew(desk)
    assert part in desk.complaint("model", "spread", "latest")
