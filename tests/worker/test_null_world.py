"""Random walks without costs through the whole engine: nothing is there to be learnt, and nothing is."""

import pytest

from schemas.settings import ExecutionSettings, Settings
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from tests.worker.shared_runs import run_on
from worker.feeds.sample_data.worlds import make_world

STRUCTURAL = {RecommendedAction.POLICY_ADJUST, RecommendedAction.REPLAN}


@pytest.mark.parametrize("seed", [1, 3])
def test_null_world_of_bars_leads_to_no_structural_recommendation(seed):
    world = make_world("random_walk", seed=seed, bars=1_500, symbols=4)
    run = run_on(world, Settings(execution=ExecutionSettings(fee_bps=0.0, slippage_bps=0.0)))
    reports = [one["report"] for one in run.of("high_level_report")]
    assert len(reports) >= 3
    assert sum(one["n_episodes"] for one in reports) > 100
    actions = {item["action"] for one in reports for item in one["recommendations"]}
    assert actions.isdisjoint(STRUCTURAL)
    grades = {item["grade"] for one in reports for item in one["clusters"]}
    assert EvidenceGrade.SIGNIFICANT not in grades
    active = [one for one in run.of("playbook_version") if one["state"] == "active"]
    assert all(one["definition"]["version"] == 1 for one in active)  # experiments stay in shadow
    assert run.document["errors"] == 0
