"""What calls may use: prices, estimates, limits, and the purses from which they are paid."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.reply_forms import PURSES, SEAT_FORMS, due_of
from schemas.errors import ModelError
from schemas.settings.llm import EventLimits, LlmSettings, ModelLimits, ModelPrice, RunLimits
from services.model_calls.budget import (
    DAY_NS,
    Due,
    Ledger,
    Spent,
    estimate,
    estimate_use,
    measure_use,
    price_of,
)
from services.model_calls.language_model import ModelReply
from services.model_calls.record import (
    Caller,
    Purse,
    Question,
    Usage,
    record_failure,
    record_reply,
    record_silence,
)
from tests.each_case import check_each

PRICE = ModelPrice(model="m", input_usd=2.0, output_usd=10.0, cache_write_usd=2.5, cache_read_usd=0.2)
CALLER = Caller("anthropic", "m", "policy_level_reflection", "ab" * 32)
# 20 bytes of input count as 10 tokens, and at most 30 come back: 20 + 300 millionths of a dollar.
QUESTION = Question(CALLER, "system....", "prompt....", 30, 1)
NEEDED_USD = 320e-6


def test_price_counts_every_kind_of_token_at_its_own_price():
    usage = Usage(input_tokens=1, output_tokens=20, cache_write_tokens=300, cache_read_tokens=4_000)
    assert price_of(usage, PRICE) == pytest.approx((1 * 2 + 20 * 10 + 300 * 2.5 + 4_000 * 0.2) / 1e6)


def test_price_without_cache_prices_counts_cached_tokens_as_input():
    plain = ModelPrice(model="m", input_usd=2.0, output_usd=10.0)
    usage = Usage(input_tokens=0, output_tokens=0, cache_write_tokens=3, cache_read_tokens=4)
    assert price_of(usage, plain) == pytest.approx(14e-6)


def test_estimate_counts_bytes_not_characters():
    assert estimate(QUESTION) == Usage(input_tokens=10, output_tokens=30)
    wide = Question(CALLER, "", "\u00e9" * 10, 30, 1)
    assert estimate(wide).input_tokens == 10


@check_each("scope", ["event", "day", "run"])
@check_each(
    ("limit", "value", "used", "refused"),
    [
        ("calls", 2, Spent(1), False),
        ("calls", 1, Spent(1), True),
        ("calls", 0, Spent(), True),
        ("tokens", 100, Spent(tokens=60), False),
        ("tokens", 100, Spent(tokens=61), True),
        ("usd", 1.0, Spent(usd=1.0 - NEEDED_USD - 1e-9), False),
        ("usd", 1.0, Spent(usd=1.0 - NEEDED_USD + 1e-9), True),
        ("seconds", 2.0, Spent(seconds=1.99), False),
        ("seconds", 2.0, Spent(seconds=2.0), True),
    ],
)
def test_ledger_call_that_may_break_a_limit_is_refused_by_its_name(scope, limit, value, used, refused):
    kinds = {"event": EventLimits, "day": ModelLimits, "run": RunLimits}
    limits = {name: kind(calls=None, usd=None) for name, kind in kinds.items()}
    limits[scope] = kinds[scope](**{"calls": None, "usd": None, limit: value})
    ledger = Ledger(LlmSettings.model_validate({f"per_{name}": entry for name, entry in limits.items()}))
    ledger.charge(used, now=5)
    refusal = ledger.refusal(QUESTION, PRICE, now=5)
    assert (refusal is not None) == refused
    if refusal is not None:
        assert (refusal.scope, refusal.limit, refusal.allowed) == (scope, limit, value)


def test_ledger_event_and_day_begin_anew_and_the_run_goes_on():
    ledger = Ledger(LlmSettings())
    ledger.charge(Spent(1, 10, 0.5, 2.0), now=DAY_NS - 1)
    ledger.open_event()
    ledger.charge(Spent(1, 10, 0.5, 2.0), now=DAY_NS - 1)
    assert (ledger.event.calls, ledger.day.calls, ledger.run.calls) == (1, 2, 2)
    ledger.charge(Spent(1, 10, 0.5, 2.0), now=DAY_NS)
    assert (ledger.event.calls, ledger.day.calls, ledger.run.calls) == (2, 1, 3)
    assert ledger.run == Spent(3, 30, 1.5, 6.0)


def test_ledger_new_day_is_seen_by_a_question_too():
    ledger = Ledger(LlmSettings(per_day=ModelLimits(calls=1)))
    ledger.charge(Spent(1), now=0)
    assert ledger.refusal(QUESTION, PRICE, now=DAY_NS - 1) is not None
    assert ledger.refusal(QUESTION, PRICE, now=DAY_NS) is None


def asking(purse: Purse, tokens: int) -> Question:
    """A question that comes to this many tokens by its estimate."""
    return Question(replace(CALLER, purse=purse), "", "", tokens, 1)


def limited(scope: str, limit: str, value: float, share: float = 0.5) -> Ledger:
    kinds = {"event": EventLimits, "day": ModelLimits, "run": RunLimits}
    limits = {name: kind(calls=None, usd=None) for name, kind in kinds.items()}
    limits[scope] = kinds[scope].model_validate({"calls": None, "usd": None, limit: value})
    payload = {f"per_{name}": entry for name, entry in limits.items()}
    due = Due(slots={Purse.EVIDENCE: math.inf, Purse.DECISION: 1.0})
    return Ledger(LlmSettings.model_validate(payload | {"decision_share": share}), due)


def asked_until_refused(ledger: Ledger, question: Question, seconds: float = 0.0) -> int:
    """How many calls were made before one was refused; a thousand at most."""
    for count in range(1_000):
        if ledger.refusal(question, PRICE, now=5) is not None:
            return count
        ledger.charge(replace(estimate_use(question, PRICE), seconds=seconds), 5, question.caller.purse)
    return 1_000


@check_each("scope", ["event", "day", "run"])
@check_each(
    ("limit", "value", "decision"),
    [("calls", 10, 100), ("tokens", 2_000, 100), ("usd", 0.02, 100), ("seconds", 20.0, 100),
     ("calls", 1, 100), ("tokens", 2_000, 1_900), ("usd", 0.02, 1_900), ("tokens", 100, 100)],
)  # fmt: skip
def test_text_that_spends_all_it_may_leaves_a_decision_its_call(scope, limit, value, decision):
    ledger = limited(scope, limit, value)
    ledger.refusal(asking(Purse.DECISION, decision), PRICE, now=5)  # as large as the decision before it
    texts = asked_until_refused(ledger, asking(Purse.TEXT, 100), seconds=7.0)
    plans = asked_until_refused(ledger, asking(Purse.EVIDENCE, 100), seconds=7.0)
    assert ledger.refusal(asking(Purse.DECISION, decision), PRICE, now=5) is None
    assert texts + plans > 0 or value in (1, 100) or decision == 1_900, "what is left is for the text"


def test_text_that_overran_its_estimate_has_not_used_the_purse_of_decisions():
    ledger = limited("run", "usd", 1.0)
    ledger.charge(Spent(1, 0, 5.0), 5, Purse.TEXT)
    assert ledger.refusal(asking(Purse.TEXT, 1), PRICE, now=5) is not None
    assert ledger.refusal(asking(Purse.DECISION, 1), PRICE, now=5) is None


@pytest.mark.parametrize("scope", ["day", "run"])
@pytest.mark.parametrize(("limit", "value"), [("calls", 20), ("tokens", 4_000), ("usd", 0.04)])
def test_models_of_events_that_spend_all_they_may_leave_the_judge_and_its_planner_their_calls(
    scope, limit, value
):
    ledger = limited(scope, limit, value)
    seats = {"fast": "m", "strategist": "m", "judge": "m"}
    ledger.due = due_of(seats, {"evidence_planner": "m"})
    ledger.open_event(in_slot=False)
    for form in (SEAT_FORMS["fast"], SEAT_FORMS["strategist"]):
        assert asked_until_refused(ledger, asking(PURSES[form.name], 100)) in range(1_000)
    assert ledger.run.calls >= 10, "what is left is for the events"
    ledger.open_event()
    for name in ("evidence_planner", SEAT_FORMS["judge"].name):
        question = asking(PURSES.get(name, Purse.DECISION), 100)
        assert ledger.refusal(question, PRICE, now=5) is None
        ledger.charge(estimate_use(question, PRICE), 5, question.caller.purse)


def test_models_of_events_have_the_limit_of_an_event_whole():
    ledger = limited("event", "calls", 10)
    ledger.due = due_of({"fast": "m", "judge": "m"}, {})
    ledger.open_event(in_slot=False)
    assert asked_until_refused(ledger, asking(PURSES[SEAT_FORMS["fast"].name], 1)) == 10


def test_text_in_a_run_that_decides_by_rules_may_use_every_limit_whole():
    ledger = limited("event", "calls", 10)
    ledger.due = Due()
    assert asked_until_refused(ledger, asking(Purse.TEXT, 1)) == 10


def test_text_in_an_event_leaves_no_more_than_its_decisions_may_ask():
    ledger = limited("event", "calls", 10)
    ledger.due = Due(slots={Purse.DECISION: 1.0})
    assert asked_until_refused(ledger, asking(Purse.TEXT, 1)) == 9
    ledger.open_event(in_slot=False)
    assert asked_until_refused(ledger, asking(Purse.TEXT, 1)) == 10


CALLS = st.lists(st.tuples(st.sampled_from(Purse), st.integers(1, 400), st.integers(0, 100)), max_size=60)


@given(
    CALLS,
    st.sampled_from(["event", "day", "run"]),
    st.sampled_from(["calls", "tokens"]),
    st.integers(1, 3_000),
)
def test_limit_holds_and_no_decision_is_starved_whatever_the_order(calls, scope, limit, value):
    ledger = limited(scope, limit, value)
    decided = 0
    for purse, tokens, percent in calls:
        question = asking(purse, tokens)
        need = 1 if limit == "calls" else tokens
        if ledger.refusal(question, PRICE, now=5) is None:
            used = Spent(1, tokens * percent // 100, 0.0)
            ledger.charge(used, 5, purse)
            decided += getattr(used, limit) * (purse is Purse.DECISION)
        elif purse is Purse.DECISION:
            assert decided + need > value * 0.25, "its own purse had room"
        assert getattr(getattr(ledger, scope), limit) <= value


@given(st.lists(st.sampled_from(Purse), max_size=30))
def test_ledger_goes_on_where_it_stood_with_every_purse(purses):
    ledger, other = limited("run", "tokens", 500), limited("run", "tokens", 500)
    for purse in purses:
        ledger.charge(Spent(1, 20, 0.0, 1.0), 5, purse)
    other.restore(json.loads(json.dumps(ledger.state())))
    assert other == ledger
    for purse in Purse:
        question = asking(purse, 90)
        assert other.refusal(question, PRICE, now=5) == ledger.refusal(question, PRICE, now=5)


def test_used_by_a_reply_is_what_the_provider_counted():
    call = record_reply(QUESTION, ModelReply("x", "m", 100, 50, 0.0), 2_000.0)
    spent, guessed = measure_use(call, QUESTION, PRICE)
    assert spent == Spent(1, 150, 700 / 1e6, 2.0)
    assert not guessed


@pytest.mark.parametrize("kind", ["timeout", "network", "malformed"])
def test_used_by_a_call_nobody_counted_is_the_estimate(kind):
    call = record_failure(QUESTION, ModelError("x", kind=kind), 1.0)
    spent, guessed = measure_use(call, QUESTION, PRICE)
    assert (spent.tokens, guessed) == (40, True)
    assert spent.usd == pytest.approx(NEEDED_USD)


def test_used_by_a_call_that_found_no_connection_is_nothing():
    call = record_failure(QUESTION, ModelError("x", kind="network", requests=0), 1.0)
    spent, guessed = measure_use(call, QUESTION, PRICE)
    assert (spent.calls, spent.tokens, spent.usd, guessed) == (1, 0, 0.0, False)


@pytest.mark.parametrize("kind", ["throttled", "overloaded", "rejected", "server", "error"])
def test_used_by_a_call_that_was_turned_away_is_free_but_counted(kind):
    call = record_failure(QUESTION, ModelError("x", kind=kind), 1.0)
    spent, guessed = measure_use(call, QUESTION, PRICE)
    assert (spent.calls, spent.tokens, spent.usd, guessed) == (1, 0, 0.0, False)


def test_used_by_a_refusal_is_paid_as_counted():
    usage = Usage(input_tokens=100, output_tokens=0)
    call = record_failure(QUESTION, ModelError("x", kind="refusal", usage=usage), 1.0)
    assert measure_use(call, QUESTION, PRICE)[0].usd == pytest.approx(200e-6)


def test_used_by_a_call_that_was_too_late_to_be_made_is_nothing():
    call = record_silence(QUESTION, 0.0, requested=False)
    assert measure_use(call, QUESTION, PRICE)[0].usd == 0.0
