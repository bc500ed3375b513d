"""`plans make`: one command a kind of change, made from the contract; what takes two phases, and why."""

from typing import Any

import pytest
from typer.main import get_command

from schemas.judge import JudgeAction
from schemas.plan import CHANGE_FORMS, fields_of
from tests.worker.cli.test_replan import answered
from worker.cli import app

TREE: Any = get_command(app)
MAKES = TREE.commands["plans"].commands["make"].commands
IN_BOOKS = ("--run", "latest", "--into", "books")
RISK = ("set-risk-fraction", "buys_strength", "--value", "0.002")


@pytest.mark.parametrize("kind", CHANGE_FORMS)
def test_command_of_every_kind_of_change_has_the_fields_of_the_contract_with_their_help(kind):
    command = MAKES[kind.replace("_", "-")]
    assert command.help == CHANGE_FORMS[kind].effect
    options = {part.name: part for part in command.params}
    assert list(options)[: len(fields_of(kind))] == list(fields_of(kind))
    assert list(options)[len(fields_of(kind)) :] == ["run", "reason", "into", "db", "json"]
    for name in fields_of(kind):
        assert options[name].help == f"{JudgeAction.model_fields[name].description}."
        assert options[name].required == (name in CHANGE_FORMS[kind].needed and name != "life_blocks")
    assert set(MAKES) == {"report", "text", *(name.replace("_", "-") for name in CHANGE_FORMS)}


def test_typed_change_takes_two_phases_whatever_its_words(planted):
    answer = answered(planted, "plans", "make", *RISK, *IN_BOOKS)["two_phase"]
    assert answer["should_use"]
    assert "typed action" in answer["reason"]
    assert answer["confidence"] < 0.6
    assert answer["confidence"] == pytest.approx(sum(match["weight"] for match in answer["matches"]))


def test_typed_change_is_understood_as_it_was_typed_with_its_reason(planted):
    plan = answered(planted, "plans", "make", *RISK, *IN_BOOKS, "--reason", "it lost\ttwice")
    assert plan["understanding"] == "An operator asks: set-risk-fraction buys_strength, value 0.002"
    assert plan["steps"][0]["action"]["reason"] == "it lost twice"
    assert (plan["trigger"], plan["state"], plan["steps"][0]["action"]["value"]) == (
        "text", "awaiting_approval", 0.002
    )  # fmt: skip


def test_switch_of_a_typed_change_bans_or_lets_in_again(planted):
    words = ("plans", "make", "set-eligibility", "mean_reversion", "--regime", "sideways/low", *IN_BOOKS)
    action = answered(planted, *words, "--ineligible")["steps"][0]["action"]
    assert (action["eligible"], action["lowers_exposure"]) == (False, True)
    assert "already_set" in planted.complaint(*words, "--eligible")


@pytest.mark.parametrize("halves", [("--ineligible", "--eligible"), ("--eligible", "--ineligible")])
def test_switch_with_both_halves_is_refused_by_name_before_anything_is_made(planted, halves):
    words = ("plans", "make", "set-eligibility", "mean_reversion", "--regime", "sideways/low", *IN_BOOKS)
    before = answered(planted, "plans", "list")
    assert "--eligible/--ineligible is given twice" in planted.complaint(*words, *halves)
    assert answered(planted, "plans", "list") == before


def test_refused_typed_change_names_value_bound_and_next_step_before_anything_is_made(planted):
    text = planted.complaint("plans", "make", *RISK[:-1], "0.09", *IN_BOOKS)
    assert "risk_out_of_bounds, risk 0.09 lies outside [0.0005, " in text
    assert "`thinktwice plans make set-risk-fraction --help`" in text
    assert {plan["trigger"] for plan in answered(planted, "plans", "list")} <= {"verdict"}


def test_words_without_a_model_are_refused_with_both_ways_before_anything_is_made(planted):
    text = "please rewrite everything and go live"
    result = planted.run("plans", "make", "text", text, *IN_BOOKS, "--two-phase")
    assert result.exit_code == 2
    assert "give --config FILE" in result.output
    assert "set-risk-fraction, replan, open-experiment, rollback" in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert {plan["trigger"] for plan in answered(planted, "plans", "list")} <= {"verdict"}
