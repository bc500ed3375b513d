"""The five human verification scenarios of the runbook hold, with evidence."""

import asyncio

import pytest

from worker.studies import scenarios


@pytest.mark.parametrize(
    "scenario",
    [
        scenarios.only_tick_validation_between_policy_events,
        scenarios.inconsistent_plan_is_refused,
        scenarios.one_window_is_reflected_once,
        scenarios.too_few_samples_stay_monitor_only,
        scenarios.enough_samples_give_a_gated_report,
    ],
)
def test_scenario_holds_with_evidence(scenario) -> None:
    result = asyncio.run(scenario())
    assert result.passed, result
    assert len(result.evidence) >= 3


def test_scenarios_are_the_five_of_the_runbook() -> None:
    assert len(scenarios.SCENARIOS) == 5
