"""A change is one plan until it is decided, is another one, or expires, whatever its day and words are."""

from typing import Any

import pytest

from schemas.errors import ConfigError
from schemas.judge import JudgeAction
from schemas.plan import ChangePlan, Proposed
from services.plans.editing import StepEdit, revise
from services.plans.same_change import list_changes
from tests.services.plans.plan_worlds import NAME, OTHER, DeskWorld, desk_world, risk
from worker.operations.alerts import WaitingChanges

DRAFTED = "two_phase_phase1_complete"
LEDGER = "c" * 64
LONG: dict[str, Any] = {"max_move_atr": 100.0, "expires_bars": 300}


def replan(reason: str) -> JudgeAction:
    return JudgeAction(kind="replan", playbook_id=NAME, reason=reason)


def sets_risk(value: float, reason: str = "it loses", name: str = NAME) -> JudgeAction:
    return JudgeAction(kind="set_risk_fraction", playbook_id=name, value=value, reason=reason)


def judged(world: DeskWorld, *actions: JudgeAction) -> ChangePlan | None:
    """What becomes of a verdict at the next bar, on a report of that day."""
    world.to_row(world.session.engine.t + 1)
    day = f"{world.now:016x}"[-16:]
    return world.desk.of_verdict(actions, world.now, day, day[::-1])


def proven(world: DeskWorld, value: float = 0.008, n: int = 30, ledger: str = LEDGER) -> ChangePlan | None:
    """What becomes of a change that its own trades prove, at the next bar."""
    world.to_row(world.session.engine.t + 1)
    item = Proposed(sets_risk(value), ledger, {"n": n, "e_value": float(n)})
    return world.desk._make([item], "candidate", f"proven by {n} trades", world.now)


@pytest.fixture
def world() -> DeskWorld:
    return desk_world(approval="ask", **LONG)


def test_verdict_that_wants_the_same_on_another_day_is_one_plan_and_one_message(world: DeskWorld) -> None:
    first = judged(world, replan("its cluster loses, n 20"))
    assert first is not None
    assert [judged(world, replan(f"its cluster loses, n {n}")) for n in (21, 22, 23)] == [None] * 3
    assert list(world.desk.waiting) == [first.plan_id]
    drafted = world.rows(DRAFTED)
    alerts = WaitingChanges("r", dict, lambda: world.desk.waiting)
    lines = [alert for row in drafted for alert in alerts.of(DRAFTED, row, world.now)]
    assert (len(drafted), len(lines), world.desk.counters.made) == (1, 1, 1)
    refused = world.rows("action_refused")
    assert [row["code"] for row in refused] == ["already_planned"] * 3
    assert {row["reason"] for row in refused} == {f"plan {first.plan_id} waits for the same"}


def test_proven_change_is_one_plan_however_far_its_evidence_grows(world: DeskWorld) -> None:
    first = proven(world)
    assert first is not None
    assert [proven(world, n=n) for n in (31, 40, 50)] == [None] * 3
    assert list(world.desk.waiting) == [first.plan_id]
    assert proven(world, ledger="d" * 64) is not None, "another family of evidence is another change"


def test_plan_that_was_edited_stays_the_plan_of_its_change(world: DeskWorld) -> None:
    first = proven(world)
    assert first is not None
    edited = revise(first, edits=[StepEdit(1, "value", "0.006")], judge=world.session.settings.judge)
    world.decide(edited, "submit")
    assert proven(world, n=40) is None
    assert [held.plan for held in world.desk.waiting.values()] == [edited]


def test_change_that_a_person_has_declined_is_proposed_again_only_when_it_is_another_one(
    world: DeskWorld,
) -> None:
    first = proven(world)
    assert first is not None
    world.decide(first, "cancel")
    other = desk_world(approval="ask", **LONG)
    other.session.slow_loop.plans.restore(world.desk.state())
    other.to_row(world.session.engine.t)
    for desk in (world, other):
        assert proven(desk, n=60) is None
        assert not desk.desk.waiting
    assert proven(world, value=0.006) is not None
    world.decide(world.plan(risk(0.007)))
    assert proven(world) is not None, "another version is in force"


def test_verdict_that_a_person_has_declined_is_decided_anew_by_the_next_report(world: DeskWorld) -> None:
    first = judged(world, replan("it loses"))
    assert first is not None
    world.decide(first, "cancel")
    assert judged(world, replan("it loses still")) is not None


def test_change_that_nobody_decided_in_time_is_proposed_again() -> None:
    world = desk_world(approval="ask")
    first = proven(world)
    assert first is not None
    while world.desk.waiting:
        world.to_row(world.session.engine.t + 1)
    second = proven(world)
    assert second is not None
    assert second.plan_id != first.plan_id
    assert [row["state"] for row in world.rows("plan_decided")] == ["declined"]


def test_changed_proposal_takes_the_place_of_its_plan_and_says_what_differs(world: DeskWorld) -> None:
    first = judged(world, sets_risk(0.006))
    second = judged(world, sets_risk(0.007))
    assert first is not None
    assert second is not None
    assert list(world.desk.waiting) == [second.plan_id]
    (ended,) = world.rows("plan_decided")
    assert (ended["plan_id"], ended["decision"], ended["by"]) == (first.plan_id, "replace", "run")
    assert ended["state"] == "stale"
    diff = "step 1, value: 0.006 -> 0.007"
    assert ended["reasons"] == [f"plan {second.plan_id} takes its place", diff]
    drafted = world.rows(DRAFTED)[-1]
    assert drafted["replaces"] == [{"plan_id": first.plan_id, "diff": [diff]}]
    alerts = WaitingChanges("r", dict, lambda: world.desk.waiting)
    (alert,) = alerts.of(DRAFTED, drafted, world.now)
    assert f"in place of plan {first.plan_id}: {diff}" in alert.summary
    assert world.decide(first)["outcome"] == "refused"
    assert world.decide(second)["state"] == "completed"


def test_plan_whose_number_a_trial_has_taken_gives_way_before_anybody_approves_it(world: DeskWorld) -> None:
    first = proven(world)
    assert first is not None
    world.decide(world.plan(risk(0.007)))
    second = proven(world)
    assert second is not None
    assert list(world.desk.waiting) == [second.plan_id]
    reasons = world.rows("plan_decided")[-1]["reasons"]
    assert any(f"{NAME} version 1 was in force" in reason for reason in reasons)


def test_verdict_that_changes_one_of_its_steps_keeps_the_other(world: DeskWorld) -> None:
    first = judged(world, sets_risk(0.006), sets_risk(0.007, name=OTHER))
    second = judged(world, sets_risk(0.008), sets_risk(0.007, "still", OTHER))
    assert first is not None
    assert second is not None
    assert [step.action.value for step in second.steps] == [0.008, 0.007]  # type: ignore[union-attr]
    assert list(world.desk.waiting) == [second.plan_id]
    third = judged(world, sets_risk(0.007, "as before", OTHER), replan("it loses"))
    assert third is not None
    assert [step.action.kind for step in third.steps] == ["replan"], "what waits is in no second plan"


@pytest.mark.parametrize("approval", ["auto", "ask"])
def test_step_that_fails_is_tried_once_and_again_when_its_plan_would_have_expired(
    approval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = desk_world(approval=approval, max_move_atr=100.0)

    def fails(*_: Any, **__: Any) -> Any:
        raise ConfigError("not now")

    monkeypatch.setattr(type(world.session.books.lifecycle), "enact", fails)
    first = judged(world, sets_risk(0.008))
    assert first is not None
    if approval == "ask":
        world.decide(first)
    assert [judged(world, sets_risk(0.008, f"day {day}")) for day in (2, 3)] == [None, None]
    assert [row["status"] for row in world.rows("two_phase_phase2_complete")] == ["failed"]
    while world.now < first.expires_at:
        world.to_row(world.session.engine.t + 1)
    assert judged(world, sets_risk(0.008)) is not None


def test_operator_who_goes_back_is_held_up_by_no_plan_of_before(world: DeskWorld) -> None:
    world.decide(world.plan(risk(0.008)))
    first = world.desk.of_rollback(NAME, world.now)
    assert first is not None
    assert world.desk.of_rollback(NAME, world.now) is None
    world.decide(first, "cancel")
    assert world.desk.of_rollback(NAME, world.now) is not None


def test_phases_of_an_edited_plan_say_that_it_was_edited_in_every_revision(world: DeskWorld) -> None:
    judge = world.session.settings.judge
    plan = world.plan(risk(0.008), risk(0.006, OTHER))
    world.decide(plan, "submit")
    edited = revise(plan, edits=[StepEdit(1, "checkpoint", "true")], judge=judge)
    world.decide(edited, "submit")
    assert world.decide(edited)["state"] == "awaiting_approval"
    assert world.decide(world.desk.waiting[plan.plan_id].plan)["state"] == "completed"
    other = desk_world(approval="ask", **LONG)
    other.session.slow_loop.plans.restore(world.desk.state())
    assert other.desk.finished == world.desk.finished
    assert world.decide(plan, "rollback")["state"] == "rolled_back"
    phases = world.rows("two_phase_phase2_complete")
    assert [(row["status"], row["plan_edited"]) for row in phases] == [
        ("awaiting_approval", True), ("completed", True), ("rolled_back", True),
    ]  # fmt: skip
    assert all(row["plan_edited"] for row in world.rows("plan_decided"))


def test_plan_that_nobody_edited_says_so_in_every_phase(world: DeskWorld) -> None:
    plan = world.plan(risk(0.008))
    world.decide(plan)
    world.decide(plan, "rollback")
    assert [row["plan_edited"] for row in world.rows("two_phase_phase2_complete")] == [False, False]


def test_id_of_a_change_is_that_of_another_day_and_of_no_other_change(world: DeskWorld) -> None:
    plan = world.plan(risk(0.008))
    world.to_row(world.session.engine.t + 5)
    assert list_changes(world.plan(risk(0.008))) == list_changes(plan)
    assert list_changes(world.plan(risk(0.007))) != list_changes(plan)
    assert list_changes(world.plan(risk(0.008, OTHER)))[0][0] != list_changes(plan)[0][0]
