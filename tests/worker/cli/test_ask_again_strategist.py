"""`thinktwice ask-again` about a strategist: snapshots of a run, asked with two templates or two models."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import prompts
from agents.strategies.model_strategist import shown_snapshot
from schemas.snapshot import PolicySnapshot
from services.model_calls.wording import PLAIN
from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import answer, message
from tests.agents.strategies.questions import ABSTAIN, HOLD, Question, change, propose, question, tighten
from tests.worker.cli.test_ask_again import Desk
from tests.worker.strategist_wire import StrategistOnTheWire, first_plan, prompt_of
from tests.worker.wire import wire

PROMPT = (prompts.FOLDER / "strategist.txt").read_text("utf-8")
BOLD = PROMPT.replace("You plan; you do not trade.", "You plan boldly; you do not trade.", 1)
CONFIG = """
[llm]
model = "anthropic/claude-test"
strategist_deadline_ms = {deadline}
attempts = 1
breaker_failures = 1000
prices = [{{ model = "claude-test", input_usd = 1.0, output_usd = 5.0 }}]
"""
AGAIN = ("ask-again", "latest", "--config", "s.toml", "--samples", "1")
DIFF = (*AGAIN, "--prompt", "bold.txt")
Quoted = dict[str, Any] | str
Decide = Callable[[Question, bool], Quoted]


class Minds:
    """A model on the wire that answers each prompt in its own way; a string names a misbehaviour."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.requested: list[tuple[bool, Question]] = []

    def handler(self, server: Any) -> Any:
        async def respond(writer: asyncio.StreamWriter) -> None:
            body = server.requests[-1][1]
            bold = "boldly" in body["system"][0]["text"]
            request = question(prompt_of(body))
            self.requested.append((bold, request))
            reply = self._decide(request, bold)
            known = WHOLE.get(reply) if isinstance(reply, str) else None
            text = reply if isinstance(reply, str) else json.dumps(reply)
            await (known.handler if known else answer(message(text)))(writer)

        return respond


def rules_first(request: Question, bold: bool) -> Quoted:
    return HOLD if request.task == "manage" else propose(request.base())


@pytest.fixture(scope="module")
def by_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run by rules."""
    folder = tmp_path_factory.mktemp("by_rules")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        span = ("--from", "2003-01-01", "--to", "2003-09-30")
        assert (
            Desk(folder, patch).run("backtest", "--model", "anthropic/claude-haiku-5-5", *span).exit_code == 0
        )
    return folder


@pytest.fixture
def templates(by_rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in [name for name in os.environ if name.startswith(("THINKTWICE_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    assert BOLD != PROMPT
    (tmp_path / "thinktwice.db").write_bytes((by_rules / "thinktwice.db").read_bytes())
    (tmp_path / "bold.txt").write_text(BOLD, "utf-8")
    (tmp_path / "s.toml").write_text(CONFIG.format(deadline=20_000), "utf-8")
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, monkeypatch)


def compared(
    found: Desk, monkeypatch: pytest.MonkeyPatch, decide: Decide, *words: str
) -> tuple[Result, Minds]:
    minds, proxy = Minds(decide), Late()
    with wire(monkeypatch, proxy) as server:
        proxy.handler = minds.handler(server)
        return found.run(*DIFF, *words), minds


class Late:
    """A handler whose answer is known once its server is there."""

    handler: Any = None

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        await self.handler(writer)


def snapshots(found: Desk) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in found.rows().splitlines()]
    found_ones = [row["payload"]["snapshot"] for row in rows if row["kind"] == "policy_snapshot"]
    shown = (shown_snapshot(PolicySnapshot.model_validate(found_one)) for found_one in found_ones)
    return [json.loads(PLAIN.json(found_one)) for found_one in shown]


def test_ask_again_asks_the_strategist_at_each_snapshot_of_the_run_with_both_prompts(templates, monkeypatch):
    before = templates.rows()
    result, minds = compared(templates, monkeypatch, rules_first, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    request = {
        bold: [entry.snapshot for kind, entry in minds.requested if kind is bold] for bold in (False, True)
    }
    assert request[False] == request[True]
    recorded_ones = snapshots(templates)
    left_out = sum(document["left_out"].values())
    assert document["questions"] == len(request[False]) == len(recorded_ones) - left_out > 10
    assert [recorded_one for recorded_one in recorded_ones if recorded_one in request[False]] == request[
        False
    ]
    assert document["prompt"] == "strategist"
    assert document["same"]
    (test,), (first, second) = document["comparisons"], document["arms"]
    assert (test["moved"], document["missing"], test["p_value"]) == (0, 0, None)
    assert first["decisions"] == second["decisions"]
    assert first["as_recorded"] == 1.0, "the rules of the run decided so, too"
    managed = sum(entry.task == "manage" for bold, entry in minds.requested if not bold)
    assert first["decisions"]["hold"] == managed > 0
    proposals = {name for name in first["decisions"] if name.startswith("propose ")}
    assert {name.rpartition(" ")[2] for name in proposals} <= {"long", "short"}
    assert len(proposals) > 1
    assert templates.rows() == before, "nothing is written to the run"
    rows = [json.loads(line)["payload"] for line in before.splitlines()]
    proposed = [row for row in rows if row.get("round") == 0 and row.get("answer") == "propose"]
    names = (f"propose {row['proposal']['playbook_id']} {row['proposal']['direction']}" for row in proposed)
    assert Counter(names) == {name: first["decisions"][name] for name in proposals}, "plans of the rules"


def test_ask_again_of_the_strategist_shows_moves_and_tests_them_in_pairs(templates, monkeypatch):
    def shy_when_bold(request: Question, bold: bool) -> Quoted:
        return ABSTAIN if bold and request.task == "choose" else rules_first(request, bold)

    result, minds = compared(templates, monkeypatch, shy_when_bold, "--json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    choices = sum(request.task == "choose" for bold, request in minds.requested if bold)
    (test,) = document["comparisons"]
    assert test["moved"] == document["arms"][1]["decisions"]["abstain"] == choices > 5
    assert {item["to"] for item in test["moves"]} == {"abstain"}
    assert sum(item["count"] for item in test["moves"]) == choices
    by_decision = {item["decision"]: item for item in test["by_decision"]}
    assert (by_decision["abstain"]["left"], by_decision["abstain"]["entered"]) == (0, choices)
    assert by_decision["abstain"]["p_value"] == pytest.approx(2 * 0.5**choices)
    assert test["p_value"] == pytest.approx(len(by_decision) * 2 * 0.5**choices)
    assert "hold" not in by_decision
    assert 0 < test["detectable_share"] < 1
    shown = templates.run(*DIFF).stdout
    count = document["questions"]
    for part in ("abstain", "propose", "left", "entered", "p adjusted", f"{count:,} of {count:,}"):
        assert part in shown


# What the ways to answer below come to, by the names under which a run counts them.
OUTCOMES = {
    "hold", "tighten", "abstain", "reply_malformed", "unknown_base", "change_refused", "no_position",
    "position_open", "stop_not_tighter", "refusal", "cut", "timeout",
}  # fmt: skip


def every_way(request: Question, turn: int) -> Quoted:
    """Another way to answer at each snapshot, by its task."""
    if request.task == "manage":
        position = request.snapshot["position"]
        inside = (position["stop"] + request.snapshot["close"]) / 2
        ways: tuple[Quoted, ...] = (
            HOLD,
            tighten(inside),
            tighten(position["stop"]),
            propose("0" * 16),
            ABSTAIN,
        )
    else:
        off_grid = propose(request.base(), change("parameter", 0.123, name="stop_atr"))
        ways = (ABSTAIN, "I would wait.", propose("0" * 16), off_grid, "refusal",
                "cut_at_max_tokens", "hang", HOLD, propose(request.base()))  # fmt: skip
    return ways[turn % len(ways)]


def test_ask_again_of_the_strategist_never_merges_two_outcomes(templates, monkeypatch):
    (templates.folder / "s.toml").write_text(CONFIG.format(deadline=400), "utf-8")
    turns: dict[tuple[bool, str, int], int] = {}
    seen: Counter[tuple[bool, str]] = Counter()

    def decide(request: Question, bold: bool) -> Quoted:
        if not bold:
            return rules_first(request, bold)
        at = (bold, request.task, request.snapshot["ts_event"])
        if at not in turns:
            turns[at] = seen[bold, request.task]
            seen[bold, request.task] += 1
        return every_way(request, turns[at])

    result, _ = compared(templates, monkeypatch, decide, "--json")
    document = json.loads(result.stdout)
    second = document["arms"][1]["decisions"]
    assert set(second) >= OUTCOMES, second
    assert any(name.startswith("propose ") for name in second)
    assert document["missing"] == 0, "a refusal and a timeout are outcomes, and are kept"
    again = templates.run(*DIFF, "--json")
    assert json.loads(again.stdout) == document, "played back, the timeout included"


def test_ask_again_of_the_strategist_plays_back_without_key_or_network(templates, monkeypatch):
    words = ("--limit", "4", "--cassette", "kept")
    result, minds = compared(templates, monkeypatch, rules_first, *words, "--json")
    assert (result.exit_code, len(minds.requested)) == (0, 8)
    assert len(list((templates.folder / "kept").iterdir())) == 2
    again = templates.run(*DIFF, *words, "--json")
    assert (again.exit_code, json.loads(again.stdout)) == (0, json.loads(result.stdout))
    shown = templates.run(*DIFF, *words).stdout
    for part in ("strategist of r0001: 4 questions", "without_background", "4 of 4", "stable"):
        assert part in shown


def test_ask_again_of_the_strategist_that_cannot_be_asked_is_missing_and_kept_by_nobody(
    templates, monkeypatch
):
    def down_when_bold(request: Question, bold: bool) -> Quoted:
        return "status_413" if bold else rules_first(request, bold)

    result, _ = compared(templates, monkeypatch, down_when_bold, "--limit", "3", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    (test,) = document["comparisons"]
    assert document["arms"][1]["failed"] == {"rejected": 3}
    assert (test["compared"], document["missing"], test["moved"]) == (0, 3, 0)
    assert "3 replies are missing" in result.stderr
    kept = sorted(path.suffix for path in (templates.folder / "cassettes").iterdir())
    assert kept == [".jsonl", ".part"]


def test_ask_again_that_cannot_say_which_prompt_is_meant_names_all(templates):
    (templates.folder / "odd.txt").write_text(BOLD.replace("{{task}}", "{{chore}}"), "utf-8")
    shown = templates.complaint(*AGAIN, "--prompt", "odd.txt")
    names = ("policy_level_reflection (", "strategist (", "{{findings}}", "{{bases}}")
    assert [part for part in names if part not in shown] == []


def test_ask_again_of_the_strategist_needs_a_key(templates):
    assert "needs a key" in templates.complaint(*DIFF)


def test_ask_again_of_the_strategist_asks_byte_for_byte_what_a_run_with_a_model_asked(templates, monkeypatch):
    run = StrategistOnTheWire(first_plan)
    with wire(monkeypatch, run) as server:
        run.server = server
        span = ("--from", "2003-01-01", "--to", "2003-08-15")
        assert templates.run("backtest", "s.toml", "--strategist", "model", *span).exit_code == 0
    first = [body for body in run.requested if question(prompt_of(body)).revision is None]
    diff = StrategistOnTheWire(first_plan)
    with wire(monkeypatch, diff) as server:
        diff.server = server
        result = templates.run(*DIFF, "--json")
    assert result.exit_code == 0, result.output
    words = [  # a run asks the symbols of a bar together, so their requests arrive in any order
        json.dumps({name: body[name] for name in body if name != "output_config"}, sort_keys=True)
        for body in (*diff.requested, *first)
    ]
    assert sorted(words[: len(first)]) == sorted(words[len(diff.requested) :]), (
        "but for the names that a run lets into a form"
    )
    assert len(diff.requested) == 2 * len(first), "the run had the same model, and is asked with both prompts"
    offered = [base["origin"] for body in first for base in question(prompt_of(body)).bases]
    assert "in_force" in offered


OTHER = """
[llm]
model = "anthropic/claude-other"
strategist_deadline_ms = 20000
attempts = 1
breaker_failures = 1000
prices = [
  { model = "claude-test", input_usd = 1.0, output_usd = 5.0 },
  { model = "claude-other", input_usd = 1.0, output_usd = 5.0 },
]
"""


def by_name(
    found: Desk, monkeypatch: pytest.MonkeyPatch, decide: Callable[[str, Question, int], Quoted], *words: str
) -> tuple[Result, list[tuple[str, Question]]]:
    """A command while models on the wire answer by their names."""
    questions: list[tuple[str, Question]] = []
    proxy = Late()
    with wire(monkeypatch, proxy) as server:

        async def respond(writer: asyncio.StreamWriter) -> None:
            body = server.requests[-1][1]
            questions.append((body["model"], question(prompt_of(body))))
            reply = decide(*questions[-1], len(questions))
            handler = WHOLE[reply].handler if isinstance(reply, str) else None
            await (handler or answer(message(json.dumps(reply), model=body["model"])))(writer)

        proxy.handler = respond
        return found.run("ask-again", "latest", *words), questions


def a_run_with_a_model(found: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with wire(monkeypatch, strategist := StrategistOnTheWire(first_plan)) as server:
        strategist.server = server
        span = ("--from", "2003-01-01", "--to", "2003-08-15")
        assert found.run("backtest", "s.toml", "--strategist", "model", *span).exit_code == 0


def test_ask_again_asks_two_strategists_at_each_snapshot_worded_as_the_settings_of_each_say(
    templates, monkeypatch
):
    def shy(name: str, requested: Question, turn: int) -> Quoted:
        return (
            ABSTAIN
            if name == "claude-other" and requested.task == "choose"
            else rules_first(requested, False)
        )

    a_run_with_a_model(templates, monkeypatch)
    (templates.folder / "other.toml").write_text(f"{OTHER}anonymise = true\n", "utf-8")
    words = ("--config", "other.toml", "--samples", "1", "--json")
    result, request = by_name(templates, monkeypatch, shy, *words)
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert [arm["model"] for arm in document["arms"]] == ["anthropic/claude-test", "anthropic/claude-other"]
    named = {
        name: [entry for who, entry in request if who == name] for name in ("claude-test", "claude-other")
    }
    assert [len(entries) for entries in named.values()] == [document["questions"]] * 2
    assert {e.snapshot["symbol"][:6] for e in named["claude-other"]} == {"asset_"}
    assert "asset_" not in {e.snapshot["symbol"][:6] for e in named["claude-test"]}
    (test,) = document["comparisons"]
    assert test["moved"] == sum(e.task == "choose" for e in named["claude-other"]) > 5
    assert test["p_value"] < 0.05


def test_ask_again_of_one_strategist_counts_other_decisions_and_failures(templates, monkeypatch):
    def fickle(name: str, requested: Question, turn: int) -> Quoted:
        if turn == 1:
            return "status_413"
        return ABSTAIN if turn % 4 == 0 else rules_first(requested, False)

    (templates.folder / "other.toml").write_text(OTHER, "utf-8")
    words = ("--config", "other.toml", "--samples", "4", "--limit", "5")
    result, request = by_name(templates, monkeypatch, fickle, *words, "--json")
    document = json.loads(result.stdout)
    (arm,) = document["arms"]
    assert (result.exit_code, document["questions"], document["samples"], len(request)) == (1, 5, 4, 20)
    assert (arm["answered"], arm["failed"], arm["stable"]) == (19, {"rejected": 1}, 0)
    assert arm["decisions"]["abstain"] == 5
    assert arm["usual_share"] == pytest.approx(14 / 19)
    shown = by_name(templates, monkeypatch, fickle, *words)[0].stdout
    for part in ("73.7 %", "rejected 1", "abstain"):
        assert part in shown
