"""`plans`: made of a report or a typed change, shown, edited, approved once, carried out over a crash."""

import json
import os
import shutil
import sys
import time

from schemas.judge import JudgeAction
from schemas.plan import ChangePlan
from services.playbooks.loader import load_playbooks
from services.playbooks.measures import alter
from tests.commands.started import run_to_end
from tests.services.store.stores import seal_again
from tests.worker.cli.test_replan import answered, in_store, journalled
from tests.worker.planted_store import world
from worker.review import playbook_files

HOUR = 3_600 * 10**9
RISK = ("set-risk-fraction", "buys_strength", "--value", "0.002")
LESS = (*RISK[:-1], "0.001")
FIELDS = {
    "plan_id", "run_id", "revision", "hash", "phase", "state", "trigger", "two_phase", "understanding",
    "approach", "steps", "risks", "expected_outcome", "basis", "made_at", "expires_at", "edited", "decided",
    "reasons", "reasoning", "elapsed_ms",
}  # fmt: skip


def made(shell, change=RISK):
    return answered(shell, "plans", "make", *change, "--run", "latest", "--into", "books")


def made_of_two(shell):
    """A plan with a step for each of two playbooks."""
    from schemas.plan import Proposed
    from services.plans.drafting import draft
    from worker.review.plan_facts import read_plan_facts
    from worker.review.plan_making import in_wall_time
    from worker.runs.stored_settings import stored_settings

    async def work(store):
        record = await store.runs.find("latest")
        facts = await read_plan_facts(store, record, stored_settings(record), trades=False)
        proposed = [
            Proposed(
                JudgeAction(kind="set_risk_fraction", playbook_id=name, value=value, reason="two of them")
            )
            for name, value in (("buys_strength", 0.002), ("mean_reversion", 0.003))
        ]
        folder = str((shell.folder / "books").absolute())
        plan = draft(proposed, facts, "text", understanding="two of them", folder=folder)
        assert isinstance(plan, ChangePlan)
        plan = in_wall_time(plan, facts.expires_at - facts.at)
        await store.plans.put(record.run_id, plan)
        return plan.plan_id

    return answered(shell, "plans", "show", in_store(work))


def risk_of(shell, folder="books"):
    books = {playbook.id: playbook for playbook in load_playbooks(shell.folder / folder)}
    return books["buys_strength"].risk_fraction


def approve(shell, plan, *words):
    return answered(shell, "plans", "approve", plan["plan_id"], "--hash", plan["hash"][:12], *words)


def trading(shell):
    """The same rows as a run that trades on paper, with the bars that it took; its id."""
    from services.feeds.port import BarRow
    from services.store.records import NewRun
    from trading_core.live.growing_bars import Bar

    async def work(store):
        old = await store.runs.find("latest")
        rows = [row async for row in store.journal.rows(old.run_id)]
        new = NewRun("planted", 0, "paper", old.config_hash, old.config, old.data, old.environment)
        run_id = (await store.runs.create(new)).run_id
        bars, last = world(), len(world().times) - 1
        taken = [
            (
                number,
                BarRow(
                    int(bars.times[t]),
                    {
                        symbol: Bar(*(float(getattr(bars, name)[t, s]) for name in
                                      ("open", "high", "low", "close", "volume")))
                        for s, symbol in enumerate(bars.symbols)
                    },
                ),
            )
            for number, t in enumerate(range(last - 20, last + 1))
        ]  # fmt: skip
        lease = await store.leases.take(run_id, "w", 10**9)
        await store.trading.commit(lease, run_id, taken, rows)
        return run_id

    return in_store(work)


def test_plan_of_a_typed_change_is_made_without_compiler_frames_or_model_sdk(planted):
    words = ["plans", "make", *RISK, "--run", "latest", "--into", "books"]
    program = (
        "import sys\nfrom worker.cli import app\n"
        f"try:\n    app({words!r})\nexcept SystemExit as end:\n    code = end.code\n"
        "heavy = {'numba', 'pandas', 'pyarrow', 'scipy', 'anthropic', 'openai', 'mcp'} & set(sys.modules)\n"
        "print(code, sorted(heavy), file=sys.stderr)"
    )
    done = run_to_end([sys.executable, "-c", program], planted.folder)
    assert done.stderr.splitlines()[-1] == "0 []", done.stderr


def test_folder_of_a_plan_is_stored_as_it_resolves_and_one_that_moved_since_is_refused(planted):
    real = planted.folder / "real"
    real.mkdir()
    (planted.folder / "link").symlink_to(real)
    spellings = ("real", "./real", "real/../real", "link")
    made = [
        answered(planted, "plans", "make", *RISK, "--run", "latest", "--into", spelling)
        for spelling in spellings
    ]
    assert {plan["steps"][-1]["action"]["folder"] for plan in made} == {str(real.resolve())}
    real.rename(planted.folder / "moved")
    real.symlink_to(planted.folder / "moved")
    text = planted.complaint("plans", "approve", made[0]["plan_id"], "--hash", made[0]["hash"][:12])
    assert f"the folder {str(real)!r} of the plan leads to " in text
    assert "make another plan" in text


def test_plan_of_a_report_is_approved_and_its_folder_is_what_the_judge_wanted(
    reported, report_of_planted, judged_of_planted
):
    planted, name = reported, report_of_planted.shown["report_id"]
    complaint = planted.complaint("plans", "make", "report", name, "--into", "books")
    assert "was not judged: `thinktwice replan" in complaint
    shutil.copy(judged_of_planted.folder / "thinktwice.db", planted.folder)
    plan = answered(planted, "plans", "make", "report", name, "--into", "books")
    assert plan.keys() >= FIELDS
    assert (plan["state"], plan["trigger"], plan["phase"]) == ("awaiting_approval", "report", 1)
    assert plan["two_phase"]["should_use"]
    assert plan["steps"][-1]["kind"] == "write_folder"
    assert plan["expires_at"] - plan["made_at"] >= 24 * HOUR
    assert abs(time.time_ns() - plan["made_at"]) < HOUR
    wanted = {step["action"].get("value") for step in plan["steps"] if step["kind"] == "set_risk_fraction"}
    assert wanted == {0.0025}
    assert not (planted.folder / "books").exists(), "phase 1 writes nothing"

    done = approve(planted, plan, "--by", "ann")
    assert (done["state"], done["decided"]["decision"], done["decided"]["by"]) == (
        "completed",
        "approve",
        "ann",
    )
    assert {step["state"] for step in done["steps"]} == {"done"}
    assert risk_of(planted) == 0.0025
    manifest = json.loads((planted.folder / "books" / "lifecycle.json").read_text())
    assert manifest["plan"] == {"plan_id": plan["plan_id"], "plan_hash": plan["hash"]}


def test_plan_of_a_typed_change_says_what_it_changes_until_when_and_what_to_type(planted):
    rows = len(journalled(planted))
    text = planted.run("plans", "make", *RISK, "--run", "latest", "--into", "books").stdout
    plan = answered(planted, "plans", "list")[0]
    assert "risk_fraction 0.0025 -> 0.002" in text
    assert "two phases: yes, " in text
    assert f"Next: thinktwice plans approve {plan['plan_id']} --hash {plan['hash'][:12]}" in text
    for word in ("before: ", "undo: ", "expires ", f"hash {plan['hash']}"):
        assert word in text
    assert len(journalled(planted)) == rows, "the run itself stays as it is"


def test_edit_shows_a_diff_voids_the_hash_and_keeps_both_revisions(planted):
    plan = made(planted)
    name = plan["plan_id"]
    edited = answered(planted, "plans", "edit", name, "--set", "steps.1.value=0.003", "--by", "bob")
    assert (edited["revision"], edited["edited"], edited["state"]) == (2, True, "awaiting_approval")
    assert edited["hash"] != plan["hash"]
    complaint = planted.complaint("plans", "approve", name, "--hash", plan["hash"])
    assert "newest revision 2" in complaint
    assert "edit by bob" in complaint
    (diff,) = answered(planted, "plans", "diff", name)["revisions"]
    assert diff["changes"] == [{"step": 1, "field": "value", "from": 0.002, "to": 0.003}]
    assert "step 1: value 0.002 -> 0.003" in planted.run("plans", "diff", name).stdout
    first = answered(planted, "plans", "show", name[:5], "--revision", "1")
    assert (first["hash"], first["steps"][0]["action"]["value"]) == (plan["hash"], 0.002)
    assert "no revision 3: the newest is 2" in planted.complaint("plans", "show", name, "--revision", "3")
    approve(planted, edited)
    assert risk_of(planted) == 0.003


def test_plan_as_it_was_printed_is_edited_in_a_file(planted):
    plan = made_of_two(planted)
    path = planted.folder / "plan.json"
    plan["steps"][0]["action"]["value"] = 0.001
    del plan["steps"][1]
    path.write_text(json.dumps(plan))
    edited = answered(planted, "plans", "edit", plan["plan_id"], "--file", "plan.json")
    assert [step["kind"] for step in edited["steps"]] == ["set_risk_fraction", "write_folder"]
    assert edited["steps"][0]["action"]["value"] == 0.001
    assert "is not of revision 2" in planted.complaint(
        "plans", "edit", plan["plan_id"], "--file", "plan.json"
    )
    again = answered(planted, "plans", "show", plan["plan_id"])
    for change, shown in (
        ({"risks": ["none"]}, "changes risks: only steps can be edited"),
        (
            {"steps": [again["steps"][0] | {"effect": "other"}, again["steps"][1]]},
            "steps.1.effect cannot be edited",
        ),
        ({"steps": [again["steps"][0] | {"number": 7}]}, "has steps that the plan has not"),
        ({"steps": 1}, "holds no plan"),
    ):
        path.write_text(json.dumps(again | change))
        assert shown in planted.complaint("plans", "edit", plan["plan_id"], "--file", "plan.json")


def test_plan_is_cancelled_once_and_rolled_back_into_the_playbooks_of_before(planted):
    gone, plan = made(planted), made(planted, LESS)
    cancelled = answered(planted, "plans", "cancel", gone["plan_id"], "--by", "ann")
    assert (cancelled["state"], cancelled["decided"]["by"]) == ("cancelled", "ann")
    text = planted.complaint("plans", "approve", gone["plan_id"], "--hash", gone["hash"])
    assert "is cancelled (cancel by ann at " in text
    assert "is cancelled" in planted.complaint("plans", "rollback", gone["plan_id"])
    approve(planted, plan)
    assert risk_of(planted) == 0.001
    back = answered(planted, "plans", "rollback", plan["plan_id"], "--by", "bob")
    assert (back["state"], back["decided"]["decision"]) == ("rolled_back", "rollback")
    assert risk_of(planted) == 0.0025
    states = [plan["state"] for plan in answered(planted, "plans", "list") if plan["trigger"] == "text"]
    assert sorted(states) == ["cancelled", "rolled_back"]
    (only,) = answered(planted, "plans", "list", "--run", "latest", "--state", "cancelled")
    assert only["plan_id"] == gone["plan_id"]


def test_plan_of_a_folder_has_no_checkpoint_that_nobody_would_ask_at(planted):
    plan = made(planted)
    text = planted.complaint("plans", "edit", plan["plan_id"], "--set", "steps.1.checkpoint=true")
    assert "a folder is written whole" in text


def test_plan_loses_nothing_that_another_one_wrote_to_its_folder(planted):
    first, second = made(planted), made(planted, LESS)
    approve(planted, first)
    refused = planted.run("plans", "approve", second["plan_id"], "--hash", second["hash"], "--json")
    assert refused.exit_code == 1
    stale = json.loads(refused.stdout)
    assert stale["state"] == "stale"
    assert f"plan {first['plan_id']} was written to " in stale["reasons"][0]
    assert risk_of(planted) == 0.002
    third = made(planted, LESS)
    approve(planted, third)
    shown = planted.complaint("plans", "rollback", first["plan_id"])
    assert f"plan {third['plan_id']} stands in " in shown
    assert risk_of(planted) == 0.001
    assert answered(planted, "plans", "show", first["plan_id"])["state"] == "completed"


def test_plan_of_a_run_that_has_gone_on_since_is_stale(planted, monkeypatch):
    plan = made(planted)
    stood = playbook_files.versions_at

    async def gone_on(store, run_id, at):
        versions = await stood(store, run_id, at)
        if at is not None:
            return versions
        other = next(version for version in versions if version.definition.id == "mean_reversion")
        moved = alter(other, definition=alter(other.definition, version=9, risk_fraction=0.001))
        return tuple(moved if version is other else version for version in versions)

    monkeypatch.setattr(playbook_files, "versions_at", gone_on)
    refused = planted.run("plans", "approve", plan["plan_id"], "--hash", plan["hash"], "--json")
    assert (refused.exit_code, json.loads(refused.stdout)["state"]) == (1, "stale")
    assert "mean_reversion version 9 is in force: the run has gone on" in refused.stdout
    assert not (planted.folder / "books").exists()


def test_crash_between_the_folder_and_its_state_writes_it_once(planted, monkeypatch):
    plan = made(planted)
    write = playbook_files.write_in_force
    written = []

    def crash(*given, **named):
        written.append(write(*given, **named))
        raise KeyboardInterrupt

    monkeypatch.setattr(playbook_files, "write_in_force", crash)
    died = planted.run("plans", "approve", plan["plan_id"], "--hash", plan["hash"])
    assert died.exit_code == 130
    assert answered(planted, "plans", "show", plan["plan_id"])["state"] == "executing"
    assert "is executing" in planted.complaint("plans", "cancel", plan["plan_id"])
    assert "is executing" in planted.complaint(
        "plans", "edit", plan["plan_id"], "--set", "steps.1.value=0.003"
    )
    stamp = os.stat(planted.folder / "books" / "lifecycle.json").st_mtime_ns
    assert approve(planted, plan)["state"] == "completed"
    assert len(written) == 1
    assert os.stat(planted.folder / "books" / "lifecycle.json").st_mtime_ns == stamp


def test_folder_that_cannot_be_written_leaves_the_plan_as_it_waits(planted):
    plan = made(planted)
    (planted.folder / "books").mkdir()
    (planted.folder / "books" / "mine.txt").write_text("mine")
    text = planted.complaint("plans", "approve", plan["plan_id"], "--hash", plan["hash"])
    assert "holds other files" in text
    assert answered(planted, "plans", "show", plan["plan_id"])["state"] == "awaiting_approval"


def test_folder_that_cannot_be_made_is_told_before_a_plan_is(planted, monkeypatch):
    def refuses(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("services.playbooks.writing.tempfile.TemporaryDirectory", refuses)
    text = planted.complaint("plans", "make", *RISK, "--run", "latest", "--into", "books")
    assert "--into 'books' cannot be written (Permission denied): name another folder" in text


def test_plan_of_a_run_that_is_over_expires_in_wall_time(planted, monkeypatch):
    plan = made(planted)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 30 * 24 * HOUR)
    assert answered(planted, "plans", "list")[0]["state"] == "expired"
    text = planted.complaint("plans", "approve", plan["plan_id"], "--hash", plan["hash"])
    assert "is expired (expire by expiry at" in text
    assert not (planted.folder / "books").exists()


def test_nothing_is_left_of_actions_that_are_all_refused(planted):
    text = planted.complaint("plans", "make", *RISK[:-1], "0.0025", "--run", "latest", "--into", "b")
    assert "empty_plan" in text
    assert "unchanged" in text
    text = planted.complaint("plans", "make", "replan", "--run", "latest", "--into", "b")
    assert "replan: it needs a run that trades" in text


def test_value_off_its_grid_is_refused_with_the_grid(planted):
    side = ("set-threshold", "buys_strength", "--parameter", "side", "--value", "0.3")
    shown = planted.complaint("plans", "make", *side, "--run", "latest", "--into", "b")
    assert "off_grid" in shown
    assert "[-1.0" in shown


def test_run_whose_settings_forbid_edits_refuses_them(planted):
    plan = made(planted)

    async def forbid(store):
        from sqlalchemy import update

        from services.store.tables import runs

        config = (await store.runs.find("latest")).config
        config["plans"] = (config.get("plans") or {}) | {"allow_edit": False}
        async with store.plans._write() as connection:
            await connection.execute(update(runs).values(config=json.dumps(config)))

    in_store(forbid)
    seal_again(planted.folder / "thinktwice.db")
    text = planted.complaint("plans", "edit", plan["plan_id"], "--set", "steps.1.value=0.003")
    assert "plans.allow_edit is off" in text


def test_plan_of_a_run_that_trades_names_its_market_and_waits_in_the_queue_of_its_process(planted):
    run_id = trading(planted)
    plan = answered(planted, "plans", "make", *RISK, "--run", run_id)
    assert plan["steps"][-1]["kind"] == "set_risk_fraction"
    assert plan["made_at"] == plan["basis"]["at"] == int(world().close_times[-1])
    symbols = world().symbols
    assert (
        plan["basis"]["closes"].items()
        <= {name: float(world().close[-1, s]) for s, name in enumerate(symbols)}.items()
    )
    assert plan["basis"]["closes"].keys() == plan["basis"]["atr"].keys() != set()
    assert "leave out --into" in planted.complaint("plans", "make", *RISK, "--run", run_id, "--into", "b")
    assert answered(planted, "status", run_id)["plans_waiting"] == 1
    assert "plans      1 change plan waits for a decision" in planted.run("status", run_id).stdout
    done = approve(planted, plan, "--by", "ann")
    assert done["state"] == "approved"
    handed_in, query = answered(planted, "requests", run_id)
    assert (handed_in["payload"]["decision"], handed_in["state"]) == ("submit", "waiting")
    assert (query["kind"], query["state"], query["payload"]["by"]) == ("plan", "waiting", "ann")
    assert ChangePlan.model_validate(query["payload"]["plan"]).content_hash == plan["hash"]
    answered(planted, "plans", "edit", plan["plan_id"], "--set", "steps.1.value=0.003")
    assert [request["state"] for request in answered(planted, "requests", run_id)] == [
        "waiting",
        "refused",
        "waiting",
    ]
    assert answered(planted, "plans", "cancel", plan["plan_id"])["state"] == "cancelled"
    assert answered(planted, "status", run_id)["plans_waiting"] == 0


def test_text_of_others_is_escaped_where_a_plan_is_shown(planted):
    plan = made(planted)

    async def evil(store):
        from services.store.change_plans import Operator

        stored = await store.plans.find(plan["plan_id"])
        bad = stored.plan.model_copy(
            update={"revision": 2, "first": plan["plan_id"], "understanding": "\x1b[2J\u202eevil"}
        )
        who = Operator("eve", plan["made_at"], plan["made_at"])
        await store.plans.revise(plan["run_id"], bad, plan["hash"], who)

    in_store(evil)
    for words in (("show", plan["plan_id"]), ("show", plan["plan_id"], "--json"), ("diff", plan["plan_id"])):
        shown = planted.run("plans", *words).stdout
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_replan_that_writes_is_a_plan_approved_by_its_caller(judged, judged_of_planted):
    planted, payload = judged, judged_of_planted.shown
    (plan,) = (plan for plan in answered(planted, "plans", "list") if plan["trigger"] == "report")
    assert plan["plan_id"] == payload["written"]["plan_id"]
    assert (plan["state"], plan["decided"]["decision"]) == ("completed", "approve")
    shown = answered(planted, "plans", "show", plan["plan_id"])
    assert shown["steps"][0]["action"]["value"] == risk_of(judged_of_planted) == 0.0025
    files = sorted(
        path.relative_to(planted.folder / "books").as_posix()
        for path in (planted.folder / "books").rglob("*")
        if path.is_file()
    )
    assert sorted(payload["written"]["files"]) == files
    answered(planted, "plans", "rollback", plan["plan_id"])
    assert risk_of(judged_of_planted) == 0.005
