"""A plan beyond its playbook is brought down where no reflection sends it back, whoever made it."""

import asyncio
from typing import Any

import pytest

from schemas.errors import ModelError
from schemas.proposal import PolicyProposal
from schemas.settings import JudgeSettings, LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import ReflectionStatus
from services.journal.index import JournalIndex
from services.journal.references import check_references
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.language_model import ModelReply
from services.playbooks.loader import load_playbooks
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.policy_loop.clamps import clamp_proposal, highest_conviction, rules_conviction
from services.ports import Plan, PlanEnd, PlanRound
from tests.services.journal.rows import stream
from tests.services.policy_checks.plans import PLAN_IDS, PLANS, changed, right_request
from tests.worker.shared_runs import embedded_bars
from tests.worker.test_session_wires import finished, payloads, plans_changed, session
from worker.bootstrap import assemble
from worker.models import Models, Overrides

OFF = Settings(reflection=ReflectionSettings(mode="off"))
BOOKS = {book.id: book for book in load_playbooks(None)}
BEYOND: dict[str, Any] = {"horizon_bars": 400, "activation_window_bars": 40, "conviction": 1.0}
FIELDS = set(BEYOND)


def beyond(plan: Plan) -> Plan:
    """The plan of another provider, which asks for more than its playbook has."""
    answer = plan.last.answer
    if plan.end is not PlanEnd.PASSED or answer.proposal is None:
        return plan
    request = PolicyProposal(**{**answer.proposal.payload(), **BEYOND})
    shown = answer.model_copy(update={"proposal": request, "model": "another"})
    return Plan(plan.end, (*plan.rounds[:-1], PlanRound(shown, plan.last.request, plan.last.reflection)), "")


def test_session_with_reflection_off_clamps_every_plan_beyond_its_playbook_and_says_so() -> None:
    made = session(OFF)
    plans_changed(made, beyond)
    rows = finished(made)
    frozen, clamps = payloads(rows, "policy_frozen"), payloads(rows, "proposal_clamped")
    assert len(frozen) > 10
    for policy in frozen:
        plan = policy["policy"]["proposal"]
        book = BOOKS[plan["playbook_id"]]
        assert plan["horizon_bars"] == book.horizon_bars
        assert plan["activation_window_bars"] == book.activation_window_bars
        assert plan["conviction"] < 1.0
    by_plan: dict[str, set[str]] = {}
    for clamp in clamps:
        by_plan.setdefault(clamp["proposal_hash"], set()).add(clamp["field"])
        assert clamp["asked"] == BEYOND[clamp["field"]] > clamp["allowed"]
        assert clamp["asked_hash"] != clamp["proposal_hash"]
    assert {policy["policy"]["proposal_hash"] for policy in frozen} <= set(by_plan)
    assert all(fields == FIELDS for fields in by_plan.values())
    assert made.policy_loop.counters.errors == 0
    index = asyncio.run(JournalIndex.read(stream(rows)))
    assert check_references(index, finished=True).ok


def test_session_with_reflection_off_changes_no_plan_of_the_rules() -> None:
    rows = finished(session(OFF))
    assert len(payloads(rows, "policy_frozen")) > 10
    assert payloads(rows, "proposal_clamped") == []


def test_session_with_a_reflection_refuses_a_plan_that_was_changed_behind_it() -> None:
    made = session()
    plans_changed(made, beyond)
    rows = finished(made)
    assert payloads(rows, "policy_frozen") == []


PATIENT = LlmSettings(model="anthropic/claude-haiku-5-5", breaker_failures=1_000)
MODES = {
    "off": OFF,
    "deterministic": Settings(),
    "full": Settings(reflection=ReflectionSettings(mode="full"), llm=PATIENT),
    "strategist": Settings(policy_loop=PolicyLoopSettings(strategist="model"), llm=PATIENT),
    "strategist, off": Settings(
        policy_loop=PolicyLoopSettings(strategist="model"), reflection=OFF.reflection, llm=PATIENT
    ),
    "judge": Settings(judge=JudgeSettings(replan="model"), llm=PATIENT),
}


class Silent:
    """A model that is never there: the rules answer in its place."""

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        raise ModelError("the wire is cut", retryable=True, kind="network")


@pytest.mark.parametrize("settings", MODES.values(), ids=list(MODES))
def test_session_of_every_mode_puts_no_plan_of_a_strategist_beyond_its_playbook_in_force_unsaid(
    settings: Settings,
) -> None:
    silent = Silent()
    models = Models(fast=silent, slow=silent, judge=silent, strategist=silent)
    bars = embedded_bars("2003-01-01", "2003-09-30")
    made = assemble(settings, bars, JournalWriter(MemorySink()), own=Overrides(models=models))
    made.begin()
    strategist = made.policy_loop.provider.strategist  # type: ignore[attr-defined]
    answer = strategist.answer

    async def greedy(*args: Any, **named: Any) -> StrategistAnswer:
        reply: StrategistAnswer = await answer(*args, **named)
        if reply.proposal is None:
            return reply
        return reply.model_copy(update={"proposal": PolicyProposal(**{**reply.proposal.payload(), **BEYOND})})

    strategist.answer = greedy
    rows = finished(made)
    questions = [payload for payload in payloads(rows, "policy_proposal") if payload["proposal"] is not None]
    assert len(questions) > 5
    clamps = {payload["proposal_hash"] for payload in payloads(rows, "proposal_clamped")}
    for payload in payloads(rows, "policy_frozen"):
        assert payload["policy"]["proposal_hash"] in clamps
        book = BOOKS[payload["policy"]["playbook_id"]]
        assert payload["policy"]["proposal"]["horizon_bars"] <= book.horizon_bars
    assert bool(clamps) == (settings.reflection.mode == "off")
    assert made.policy_loop.counters.errors == 0


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_reflection_sends_back_whatever_a_clamp_would_change(field):
    request = right_request()
    book, snapshot = request.playbook, request.snapshot
    bound = highest_conviction(snapshot, book, 0.25) if field == "conviction" else getattr(book, field)
    beyond_it = changed(request, {f"proposal.{field}": bound + (0.001 if field == "conviction" else 1)})
    assert clamp_proposal(beyond_it.proposal, snapshot, book, 0.25)[1]
    met = asyncio.run(
        PolicyLevelReflectionService(ReflectionSettings()).reflect(beyond_it, source="heartbeat")
    )
    assert met.status is not ReflectionStatus.PASS


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_clamped_plan_of_the_playbook_is_the_plan_itself(playbook, direction):
    request = right_request(playbook, direction)
    assert clamp_proposal(request.proposal, request.snapshot, playbook, 0.25) == (request.proposal, ())


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_clamped_field_exactly_at_its_bound_stays_and_a_step_beyond_comes_down_to_it(field):
    request = right_request()
    book, snapshot = request.playbook, request.snapshot
    bound = highest_conviction(snapshot, book, 0.25) if field == "conviction" else getattr(book, field)
    at = changed(request.proposal, {field: bound})
    assert clamp_proposal(at, snapshot, book, 0.25) == (at, ())
    step = 0.001 if field == "conviction" else 1
    allowed, (clamp,) = clamp_proposal(changed(at, {field: bound + step}), snapshot, book, 0.25)
    assert allowed == at
    assert (clamp.field, clamp.requested, clamp.allowed) == (field, bound + step, bound)


def test_clamped_plan_below_its_bounds_is_never_raised():
    request = right_request()
    low = changed(request.proposal, {"horizon_bars": 1, "activation_window_bars": 1, "conviction": 0.0})
    assert clamp_proposal(low, request.snapshot, request.playbook, 0.25) == (low, ())


def test_highest_conviction_is_what_the_rules_believe_where_that_is_more_than_the_tolerance():
    request = right_request()
    strong = changed(request.snapshot, {"regime.fingerprint": (1.0, 0.0, 0.5, 1.0, 0.5)})
    hit_rate = request.playbook.expectation.hit_rate
    assert highest_conviction(strong, request.playbook, 0.25) == rules_conviction(hit_rate, strong.regime)
    assert rules_conviction(hit_rate, strong.regime) == pytest.approx(hit_rate + 0.3)
    assert highest_conviction(strong, request.playbook, 0.5) == hit_rate + 0.5
    cold = changed(request.snapshot, {"regime": None})
    assert highest_conviction(cold, request.playbook, 0.25) == hit_rate + 0.25
