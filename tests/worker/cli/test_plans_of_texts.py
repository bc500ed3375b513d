"""`plans make --text`: a typed action takes two phases whatever its words, and what they say is told."""

import json

import pytest


@pytest.mark.parametrize("words", [(), ("--two-phase",)])
def test_typed_text_takes_two_phases_whatever_its_words(planted, words):
    text = "set the risk of buys_strength to 0.2 %"
    result = planted.run("plans", "make", text, "--run", "latest", "--into", "books", *words, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)["two_phase"]
    assert said["should_use"]
    assert "typed action" in said["reason"]
    assert said["confidence"] < 0.6
    assert said["confidence"] == pytest.approx(sum(match["weight"] for match in said["matches"]))


def test_text_of_no_form_is_refused_with_the_forms_before_anything_is_made(planted):
    text = "please rewrite everything and go live"
    result = planted.run("plans", "make", text, "--run", "latest", "--into", "books", "--two-phase")
    assert result.exit_code == 2
    assert "roll back PLAYBOOK" in result.output
    assert len(result.output.strip().splitlines()) == 1
    kept = json.loads(planted.run("plans", "list", "--json").stdout)
    assert {plan["trigger"] for plan in kept} <= {"verdict"}, "those that the run made itself"
