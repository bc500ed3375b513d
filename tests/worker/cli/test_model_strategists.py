"""`thinktwice model compare|spread --strategist`: two models, or one again, at the snapshots of a run."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import answer, message
from tests.agents.strategies.questions import ABSTAIN, HOLD, Question, propose, question
from tests.worker.cli.test_model_commands import Desk
from tests.worker.cli.test_prompts_diff_strategist import by_rules, templates  # noqa: F401
from tests.worker.strategist_wire import prompt_of
from tests.worker.wire import wire

OTHER = """
[llm]
model = "anthropic/claude-other"
attempts = 1
breaker_failures = 1000
prices = [{ model = "claude-other", input_usd = 1.0, output_usd = 5.0 }]
"""
Decide = Callable[[str, Question, int], dict[str, Any] | str]


class Models:
    """Models on the wire by their names; a string among the answers names a misbehaviour."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.server: Any = None
        self.asked: list[tuple[str, Question]] = []

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        body = self.server.requests[-1][1]
        name, about = body["model"], question(prompt_of(body))
        self.asked.append((name, about))
        said = self._decide(name, about, len(self.asked))
        if isinstance(said, str):
            await WHOLE[said].handler(writer)
        else:
            await answer(message(json.dumps(said), model=name))(writer)


def rules_first(asked: Question) -> dict[str, Any]:
    return HOLD if asked.task == "manage" else propose(asked.base())


def run(found: Desk, monkeypatch: pytest.MonkeyPatch, decide: Decide, *words: str) -> tuple[Result, Models]:
    (found.folder / "other.toml").write_text(OTHER, "utf-8")
    models = Models(decide)
    with wire(monkeypatch, models) as models.server:
        return found.run("model", *words), models


COMPARE = ("compare", "latest", "other.toml", "--strategist")


def test_model_compare_asks_two_strategists_at_each_snapshot_and_tests_them_in_pairs(templates, monkeypatch):  # noqa: F811
    def shy(name: str, asked: Question, turn: int) -> dict[str, Any]:
        return ABSTAIN if name == "claude-other" and asked.task == "choose" else rules_first(asked)

    before = templates.rows()
    result, models = run(templates, monkeypatch, shy, *COMPARE, "--json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    first, second = document["model"]["first"], document["model"]["second"]
    assert second == "claude-other" != first
    by_model = {
        name: [entry.snapshot for who, entry in models.asked if who == name] for name in (first, second)
    }
    assert by_model[first] == by_model[second]
    assert len(by_model[first]) == document["questions"] == document["compared"] > 10
    choices = sum(entry.task == "choose" for who, entry in models.asked if who == second)
    assert document["moved"] == document["decisions"]["second"]["abstain"] == choices
    assert document["test"]["p_value"] < 0.05
    assert templates.rows() == before
    again = templates.run("model", *COMPARE, "--json")
    assert (again.exit_code, json.loads(again.stdout)) == (1, document), (
        "played back from the folder, without a key"
    )
    shown = templates.run("model", *COMPARE).stdout
    for part in (f"{first} -> claude-other", "first model", "second model", "abstain"):
        assert part in shown


def test_model_compare_words_the_second_models_questions_as_its_settings_say(templates, monkeypatch):  # noqa: F811
    def any_name(name: str, asked: Question, turn: int) -> dict[str, Any]:
        return HOLD if asked.task == "manage" else propose(asked.base())

    with monkeypatch.context() as patch:
        patch.setattr("tests.worker.cli.test_model_strategists.OTHER", f"{OTHER}anonymise = true\n")
        result, models = run(templates, monkeypatch, any_name, *COMPARE, "--limit", "3", "--json")
    assert result.exit_code == 0, result.output
    seen = {(name == "claude-other", asked.snapshot["symbol"][:6]) for name, asked in models.asked}
    assert {symbol for other, symbol in seen if other} == {"asset_"}
    assert "asset_" not in {symbol for other, symbol in seen if not other}


def test_model_compare_of_a_strategist_that_does_not_answer_says_what_is_missing(templates, monkeypatch):  # noqa: F811
    def down(name: str, asked: Question, turn: int) -> dict[str, Any] | str:
        return "status_413" if name == "claude-other" else rules_first(asked)

    result, _ = run(templates, monkeypatch, down, *COMPARE, "--limit", "3", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["missing"], document["compared"]) == (1, 3, 0)
    assert "3 answers are missing" in result.stderr
    kept = sorted(path.suffix for path in (templates.folder / "cassettes").iterdir())
    assert kept == [".jsonl", ".part"]


def test_model_spread_of_a_strategist_counts_other_decisions_and_failures(templates, monkeypatch):  # noqa: F811
    def fickle(name: str, asked: Question, turn: int) -> dict[str, Any] | str:
        if turn == 1:
            return "status_413"
        return ABSTAIN if turn % 4 == 0 else rules_first(asked)

    words = ("spread", "latest", "other.toml", "--strategist", "--samples", "4", "--limit", "5")
    result, models = run(templates, monkeypatch, fickle, *words, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["questions"], document["samples"], len(models.asked)) == (5, 4, 20)
    assert (document["answered"], document["failed"]) == (19, {"rejected": 1})
    assert document["decisions"]["abstain"] == 5
    assert document["usual_share"] == pytest.approx(14 / 19)
    assert (document["stable"], len(document["varying"])) == (0, 5)
    assert document["varying"][0]["decisions"]["abstain"] == 1
    assert document["usd"] > 0
    shown = run(templates, monkeypatch, fickle, *words)[0].stdout
    for part in ("asked again", "usual decision", "73.7%", "rejected 1", "abstain 1"):
        assert part in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*COMPARE, "--llm", "record"), "does not go with --strategist"),
        (("compare", "latest", "--strategist"), "nothing to compare with"),
        ((*COMPARE, "--prompt", "other.toml"), "other.toml"),
        (("spread", "latest", "--strategist"), "needs a key"),
    ],
)
def test_model_command_about_strategists_that_cannot_be_is_one_line(templates, words, said):  # noqa: F811
    (templates.folder / "other.toml").write_text(OTHER, "utf-8")
    assert said in templates.complaint("model", *words)
