"""`thinktwice ask-again` about the planner of evidence, over the wire about a run."""

import asyncio
import json
from typing import Any

import pytest

import prompts
from agents.planning.prompt_examples import prompt_examples
from tests.agents.language_models.wire_server import answer, message
from tests.worker.evidence_stores import store_run
from tests.worker.wire import wire
from worker.studies.ask_again.planner import EXAMPLE_FILL

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


AGAIN = ("ask-again", "latest", "--config", "test.toml", "--seat", "planner", "--samples", "1")
DIFF = (*AGAIN, "--prompt", "bold.txt")


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
    assert (document["prompt"], document["questions"]) == ("evidence_planner", 7)
    (test,) = document["comparisons"]
    assert (test["compared"], test["moved"]) == (7, 2)
    first, second = (arm["means"] for arm in document["arms"])
    assert (first["as_expected"], first["readable"]) == (1.0, 1.0)
    assert first["plans"] == pytest.approx(sum(not bold for bold, _, _ in minds.asked) / 7)
    assert second["as_expected"] == pytest.approx(5 / 7)
    assert second["readable"] < 1.0
    told = [arm["decisions"] for arm in document["arms"]]
    assert (told[0]["asks back"], told[1]["unreadable"]) == (1, 1)
    other = [row["question"] for row in document["answers"] if len({*map(tuple, row["decisions"])}) > 1]
    assert {question.split()[0] for question in other} == {"Why", "Show"}
    assert all(arm["usd"] > 0 for arm in document["arms"])
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
    first, second = (arm["means"] for arm in json.loads(result.stdout)["arms"])
    assert second["calls"] > second["calls_first_plan"] == 1.0
    assert (second["refined"] > 0, second["refined_complete"]) == (True, 1.0)
    assert (first["refined_complete"], first["calls"]) == (0.0, 1.0)
    assert "as_expected" not in first
    shown = desk.run(*DIFF, "--questions", "mine.txt").stdout
    for words in ("evidence_planner of r0001: 2 questions", "refined_complete", "calls_first_plan"):
        assert words in shown


def test_ask_again_sets_the_planner_of_one_model_beside_itself_several_times(desk, monkeypatch):
    words = (*AGAIN[:-1], "2", "--json")
    result, minds = asked(desk, monkeypatch, plain, *words)
    document = json.loads(result.stdout)
    (arm,) = document["arms"]
    assert (document["questions"], arm["answered"], arm["stable"], arm["usual_share"]) == (7, 14, 7, 1.0)
    assert arm["means"]["as_expected"] == 1.0
    assert sum(not earlier for _, _, earlier in minds.asked) == 14


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*DIFF, "--questions", "none.txt"), "--questions 'none.txt'"),
        ((*DIFF, "--questions", "none.txt"), "cannot be read: [Errno 2] No such file or directory"),
        ((*DIFF, "--questions", "thinktwice.db"), "holds more than the 1,000,000 bytes"),
        (AGAIN, "the planner of evidence needs a key: set ANTHROPIC_API_KEY"),
        ((*DIFF, "--questions", "empty.txt"), "has no question: write one on each line"),
        ((*AGAIN, "--export", "inspect", "there"), "a planner's tools answer from the run"),
    ],
)
def test_what_cannot_be_asked_of_the_planner_is_refused(desk, words, said):
    (desk.folder / "mine.txt").write_text("How is it going?\n", "utf-8")
    (desk.folder / "empty.txt").write_text("\n", "utf-8")
    assert said in desk.complaint(*words)
