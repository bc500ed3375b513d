"""A playbook that gains gets more risk at default settings, after its trial in shadow; noise gets none."""

import json
from functools import cache
from typing import Any

from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
from services.playbooks.measures import revise_fields
from tests.worker.momentum_worlds import momentum_world
from tests.worker.shared_runs import Run, run_on
from worker.studies.scenarios import PLANTED

NAME = "buys_strength"
CAREFUL = 0.002


@cache
def ran(strength: float) -> Run:
    (planted,) = load_playbooks(PLANTED)
    (other,) = (one for one in load_playbooks(None) if one.id == "mean_reversion")
    books = (revise_fields(planted, risk_fraction=CAREFUL), other)
    return run_on(momentum_world(strength=strength, bars=740, symbols=12), Settings(), books)


def versions(run: Run) -> list[dict[str, Any]]:
    return [one for one in run.of("playbook_version") if one["playbook_id"] == NAME]


def raises(run: Run) -> list[dict[str, Any]]:
    reports = [one["report"] for one in run.of("high_level_report")]
    asked = [one for report in reports for one in report["recommendations"]]
    return [one for one in asked if one["change"].get("kind") == "set_risk_fraction"]


def test_playbook_that_gains_is_tried_with_more_risk_in_shadow_and_then_trades_with_it() -> None:
    run = ran(1.0)
    told = [(one["version"], one["state"], one["definition"]["risk_fraction"]) for one in versions(run)]
    limit = Settings().envelope.risk_fraction  # the next raise, on trial at the end of the run
    assert told == [
        (1, "active", CAREFUL), (2, "candidate", 2 * CAREFUL), (2, "shadow", 2 * CAREFUL),
        (1, "retired", CAREFUL), (2, "active", 2 * CAREFUL),
        (3, "candidate", limit), (3, "shadow", limit),
    ]  # fmt: skip
    (decided,) = run.of("plan_decided")
    assert (decided["by"], decided["state"]) == ("auto", "approved")
    shown = versions(run)[4]["evidence"]
    assert shown["e_value"] >= shown["e_needed"] == 40.0
    policies = [one["policy"] for one in run.of("policy_frozen") if one["policy"]["playbook_id"] == NAME]
    assert {(one["playbook_version"], one["risk_fraction"]) for one in policies} == {
        (1, CAREFUL), (2, 2 * CAREFUL),
    }  # fmt: skip


def test_orders_after_the_promotion_put_the_raised_fraction_of_the_account_at_risk() -> None:
    run = ran(1.0)
    frozen = [one for one in run.of("policy_frozen") if one["policy"]["playbook_id"] == NAME]
    version = {one["policy_id"]: one["policy"]["playbook_version"] for one in frozen}
    risked: dict[int, list[float]] = {1: [], 2: []}
    for one in run.of("order_accepted"):
        if one["policy_id"] in version:
            risked[version[one["policy_id"]]].append(one["planned_risk"] * one["quantity"])
    assert max(risked[2]) > 1.5 * max(risked[1]), risked


def test_raise_of_the_risk_keeps_to_the_bounds_of_the_contract_and_of_the_account() -> None:
    asked = raises(ran(1.0))
    assert asked
    limit = Settings().envelope.risk_fraction
    assert all(CAREFUL < one["change"]["value"] <= min(2 * 2 * CAREFUL, limit) for one in asked)
    assert {one["grade"] for one in asked} == {"significant"}


def test_raise_is_not_asked_for_again_while_its_trial_is_open() -> None:
    run = ran(1.0)
    moved = [(row.known_at, json.loads(row.payload)) for row in run.rows if row.kind == "playbook_version"]
    begun, ended = (
        next(
            at for at, one in moved if (one["playbook_id"], one["version"], one["state"]) == (NAME, 2, state)
        )
        for state in ("shadow", "active")
    )
    meanwhile = [
        json.loads(row.payload)["report"]
        for row in run.rows
        if row.kind == "high_level_report" and begun < row.known_at < ended
    ]
    assert meanwhile
    assert [
        one for report in meanwhile for one in report["recommendations"] if "value" in one["change"]
    ] == []
    assert run.of("action_refused") == []


def test_world_without_an_edge_raises_no_risk() -> None:
    run = ran(0.0)
    assert len(run.of("episode")) > 100
    assert raises(run) == []
    assert {one["definition"]["risk_fraction"] for one in versions(run)} == {CAREFUL}
