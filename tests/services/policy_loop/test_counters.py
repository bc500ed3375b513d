"""What the policy loop counts: reflections over their own budget, whatever else an evaluation waited for."""

import asyncio

import pytest

from schemas.settings import ReflectionSettings, Settings
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.policy_loop.counters import PolicyCounters
from services.ports import PlanRound
from tests.services.policy_checks.plans import changed, right_request
from tests.worker.shared_runs import embedded_bars, run_on

BUDGETS = ReflectionSettings(budget_event_ms=20.0, budget_heartbeat_ms=40.0)


def reflected(source: str, latency_ms: float) -> PlanRound:
    request = right_request()
    result = asyncio.run(PolicyLevelReflectionService(BUDGETS).reflect(request, source=source))
    answer = StrategistAnswer(
        kind=PlanKind.PROPOSE, proposal=request.proposal, reason="r", model="slow", prompt_hash=None
    )
    return PlanRound(answer, request, changed(result, {"meta.latency_ms": latency_ms}))


@pytest.mark.parametrize(
    ("source", "latency_ms", "over"),
    [
        ("regime_change", 20.0, 0),
        ("regime_change", 20.1, 1),
        ("position_opened", 30.0, 1),
        ("heartbeat", 30.0, 0),
        ("heartbeat", 40.1, 1),
    ],
)
def test_counters_reflection_over_the_budget_of_its_event_is_counted(source, latency_ms, over):
    counters = PolicyCounters(BUDGETS)
    counters.count_round(reflected(source, latency_ms))
    counters.evaluation_ms.append(60_000.0)  # a strategist that thinks for a minute is over no budget of this
    document = counters.document()
    assert document["over_budget"] == over
    assert document["reflection_latency_ms"]["p50"] == latency_ms
    assert document["latency_ms"]["p50"] == 60_000.0


@pytest.mark.parametrize(("budget_ms", "share"), [(0.001, 1), (60_000.0, 0)])
def test_run_counts_its_reflections_against_the_budget_of_its_settings(budget_ms, share):
    budgets = ReflectionSettings(budget_event_ms=budget_ms, budget_heartbeat_ms=budget_ms)
    policy = run_on(embedded_bars("2003-01-01", "2004-03-31"), Settings(reflection=budgets)).document[
        "policy_loop"
    ]
    verdicts = [policy["reflections"], policy["amendments"]]
    reflections = sum(reply[name] for reply in verdicts for name in ("pass", "revise", "block"))
    assert reflections != policy["evaluations"]
    assert policy["over_budget"] == share * reflections
