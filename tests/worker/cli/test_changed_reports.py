"""Reports, verdicts and change plans beside the journal: `verify` and the full check find any change."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from schemas.plan import ChangePlan
from services.playbooks.measures import alter
from tests.each_case import check_each
from tests.worker.cli.conftest import Shell, at_defaults
from tests.worker.cli.test_replan import answered

MAKE = ("plans", "make", "set-risk-fraction", "mean_reversion", "--value", "0.003")
REPORT = "UPDATE reports_on_demand SET "
REPORTS = {
    "report": f"""{REPORT}report = replace(report, '"n_episodes":', '"n_episodes":9')""",
    "id": f"{REPORT}report_id = '61892d9a986551b4'",
    "request": f"""{REPORT}request = replace(request, '"slot":', '"slot":1')""",
    "hash_of_the_request": f"{REPORT}request_hash = 'ff'",
    "moment": f"{REPORT}known_at = known_at - 1",
    "verdict": f"""{REPORT}verdict = replace(verdict, '"decision":"', '"decision":"x')""",
    "verdict_of_another": f"{REPORT}verdict_id = 'ffffffffffffffff'",
    "no_json": f"{REPORT}report = 'x'",
}
PLAN = "UPDATE change_plans SET "
APPROVED = '[{"decision":"approve","revision":1,"hash":"x","by":"ann","at":1}]'
COLUMNS = (
    "state, revision, hash, phase, trigger, made_at, expires_at, journalled, steps, decisions, reasons, "
    "two_phase, reasoning, elapsed_ms, revisions"
)
PLANS = {
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


class Kept(NamedTuple):
    """A store with a run, a report on demand about it, the verdict on that, and a plan as it was printed."""

    store: Path
    plan: dict[str, object]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        at_defaults(folder, patch)
        shell = Shell(folder)
        span = ("--symbols", "AAPL,IBM", "--from", "2003-01-01", "--to", "2003-06-30")
        assert shell.run("backtest", *span).exit_code == 0
        answered(shell, "replan", answered(shell, "reflect", "latest")["report_id"])
        plan = answered(shell, *MAKE, "--run", "latest", "--into", "books")
    return Kept(folder / "thinktwice.db", plan)


@pytest.fixture
def desk(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    at_defaults(tmp_path, monkeypatch)
    shutil.copy(kept.store, tmp_path)
    return Shell(tmp_path)


def change(desk: Shell, kept: Kept, statement: str, *values: str) -> None:
    """Alter one row of the store as it was made."""
    shutil.copy(kept.store, desk.folder)
    with closing(sqlite3.connect(desk.folder / "thinktwice.db")) as file, file:
        assert file.execute(statement, values).rowcount == 1


def demand_found(desk: Shell, *shown: str) -> None:
    for words in (("verify", "latest"), ("db", "check", "--full")):
        done = desk.run(*words)
        assert done.exit_code == 1, done.output
        assert all(part in done.stdout for part in (*shown, "thinktwice db restore")), done.stdout


@check_each("statement", REPORTS.values(), ids=REPORTS)
def test_change_of_a_report_on_demand_is_found_by_the_full_check(desk, kept, statement):
    change(desk, kept, statement)
    demand_found(desk, " report ", "was changed after it was written")


@check_each(("name", "statement"), PLANS.items(), ids=PLANS)
def test_plan_altered_in_the_store_is_found_and_neither_shown_nor_carried_out(desk, kept, name, statement):
    plan_id, digest = kept.plan["plan_id"], str(kept.plan["hash"])
    change(desk, kept, statement)
    demand_found(desk, "plan 'f00d" if name == "added" else f"plan '{plan_id}' was changed")
    how = "was not written by the program" if name == "added" else "was changed after it was written"
    assert f"is damaged, it {how}" in desk.complaint("plans", "list")
    if name != "added":
        for words in (("show", plan_id), ("approve", plan_id, "--hash", digest[:12])):
            complaint = desk.complaint("plans", *words)
            assert f"plan '{plan_id}' of run r0001 is damaged" in complaint
            assert "thinktwice db restore" in complaint
    assert not kept.store.with_name("books").exists()


def test_plan_whose_text_and_hash_were_altered_together_is_found(desk, kept):
    with closing(sqlite3.connect(kept.store)) as store:
        ((text,),) = store.execute("SELECT revisions FROM change_plans").fetchall()
    other = alter(ChangePlan.model_validate(json.loads(text)[0]), understanding="something else")
    change(desk, kept, f"{PLAN}revisions = ?, hash = ?", f"[{other.canonical_text()}]", other.content_hash)
    demand_found(desk, f"plan '{kept.plan['plan_id']}' was changed")
    assert desk.run("plans", "show", str(kept.plan["plan_id"])).exit_code == 2


def test_plan_deleted_from_the_store_is_found(desk, kept):
    change(desk, kept, "DELETE FROM change_plans")
    demand_found(desk, f"plan '{kept.plan['plan_id']}' is missing")


def test_plan_edited_approved_and_rolled_back_by_commands_holds_as_reports_on_demand_do(desk):
    assert desk.run("verify", "latest").exit_code == 0
    plan = answered(desk, *MAKE, "--run", "latest", "--into", "books")
    edited = answered(desk, "plans", "edit", plan["plan_id"], "--set", "steps.1.value=0.002")
    answered(desk, "plans", "approve", plan["plan_id"], "--hash", edited["hash"][:12])
    assert desk.run("plans", "rollback", plan["plan_id"]).exit_code == 0
    assert desk.run("db", "check", "--full").exit_code == 0
    assert desk.run("plans", "list").exit_code == 0
