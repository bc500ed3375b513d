"""Wires of the policy loop that only the sum of a run held: each is red here when it is cut."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from agents.strategies.plan_provider import ReflectingPlanProvider
from schemas.invocation import ReflectionInvocationMeta
from schemas.policy import FrozenPolicy
from schemas.reflection import InvariantContext, PolicyLevelReflectionResult
from schemas.settings import ReflectionSettings, Settings
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import InvocationOutcome, PlanKind
from services.model_calls.language_model import ModelReply
from services.playbooks.registry import PlaybookRegistry
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.ports import Plan, PlanEnd, PlanRound, RevisionBudget
from tests.services.policy_checks.plans import PLAYBOOKS, right_request
from tests.worker.test_session_wires import (
    finished,
    payloads,
    plans_changed,
    session,
    until_a_policy_is_in_force,
)
from trading_core.tick_guard import TickGuard
from worker.session import Session

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

REQUEST = right_request()
NOTED = InvariantContext(max_risk_fraction=1e-4)  # a finding of weight in every plan


@pytest.mark.parametrize(
    ("events", "budget_ms"),
    [
        (("heartbeat",), 40_000.0),
        (("heartbeat", "regime_change"), 20_000.0),
        (("position_opened",), 20_000.0),
        (("volatility_band_shift", "heartbeat"), 20_000.0),
    ],
)
def test_event_of_the_boundary_chooses_the_deadline_of_the_model(
    events: tuple[str, ...], budget_ms: float
) -> None:
    deadlines = []

    class Asked:
        async def complete(self, *, deadline_ms: float, **_: Any) -> ModelReply:
            deadlines.append(deadline_ms)
            return ModelReply("no JSON", "asked", 1, 1, 0.1)

    class Proposing:
        async def answer(self, *_: Any) -> StrategistAnswer:
            return StrategistAnswer(kind=PlanKind.PROPOSE, reason="r", proposal=REQUEST.proposal)

    budgets = ReflectionSettings(mode="full", budget_event_ms=20_000.0, budget_heartbeat_ms=40_000.0)
    provider = ReflectingPlanProvider(
        Proposing(),
        PolicyLevelReflectionService(budgets, model=Asked()),
        PlaybookRegistry(PLAYBOOKS, TickGuard(), REQUEST.snapshot.known_at).reader(),
        lambda *_: (),
    )
    seen = REQUEST.snapshot.model_copy(update={"events": events})
    asyncio.run(provider.provide(seen, NOTED, RevisionBudget(0)))
    assert budget_ms - 15_000.0 < deadlines[0] <= budget_ms


def abstaining(made: Session) -> None:
    async def abstain(*_: Any, **__: Any) -> Plan:
        answer = StrategistAnswer(kind=PlanKind.ABSTAIN, reason="scripted")
        return Plan(PlanEnd.NO_PROPOSAL, (PlanRound(answer),), "scripted")

    made.policy_loop.provider.provide = abstain  # type: ignore[method-assign]


def endings(made: Session, rows: Any, first: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(snapshot, evaluation) after row `first` of the journal, where a policy is in force and no position."""
    seen = {payload["snapshot_hash"]: payload["snapshot"] for payload in payloads(rows, "policy_snapshot")}
    ended = [json.loads(row.payload) for row in rows if row.kind == "policy_evaluation" and row.seq >= first]
    found = [(seen[item["snapshot_hash"]], item) for item in ended]
    return [
        (snapshot, item)
        for snapshot, item in found
        if snapshot["active_policy_id"] is not None and snapshot["position"] is None
    ]


def test_session_abstention_keeps_a_policy_only_where_its_playbook_is_still_eligible() -> None:
    made = session(period=("2003-01-01", "2005-10-31"))
    plans_changed(made, lambda plan: plan)
    freezing = made.policy_loop.provider.provide
    calls = [0]

    async def every_fourth(*args: Any, **named: Any) -> Plan:
        calls[0] += 1
        if calls[0] % 4 == 0:
            return await freezing(*args, **named)
        answer = StrategistAnswer(kind=PlanKind.ABSTAIN, reason="scripted")
        return Plan(PlanEnd.NO_PROPOSAL, (PlanRound(answer),), "scripted")

    made.policy_loop.provider.provide = every_fourth  # type: ignore[method-assign]
    rows = finished(made)
    books = {version.definition.id: version.definition for version in made.books.reader.active()}
    frozen = [json.loads(row.payload) for row in rows if row.kind == "policy_frozen"]
    policies = {payload["policy_id"]: FrozenPolicy.model_validate(payload["policy"]) for payload in frozen}
    outcomes = []
    for snapshot, ended in endings(made, rows, 0):
        if ended["outcome"] not in ("kept_previous", "stood_down"):
            continue
        policy = policies[snapshot["active_policy_id"]]
        trend, volatility = snapshot["regime"]["labels"]["trend"], snapshot["regime"]["labels"]["volatility"]
        rule = books[policy.playbook_id].eligibility[policy.proposal.direction]
        allowed = trend in rule.trend and volatility in rule.volatility
        outcomes.append((allowed, ended["outcome"]))
        if not allowed:
            assert ended["outcome"] == "stood_down", "a playbook that is not eligible now is not kept"
    assert outcomes.count((True, "kept_previous")) > 3
    assert outcomes.count((False, "stood_down")) > 1


def test_session_abstention_keeps_no_policy_of_a_playbook_version_that_was_replaced() -> None:
    made = session()
    asyncio.run(until_a_policy_is_in_force(made))
    first = made.journal.events
    reader = made.policy_loop._playbooks

    class Replaced:
        def __getattr__(self, name: str) -> Any:
            return getattr(reader, name)

        def active(self) -> Any:
            return tuple(
                replace_definition(version, version.definition.model_copy(update={"version": 99}))
                for version in reader.active()
            )

        def get(self, playbook_id: str) -> Any:
            return next(item for item in self.active() if item.definition.id == playbook_id)

    def replace_definition(version: Any, definition: Any) -> Any:
        return version.model_copy(update={"definition": definition})

    made.policy_loop._evaluator.playbooks = Replaced()
    abstaining(made)
    ended = endings(made, finished(made), first)
    assert ended
    assert {episode["outcome"] for _, episode in ended} == {"stood_down"}
    assert made.policy_loop.counters.amendment_codes["playbook_replaced"] >= len(ended)


def with_disabled_record(plan: Plan) -> Plan:
    """What a provider hands out that says that reflection is off, though it is on."""
    met = plan.last.reflection
    if plan.end is not PlanEnd.PASSED or not isinstance(met, PolicyLevelReflectionResult):
        return plan
    record = met.meta.model_copy(update={"outcome": InvocationOutcome.DISABLED, "skip_reason": "so I say"})
    return Plan(plan.end, (replace(plan.last, reflection=record),), plan.reason)


def test_session_judge_refuses_a_record_of_a_reflection_that_is_off_while_it_is_on() -> None:
    made = session()
    plans_changed(made, with_disabled_record)
    rows = finished(made)
    shown = [
        payload["verdict"]
        for payload in payloads(rows, "boundary_verdict")
        if payload["verdict"]["evidence_ids"]
    ]
    assert [item for item in shown if item["evidence_ids"] == ["no_result"]]
    assert payloads(rows, "policy_frozen") == []
    assert made.policy_loop.counters.errors == 0, "freeze does not have to stop it"


def test_session_freeze_refuses_that_record_even_under_a_judge_that_approves_it() -> None:
    made = session()
    plans_changed(made, with_disabled_record)
    made.policy_loop._judge._reflection_off = True  # type: ignore[attr-defined]
    rows = finished(made)
    assert made.policy_loop.counters.decisions["approve"] > 20
    assert payloads(rows, "policy_frozen") == payloads(rows, "order_accepted") == []
    assert {payload["type"] for payload in payloads(rows, "error")} == {"FreezeRefused"}


def test_session_with_reflection_off_freezes_amends_and_trades_on_its_records() -> None:
    made = session(Settings(reflection=ReflectionSettings(mode="off")))
    rows = finished(made)
    met = [payload["result"] for payload in payloads(rows, "policy_reflection")]
    assert all(ReflectionInvocationMeta.model_validate(item).outcome == "disabled" for item in met)
    assert len(payloads(rows, "policy_amended")) > 5
    assert len(payloads(rows, "order_accepted")) > 5
    assert made.policy_loop.counters.errors == 0


def test_session_evaluation_restarts_the_heartbeat_of_its_symbol_and_a_skip_does_not() -> None:
    made = session()
    open_ = made.policy_loop.open
    payload = {True: 0, False: 0}

    def opened(boundary: Any, **named: Any) -> Any:
        before = {name: int(made.engine.state[name][boundary.s]) for name in ("last_evaluation", "last_beat")}
        evaluation = open_(boundary, **named)
        own = int(made.engine.state["own"][boundary.s])
        after = {name: int(made.engine.state[name][boundary.s]) for name in before}
        assert after == (before if evaluation is None else dict.fromkeys(before, own))
        payload[evaluation is not None] += 1
        return evaluation

    made.policy_loop.open = opened  # type: ignore[method-assign]
    finished(made)
    assert payload[True] > 50
    assert payload[False] > 10
