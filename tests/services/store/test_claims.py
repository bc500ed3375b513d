"""One claim for a slot, whoever comes first, and what becomes of it."""

import asyncio

import pytest

from schemas.slow_reflection import HighLevelReflectionRequest
from services.store.claims import ClaimState
from services.store.repository import LeaseLost
from tests.services.store.artefacts import JOB, MONDAY, WEEK, claimed, key, report, request
from tests.services.store.stores import new_run
from tests.services.store.test_leases import EXPIRED, HOUR, of_store


def with_run(address, scenario):
    async def opened(store):
        run_id = (await store.runs.create(new_run())).run_id
        return await scenario(store, run_id, await store.leases.take("x", "a", HOUR))

    return of_store(address, opened)


def test_claim_of_a_slot_is_made_once(address):
    async def scenario(store, run_id, lease):
        question = request()
        several = [
            store.claims.claim(lease, key(run_id), question.content_hash, question.canonical_text(), {"n": n})
            for n in range(6)
        ]
        return await asyncio.gather(*several), await store.claims.all(run_id, JOB)

    won, claims = with_run(address, scenario)
    assert sorted(won) == [False] * 5 + [True]
    assert [(claim.state, claim.attempts, claim.owner, claim.epoch) for claim in claims] == [
        ("claimed", 1, "a", 1)
    ]


def test_claim_keeps_the_request_byte_for_byte(address):
    async def scenario(store, run_id, lease):
        requested = request(judge_actions=("v1",), drift_inputs={"trigger": "slot", "x": [0.1, None]})
        return requested, await claimed(store, lease, run_id, requested)

    question, found = with_run(address, scenario)
    assert HighLevelReflectionRequest.model_validate_json(found.request) == question
    assert (
        HighLevelReflectionRequest.model_validate_json(found.request).content_hash
        == found.request_hash
        == question.content_hash
    )


def test_skip_is_recorded_once_for_a_slot_and_takes_the_place_of_a_run(address):
    async def scenario(store, run_id, lease):
        question = request()
        return (
            await store.claims.skip(lease, key(run_id), "insufficient_episodes", {"counted": 3}),
            await store.claims.skip(lease, key(run_id), "disabled", {}),
            await store.claims.claim(
                lease, key(run_id), question.content_hash, question.canonical_text(), {}
            ),
            await store.claims.all(run_id, JOB),
        )

    first, second, run, claims = with_run(address, scenario)
    assert (first, second, run) == (True, False, False)
    assert [(claim.state, claim.reason, claim.facts) for claim in claims] == [
        ("skipped", "insufficient_episodes", {"counted": 3})
    ]


def test_claim_left_behind_is_resumed_under_the_new_epoch_with_its_own_request(address):
    async def scenario(store, run_id, lease):
        left = await claimed(store, lease, run_id, request())
        await store.leases.take("x", "a", EXPIRED)
        heir = await store.leases.take("x", "b", HOUR)
        await store.claims.resume(heir, left)
        with pytest.raises(LeaseLost):
            await store.claims.resume(lease, left)
        with pytest.raises(LeaseLost):
            await store.claims.fail(lease, left.key, "late")
        with pytest.raises(LeaseLost):
            await store.reports.write(lease, left, report(request()))
        return left, await store.claims.get(left.key)

    left, resumed = with_run(address, scenario)
    assert (resumed.attempts, resumed.owner, resumed.epoch) == (2, "b", 2)
    assert resumed.request == left.request


def test_claims_standing_names_the_newest_by_state_and_the_oldest_open(address):
    async def scenario(store, run_id, lease):
        empty = await store.claims.newest_state(run_id, JOB)
        for n in (4, 3, 1, 2):
            question = request(MONDAY + n * WEEK)
            found = await claimed(store, lease, run_id, question)
            if n == 4:
                await store.claims.fail(lease, found.key, "RuntimeError: no")
            if n == 3:
                await store.reports.write(lease, found, report(question))
        return empty, await store.claims.newest_state(run_id, JOB), await store.claims.all(run_id, JOB)

    empty, standing, claims = with_run(address, scenario)
    assert empty == ClaimState(None, None, None, None)
    assert standing == ClaimState(*(MONDAY + n * WEEK for n in (4, 3, 4, 1)))
    assert [claim.state for claim in claims] == ["claimed", "claimed", "done", "failed"]


def test_claims_of_runs_and_jobs_are_apart(address):
    async def scenario(store, run_id, lease):
        other = (await store.runs.create(new_run())).run_id
        await store.claims.skip(lease, key(run_id), "disabled", {})
        states = [await store.claims.newest_state(*of) for of in ((other, JOB), (run_id, "another"))]
        return states, await store.claims.get(key(other))

    states, found = with_run(address, scenario)
    assert states == [ClaimState(None, None, None, None)] * 2
    assert found is None
