"""Which refusals wait for a person: those of a bound, not those of weak evidence or of what is so already."""

import pytest

from schemas.judge import JudgeAction, RefusedAction
from tests.services.store.plans import change_plan
from worker.operations.alerts import BOUNDS, WaitingChanges

AT = 1_700_000_000 * 10**9
BAN = JudgeAction(
    kind="set_eligibility",
    playbook_id="p",
    regime="up/high",
    eligible=False,
    life_blocks=5,
    reason="it loses",
)


def changes(*plans):
    return WaitingChanges("r0001", lambda: {"p": 3}, lambda: plans)


def verdict(*refused):
    rows = [row.payload() for row in refused]
    return {"verdict_id": "v1", "report_id": "rep1", "verdict": {"refused": rows}}


def refusal(code, action=BAN):
    return RefusedAction(action=action, code=code, reason="a bound")


@pytest.mark.parametrize("code", sorted(BOUNDS))
def test_action_that_meets_a_bound_waits_for_a_person(code):
    [news] = changes().of("replan_verdict", verdict(refusal(code)), AT)
    assert (news.kind, news.about, news.at) == ("approval_waits", "p", AT)
    assert news.summary == (
        "the judge wanted set_eligibility up/high eligible False of p version 3: declined, a bound; "
        "`thinktwice replan rep1 --run r0001 --write DIR`"
    )
    assert news.detail["evidence"] == "it loses"


@pytest.mark.parametrize("code", ["grade_too_weak", "no_cluster", "already_set", "unchanged", "not_losing"])
def test_action_that_its_evidence_does_not_carry_or_that_is_done_waits_for_nobody(code):
    assert list(changes().of("replan_verdict", verdict(refusal(code)), AT)) == []


def test_replan_is_no_change_of_a_playbook():
    replan = JudgeAction(kind="replan", reason="x")
    assert list(changes().of("replan_verdict", verdict(refusal("dropped_by_model", replan)), AT)) == []


def test_action_that_the_present_state_refuses_names_the_report_of_its_verdict():
    waiting = changes()
    assert list(waiting.of("replan_verdict", verdict(), AT)) == []
    [news] = waiting.of("action_refused", {"verdict_id": "v1", **refusal("floor").payload()}, AT)
    assert news.detail["command"] == "thinktwice replan rep1 --run r0001 --write DIR"
    [news] = waiting.of("action_refused", {"verdict_id": "v0", **refusal("floor").payload()}, AT)
    assert news.detail["command"] == "thinktwice playbooks history p --run r0001"


def test_each_change_is_a_topic_of_its_own_and_the_same_one_is_not():
    two = verdict(refusal("floor"), refusal("floor", BAN.model_copy(update={"regime": "up/low"})))
    first, other = changes().of("replan_verdict", two, AT)
    [again] = changes().of("replan_verdict", verdict(refusal("floor")), AT + 1)
    assert len({first.key, other.key}) == 2
    assert again.key == first.key


def test_version_that_moves_for_another_reason_waits_for_nobody():
    assert list(changes().of("playbook_version", {"reason": "proven in shadow"}, AT)) == []


def test_change_plan_waits_for_a_person_until_it_expires_and_where_nobody_is_asked_for_nobody():
    plan = change_plan()
    payload = {"plan_id": plan.plan_id, "plan_hash": plan.content_hash, "revision": 1, "plan": plan.payload()}
    [news] = changes(plan.plan_id).of("two_phase_phase1_complete", payload, AT)
    assert (news.kind, news.topic) == ("approval_waits", f"plan {plan.plan_id} 1")
    assert news.summary == (
        f"plan {plan.plan_id} waits for a decision until 2024-10-05 00:00 UTC: smaller losses; "
        f"`thinktwice plans show {plan.plan_id} --run r0001`"
    )
    assert news.detail["steps"] == ["risks 0.0025"]
    assert list(changes().of("two_phase_phase1_complete", payload, AT)) == []
    refused = {"plan_id": None, "plan_hash": None, "revision": None, "plan": None}
    assert list(changes(plan.plan_id).of("two_phase_phase1_complete", refused, AT)) == []
