"""Conversations of `thinktwice ask`: kept, shown again, and no effect."""

import asyncio
import json
from dataclasses import replace

import pytest

from schemas.canonical import text_to_ns
from schemas.settings import Settings
from services.store import open_store
from services.store.conversations import MOST_TURNS
from tests.worker.planted_store import world
from worker.review.asking import AskedQuestion, ask


def read_requests(shell, *words, code=0):
    result = shell.run("ask", *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def calls(document):
    return [(call["tool"], call["arguments"]) for call in document["tool_calls"]]


def test_that_symbol_is_the_one_of_the_turn_before(planted):
    symbol = world().symbols[0]
    read_requests(planted, f"what does the market of {symbol} look like?", "--conversation", "desk")
    shown = read_requests(planted, "which trades of that symbol lost?", "--conversation", "desk")
    assert calls(shown)[0][0] == "trades"
    assert calls(shown)[0][1]["symbol"] == symbol
    lonely = read_requests(planted, "which trades of that symbol lost?", "--conversation", "other", code=3)
    assert lonely["clarification"].startswith("Which one is 'that symbol'?")


@pytest.mark.parametrize("question", ["Why did that trade happen?", "explain that trade", "why that fill?"])
def test_trade_that_the_turn_before_told_is_the_one_that_it_means(planted, question):
    read_requests(planted, "what was the worst trade of the run?", "--conversation", "desk")
    worst = json.loads(planted.run("ask", "--conversation", "desk", "--show", "--json").stdout)
    shown = read_requests(planted, question, "--conversation", "desk")
    assert calls(shown) == [("why", {"fill_id": worst["results"]["c1"]["trades"][0]["fill_id"]})]


def test_answer_on_a_run_that_is_not_finished_says_so(planted):
    async def answer(at):
        address = f"sqlite:///{planted.folder / 'thinktwice.db'}"
        async with await open_store(address, create=False, read_only=True) as store:
            record = replace(await store.runs.find("latest"), status="interrupted")
            question = AskedQuestion("how many trades won?", record, at)
            return (await ask(store, question, Settings(), {})).document["answer"]

    text = "The run is interrupted: this is as far as it came.\n"
    assert asyncio.run(answer(None)).startswith(text)
    assert "interrupted" not in asyncio.run(answer(text_to_ns("2022-01-10")))


def test_last_answer_is_shown_again_without_asking_and_is_deletable(planted):
    payload = read_requests(planted, "why did buys_strength lose?", "--conversation", "desk")
    shown = planted.run("ask", "--conversation", "desk", "--show", "--json")
    assert (shown.exit_code, json.loads(shown.stdout)) == (0, payload)
    read = planted.run("ask", "--conversation", "desk", "--show")
    assert payload["answer"].splitlines()[0] in read.stdout
    gone = planted.run("ask", "--conversation", "desk", "--forget", "--json")
    assert json.loads(gone.stdout) == {"conversation": "desk", "forgotten": 1}
    assert "no conversation 'desk'" in planted.complaint("ask", "--conversation", "desk", "--show")
    assert MOST_TURNS == 50


def test_turn_that_cannot_be_kept_is_told_and_answered_all_the_same(planted, monkeypatch):
    monkeypatch.setattr("services.store.conversations.LONGEST_TURN", 10)
    reply = planted.run("ask", "why did buys_strength lose?", "--conversation", "desk")
    assert reply.exit_code == 0
    assert "conversation 'desk' does not keep this turn: the answer has" in reply.stderr
