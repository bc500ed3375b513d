"""What models were asked and what it cost, and why a symbol may not enter: pages over rows written for it."""

import asyncio
import json
from statistics import fmean

import pytest

from services.store import open_store
from tests.worker.console.asked import DB, ask, get
from tests.worker.console.rows_of_a_run import stored
from worker.pages.figures import percent


def call(prompt, outcome="reply", text="", usage=(10, 5), usd=0.25, latency_ms=100.0):
    named = {"key": "k", "provider": "own", "model": "small", "message": None}
    usage = usage and {"input_tokens": usage[0], "output_tokens": usage[1]}
    payload = {"call": named | {"prompt": prompt, "outcome": outcome, "text": text, "usage": usage}}
    return "model_call", "AAA", payload | {"usd": usd, "estimated": not usage}, {"latency_ms": latency_ms}


def test_questions_of_models_have_their_page_with_cost_outcomes_and_latency_by_seat(shell):
    hostile = "<script>document.title='WIPED'</script>"
    stored(
        [
            call("judge", text=hostile),
            call("judge", outcome="timeout", usage=None, usd=0.5, latency_ms=300.0),
            call("strategist", usd=1.0),
        ]
    )
    found = get("/api/runs/latest/models").json()
    judge, strategist = found["seats"]
    assert (judge["seat"], judge["calls"], judge["usd"], judge["input_tokens"]) == ("judge", 2, 0.75, 10)
    assert judge["outcomes"] == {"reply": 1, "timeout": 1}
    assert (judge["latency_ms"]["p50"], strategist["latency_ms"]["p99"]) == (200.0, 100.0)
    assert [question["seq"] for question in found["questions"]] == [3, 2, 1]
    page = get("/runs/latest/models", accept="text/html").text
    assert "0.75" in page
    assert "&lt;script&gt;" in page
    assert hostile not in page
    assert "/runs/r0001/models" in get("/runs/latest", accept="text/html").text


def test_reflections_say_how_sure_proposals_were_and_how_many_were_refined(planted):
    rows = [
        json.loads(line)["payload"]
        for line in planted.run(
            "journal", "latest", "--jsonl", "--kind", "policy_proposal"
        ).stdout.splitlines()
    ]
    proposed = [row for row in rows if row["proposal"] is not None]
    found = get("/api/runs/latest/reflections").json()
    assert found["proposals"] == len(proposed) > 0
    assert found["mean_confidence"] == fmean(row["proposal"]["conviction"] for row in proposed)
    assert found["refinement_rate"] == sum(row["round"] > 0 for row in proposed) / len(proposed)
    page = get("/runs/latest/reflections", accept="text/html").text
    assert f"mean confidence {percent(found['mean_confidence'])}" in page
    assert f"{percent(found['refinement_rate'])} refined" in page


def test_questions_of_conversations_are_summed_up_where_they_are_asked(shell):
    def turn(confidence, ms, **more):
        calls = [{"tool": "trades", "latency_ms": spent} for spent in ms]
        return {"status": "answered", "confidence": confidence, "refined": False, "tool_calls": calls} | more

    async def keep():
        async with await open_store(DB, create=True) as store:
            for name, document in (
                ("a", turn(0.9, [10.0, 30.0])),
                ("a", turn(0.5, [20.0], refined=True)),
                ("b", turn(0.1, [], status="clarify", clarification={"question": "which run?"})),
                ("b", turn(0.5, [])),
            ):
                await store.conversations.keep(name, "q", document)

    asyncio.run(keep())
    found = get("/api/questions").json()
    assert found["latency_ms"].pop("n") == 3
    assert found == {
        **{"questions": 4, "mean_confidence": 0.5, "clarification_rate": 0.25, "refinement_rate": 0.25},
        "calls_per_question": 0.75,
        "latency_ms": {"p50": 20.0, "p95": pytest.approx(29.0), "p99": pytest.approx(29.8)},
    }
    page = get("/ask", accept="text/html").text
    assert "mean confidence 50.0 %, asked back 25.0 %, refined 25.0 %; 0.75 calls" in page


def test_run_that_asked_no_model_says_so(shell):
    stored([])
    assert "No model was asked" in get("/runs/latest/models", accept="text/html").text


def entries(page):
    """Per symbol what the live page says of its entries."""
    return [row.rpartition("<td>")[2].partition("</td>")[0] for row in page.split("<tr>")[2:4]]


@pytest.mark.parametrize(
    ("events", "blocked"),
    [
        ([], False),
        ([("envelope_breach", None, {"limit": "drawdown"}, None)], True),
        (
            [
                ("envelope_breach", None, {"limit": "drawdown"}, None),
                ("envelope_released", None, {"limit": "drawdown"}, None),
            ],
            False,
        ),
        (
            [
                ("envelope_breach", None, {"limit": "drawdown"}, None),
                ("envelope_breach", None, {"limit": "daily_loss"}, None),
                ("envelope_released", None, {"limit": "daily_loss"}, None),
            ],
            True,
        ),
    ],
)
def test_live_page_names_the_limit_that_keeps_symbols_from_entering(shell, events, blocked):
    stored(events)
    page = get("/live?run=latest", accept="text/html").text
    assert [("BLOCKED" in cell, "drawdown" in cell) for cell in entries(page)] == [(blocked, blocked)] * 2


def test_live_page_names_what_its_process_says_of_each_symbol(shell):
    signs = {
        "blocked": {"AAA": "\u202ehostile"},
        "stale_symbols": ["BBB"],
        "limits": [{"limit": "symbol_losses", "symbol": "AAA", "used": 8, "bound": 8, "blocks": True}],
    }
    stored([], signs=signs)
    first, second = entries(get("/live?run=latest", accept="text/html").text)
    assert "BLOCKED" in first
    assert r"symbol_losses, \u202ehostile" in first
    assert "STALE" in second


def test_stepper_shows_since_when_and_why_a_symbol_may_not_enter_and_when_it_may_again(shell):
    stored(
        [
            ("state_transition", "BBB", {"to": "IDLE"}, None),
            ("entries_blocked", None, {"bar_label": 0, "blocked": {"AAA": "stale"}}, None),
            ("entries_blocked", None, {"bar_label": 1, "blocked": {"AAA": "stale", "BBB": "x"}}, None),
            ("entries_blocked", None, {"bar_label": 2, "blocked": {"BBB": "x"}}, None),
        ]
    )

    async def steps(client):
        at, found = 0, []
        for _ in range(2):
            path = f"/api/runs/latest/decision?symbol=0&at={at}&move=next"
            step = (await client.get(path)).json()
            at = step["at"]
            found += [(entry["word"], entry["text"]) for entry in step["entries"]]
        return found, (await client.get(f"/api/runs/latest/decision?symbol=0&at={at}&move=next")).json()["at"]

    assert ask(steps) == ([("BLOCKED", "stale"), ("open", "entries are allowed again")], None)
