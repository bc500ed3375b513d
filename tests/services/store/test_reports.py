"""A report is stored whole or not at all, and reaches the judge once, on every dialect."""

import asyncio

import pytest

from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport
from services.store.claims import SlotKey
from tests.services.store.artefacts import (
    JOB,
    MONDAY,
    WEEK,
    claim,
    claimed,
    report,
    reported,
    request,
    verdict,
)
from tests.services.store.test_claims import with_run

HOUR = 3_600_000
LOST = 0


def test_artefacts_come_back_from_their_text_with_the_same_hash():
    shown = report(request(), drift_findings=("x",), unclassified_share=0.25)
    reply = verdict(shown)
    assert (
        HighLevelReflectionReport.model_validate_json(shown.canonical_text()).content_hash
        == shown.content_hash
    )
    assert ReplanVerdict.model_validate_json(reply.canonical_text()).content_hash == reply.content_hash


def test_report_closes_its_claim_and_waits_in_the_inbox(address):
    async def scenario(store, run_id, lease):
        message = await reported(store, lease, run_id)
        return message, await store.reports.all(run_id, JOB), await store.claims.all(run_id, JOB)

    shown, (stored,), (found,) = with_run(address, scenario)
    assert (stored.report_id, stored.report.request_hash) == (shown.content_hash[:16], request().content_hash)
    assert stored.report.content_hash == shown.content_hash
    assert (stored.delivery, stored.takes, stored.verdict) == ("waiting", 0, None)
    assert found.state == "done"


def test_report_of_a_slot_is_written_once(address):
    async def scenario(store, run_id, lease):
        question = request()
        found = await claimed(store, lease, run_id, question)
        wrote = [await store.reports.write(lease, found, report(question, narrative=text)) for text in "ab"]
        return wrote, await store.reports.all(run_id, JOB)

    wrote, stored = with_run(address, scenario)
    assert wrote == [True, False]
    assert [payload.report.narrative for payload in stored] == ["a"]


def test_report_without_a_claim_is_not_written(address):
    async def scenario(store, run_id, lease):
        question = request()
        return await store.reports.write(
            lease, claim(run_id, question), report(question)
        ), await store.reports.all(run_id, JOB)

    assert with_run(address, scenario) == (False, [])


def test_inbox_hands_each_report_to_one_consumer_oldest_first(address):
    async def scenario(store, run_id, lease):
        for n in (0, 1, 2):
            await reported(store, lease, run_id, MONDAY + n * WEEK)
        return await asyncio.gather(*(store.reports.take(run_id, f"c{n}", HOUR) for n in range(8)))

    taken = [item for item in with_run(address, scenario) if item is not None]
    assert sorted(slot.slot for slot in taken) == [MONDAY, MONDAY + WEEK, MONDAY + 2 * WEEK]
    assert {item.epoch for item in taken} == {1}
    assert all(payload.report.request_hash == payload.request.content_hash for payload in taken)


def test_delivery_stores_one_verdict_and_ends_the_matter(address):
    async def scenario(store, run_id, lease):
        shown = await reported(store, lease, run_id)
        taken = await store.reports.take(run_id, "c", HOUR)
        answers = [await store.reports.deliver(taken, verdict(shown, reason=text), 5) for text in "ab"]
        return answers, await store.reports.take(run_id, "c", HOUR), await store.reports.all(run_id, JOB)

    answers, again, (stored,) = with_run(address, scenario)
    assert answers == [True, False]
    assert again is None
    assert (stored.delivery, stored.arrived_at) == ("delivered", 5)
    assert stored.verdict.reason == "a"
    assert stored.verdict_id == stored.verdict.content_hash[:16]


@pytest.mark.parametrize("late_first", [True, False])
def test_consumer_that_lost_its_hold_delivers_nothing(address, late_first):
    async def scenario(store, run_id, lease):
        shown = await reported(store, lease, run_id)
        late = await store.reports.take(run_id, "late", LOST)
        heir = await store.reports.take(run_id, "heir", HOUR)
        order = [(late, "late"), (heir, "heir")]
        answers = {
            name: await store.reports.deliver(taken, verdict(shown, reason=name), 5)
            for taken, name in (order if late_first else reversed(order))
        }
        return answers, (late.epoch, heir.epoch), await store.reports.all(run_id, JOB)

    answers, epochs, (stored,) = with_run(address, scenario)
    assert answers == {"late": False, "heir": True}
    assert epochs == (1, 2)
    assert (stored.verdict.reason, stored.takes) == ("heir", 2)


def test_hold_that_ran_out_delivers_as_long_as_nobody_took_it_over(address):
    async def scenario(store, run_id, lease):
        shown = await reported(store, lease, run_id)
        return await store.reports.deliver(await store.reports.take(run_id, "c", LOST), verdict(shown), 5)

    assert with_run(address, scenario) is True


def test_inbox_of_another_run_is_empty(address):
    async def scenario(store, run_id, lease):
        await reported(store, lease, run_id)
        return await store.reports.take("r9999", "c", HOUR)

    assert with_run(address, scenario) is None


def test_reports_are_listed_by_slot_from_a_given_one_on(address):
    async def scenario(store, run_id, lease):
        for n in (0, 1, 2):
            await reported(store, lease, run_id, MONDAY + n * WEEK)
        return [item.key for item in await store.reports.all(run_id, JOB, after=MONDAY)], run_id

    keys, run_id = with_run(address, scenario)
    assert keys == [SlotKey(run_id, JOB, MONDAY + n * WEEK) for n in (1, 2)]
