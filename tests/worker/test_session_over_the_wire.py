"""Runs in mode `full` against a server of the Messages API: paid for, bounded, and never loosened."""

from collections import Counter
from itertools import cycle
from typing import Any

import pytest

from schemas.settings import LlmSettings, ReflectionSettings, Settings
from schemas.settings.llm import EventLimits, ModelPrice, RunLimits
from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import READ, by_turns
from tests.worker.shared_runs import Run, fewer_bars, run_on
from tests.worker.wire import GOOD, KEY_VARIABLE, NOBODY, URL_VARIABLE, wire

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

SLICE = ("2003-01-01", "2003-09-30")
PRICES = (
    ModelPrice(model="claude-test", input_usd=0.1, output_usd=0.5),
    ModelPrice(model="claude-slow", input_usd=4.0, output_usd=20.0),
)
NEVER_OPENS = 10_000
# Orders and fills as a trader sees them; ids hold the hash of the configuration, which differs by the mode.
SEEN = ("direction", "quantity", "stop", "target", "price", "playbook_id", "bar_label", "pnl")
BAD = (
    "prose", "truncated_json", "tool_use", "lone_surrogate", "huge", "wrong_model", "refusal",
    "cut_at_max_tokens", "status_413", "status_429_wait_an_hour", "status_500", "status_529", "reset",
    "cut_in_the_body", "hang", "drip",
)  # fmt: skip


def full(budget_ms: float = 20_000.0, **llm: Any) -> Settings:
    reflection = ReflectionSettings(
        mode="full", budget_event_ms=budget_ms, budget_heartbeat_ms=budget_ms, model_deadline_ms=budget_ms
    )
    models: dict[str, Any] = {
        "model": "anthropic/claude-test",
        "slow": "anthropic/claude-slow",
    }
    return Settings(reflection=reflection, llm=LlmSettings(**models, prices=PRICES, **llm))


def trades(run: Run) -> list[dict[str, Any]]:
    rows = run.of("order_accepted", "entry_filled", "exit_filled")
    return [{name: row.get(name) for name in SEEN} for row in rows]


@pytest.fixture(scope="module")
def by_rules() -> Run:
    run = run_on(fewer_bars(*SLICE), Settings())
    assert len(trades(run)) > 5
    return run


def test_run_over_the_wire_is_consolidated_paid_for_and_trades_as_the_rules(by_rules, monkeypatch):
    with wire(monkeypatch, GOOD) as server:
        run = run_on(fewer_bars(*SLICE), full())
    model, performance = run.document["model"], run.document["performance"]
    assert model["calls"] == len(server.requests) > 5
    assert model["outcomes"] == {"reply": model["calls"]}
    results = [row["result"] for row in run.of("policy_reflection")]
    assert sum(result["meta"]["tier"] == "consolidated" for result in results) == model["calls"]
    assert performance["model_cost"] == pytest.approx(model["calls"] * (READ * 0.10 + 7 * 0.50) / 1e6)
    gone = (performance["total_return"] - performance["net_return"]) * 100_000.0
    assert gone == pytest.approx(performance["model_cost"], rel=1e-3)
    assert trades(run) == trades(by_rules)


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "at the deadline"])
def test_run_over_a_bad_wire_trades_as_the_rules_and_says_why(waits, by_rules, monkeypatch):
    """Each failure after the other, again and again."""
    cases = [WHOLE[name] for name in BAD if WHOLE[name].waits is waits]
    settings = full(60.0 if waits else 20_000.0, breaker_failures=NEVER_OPENS, attempts=1)
    with wire(monkeypatch, by_turns(*(case.handler for case in cases))) as server:
        run = run_on(fewer_bars(*SLICE), settings)
    model = run.document["model"]
    assert len(server.requests) >= len(cases), "each of them is met"
    # A busy machine may have spent a short budget before the model could be asked.
    spent = {"budget_spent"} if waits else set()
    assert set(model["outcomes"]) - spent == {case.kind for case in cases}
    if not waits:
        kinds = Counter(case.kind for _, case in zip(server.requests, cycle(cases), strict=False))
        assert model["outcomes"] == kinds, "each failure by its kind"
    reasons = {row["result"]["meta"]["skip_reason"] for row in run.of("policy_reflection")}
    assert reasons - {None, "budget_spent"} == {f"llm_{case.kind}" for case in cases}
    assert run.document["policy_loop"]["reflections"]["degraded"] == model["calls"] > 5
    assert run.document["errors"] == 0
    assert trades(run) == trades(by_rules)


def test_run_over_a_dead_wire_leaves_the_model_alone_and_tries_again(by_rules, monkeypatch):
    with wire(monkeypatch, WHOLE["reset"].handler) as server:
        run = run_on(fewer_bars(*SLICE), full(breaker_failures=3, breaker_pause=4, attempts=1))
    model = run.document["model"]
    assert model["breaker_opened"] == 1
    assert model["calls"] == len(server.requests)
    assert 3 < model["calls"] < model["cut_overs"]["breaker"]
    assert [row["change"] for row in run.of("model_breaker")] == ["opened"]
    assert trades(run) == trades(by_rules)


def test_run_over_its_limit_goes_on_by_rules_and_says_so(by_rules, monkeypatch):
    with wire(monkeypatch, GOOD) as server:
        run = run_on(fewer_bars(*SLICE), full(per_run=RunLimits(calls=3)))
    assert len(server.requests) == run.document["model"]["calls"] == 3
    refused = run.of("model_budget")
    assert len(refused) == run.document["model"]["cut_overs"]["run_calls"] > 5
    assert {(row["scope"], row["limit"], row["used"]) for row in refused} == {("run", "calls", 3)}
    reasons = [row["result"]["meta"]["skip_reason"] for row in run.of("policy_reflection")]
    assert reasons.count("llm_budget") == len(refused)
    assert trades(run) == trades(by_rules)


def test_run_limit_of_an_event_begins_anew_at_every_evaluation(monkeypatch):
    with wire(monkeypatch, GOOD):
        run = run_on(fewer_bars(*SLICE), full(per_event=EventLimits(calls=1)))
    questions = [row for row in run.rows if row.kind == "model_call"]
    moments = [(row.symbol, row.known_at) for row in questions]
    assert len(moments) == len(set(moments)) > 5
    assert None not in {row.symbol for row in questions}


def test_run_with_nobody_at_the_address_pays_for_nothing(by_rules, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "test-key")
    monkeypatch.setenv(URL_VARIABLE, NOBODY)
    run = run_on(fewer_bars(*SLICE), full(breaker_failures=NEVER_OPENS, attempts=1))
    model = run.document["model"]
    assert model["outcomes"] == {"network": model["calls"]}
    assert model["calls"] > 5
    assert (model["requests"], model["usd"]) == (0, 0.0)
    assert run.document["performance"]["model_cost"] == 0.0
    assert trades(run) == trades(by_rules)
