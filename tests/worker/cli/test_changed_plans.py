"""Change plans altered by hand: `verify` and `db check --full` find each; none is shown or carried out."""

import json
import sqlite3
from contextlib import closing

import pytest

from schemas.plan import ChangePlan
from services.playbooks.measures import alter
from tests.worker.cli.test_plans import made
from tests.worker.cli.test_replan import answered

PLAN = "UPDATE change_plans SET "
APPROVED = '[{"decision":"approve","revision":1,"hash":"x","by":"ann","at":1}]'
COLUMNS = (
    "state, revision, hash, phase, trigger, made_at, expires_at, journalled, steps, decisions, reasons, "
    "two_phase, reasoning, elapsed_ms, revisions"
)
ALTERED = {
    "state": f"{PLAN}state = 'completed', phase = 2",
    "step_done": f"{PLAN}steps = replace(steps, 'waiting', 'done')",
    "decision": f"{PLAN}decisions = '{APPROVED}'",
    "expiry": f"{PLAN}expires_at = expires_at + 1",
    "reasoning": f"{PLAN}reasoning = 'a model wanted it'",
    "moment": f"{PLAN}made_at = made_at - 1",
    "spaces_in_the_text": f"{PLAN}revisions = replace(revisions, ':', ' :')",
    "added": f"INSERT INTO change_plans SELECT run_id, 'f00d' || substr(plan_id, 5), {COLUMNS} "
    "FROM change_plans",
}


def change(shell, plan, statement, *values):
    with closing(sqlite3.connect(shell.folder / "thinktwice.db")) as store, store:
        done = store.execute(f"{statement} WHERE plan_id = ?", (*values, plan["plan_id"]))
        assert done.rowcount == 1


def demand_found(shell, shown):
    for words in (("verify", "latest"), ("db", "check", "--full")):
        done = shell.run(*words)
        assert done.exit_code == 1, done.output
        assert shown in done.stdout
        assert "thinktwice db restore" in done.stdout


@pytest.mark.parametrize("name", ALTERED)
def test_plan_altered_in_the_store_is_found_and_neither_shown_nor_carried_out(planted, name):
    plan = made(planted)
    change(planted, plan, ALTERED[name])
    demand_found(planted, "plan 'f00d" if name == "added" else f"plan '{plan['plan_id']}' was changed")
    listed = planted.run("plans", "list")
    if name != "spaces_in_the_text":  # the text of a plan is no part of a list
        assert listed.exit_code == 2
        assert "is damaged, it was changed after it was written" in listed.stderr
    if name != "added":
        for words in (("show", plan["plan_id"]), ("approve", plan["plan_id"], "--hash", plan["hash"][:12])):
            done = planted.run("plans", *words)
            assert done.exit_code == 2, done.output
            assert f"plan {plan['plan_id']} of run r0001 is damaged" in done.stderr
            assert "thinktwice db restore" in done.stderr
    assert not (planted.folder / "books").exists()


def test_plan_whose_text_and_hash_were_altered_together_is_found(planted):
    plan = made(planted)
    with closing(sqlite3.connect(planted.folder / "thinktwice.db")) as store:
        query = "SELECT revisions FROM change_plans WHERE plan_id = ?"
        ((text,),) = store.execute(query, (plan["plan_id"],)).fetchall()
    other = alter(ChangePlan.model_validate(json.loads(text)[0]), understanding="something else")
    change(planted, plan, f"{PLAN}revisions = ?, hash = ?", f"[{other.canonical_text()}]", other.content_hash)
    demand_found(planted, f"plan '{plan['plan_id']}' was changed")
    assert planted.run("plans", "show", plan["plan_id"]).exit_code == 2


def test_plan_deleted_from_the_store_is_found(planted):
    plan = made(planted)
    change(planted, plan, "DELETE FROM change_plans")
    demand_found(planted, f"plan '{plan['plan_id']}' is missing")


def test_plan_edited_approved_and_rolled_back_by_commands_holds(planted):
    plan = made(planted)
    edited = answered(planted, "plans", "edit", plan["plan_id"], "--set", "steps.1.value=0.003")
    answered(planted, "plans", "approve", plan["plan_id"], "--hash", edited["hash"][:12])
    assert planted.run("plans", "rollback", plan["plan_id"]).exit_code == 0
    assert planted.run("db", "check", "--full").exit_code == 0
    assert planted.run("plans", "list").exit_code == 0
