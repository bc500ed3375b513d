"""What models were asked and what it cost, and why a symbol may not enter: pages over rows written for it."""

import pytest

from tests.worker.console.asked import ask, get
from tests.worker.console.rows_of_a_run import stored


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
