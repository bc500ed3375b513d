"""The planner's prompt in `prompts diff`, `model compare` and `model spread`, over the wire about a run."""

import asyncio
import json
from typing import Any

import pytest

import prompts
from agents.planning.prompt_examples import prompt_examples
from tests.agents.language_models.wire_server import answer, message
from tests.worker.evidence_stores import store_run
from tests.worker.wire import wire
from worker.studies.models.planner import EXAMPLE_FILL

PROMPT = (prompts.FOLDER / "evidence_planner.txt").read_text("utf-8")
BOLD = PROMPT.replace("You plan", "You boldly plan", 1)
CONFIG = """
[llm]
model = "anthropic/{model}"
attempts = 1
breaker_failures = 1000
prices = [
  {{ model = "claude-test", input_usd = 1.0, output_usd = 5.0 }},
  {{ model = "claude-other", input_usd = 1.0, output_usd = 5.0 }},
]
"""
REPLIES = {example.title: example.reply for example in prompt_examples()}
NOTHING = json.dumps({"tools": []})
MORE = json.dumps({"tools": [{"client": "thinktwice", "method": "gate", "params": {}}]})


def of_example(question: str) -> str:
    """The reply of the example whose question begins alike: names may be those of the run."""
    begins = {tuple(example.question.split()[:3:2]): example for example in prompt_examples()}
    assert len(begins) == len(REPLIES) == 7
    reply = begins[tuple(question.split()[:3:2])].reply
    return reply.replace(EXAMPLE_FILL, question.split()[3]) if "Why did fill" in question else reply


class Minds:
    """A model on the wire; the bold prompt, or the other model, plans in its own way."""

    def __init__(self, bold: Any) -> None:
        self._bold = bold
        self.asked: list[tuple[bool, str, bool]] = []

    def handler(self, server: Any) -> Any:
        async def respond(writer: asyncio.StreamWriter) -> None:
            body = server.requests[-1][1]
            system, prompt = body["system"][0]["text"], body["messages"][0]["content"]
            prompt = prompt if isinstance(prompt, str) else prompt[-1]["text"]
            question = json.loads(prompt.rpartition("The question (JSON):\n")[2])
            earlier = json.loads(prompt.partition("Results so far (JSON):\n")[2].partition("\n\n")[0])
            bold = "boldly" in system or body["model"] == "claude-other"
            self.asked.append((bold, question, bool(earlier)))
            text = self._bold(question, bool(earlier)) if bold else plain(question, bool(earlier))
            await answer(message(text, model=body["model"]))(writer)

        return respond


def plain(question: str, again: bool) -> str:
    return NOTHING if again else of_example(question)


class Late:
    """A handler whose answer is known once its server is there."""

    handler: Any = None

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        await self.handler(writer)


@pytest.fixture
def desk(shell):
    store_run(shell.folder / "thinktwice.db", model="anthropic/claude-haiku-5-5")
    assert BOLD != PROMPT
    (shell.folder / "bold.txt").write_text(BOLD, "utf-8")
    for name in ("test", "other"):
        (shell.folder / f"{name}.toml").write_text(CONFIG.format(model=f"claude-{name}"), "utf-8")
    return shell


def asked(desk, monkeypatch, bold, *words):
    minds, proxy = Minds(bold), Late()
    with wire(monkeypatch, proxy) as server:
        proxy.handler = minds.handler(server)
        return desk.run(*words), minds


DIFF = ("prompts", "diff", "present", "bold.txt", "test.toml")


def test_examples_of_the_prompt_are_asked_with_both_and_what_each_came_to_is_counted(desk, monkeypatch):
    def bold(question, again):
        if "rules of" in question:
            return "no plan at all"
        if question.startswith("Why did fill"):
            return MORE
        return plain(question, again)

    result, minds = asked(desk, monkeypatch, bold, *DIFF, "--json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert (document["template"], document["questions"], document["compared"]) == ("evidence_planner", 7, 7)
    first, second = document["planned"]
    assert (first["questions"], first["labelled"], first["as_expected"], first["asked_back"]) == (7, 7, 7, 1)
    assert first["readable"] == first["plans"] == sum(not bold for bold, _, _ in minds.asked)
    assert second["plans"] - second["readable"] == 1
    assert second["as_expected"] == 5
    assert document["expected"] == {"gained": 0, "lost": 2, "p_value": 0.5}
    assert document["decisions"]["second"]["unreadable"] == 1
    assert {row["question"].split()[0] for row in document["changed"]} == {"Why", "Show"}
    assert document["test"]["name"] == "exact McNemar of each decision, Holm"
    assert document["usd"] > 0
    again = desk.run(*DIFF, "--json")
    assert json.loads(again.stdout) == document, "played back, without a key"


def test_calls_before_and_after_refinement_and_shares_refined_and_complete_are_shown(desk, monkeypatch):
    (desk.folder / "mine.txt").write_text("Why did squeeze_breakout lose?\n\nHow is it going?\n", "utf-8")
    played = json.dumps(
        {
            "tools": [
                {"client": "thinktwice", "method": "playbooks", "params": {"playbook_id": "squeeze_breakout"}}
            ]
        }
    )
    episodes = json.dumps(
        {
            "tools": [
                {"client": "thinktwice", "method": "trades", "params": {"playbook_id": "squeeze_breakout"}}
            ]
        }
    )

    def bold(question, again):
        return episodes if again else played

    monkeypatch.setitem(globals(), "of_example", lambda question: played)
    result, _ = asked(desk, monkeypatch, bold, *DIFF, "--questions", "mine.txt", "--json")
    first, second = json.loads(result.stdout)["planned"]
    refined = {
        name: (told["refined"], told["refined_complete"]) for name, told in (("a", first), ("b", second))
    }
    assert second["calls_first_plan"] == 1.0
    assert second["calls"] > second["calls_first_plan"]
    assert refined["b"][0] >= 1
    assert refined["b"][1] == refined["b"][0]
    assert refined["a"][1] < refined["a"][0]
    assert (first["labelled"], first["calls"]) == (0, 1.0)
    shown = desk.run(*DIFF, "--questions", "mine.txt").stdout
    for words in (
        "plans for questions about r0001",
        "plans read",
        "refined",
        "then complete",
        "calls at first",
    ):
        assert words in shown


def test_model_compare_sets_the_planner_of_one_model_against_another(desk, monkeypatch):
    def other(question, again):
        return plain(question, again).replace("market", "gate").replace('"symbol": "AAPL"', "")

    words = ("model", "compare", "latest", "other.toml", "--planner")
    refused = desk.run(*words)
    assert refused.exit_code == 2
    result, minds = asked(desk, monkeypatch, other, *words, "--json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert document["questions"] == 7
    assert {bold for bold, _, _ in minds.asked} == {True, False}
    assert document["model"] == {"first": "claude-haiku-5-5", "second": "claude-other"}


def test_model_spread_asks_the_planner_the_same_several_times(desk, monkeypatch):
    words = ("model", "spread", "latest", "test.toml", "--planner", "--samples", "2", "--json")
    result, minds = asked(desk, monkeypatch, plain, *words)
    document = json.loads(result.stdout)
    assert (document["questions"], document["samples"], document["answered"], document["stable"]) == (
        7,
        2,
        14,
        7,
    )
    assert document["usual_share"] == 1.0
    assert document["planned"][0]["as_expected"] == 14
    assert sum(not earlier for _, _, earlier in minds.asked) == 14


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("model", "spread", "latest", "--planner", "--strategist"),
            "--strategist and --planner ask different",
        ),
        (("model", "spread", "latest", "--questions", "mine.txt"), "give --planner, too"),
        ((*DIFF, "--questions", "none.txt"), "--questions 'none.txt'"),
        ((*DIFF, "--questions", "none.txt"), "cannot be read: No such file or directory"),
        ((*DIFF, "--questions", "thinktwice.db"), "holds more than the 1,000,000 bytes"),
        (DIFF[:-1], "the planner of evidence needs a key: set ANTHROPIC_API_KEY"),
        ((*DIFF, "--questions", "empty.txt"), "has no question: write one on each line"),
        (
            ("model", "compare", "latest", "test.toml", "--planner", "--llm", "live"),
            "does not go with --planner",
        ),
    ],
)
def test_what_cannot_be_asked_of_the_planner_is_refused(desk, words, said):
    (desk.folder / "mine.txt").write_text("How is it going?\n", "utf-8")
    (desk.folder / "empty.txt").write_text("\n", "utf-8")
    assert said in desk.complaint(*words)
