"""Conversations of `thinktwice ask` and the change plans that it makes: kept, shown again, and no effect."""

import json
import sqlite3

import pytest

from services.store.conversations import MOST_TURNS
from tests.services.store.stores import seal_again
from tests.worker.planted_store import world


def asked(shell, *words, code=0):
    result = shell.run("ask", *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def calls(document):
    return [(call["tool"], call["arguments"]) for call in document["tool_calls"]]


def test_that_symbol_is_the_one_of_the_turn_before(planted):
    symbol = world().symbols[0]
    asked(planted, f"what does the market of {symbol} look like?", "--conversation", "desk")
    told = asked(planted, "which trades of that symbol lost?", "--conversation", "desk")
    assert calls(told)[0][0] == "episodes"
    assert calls(told)[0][1]["symbol"] == symbol
    lonely = asked(planted, "which trades of that symbol lost?", "--conversation", "other", code=3)
    assert "No earlier question named a symbol" in lonely["clarification"]


@pytest.mark.parametrize(
    "question", ["Why was it made?", "Why was that trade made?", "why that one?", "why?"]
)
def test_trade_that_the_turn_before_told_is_the_one_that_it_means(planted, question):
    asked(planted, "what was the worst trade of the run?", "--conversation", "desk")
    worst = planted.run("ask", "--conversation", "desk", "--show", "--json")
    told = asked(planted, question, "--conversation", "desk")
    (name, arguments), *further = calls(told)
    assert (name, further) == ("explain_fill", [])
    fill = planted.run("why", arguments["fill_id"], "--json")
    r = json.loads(fill.stdout)["facts"]["r"] if fill.exit_code == 0 else None
    assert r is not None
    assert f"{r:+.2f}R" in json.loads(worst.stdout)["answer"]


def test_worst_of_what_was_told_before_keeps_whose_trades_they_were(planted):
    symbol = world().symbols[0]
    asked(planted, f"which trades of {symbol} lost?", "--conversation", "desk")
    told = asked(planted, "and the worst?", "--conversation", "desk")
    assert calls(told) == [("episodes", {"limit": 1, "order": "worst", "outcome": "lost", "symbol": symbol})]


def test_answer_on_a_run_that_is_not_finished_says_so(planted):
    with sqlite3.connect(planted.folder / "thinktwice.db") as store:
        store.execute("update runs set status = 'interrupted'")
    seal_again(planted.folder / "thinktwice.db")
    said = "The run is interrupted: this is as far as it came.\n"
    assert asked(planted, "how many trades won?")["answer"].startswith(said)
    early = asked(planted, "how many trades won?", "--at", "2022-01-10")
    assert "interrupted" not in early["answer"]


def test_last_answer_is_shown_again_without_asking_and_is_deletable(planted):
    told = asked(planted, "why did buys_strength lose?", "--conversation", "desk")
    shown = planted.run("ask", "--conversation", "desk", "--show", "--json")
    assert (shown.exit_code, json.loads(shown.stdout)) == (0, told)
    read = planted.run("ask", "--conversation", "desk", "--show")
    assert told["answer"].splitlines()[0] in read.stdout
    gone = planted.run("ask", "--conversation", "desk", "--forget", "--json")
    assert json.loads(gone.stdout) == {"conversation": "desk", "forgotten": 1}
    assert "no conversation 'desk'" in planted.complaint("ask", "--conversation", "desk", "--show")
    assert MOST_TURNS == 50


def test_turn_that_cannot_be_kept_is_told_and_answered_all_the_same(planted, monkeypatch):
    monkeypatch.setattr("services.store.conversations.LONGEST_TURN", 10)
    said = planted.run("ask", "why did buys_strength lose?", "--conversation", "desk")
    assert said.exit_code == 0
    assert "conversation 'desk' does not keep this turn: the answer has" in said.stderr


@pytest.mark.parametrize("politely", ["{}", "Please {}.", "Could you {}, please?"])
def test_change_becomes_a_plan_that_waits_and_nothing_happens(planted, politely):
    before = planted.run("playbooks", "list", "--json").stdout
    change = "set the risk of buys_strength to 0.2 %"
    told = asked(planted, politely.format(change), code=4)
    assert (told["status"], told["citations"], told["tool_calls"]) == ("plan", [], [])
    assert told["two_phase"]["should_use"]
    shown = json.loads(planted.run("plans", "show", told["plan_id"], "--json").stdout)
    assert (shown["state"], shown["steps"][0]["action"]["kind"]) == ("awaiting_approval", "set_risk_fraction")
    assert "to the folder 'r0001-playbooks', and nothing before" in told["answer"]
    assert not (planted.folder / "r0001-playbooks").exists()
    assert planted.run("playbooks", "list", "--json").stdout == before
    approved = planted.run("plans", "approve", told["plan_id"], "--hash", shown["hash"][:12], "--by", "ann")
    assert approved.exit_code == 0, approved.output
    assert (planted.folder / "r0001-playbooks" / "buys_strength.toml").exists()
    again = asked(planted, "set the risk of buys_strength to 0.1 %", code=4)
    assert "r0001-playbooks-2" in again["answer"], "what was written before is not written over"


def test_folder_of_a_plan_may_be_named(planted):
    told = asked(planted, "set the risk of buys_strength to 0.2 %", "--into", "mine", code=4)
    assert "'mine'" in told["answer"]


def test_question_about_changes_is_a_question_and_wild_words_become_no_plan(planted):
    before = len(json.loads(planted.run("plans", "list", "--json").stdout))
    asked(planted, "what did the judge change?")
    told = asked(planted, "please rewrite every playbook and deploy all of it to production", code=3)
    assert told["two_phase"]["should_use"]
    assert "roll back PLAYBOOK" in told["clarification"]
    assert len(json.loads(planted.run("plans", "list", "--json").stdout)) == before
