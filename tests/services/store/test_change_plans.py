"""Plans of a run: every revision kept, decided once, claimed once, moved by the journal; on every dialect."""

import asyncio
import json

import pytest
from sqlalchemy import update

from schemas.errors import ConfigError
from services.store import open_store
from services.store.change_plans import Operator
from services.store.failures import StoreDamaged
from services.store.plan_records import of_plan
from services.store.seals import seal_row
from services.store.tables import change_plans, paper_bars, runs
from tests.services.store.plans import (
    DAY,
    EXPIRES,
    MADE,
    PlanJournal,
    change_plan,
    edited,
    folder_plan,
    risk_step,
)
from tests.services.store.stores import new_run
from tests.services.store.test_leases import of_store
from tests.services.store.test_operator_requests import with_run
from worker.review.plan_document import document_of, plan_lines, revision_changes

PLAN = change_plan()
OVER = folder_plan()
ANN = Operator("ann", MADE + 60 * 10**9, MADE)
BOB = Operator("bob", MADE + 120 * 10**9, MADE)


def kept(scenario):
    """A scenario on a store that holds a plan of a run that trades."""

    async def with_plan(store, run_id):
        await store.plans.put(run_id, PLAN)
        return await scenario(store, run_id)

    return with_plan


def test_plan_is_kept_with_its_bytes_and_what_was_told_of_it(address):
    answer = {"should_use": True, "confidence": 0.7, "matches": [], "reason": "planning"}

    async def scenario(store, run_id):
        first = await store.plans.put(run_id, PLAN, two_phase=answer, reasoning="so", elapsed_ms=7)
        again = await store.plans.put(run_id, PLAN)
        return first, again, await store.plans.find(PLAN.plan_id[:6])

    first, again, found = with_run(address, scenario)
    assert first == again == found.record
    assert found.plan == PLAN
    assert found.plan.content_hash == first.hash == PLAN.content_hash
    assert (first.state, first.phase, first.revision, first.journalled) == (
        "awaiting_approval", 1, 1, False,
    )  # fmt: skip
    assert (first.two_phase, first.reasoning, first.elapsed_ms) == (answer, "so", 7)
    assert (first.steps, first.decided, first.decisions) == ({1: "waiting"}, None, ())


def test_plan_of_several_runs_is_that_of_the_newest_and_two_plans_of_one_start_are_told(address):
    async def scenario(store, run_id):
        other = (await store.runs.create(new_run())).run_id
        plans = [change_plan(MADE + n) for n in range(300)]
        for plan in plans:
            await store.plans.put(run_id, plan)
        for plan in plans[:2]:
            await store.plans.put(other, plan)
        newest = (await store.plans.find(plans[0].plan_id)).record.run_id
        older = (await store.plans.find(plans[0].plan_id, run_id)).record.run_id
        with pytest.raises(ConfigError, match="is not unique in this store"):
            await store.plans.find(plans[0].plan_id[:1])
        for prefix in ("", "xyz", "0" * 16, "%"):
            with pytest.raises(ConfigError, match=r"no plan .* in this store: see `thinktwice plans list`"):
                await store.plans.find(prefix)
        with pytest.raises(ConfigError, match=f"of run {other}"):
            await store.plans.find(plans[5].plan_id, other)
        return run_id, other, older, newest, await store.plans.all(), await store.plans.all(other)

    run_id, other, older, newest, everything, own = with_run(address, scenario)
    assert (older, newest) == (run_id, other)
    assert [record.run_id for record in everything] == [other] * 2 + [run_id] * 300
    assert [record.made_at for record in own] == [MADE + 1, MADE]


def test_edit_makes_a_revision_voids_the_approval_and_withdraws_its_request(address):
    second = edited(PLAN)

    async def scenario(store, run_id):
        await store.plans.approve(run_id, PLAN.plan_id, PLAN.content_hash[:12], ANN)
        revised = await store.plans.revise(run_id, second, PLAN.content_hash, BOB)
        claims = [await store.plans.claim(run_id, PLAN.plan_id, item.content_hash) for item in (PLAN, second)]
        with pytest.raises(ConfigError, match=r"newest revision 2 has .*edit by bob"):
            await store.plans.approve(run_id, PLAN.plan_id, PLAN.content_hash, ANN)
        with pytest.raises(ConfigError, match="newest revision 2"):
            await store.plans.revise(run_id, edited(PLAN, 0.002), PLAN.content_hash, ANN)
        again = await store.plans.approve(run_id, PLAN.plan_id, second.content_hash, ANN)
        claims.append(await store.plans.claim(run_id, PLAN.plan_id, PLAN.content_hash))
        found = await store.plans.find(PLAN.plan_id)
        return revised, claims, again, found, await store.operator.all(run_id)

    revised, claims, again, found, (withdrawn, shown, request) = with_run(address, kept(scenario))
    assert (revised.state, revised.revision, revised.decided) == ("awaiting_approval", 2, None)
    assert claims == [False, False, False]
    assert found.revisions == (PLAN, second)
    assert [change.decision for change in again.decisions] == ["approve", "edit", "approve"]
    assert (withdrawn.state, shown.state, request.state) == ("refused", "waiting", "waiting")
    assert (shown.payload["decision"], shown.payload["hash"]) == ("submit", second.content_hash)
    assert "edited by bob" in withdrawn.result["reasons"][0]
    assert request.payload == {
        "plan_id": PLAN.plan_id,
        "decision": "approve",
        "hash": second.content_hash,
        "by": "ann",
        "plan": second.payload(),
    }


def test_approval_is_claimed_again_after_a_crash_and_never_when_it_was_cancelled(address):
    async def scenario(store, run_id):
        await store.plans.approve(run_id, PLAN.plan_id, PLAN.content_hash, ANN)
        claims = [await store.plans.claim(run_id, PLAN.plan_id, PLAN.content_hash) for _ in range(2)]
        with pytest.raises(ConfigError, match=r"is executing \(approve by ann at 2024-10-04 00:01 UTC"):
            await store.plans.cancel(run_id, PLAN.plan_id, BOB)
        with pytest.raises(ConfigError, match="is executing"):
            await store.plans.revise(run_id, edited(PLAN), PLAN.content_hash, BOB)
        other = change_plan(MADE + 1)
        await store.plans.put(run_id, other)
        await store.plans.approve(run_id, other.plan_id, other.content_hash, ANN)
        cancelled = await store.plans.cancel(run_id, other.plan_id, BOB)
        claims.append(await store.plans.claim(run_id, other.plan_id, other.content_hash))
        return claims, cancelled, await store.operator.all(run_id)

    claims, cancelled, question = with_run(address, kept(scenario))
    assert claims == [True, True, False]
    assert (cancelled.state, cancelled.decided.by) == ("cancelled", "bob")
    assert [(request.state, request.payload["decision"]) for request in question] == [
        ("waiting", "approve"),
        ("refused", "approve"),
    ]


def test_plan_of_the_journal_that_is_cancelled_is_told_to_its_process(address):
    async def scenario(store, run_id):
        shown = PlanJournal()
        shown.drafted(PLAN)
        await store.journal.append(run_id, await shown.rows())
        await store.plans.cancel(run_id, PLAN.plan_id, ANN)
        return await store.operator.waiting(run_id)

    (request,) = with_run(address, scenario)
    assert (request.payload["decision"], request.payload["by"], request.payload["plan"]) == (
        "cancel",
        "ann",
        None,
    )


def test_decisions_of_two_at_once_are_one_and_the_other_is_told_who_and_when(address):
    async def scenario(store, run_id):
        async with await open_store(address, create=True) as other:
            work = [
                (store if number % 2 else other).plans.approve(run_id, PLAN.plan_id, PLAN.content_hash, who)
                if number % 3
                else (store if number % 2 else other).plans.cancel(run_id, PLAN.plan_id, who)
                for number, who in enumerate([ANN, BOB] * 4)
            ]
            return await asyncio.gather(*work, return_exceptions=True), await store.operator.all(run_id)

    shown, request = with_run(address, kept(scenario))
    # An approval may be cancelled while nobody has claimed it; nothing else is decided twice.
    won = [trial.state for trial in shown if not isinstance(trial, Exception)]
    assert won in (["approved"], ["cancelled"], ["approved", "cancelled"], ["cancelled", "approved"])
    assert sorted(won) == sorted(set(won))
    lost = [str(item) for item in shown if isinstance(item, Exception)]
    assert len(lost) == 8 - len(won)
    assert all("(approve by " in text or "(cancel by " in text for text in lost)
    assert len(request) == won.count("approved")


@pytest.mark.parametrize("digits", ["", "abc", PLAN.content_hash[:11], "0" * 12, PLAN.content_hash + "0"])
def test_approval_with_other_digits_is_refused(address, digits):
    async def scenario(store, run_id):
        with pytest.raises(ConfigError, match="digits|newest revision 1"):
            await store.plans.approve(run_id, PLAN.plan_id, digits, ANN)
        return (await store.plans.find(PLAN.plan_id)).record.state, await store.operator.all(run_id)

    assert with_run(address, kept(scenario)) == ("awaiting_approval", [])


def test_plan_that_has_expired_is_neither_approved_nor_edited_nor_cancelled(address):
    late = Operator("ann", EXPIRES, EXPIRES)

    async def scenario(store, run_id):
        for work in (
            store.plans.approve(run_id, PLAN.plan_id, PLAN.content_hash, late),
            store.plans.revise(run_id, edited(PLAN), PLAN.content_hash, late),
            store.plans.cancel(run_id, PLAN.plan_id, late),
        ):
            with pytest.raises(ConfigError, match="has expired: make another"):
                await work
        await store.plans.expire(run_id, PLAN.plan_id, EXPIRES - 1)
        before = (await store.plans.find(PLAN.plan_id)).record.state
        await store.plans.expire(run_id, PLAN.plan_id, EXPIRES)
        await store.plans.expire(run_id, PLAN.plan_id, EXPIRES + 1)
        return before, (await store.plans.find(PLAN.plan_id)).record

    before, after = with_run(address, kept(scenario))
    assert before == "awaiting_approval"
    assert after.state == "expired"
    assert [(change.decision, change.by, change.at) for change in after.decisions] == [
        ("expire", "expiry", EXPIRES)
    ]


def test_plan_of_a_run_that_is_over_is_carried_out_once_over_a_crash(address):
    done = []

    def work(plan):
        done.append(plan)
        return "completed", ()

    def crash(plan):
        raise RuntimeError

    async def scenario(store, run_id):
        await store.runs.close(run_id, "finished", {})
        await store.plans.put(run_id, OVER)
        approved = await store.plans.approve(run_id, OVER.plan_id, OVER.content_hash, ANN)
        with pytest.raises(RuntimeError):
            await store.plans.carry_out(run_id, OVER.plan_id, crash)
        with pytest.raises(ConfigError, match="is executing"):
            await store.plans.cancel(run_id, OVER.plan_id, BOB)
        resumed = await store.plans.approve(run_id, OVER.plan_id, OVER.content_hash, BOB)
        ended = await store.plans.carry_out(run_id, OVER.plan_id, work)
        for late in (
            store.plans.carry_out(run_id, OVER.plan_id, work),
            store.plans.approve(run_id, OVER.plan_id, OVER.content_hash, BOB),
        ):
            with pytest.raises(ConfigError, match=r"is completed \(approve by ann"):
                await late
        back = await store.plans.carry_out(
            run_id, OVER.plan_id, lambda plan: ("rolled_back", ()), state="completed", who=BOB
        )
        return approved, resumed, ended, back, await store.operator.all(run_id)

    approved, resumed, ended, back, questions = with_run(address, scenario)
    assert (approved.state, resumed, done) == ("executing", approved, [OVER])
    assert (ended.state, ended.phase, ended.steps, ended.decided.by) == (
        "completed",
        2,
        {1: "done", 2: "done"},
        "ann",
    )
    assert (back.state, back.steps, back.decided.decision) == (
        "rolled_back",
        {1: "undone", 2: "undone"},
        "rollback",
    )
    assert questions == []


def test_plan_of_a_process_is_not_approved_when_its_run_is_over(address):
    async def scenario(store, run_id):
        await store.runs.close(run_id, "finished", {})
        with pytest.raises(ConfigError, match="trades no more"):
            await store.plans.approve(run_id, PLAN.plan_id, PLAN.content_hash, ANN)
        return (await store.plans.cancel(run_id, PLAN.plan_id, ANN)).state, await store.operator.all(run_id)

    assert with_run(address, kept(scenario)) == ("cancelled", [])


def test_rollback_is_asked_of_a_run_that_trades_and_only_of_what_was_carried_out(address):
    async def scenario(store, run_id):
        shown = PlanJournal()
        shown.drafted(PLAN)
        shown.decided(PLAN)
        shown.step(PLAN)
        await store.journal.append(run_id, await shown.rows())
        with pytest.raises(ConfigError, match="only what was carried out"):
            await store.plans.ask_rollback(run_id, PLAN.plan_id, BOB)
        shown.ended(PLAN)
        await store.journal.append(run_id, await shown.rows())
        await store.plans.ask_rollback(run_id, PLAN.plan_id, BOB)
        (request,) = await store.operator.waiting(run_id)
        await store.runs.close(run_id, "finished", {})
        with pytest.raises(ConfigError, match="trades no more"):
            await store.plans.ask_rollback(run_id, PLAN.plan_id, BOB)
        return request.payload["decision"], request.payload["hash"]

    assert with_run(address, scenario) == ("rollback", PLAN.content_hash)


def test_steps_before_a_checkpoint_are_shown_and_can_be_rolled_back_when_the_rest_is_cancelled(address):
    first = risk_step().model_copy(update={"checkpoint": True})
    plan = change_plan(steps=(first, risk_step(2, 0.001)))
    rest = edited(plan)

    async def scenario(store, run_id):
        shown = PlanJournal()
        shown.drafted(plan)
        shown.decided(plan)
        shown.step(plan)
        shown.ended(plan, "awaiting_approval")
        shown.drafted(rest)
        await store.journal.append(run_id, await shown.rows())
        waits = await store.plans.find(plan.plan_id, run_id)
        with pytest.raises(ConfigError, match="only what was carried out"):
            await store.plans.ask_rollback(run_id, plan.plan_id, BOB)
        await store.plans.cancel(run_id, plan.plan_id, BOB)
        await store.plans.ask_rollback(run_id, plan.plan_id, BOB)
        return waits, await store.plans.find(plan.plan_id, run_id), await store.operator.waiting(run_id)

    waits, cancelled, question = with_run(address, scenario)
    document = document_of(waits)
    assert [(step["revision"], step["number"], step["state"]) for step in document["carried_out"]] == [
        (1, 1, "done")
    ]
    assert [(step["number"], step["state"]) for step in document["steps"]] == [(1, "waiting")]
    assert "done in revision 1: 1. risks 0.0025" in list(plan_lines(waits, document))
    assert [step["state"] for step in document_of(waits, 1)["steps"]] == ["done", "waiting"]
    (change,) = revision_changes(waits)
    assert change["changes"] == [{"step": 1, "field": "state", "from": "waiting", "to": "done"}]
    lines = list(plan_lines(cancelled, document_of(cancelled)))
    assert lines[-1] == f"Next: thinktwice plans rollback {plan.plan_id} takes it back"
    assert [request.payload["decision"] for request in question] == ["cancel", "rollback"]


@pytest.mark.parametrize(("status", "mode"), [("running", "paper"), ("interrupted", "paper")])
def test_plan_of_a_run_that_trades_is_seen_expired_by_its_bars_whatever_the_wall_clock_says(
    address, status, mode
):
    wall = EXPIRES + 1_000 * DAY

    async def bar(store, run_id, number, label):
        async with store.plans._write() as connection:
            row = {"run_id": run_id, "number": number, "label": label, "bars": "{}", "hash": "0"}
            await connection.execute(paper_bars.insert().values(row))
            data = {"timeframe": "1d", "label": "open"}
            values = {"status": status, "mode": mode, "data": json.dumps(data)}
            await connection.execute(update(runs).where(runs.c.run_id == run_id).values(values))

    async def scenario(store, run_id):
        seen = []
        for number, label in enumerate((EXPIRES - 2 * DAY, EXPIRES - DAY)):  # labels of opens
            await bar(store, run_id, number, label)
            record = (await store.plans.find(PLAN.plan_id, now=wall)).record
            assert await store.plans.all(now=wall) == [record]
            seen.append((record.state, record.clock, await store.plans.waiting(run_id, now=wall)))
        return seen

    assert with_run(address, kept(scenario)) == [
        ("awaiting_approval", EXPIRES - DAY, 1),
        ("expired", EXPIRES, 0),
    ]


def test_journal_moves_a_plan_through_its_states_once(address):
    async def scenario(store, run_id):
        shown, states = PlanJournal(), []

        async def stored():
            rows = await shown.rows()
            await store.journal.append(run_id, rows)
            await store.journal.append(run_id, rows)  # a commit whose answer was lost
            states.append((await store.plans.find(PLAN.plan_id)).record)

        shown.drafted(PLAN, reasoning="so it reads")
        await stored()
        shown.decided(PLAN, at=MADE + 1)
        await stored()
        shown.step(PLAN, at=MADE + 2)
        await stored()
        shown.ended(PLAN, "awaiting_approval")
        rest = edited(PLAN)
        shown.drafted(rest)
        await stored()
        shown.decided(rest, "decline", "declined", by="expiry", at=MADE + 9, reasons=["nobody decided"])
        await stored()
        return states

    drafted, begun, stepped, asks, declined = with_run(address, scenario)
    assert (drafted.state, drafted.journalled, drafted.reasoning) == (
        "awaiting_approval",
        True,
        "so it reads",
    )
    assert (begun.state, begun.decided.by, begun.decided.at) == ("executing", "ann", MADE + 1)
    assert (stepped.steps, stepped.phase) == ({1: "done"}, 2)
    assert (asks.state, asks.phase, asks.decided) == ("awaiting_approval", 2, None)
    assert (asks.revision, asks.steps) == (2, {1: "waiting"})
    assert (declined.state, declined.reasons) == ("declined", ("nobody decided",))
    assert [change.decision for change in declined.decisions] == ["approve", "decline"]


def test_journal_of_a_text_plan_keeps_who_approved_it_and_when_and_takes_its_edited_bytes(address):
    second = edited(PLAN)

    async def scenario(store, run_id):
        await store.plans.approve(run_id, PLAN.plan_id, PLAN.content_hash, ANN)
        await store.plans.claim(run_id, PLAN.plan_id, PLAN.content_hash)
        shown = PlanJournal()
        shown.drafted(PLAN)
        shown.decided(PLAN, at=MADE + DAY)
        shown.ended(PLAN)
        other = change_plan(MADE + 5)
        shown.drafted(other)
        changed = edited(other)
        shown.decided(changed, by="eve", at=MADE + 7, plan=changed.payload())
        await store.journal.append(run_id, await shown.rows())
        return await store.plans.find(PLAN.plan_id), await store.plans.find(other.plan_id), changed

    text, run, changed = with_run(address, kept(scenario))
    assert second.content_hash != PLAN.content_hash
    assert (text.record.state, text.record.journalled) == ("completed", True)
    assert [(decision.by, decision.at) for decision in text.record.decisions] == [("ann", ANN.at)]
    assert (run.plan, run.record.hash, run.record.revision) == (changed, changed.content_hash, 2)
    assert (run.record.decided.by, run.record.decided.at) == ("eve", MADE + 7)


def test_rows_of_plans_that_were_refused_make_no_plan(address):
    async def scenario(store, run_id):
        shown = PlanJournal()
        shown.row("two_phase_phase1_start", plan_trigger="verdict", report_id=None, verdict_id=None)
        shown.drafted(PLAN, plan_id=None, plan_hash=None, plan=None, status="empty_plan")
        await store.journal.append(run_id, await shown.rows())
        return await store.plans.all()

    assert with_run(address, scenario) == []


def test_rows_that_cannot_be_stored_move_no_plan(address):
    async def scenario(store, run_id):
        shown = PlanJournal()
        shown.drafted(PLAN)
        shown.row("two_phase_phase2_complete", plan_id=PLAN.plan_id)  # not what this kind holds
        with pytest.raises(KeyError):
            await store.journal.append(run_id, await shown.rows())
        return await store.plans.all(), (await store.runs.find(run_id)).events

    assert with_run(address, scenario) == ([], 0)


@pytest.mark.parametrize("column", ["revisions", "steps", "decisions", "hash"])
def test_damaged_plan_is_told_as_such(address, column):
    async def scenario(store, run_id):
        async with store.plans._write() as connection:
            await connection.execute(update(change_plans).values({column: "0"}))
        with pytest.raises(StoreDamaged, match=f"plan '{PLAN.plan_id}' of run {run_id} is damaged"):
            await store.plans.find(PLAN.plan_id)

    with_run(address, kept(scenario))


def test_list_of_a_thousand_plans_parses_none_of_their_texts(tmp_path):
    address = f"sqlite:///{tmp_path}/store.db"

    async def scenario(store):
        runs = [(await store.runs.create(new_run())).run_id for _ in range(4)]
        long = change_plan(understanding="x" * 900, risks=("y" * 900,) * 20)
        row = {**vars(await store.plans.put(runs[0], long)), "revisions": "never parsed"}
        async with store.plans._write() as connection:
            texts = {"steps": '{"1":"waiting"}', "decisions": "[]", "reasons": "[]", "two_phase": None}
            rows = [
                row | texts | {"run_id": runs[n % 4], "plan_id": f"{n:016x}", "journalled": 1}
                for n in range(999)
            ]
            await connection.execute(change_plans.insert(), rows)
            for row in rows:
                await seal_row(connection, change_plans, of_plan(row["run_id"], row["plan_id"]))
        found = await store.plans.all()
        return len(found), await store.plans.waiting(), await store.plans.waiting(runs[1])

    assert of_store(address, scenario) == (1_000, 1_000, 250)


def test_plan_of_a_run_that_will_go_on_is_cancelled_before_its_process(address):
    async def scenario(store, run_id):
        shown = PlanJournal()
        shown.drafted(PLAN)
        await store.journal.append(run_id, await shown.rows())
        await store.runs.close(run_id, "interrupted")
        cancelled = await store.plans.cancel(run_id, PLAN.plan_id, ANN)
        return cancelled.state, [
            request.payload["decision"] for request in await store.operator.waiting(run_id)
        ]

    async def on_paper(store):
        return await scenario(store, (await store.runs.create(new_run(mode="paper"))).run_id)

    assert of_store(address, on_paper) == ("cancelled", ["cancel"])


def test_plan_that_is_handed_in_is_told_to_its_process_with_every_edit(address):
    async def scenario(store, run_id):
        await store.plans.put(run_id, PLAN, ANN)
        other = edited(PLAN)
        await store.plans.revise(run_id, other, PLAN.content_hash, ANN)
        await store.plans.cancel(run_id, PLAN.plan_id, ANN)
        question = await store.operator.waiting(run_id)
        with pytest.raises(ConfigError, match="at the next bar"):
            await store.plans.put(run_id, PLAN, ANN)
        return [(request.payload["decision"], request.payload["hash"]) for request in question]

    hash_of_edit = edited(PLAN).content_hash
    assert with_run(address, scenario) == [
        ("submit", PLAN.content_hash),
        ("submit", hash_of_edit),
        ("cancel", hash_of_edit),
    ]
