"""A playbook that gains gets more risk at default settings, after its trial in shadow; noise gets none."""

import json
from functools import cache
from typing import Any

from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
from services.playbooks.measures import alter
from tests.worker.momentum_worlds import momentum_world
from tests.worker.shared_runs import Run, run_on
from worker.studies.scenarios import PLANTED

NAME = "buys_strength"
CAREFUL = 0.002


@cache
def ran(strength: float) -> Run:
    (planted,) = load_playbooks(PLANTED)
    (other,) = (playbook for playbook in load_playbooks(None) if playbook.id == "mean_reversion")
    books = (alter(planted, risk_fraction=CAREFUL), other)
    return run_on(momentum_world(strength=strength, bars=740, symbols=12), Settings(), books)


def versions(run: Run) -> list[dict[str, Any]]:
    return [version for version in run.of("playbook_version") if version["playbook_id"] == NAME]


def raises(run: Run) -> list[dict[str, Any]]:
    reports = [payload["report"] for payload in run.of("high_level_report")]
    questions = [item for report in reports for item in report["recommendations"]]
    return [change for change in questions if change["change"].get("kind") == "set_risk_fraction"]


def test_playbook_that_gains_is_tried_with_more_risk_in_shadow_and_then_trades_with_it() -> None:
    run = ran(1.0)
    messages = [
        (version["version"], version["state"], version["definition"]["risk_fraction"])
        for version in versions(run)
    ]
    limit = Settings().envelope.risk_fraction  # the next raise, on trial at the end of the run
    assert messages == [
        (1, "active", CAREFUL), (2, "candidate", 2 * CAREFUL), (2, "shadow", 2 * CAREFUL),
        (1, "retired", CAREFUL), (2, "active", 2 * CAREFUL),
        (3, "candidate", limit), (3, "shadow", limit),
    ]  # fmt: skip
    (decided,) = run.of("plan_decided")
    assert (decided["by"], decided["state"]) == ("auto", "approved")
    shown = versions(run)[4]["evidence"]
    assert shown["e_value"] >= shown["e_needed"] == 40.0
    policies = [
        frozen["policy"] for frozen in run.of("policy_frozen") if frozen["policy"]["playbook_id"] == NAME
    ]
    assert {(policy["playbook_version"], policy["risk_fraction"]) for policy in policies} == {
        (1, CAREFUL), (2, 2 * CAREFUL),
    }  # fmt: skip


def test_orders_after_the_promotion_put_the_raised_fraction_of_the_account_at_risk() -> None:
    run = ran(1.0)
    frozen = [entry for entry in run.of("policy_frozen") if entry["policy"]["playbook_id"] == NAME]
    version = {policy["policy_id"]: policy["policy"]["playbook_version"] for policy in frozen}
    risked: dict[int, list[float]] = {1: [], 2: []}
    for order in run.of("order_accepted"):
        if order["policy_id"] in version:
            risked[version[order["policy_id"]]].append(order["planned_risk"] * order["quantity"])
    assert max(risked[2]) > 1.5 * max(risked[1]), risked


def test_raise_of_the_risk_keeps_to_the_bounds_of_the_contract_and_of_the_account() -> None:
    request = raises(ran(1.0))
    assert request
    limit = Settings().envelope.risk_fraction
    assert all(CAREFUL < change["change"]["value"] <= min(2 * 2 * CAREFUL, limit) for change in request)
    assert {entry["grade"] for entry in request} == {"significant"}


def test_raise_is_not_asked_for_again_while_its_trial_is_open() -> None:
    run = ran(1.0)
    moved = [(row.known_at, json.loads(row.payload)) for row in run.rows if row.kind == "playbook_version"]
    begun, ended = (
        next(
            at
            for at, episode in moved
            if (episode["playbook_id"], episode["version"], episode["state"]) == (NAME, 2, state)
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
        change for report in meanwhile for change in report["recommendations"] if "value" in change["change"]
    ] == []
    assert run.of("action_refused") == []


def test_world_without_an_edge_raises_no_risk() -> None:
    run = ran(0.0)
    assert len(run.of("episode")) > 100
    assert raises(run) == []
    assert {version["definition"]["risk_fraction"] for version in versions(run)} == {CAREFUL}
