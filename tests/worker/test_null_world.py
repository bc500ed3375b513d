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
    reports = [report["report"] for report in run.of("high_level_report")]
    assert len(reports) >= 3
    assert sum(report["n_episodes"] for report in reports) > 100
    actions = {item["action"] for report in reports for item in report["recommendations"]}
    assert actions.isdisjoint(STRUCTURAL)
    grades = {item["grade"] for report in reports for item in report["clusters"]}
    assert EvidenceGrade.SIGNIFICANT not in grades
    active = [version for version in run.of("playbook_version") if version["state"] == "active"]
    assert all(entry["definition"]["version"] == 1 for entry in active)  # experiments stay in shadow
    assert run.document["errors"] == 0
