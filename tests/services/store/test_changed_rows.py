"""A sealed row that was changed by hand is shown, acted on and sealed anew by nobody."""

import asyncio

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from schemas.trials import TrialCounts
from services.store import open_store
from services.store.failures import StoreDamaged
from services.store.integrity import examine
from services.store.seals import seal_row
from services.store.tables import reports_on_demand
from tests.services.journal.rows import written_rows
from tests.services.store.artefacts import JOB, report, reported, request, verdict
from tests.services.store.stores import new_run
from tests.services.store.test_leases import of_store
from tests.services.store.test_trials import BARS
from worker.cli import app

HOUR = 3_600_000
ROWS = written_rows(3)
ON_DEMAND = {
    "verdict_of_an_empty_object": "UPDATE reports_on_demand SET verdict = '{}', verdict_id = 'abc'",
    "time_of_the_report": "UPDATE reports_on_demand SET known_at = known_at + 1",
    "text_of_the_report": "UPDATE reports_on_demand SET report = replace(report, '{', '{ ')",
    "no_report": "UPDATE reports_on_demand SET report = '{}'",
    "no_json": "UPDATE reports_on_demand SET request = '{'",
    "measured_time": "UPDATE reports_on_demand SET written_ms = 1",
    "calls": "UPDATE reports_on_demand SET calls = '[1]'",
    "seal": "DELETE FROM seals WHERE part LIKE 'reports_on_demand %'",
}
OF_WORKER = {
    "report": "UPDATE slow_reports SET report = '{}'",
    "owner": "UPDATE slow_reports SET owner = 'other'",
    "seal": "DELETE FROM seals WHERE part LIKE 'slow_reports %'",
}
OF_JUDGE = {
    "verdict": "UPDATE report_verdicts SET verdict = '{}', verdict_id = 'abc'",
    "consumer": "UPDATE report_verdicts SET consumer = 'other'",
    "seal": "DELETE FROM seals WHERE part LIKE 'report_verdicts %'",
}
TRIALS = {
    "hypotheses": "UPDATE trials SET hypotheses = 1",
    "timeframe": "UPDATE trials SET timeframe = '4h'",
    "ledger_of_no_object": "UPDATE trials SET ledger = '[]'",
    "symbols_of_no_list": "UPDATE trials SET symbols = '7'",
    "promotions_of_nothing": "UPDATE trials SET promotions = 7",
    "row": "DELETE FROM trials",
    "run": "UPDATE trials SET run_id = 'r0009'",
    "seal": "DELETE FROM seals WHERE part LIKE 'trials %'",
}
HEADS = {
    "events": "UPDATE runs SET events = 7",
    "head_hash": f"UPDATE runs SET head_hash = '{'ab' * 32}'",
}


async def change(store, statement: str) -> None:
    async with store.runs._writer.begin() as connection:
        await connection.execute(text(statement))


async def put(store) -> tuple[str, str, object]:
    """A run with a report on demand; its id, that of the report, and a verdict on it."""
    run_id = (await store.runs.create(new_run())).run_id
    question = request()
    made = report(question)
    await store.on_demand.put(run_id, question, made)
    return run_id, made.content_hash[:16], verdict(made)


def named(error: StoreDamaged, *words: str) -> None:
    assert "\n" not in str(error)
    for word in (*words, "damaged", "thinktwice db restore"):
        assert word in str(error)


@pytest.mark.parametrize("statement", ON_DEMAND.values(), ids=ON_DEMAND)
def test_report_on_demand_that_was_changed_is_neither_shown_nor_judged_nor_sealed_anew(address, statement):
    async def scenario(store):
        run_id, report_id, judged = await put(store)
        await change(store, statement)
        for reading in (
            store.on_demand.of_run(run_id),
            store.on_demand.find_by_prefix(report_id),
            store.on_demand.decide(run_id, report_id, judged, []),
        ):
            with pytest.raises(StoreDamaged) as refused:
                await reading
            named(refused.value, run_id, report_id, "report on demand")
        return await store.seals.problems(run_id)

    assert of_store(address, scenario)


def test_report_on_demand_whose_seal_fits_a_text_that_cannot_be_read_is_one_line(address):
    async def scenario(store):
        run_id, report_id, _ = await put(store)
        await change(store, "UPDATE reports_on_demand SET verdict = '{}', verdict_id = 'abc'")
        async with store.runs._writer.begin() as connection:
            await seal_row(connection, reports_on_demand, reports_on_demand.c.report_id == report_id)
        with pytest.raises(StoreDamaged) as refused:
            await store.on_demand.of_run(run_id)
        named(refused.value, run_id, report_id, "cannot be read")

    of_store(address, scenario)


async def reported_by_worker(store) -> str:
    run_id: str = (await store.runs.create(new_run())).run_id
    await reported(store, await store.leases.take("x", "a", HOUR), run_id)
    return run_id


@pytest.mark.parametrize("statement", OF_WORKER.values(), ids=OF_WORKER)
def test_report_of_a_worker_that_was_changed_is_neither_listed_nor_handed_to_a_judge(address, statement):
    async def scenario(store):
        run_id = await reported_by_worker(store)
        await change(store, statement)
        for reading in (store.reports.all(run_id, JOB), store.reports.take(run_id, "c", HOUR)):
            with pytest.raises(StoreDamaged) as refused:
                await reading
            named(refused.value, run_id, "report ")

    of_store(address, scenario)


def test_report_of_a_worker_whose_request_was_changed_is_handed_to_no_judge(address):
    async def scenario(store):
        run_id = await reported_by_worker(store)
        await change(store, "UPDATE slot_claims SET request = replace(request, '{', '{ ')")
        with pytest.raises(StoreDamaged) as refused:
            await store.reports.take(run_id, "c", HOUR)
        named(refused.value, run_id, "the request of report ")

    of_store(address, scenario)


@pytest.mark.parametrize("statement", OF_JUDGE.values(), ids=OF_JUDGE)
def test_verdict_on_a_report_of_a_worker_that_was_changed_is_not_listed(address, statement):
    async def scenario(store):
        run_id = await reported_by_worker(store)
        taken = await store.reports.take(run_id, "c", HOUR)
        assert await store.reports.deliver(taken, verdict(taken.report), 5)
        await change(store, statement)
        with pytest.raises(StoreDamaged) as refused:
            await store.reports.all(run_id, JOB)
        named(refused.value, run_id, "verdict on report ")

    of_store(address, scenario)


@pytest.mark.parametrize("statement", TRIALS.values(), ids=TRIALS)
def test_ledger_of_trials_that_was_changed_is_neither_shown_nor_counted(address, statement):
    async def scenario(store):
        for _ in range(2):
            run_id = (await store.runs.create(new_run())).run_id
        await store.trials.begin(run_id, BARS, 10)
        await change(store, statement)
        for reading in (store.trials.all(), store.trials.begin("r0001", BARS, 10)):
            with pytest.raises(StoreDamaged) as refused:
                await reading
            named(refused.value, "ledger of trials")
            assert "pydantic" not in str(refused.value)

    of_store(address, scenario)


def test_row_of_the_ledger_that_was_changed_is_not_sealed_anew_by_its_run(address):
    async def scenario(store):
        run_id = (await store.runs.create(new_run())).run_id
        await store.trials.begin(run_id, BARS, 10)
        await change(store, "UPDATE trials SET playbooks = 'others'")
        with pytest.raises(StoreDamaged, match="ledger of trials .*is damaged"):
            await store.trials.advance(run_id, TrialCounts(hypotheses=10, candidates=1))

    of_store(address, scenario)


@pytest.mark.parametrize("statement", ["UPDATE trials SET hypotheses = 0", "DELETE FROM trials"])
def test_rule_of_the_ledger_that_was_changed_or_deleted_is_found(address, statement):
    async def scenario(store):
        await store.trials.note_rule(BARS)
        assert len(await store.trials.all()) == 1
        await change(store, statement)
        with pytest.raises(StoreDamaged, match="ledger of trials .*is damaged"):
            await store.trials.all()

    of_store(address, scenario)
    (problem,) = asyncio.run(examine(address, full=True)).problems
    assert problem.startswith("rule:c0: row in the ledger of trials ")


@pytest.mark.parametrize("statement", HEADS.values(), ids=HEADS)
def test_run_that_is_over_whose_head_was_changed_is_not_shown(address, statement):
    async def scenario(store):
        run_id = (await store.runs.create(new_run())).run_id
        await store.journal.append(run_id, ROWS)
        await store.runs.close(run_id, "finished", {})
        assert (await store.runs.find(run_id)).events == 3
        await change(store, statement)
        with pytest.raises(StoreDamaged) as refused:
            await store.runs.find(run_id)
        named(refused.value, run_id, "was changed after it was written")

    of_store(address, scenario)


COMMANDS = {
    "trials": (TRIALS["hypotheses"], ("trials",), "ledger of trials"),
    "reports": (ON_DEMAND["verdict_of_an_empty_object"], ("reports", "r0001"), "report on demand"),
    "replan": (
        ON_DEMAND["text_of_the_report"],
        ("replan", "{report}"),
        "report on demand",
    ),
    "reports of a worker": (OF_WORKER["owner"], ("reports", "r0001"), "report "),
    "runs": (HEADS["events"], ("runs",), "number of rows"),
    "status": (HEADS["head_hash"], ("status", "r0001"), "hash of its last one"),
}


@pytest.mark.parametrize(("statement", "words", "what"), COMMANDS.values(), ids=COMMANDS)
def test_command_that_prints_a_sealed_row_says_in_one_line_that_it_was_changed(
    tmp_path, statement, words, what
):
    address = f"sqlite:///{tmp_path / 'store.db'}"

    async def made() -> str:
        async with await open_store(address, create=True) as store:
            run_id = await reported_by_worker(store)
            question = request()
            await store.on_demand.put(run_id, question, report(question, narrative="on demand"))
            await store.trials.begin(run_id, BARS, 10)
            await store.journal.append(run_id, ROWS)
            await store.runs.close(run_id, "finished", {})
            await change(store, statement)
            report_id: str = report(question, narrative="on demand").content_hash[:16]
            return report_id

    report_id = asyncio.run(made())
    done = CliRunner().invoke(app, [*(word.format(report=report_id) for word in words), "--db", address])
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    assert what in done.stderr
    assert "thinktwice db restore" in done.stderr
    assert "validation error" not in done.output
