"""Runs whose strategist is a model behind a wire: asked, reflected on, paid for, replaced when it fails."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from agents.model_seats import models_in_use
from agents.strategies.model_strategist import MAX_TOKENS, shown_snapshot
from agents.strategies.strategist_reply import FORM
from schemas.canonical import canonical_json
from schemas.errors import ConfigError, ModelError
from schemas.settings import ExecutionSettings, PolicyLoopSettings, Settings
from schemas.settings.llm import RunLimits
from schemas.snapshot import PolicySnapshot
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Caller, question_key
from services.model_calls.wording import PLAIN
from services.playbooks.loader import load_playbooks
from services.policy_loop.snapshot_builder import names_for_replies
from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import answer, by_turns, events, message, stream
from tests.agents.strategies.questions import (
    ABSTAIN,
    HOLD,
    Question,
    but_for_reasons,
    change,
    propose,
    tighten,
)
from tests.worker.shared_runs import Run, fewer_bars, run_on
from tests.worker.strategist_wire import Decision, StrategistOnTheWire, first_plan, proposing
from tests.worker.test_session_over_the_wire import NEVER_OPENS, trades
from tests.worker.wire import wire
from trading_core.tick_guard import TickGuard
from worker.models import Models, check_models, configured_models

SLICE = ("2003-01-01", "2003-09-30")
BAD = ("prose", "lone_surrogate", "wrong_model", "refusal", "cut_at_max_tokens", "status_413", "status_529",
       "reset", "hang")  # fmt: skip


@contextmanager
def desk(monkeypatch: pytest.MonkeyPatch, decide: Decision) -> Iterator[StrategistOnTheWire]:
    strategist = StrategistOnTheWire(decide)
    with wire(monkeypatch, strategist, stream(events("no narrative"))) as server:
        strategist.server = server
        yield strategist


def run(settings: Settings | None = None, period: tuple[str, str] = SLICE) -> Run:
    return run_on(fewer_bars(*period), settings or proposing())


@pytest.fixture(scope="module")
def by_rules() -> Run:
    made = run_on(fewer_bars(*SLICE), Settings())
    assert len(trades(made)) > 3
    return made


@pytest.fixture(scope="module")
def chosen() -> tuple[StrategistOnTheWire, Run]:
    """A model that takes the first plan of each question, and the run in which it was asked."""
    with pytest.MonkeyPatch.context() as patch, desk(patch, first_plan) as strategist:
        return strategist, run()


def test_run_with_a_model_strategist_freezes_the_plans_it_chose(chosen):
    strategist, made = chosen
    document = made.document
    assert document["errors"] == 0
    assert document["model"]["calls"] == len(strategist.requested) > 10
    assert document["strategist"] == {
        "name": "model",
        "answers": {"claude-test": len(strategist.requested)},
        "fallbacks": {},
    }
    assert document["model"]["tokens"]["cache_read"] == 4_000 * len(strategist.requested)
    frozen = [row["policy"] for row in made.of("policy_frozen")]
    assert len(frozen) == document["policy_loop"]["outcomes"]["frozen"] > 3
    assert {policy["model"] for policy in frozen} == {"claude-test"}
    offered = [but_for_reasons(base["plan"]) for request in strategist.questions for base in request.bases]
    assert all(but_for_reasons(policy["proposal"]) in offered for policy in frozen)
    calls = {row["call"]["prompt"] for row in made.of("model_call")}
    assert calls == {"strategist"}
    assert {policy["prompt_hash"] for policy in frozen} == {
        row["call"]["prompt_hash"] for row in made.of("model_call")
    }
    assert len(trades(made)) > 3


def test_run_with_a_model_strategist_marks_one_static_part_and_keeps_the_snapshot_out_of_it(chosen):
    strategist, made = chosen
    assert len({json.dumps(body["system"]) for body in strategist.requested}) == 1
    block = strategist.requested[0]["system"][0]
    assert block["cache_control"] == {"type": "ephemeral"}
    moments = {PLAIN.time(row["snapshot"]["ts_event"]) for row in made.of("policy_snapshot")}
    assert not any(moment in block["text"] for moment in moments)
    assert len({body["messages"][0]["content"] for body in strategist.requested}) == len(strategist.requested)
    taken = [PolicySnapshot.model_validate(row["snapshot"]) for row in made.of("policy_snapshot")]
    snapshots = [json.loads(PLAIN.json(shown_snapshot(snapshot))) for snapshot in taken]
    assert all(request.snapshot in snapshots for request in strategist.questions)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("ANTHROPIC_BASE_URL", url) for url in ("http://[::1", "not a url", "ftp://x", "http://x:99999",
                                                  "https://", "http://x:0", "http://ex ample", "")),
        *(("ANTHROPIC_API_KEY", key) for key in (" ", "two words", "line\n", "schl\u00fcssel")),
    ],
)  # fmt: skip
def test_address_or_key_that_cannot_be_is_refused_before_anything_runs(variable, value):
    environment = {"ANTHROPIC_API_KEY": "k", variable: value}
    with pytest.raises(ConfigError, match=variable) as caught:
        check_models(proposing(), environment)
    assert variable == "ANTHROPIC_BASE_URL" or value.strip() == "" or value not in str(caught.value)
    with pytest.raises(ConfigError, match=variable):
        configured_models(proposing(), TickGuard(), environment)


@pytest.mark.parametrize(("effort", "room"), [("low", 8_000), ("high", 8_000), ("none", 0)])
def test_run_asks_a_model_to_think_as_the_settings_say_and_keys_it_apart(monkeypatch, effort, room):
    with desk(monkeypatch, first_plan) as strategist:
        made = run(proposing(effort=effort), (SLICE[0], "2003-07-31"))
    off = effort == "none"
    for body in strategist.requested:
        assert body.get("thinking") == ({"type": "disabled"} if off else None)
        assert body["output_config"].get("effort") == (None if off else effort)
        assert body["max_tokens"] == MAX_TOKENS + room
    calls = [row["call"] for row in made.of("model_call")]
    assert {call["effort"] for call in calls} == {effort}
    first = calls[0]
    form = FORM.naming({"name": names_for_replies(load_playbooks(None), (), "1d")["reason"]})
    provider, model, prompt, text_hash = (
        first[name] for name in ("provider", "model", "prompt", "prompt_hash")
    )
    caller = Caller(provider, model, prompt, text_hash, effort, form, thought_tokens=room)
    body = strategist.requested[0]
    questions = (body["system"][0]["text"], body["messages"][0]["content"], MAX_TOKENS)
    assert question_key(caller, *questions) == first["key"]
    assert question_key(replace(caller, effort="medium"), *questions) != first["key"]


def test_run_with_a_model_strategist_asks_only_what_was_known_at_the_bar(chosen, monkeypatch):
    longer, _ = chosen
    with desk(monkeypatch, first_plan) as shorter:
        run(period=(SLICE[0], "2003-08-15"))
    assert 5 < len(shorter.requested) < len(longer.requested)
    both = longer.requested[: len(shorter.requested)], shorter.requested
    first, second = (sorted(map(canonical_json, requests)) for requests in both)  # in any order at one bar
    assert first == second


def test_run_plan_of_a_diff_is_the_base_with_those_fields(monkeypatch):
    def careful(question: Question) -> dict[str, Any]:
        if question.task != "choose":
            return HOLD if question.task == "manage" else ABSTAIN
        return propose(question.base(), change("conviction", 0.21), change("activation_window_bars", 1))

    with desk(monkeypatch, careful) as strategist:
        made = run()
    plans = {base["id"]: base["plan"] for request in strategist.questions for base in request.bases}
    frozen = [row["policy"]["proposal"] for row in made.of("policy_frozen")]
    assert len(frozen) > 3
    changed = {"conviction": 0.21, "activation_window_bars": 1}
    bases = [but_for_reasons(plan) | changed for plan in plans.values()]
    assert all(but_for_reasons(plan) in bases for plan in frozen)


def test_run_plan_in_force_that_is_proposed_again_keeps_everything_but_its_words(monkeypatch):
    def steady(question: Question) -> dict[str, Any]:
        if question.task == "choose" and question.bases[0]["origin"] == "in_force":
            return propose(question.base("in_force"))
        return first_plan(question)

    with desk(monkeypatch, steady) as strategist:
        made = run()
    kept = [request for request in strategist.questions if steady(request) != first_plan(request)]
    assert len(kept) > 3
    renewed = [row["policy"] for row in made.of("policy_frozen") if row["policy"]["replaces"]]
    assert [policy for policy in renewed if policy["changed_fields"] == ["rationale"]]


def test_run_stop_that_the_model_tightens_is_moved_and_one_that_it_loosens_is_not(monkeypatch, by_rules):
    def halfway(question: Question) -> dict[str, Any]:
        position = question.snapshot["position"]
        if position is None:
            return first_plan(question)
        return tighten(0.5 * (position["stop"] + question.snapshot["close"]))

    def looser(question: Question) -> dict[str, Any]:
        position = question.snapshot["position"]
        return (
            first_plan(question) if position is None else tighten(2.0 * position["stop"] - position["target"])
        )

    with desk(monkeypatch, halfway) as strategist:
        made = run()
    wanted = [halfway(request)["stop"] for request in strategist.questions if request.task == "manage"]
    moved = [row["stop"] for row in made.of("stop_tightened") if row["by"] == "policy"]
    assert moved == wanted
    assert made.document["policy_loop"]["outcomes"]["tightened"] == len(moved) > 0
    with desk(monkeypatch, looser) as strategist:
        made = run()
    refused = sum(request.task == "manage" and request.correction is None for request in strategist.questions)
    # A stop below zero is no stop: that reply is malformed, the others are looser.
    fallbacks = made.document["strategist"]["fallbacks"]
    assert sum(fallbacks.values()) == refused > 0
    assert set(fallbacks) <= {"stop_not_tighter", "reply_malformed"}
    assert made.document["errors"] == 0


def test_run_stop_that_only_the_grid_of_the_market_refuses_is_a_fault_and_no_error(monkeypatch):
    def barely(question: Question) -> dict[str, Any]:
        position = question.snapshot["position"]
        if position is None:
            return first_plan(question)
        return tighten(position["stop"] + (0.01 if position["direction"] == "long" else -0.01))

    execution = ExecutionSettings(tick_size=0.25)
    with desk(monkeypatch, barely):
        made = run(proposing().model_copy(update={"execution": execution}))
    shown = [row["fallback"] for row in made.of("policy_proposal") if row["fallback"]]
    assert set(shown) <= {"stop_not_tighter", "nothing_to_choose"}
    assert made.document["strategist"]["fallbacks"]["stop_not_tighter"] == shown.count("stop_not_tighter") > 0
    assert made.document["errors"] == 0


def test_run_model_that_abstains_trades_nothing_and_says_why(monkeypatch):
    with desk(monkeypatch, lambda request: ABSTAIN):
        made = run()
    policy = made.document["policy_loop"]
    assert policy["answers"] == {"abstain": policy["evaluations"]}
    assert policy["outcomes"] == {"abstained": policy["evaluations"]}
    shown = {row["reason"] for row in made.of("policy_evaluation")}
    shown = {reason for reason in shown if not reason.startswith("no eligible playbook can pass now")}
    assert shown <= {f"the model abstains: the trend is {trend}" for trend in ("up", "down", "sideways")}
    assert trades(made) == []


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (change("conviction", 0.99), "over_confident"),
        (change("setup", "rsi_14 > 200"), "unreachable"),
        (change("setup", "close > 1000000"), "rules_differ_from_playbook"),
        (change("activation", "close > no_such_5"), "unknown_feature"),
        (change("invalidation", "close > "), "rule_invalid"),
    ],
)
def test_run_findings_go_back_to_the_model_and_its_mended_plan_freezes(monkeypatch, fault, code):
    def learning(question: Question) -> dict[str, Any]:
        if question.task == "manage":
            return HOLD
        return propose(question.base(), fault) if question.revision is None else propose(question.base())

    with desk(monkeypatch, learning) as strategist:
        made = run(period=(SLICE[0], "2003-08-15"))
    revisions = [(request.revision, request.bases) for request in strategist.questions if request.revision]
    first_rounds = [(revision, bases) for revision, bases in revisions if revision["round"] == 1]
    assert len(first_rounds) > 3
    for revision, bases in first_rounds:
        findings = {finding["code"]: finding for finding in revision["findings"]}
        assert findings[code]["severity"] == "major"
        assert findings[code]["message"]
        refused = next(base["plan"] for base in bases if base["id"] == revision["refused"])
        assert refused[fault["field"]] == fault["value"]
    policy = made.document["policy_loop"]
    assert policy["outcomes"]["frozen"] > 3
    assert policy["finding_codes"][code] >= len(first_rounds)
    frozen = [row["policy"]["proposal"][fault["field"]] for row in made.of("policy_frozen")]
    assert fault["value"] not in frozen


def test_run_same_plan_again_after_its_findings_is_a_stand_down(monkeypatch):
    def stubborn(question: Question) -> dict[str, Any]:
        if question.task == "revise":
            return propose(question.base("refused"))
        return propose(question.base(), change("conviction", 0.99)) if question.task == "choose" else HOLD

    with desk(monkeypatch, stubborn):
        made = run(period=(SLICE[0], "2003-08-15"))
    policy = made.document["policy_loop"]
    assert policy["outcomes"] == {"stood_down": policy["evaluations"]}
    assert {row["reason"] for row in made.of("policy_evaluation")} == {"identical resubmission"}
    assert trades(made) == []


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "at the deadline"])
def test_run_with_a_strategist_behind_a_bad_wire_trades_as_the_rules_and_says_why(
    waits, by_rules, monkeypatch
):
    """Each failure after the other, again and again."""
    cases = [WHOLE[name] for name in BAD if WHOLE[name].waits is waits]
    deadline_ms = 40.0 if waits else 20_000.0
    settings = proposing(strategist_deadline_ms=deadline_ms, breaker_failures=NEVER_OPENS, attempts=1)
    with wire(monkeypatch, by_turns(*(case.handler for case in cases))) as server:
        made = run(settings)
    document = made.document
    answers = [row for row in made.of("policy_proposal") if row["amendment"] is None]
    assert document["strategist"]["answers"] == {"rules": len(answers)}
    fallbacks = document["strategist"]["fallbacks"]
    # A busy machine may have spent a short deadline before the model could be asked.
    assert set(fallbacks) - ({"budget_spent"} if waits else set()) == {case.kind for case in cases}
    if not waits:
        kinds = Counter(case.kind for _, case in zip(server.requests, cycle(cases), strict=False))
        assert fallbacks == kinds, "each failure by its kind"
    assert sum(fallbacks.values()) == len(answers) == document["model"]["calls"] > 10
    assert {row["fallback"] for row in answers} == set(fallbacks)
    assert document["errors"] == 0
    assert trades(made) == trades(by_rules)


@pytest.mark.parametrize("text", ["I would buy everything.", json.dumps(propose("0" * 16))])
def test_run_with_a_strategist_that_talks_nonsense_trades_as_the_rules(text, by_rules, monkeypatch):
    with wire(monkeypatch, answer(message(text))):
        made = run(proposing(breaker_failures=NEVER_OPENS))
    strategist = made.document["strategist"]
    assert set(strategist["fallbacks"]) <= {"reply_malformed", "unknown_base", "position_open"}
    assert made.document["model"]["outcomes"] == {"reply": 2 * sum(strategist["fallbacks"].values())}
    assert trades(made) == trades(by_rules)


def test_run_with_a_dead_strategist_leaves_it_alone_and_tries_again(by_rules, monkeypatch):
    with wire(monkeypatch, WHOLE["reset"].handler):
        made = run(proposing(breaker_failures=3, breaker_pause=4, attempts=1))
    fallbacks = made.document["strategist"]["fallbacks"]
    assert set(fallbacks) == {"network", "breaker"}
    assert 3 < fallbacks["network"] < fallbacks["breaker"]
    assert trades(made) == trades(by_rules)


def test_run_with_a_strategist_over_its_limit_goes_on_by_rules(monkeypatch):
    with desk(monkeypatch, first_plan) as strategist:
        made = run(proposing(per_run=RunLimits(calls=3)))
    document = made.document
    assert len(strategist.requested) == document["model"]["calls"] == 3
    assert document["strategist"]["answers"]["claude-test"] == 3
    assert document["strategist"]["answers"]["rules"] == document["strategist"]["fallbacks"]["budget"] > 5
    assert {row["prompt"] for row in made.of("model_budget")} == {"strategist"}


@pytest.mark.usefixtures("over_the_cap")
def test_run_with_both_models_asks_the_strategist_and_the_second_reader(monkeypatch):
    with desk(monkeypatch, first_plan) as strategist:
        made = run(proposing("full"), (SLICE[0], "2003-08-15"))
    questions = [row["call"]["prompt"] for row in made.of("model_call")]
    assert questions.count("strategist") == len(strategist.requested) > 3
    assert questions.count("policy_level_reflection") > 3
    assert made.document["policy_loop"]["reflections"]["degraded"] == 0


def test_run_without_a_reflection_takes_parameters_from_the_model_but_no_rules(monkeypatch):
    own_rules = propose("b", change("setup", "close > no_such_5"))

    def decide(question: Question) -> dict[str, Any]:
        return first_plan(question) if question.task == "manage" else own_rules | {"base": question.base()}

    with desk(monkeypatch, decide):
        made = run(proposing("off"), (SLICE[0], "2003-08-15"))
    assert made.document["strategist"]["fallbacks"]["change_refused"] > 3
    assert made.document["errors"] == 0
    with desk(monkeypatch, first_plan):
        made = run(proposing("off"), (SLICE[0], "2003-08-15"))
    assert made.document["strategist"]["fallbacks"] == {}
    assert {row["policy"]["model"] for row in made.of("policy_frozen")} == {"claude-test"}


def test_session_with_a_strategist_and_no_key_says_what_to_set():
    with pytest.raises(ConfigError, match=r"strategist 'model' needs a key: set ANTHROPIC_API_KEY.*'rules'"):
        configured_models(proposing(), TickGuard(), {})


class ClosingModel:
    """Fails, and knows whether its connections were closed."""

    closed = False

    async def complete(self, **request: Any) -> ModelReply:
        raise ModelError("away", kind="network")

    async def close(self) -> None:
        self.closed = True


def test_run_closes_the_strategist_at_its_end():
    model = ClosingModel()
    run_on(fewer_bars("2003-01-01", "2003-01-31"), proposing(), models=Models(strategist=model))
    assert model.closed


def test_session_with_a_strategist_and_no_model_for_it_is_refused():
    with pytest.raises(ConfigError, match="strategist"):
        run_on(fewer_bars("2003-01-01", "2003-01-31"), proposing(), models=Models(fast=None))


def test_models_in_use_are_those_that_the_settings_ask():
    llm = proposing(strategist="anthropic/claude-strategist").llm
    assert models_in_use(Settings()) == ()
    assert models_in_use(proposing("off", strategist="anthropic/claude-strategist")) == (
        "anthropic/claude-strategist",
    )
    full = proposing("full", strategist="anthropic/claude-strategist")
    assert models_in_use(full) == ("anthropic/claude-test", "anthropic/claude-strategist")
    alone = full.model_copy(update={"policy_loop": PolicyLoopSettings(), "llm": llm})
    assert models_in_use(alone) == ("anthropic/claude-test",)
