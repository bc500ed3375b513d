"""Reports on demand are kept once and judged once, on every dialect."""

import asyncio

from services.store import open_store
from tests.services.store.artefacts import MONDAY, WEEK, report, request, verdict
from tests.services.store.stores import new_run
from tests.services.store.test_leases import of_store

CALL = {"kind": "model_call", "payload": {"call": {"text": "{}"}}, "telemetry": None}


def with_run(address, scenario):
    async def opened(store):
        return await scenario(store, (await store.runs.create(new_run())).run_id)

    return of_store(address, opened)


def test_report_on_demand_is_kept_once_with_its_request(address):
    question = request()
    shown = report(question)

    async def scenario(store, run_id):
        wrote = [await store.on_demand.put(run_id, question, shown) for _ in range(2)]
        return wrote, await store.on_demand.of_run(run_id)

    wrote, (kept,) = with_run(address, scenario)
    assert wrote == [True, False]
    assert (kept.report_id, kept.known_at) == (shown.content_hash[:16], shown.known_at)
    assert kept.report.content_hash == shown.content_hash
    assert kept.request.content_hash == shown.request_hash
    assert (kept.verdict, kept.calls) == (None, ())


def test_report_on_demand_is_judged_once_whoever_asks(address):
    question = request()
    shown = report(question)
    lines = [verdict(shown, reason=text) for text in "abcd"]

    async def scenario(store, run_id):
        await store.on_demand.put(run_id, question, shown)
        report_id = shown.content_hash[:16]
        async with await open_store(address, create=True) as other:
            decided = [
                (store, other)[n % 2].on_demand.decide(run_id, report_id, item, [CALL])
                for n, item in enumerate(lines)
            ]
            answers = await asyncio.gather(*decided)
        unknown = await store.on_demand.decide(run_id, "0" * 16, lines[0], [])
        return answers, unknown, await store.on_demand.of_run(run_id)

    answers, unknown, (kept,) = with_run(address, scenario)
    assert (sorted(answers), unknown) == ([False, False, False, True], False)
    assert kept.verdict == lines[answers.index(True)]
    assert kept.calls == (CALL,)


def test_reports_on_demand_are_found_by_run_and_by_the_start_of_their_id(address):
    questions = [request(MONDAY + n * WEEK) for n in (1, 0)]
    shown = [report(item) for item in questions]

    async def scenario(store, run_id):
        other = (await store.runs.create(new_run())).run_id
        for item, its in zip(questions, shown, strict=True):
            await store.on_demand.put(run_id, item, its)
        await store.on_demand.put(other, questions[0], shown[0])
        named = [await store.on_demand.find_by_prefix(shown[0].content_hash[:n]) for n in (16, 6)]
        return await store.on_demand.of_run(run_id), named, await store.on_demand.find_by_prefix("%")

    of_run, named, nothing = with_run(address, scenario)
    assert [item.known_at for item in of_run] == [MONDAY, MONDAY + WEEK]
    assert [[run.run_id for run in found] for found in named] == [["r0001", "r0002"]] * 2
    assert nothing == []
