"""`thinktwice prompts diff` on a run of the real engine: two prompts, a folder of replies, a paired test."""

import json
from pathlib import Path

import pytest

from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import in_turn
from tests.worker.cli.test_model_commands import OBJECTS, PROMPT, PROSE, Desk, desk, recorded  # noqa: F401
from tests.worker.wire import GOOD

STRICTER = PROMPT.replace("You are the second reader", "You are the strict second reader", 1)


@pytest.fixture
def strict(desk: Desk) -> Path:  # noqa: F811
    assert STRICTER != PROMPT
    (desk.folder / "strict.txt").write_text(STRICTER, "utf-8")
    return desk.folder / "strict.txt"


def test_prompts_diff_asks_both_about_the_same_plans_and_shows_what_moved(desk, strict):  # noqa: F811
    before = desk.rows()
    plans = desk.document(GOOD, "model", "spread", "latest", "--samples", "1")["questions"]
    answers = [GOOD] * plans + [OBJECTS] * plans
    result, asked = desk.asked(in_turn(*answers), "prompts", "diff", "present", "strict.txt", "--json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert len(asked) == 2 * plans
    assert all("strict second reader" not in body["system"][0]["text"] for body in asked[:plans])
    assert all("strict second reader" in body["system"][0]["text"] for body in asked[plans:])
    assert document["questions"] == document["answered"] == plans
    revised = {name: said.get("revise", 0) for name, said in document["verdicts"].items()}
    assert document["stricter"] == revised["second"] - revised["first"] > 3
    assert document["milder"] == 0
    assert document["p_value"] == pytest.approx(2 * 0.5 ** document["stricter"])
    assert document["prompt"]["recorded"] != document["prompt"]["asked"]
    assert desk.rows() == before, "nothing is written to the run"


def test_prompts_diff_plays_back_what_a_folder_holds_without_key_or_network(desk, strict):  # noqa: F811
    words = ("prompts", "diff", "present", "strict.txt", "--cassette", "kept", "--json", "--limit", "3")
    first, asked = desk.asked(GOOD, *words)
    assert (first.exit_code, len(asked)) == (0, 6)
    assert len(list((desk.folder / "kept").iterdir())) == 2
    again = desk.run(*words)
    assert (again.exit_code, json.loads(again.stdout)) == (0, json.loads(first.stdout))
    shown = desk.run(*words[:-3], "--limit", "3")
    assert "first prompt" in shown.stdout
    assert "sign test" in shown.stdout
    assert "delete it, and they are asked anew" in desk.complaint(*words[:-1], "5")


def test_prompts_diff_with_replies_that_fail_says_so_and_keeps_no_cassette_of_them(desk, strict):  # noqa: F811
    words = ("prompts", "diff", "present", "strict.txt", "--limit", "2", "--json")
    refusing = WHOLE["status_413"][0]
    result, _ = desk.asked(in_turn(GOOD, PROSE, refusing, GOOD), *words)
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document["verdicts"]["second"]["no reply"] == 1
    assert sum(document["failed"].values()) == 1
    assert "1 replies are missing" in result.stderr
    kept = sorted(path.suffix for path in (desk.folder / "cassettes").iterdir())
    assert kept == [".jsonl", ".part"], "the first prompt is kept whole, the second is not"
    result, asked = desk.asked(GOOD, *words)
    assert (result.exit_code, len(asked)) == (0, 2), "only what is missing is asked again"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("present", "nothing.txt"), "'nothing.txt' cannot be read"),
        (("present", "full.toml"), "needs exactly one line"),
        (("present", "strict.txt"), "needs a key"),
        (("present", "strict.txt", "--run", "r0009"), "no run 'r0009'"),
        (("present", "strict.txt", "--cassette", "full.toml"), "--cassette 'full.toml'"),
    ],
)
def test_prompts_diff_that_cannot_be_made_is_one_line(desk, strict, words, said):  # noqa: F811
    assert said in desk.complaint("prompts", "diff", *words)
