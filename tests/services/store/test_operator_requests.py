"""A request is numbered, answered once, and only asked of a run that goes on; on every dialect."""

import asyncio

import pytest

from schemas.errors import ConfigError
from services.store import open_store
from tests.services.store.stores import new_run
from tests.services.store.test_leases import of_store


def with_run(address, scenario):
    async def opened(store):
        return await scenario(store, (await store.runs.create(new_run(mode="paper"))).run_id)

    return of_store(address, opened)


def test_requests_wait_in_the_order_of_their_numbers_and_keep_their_payload(address):
    questions = [
        ("kill_switch", {"on": True}),
        ("rollback", {"playbook_id": "a"}),
        ("replan", {"report_id": None}),
        ("replan", {"report_id": "0123"}),
        ("stop", {}),
    ]

    async def scenario(store, run_id):
        numbers = [await store.operator.put(run_id, kind, payload) for kind, payload in questions]
        return numbers, await store.operator.waiting(run_id)

    numbers, waiting = with_run(address, scenario)
    assert numbers == [1, 2, 3, 4, 5] == [entry.number for entry in waiting]
    assert [(row.kind, row.payload) for row in waiting] == questions
    assert {(trial.state, trial.answered_ms, trial.result) for trial in [*waiting]} == {
        ("waiting", None, None)
    }


def test_request_is_answered_once_and_the_first_answer_stays(address):
    async def scenario(store, run_id):
        number = await store.operator.put(run_id, "stop", {})
        answers = [
            await store.operator.answer(run_id, number, outcome, {"why": outcome})
            for outcome in ("refused", "done")
        ]
        unasked = await store.operator.answer(run_id, number + 1, "done", {})
        return answers, unasked, await store.operator.waiting(run_id), await store.operator.all(run_id)

    answers, unasked, waiting, (found,) = with_run(address, scenario)
    assert (answers, unasked, waiting) == ([True, False], False, [])
    assert (found.state, found.result) == ("refused", {"why": "refused"})
    assert found.answered_ms >= found.asked_ms


def test_request_asked_again_while_it_waits_keeps_its_number_unless_another_came_between(address):
    async def scenario(store, run_id):
        put, switch = store.operator.put, "kill_switch"
        numbers = [await put(run_id, switch, {"on": on}) for on in (True, True, False, True)]
        await store.operator.answer(run_id, 3, "done", {})
        return [*numbers, await put(run_id, switch, {"on": True})]

    assert with_run(address, scenario) == [1, 1, 2, 3, 4]


def test_requests_put_at_once_get_numbers_of_their_own(address):
    async def scenario(store, run_id):
        async with await open_store(address, create=True) as other:
            puts = [
                (store, other)[n % 2].operator.put(run_id, "rollback", {"playbook_id": f"p{n}"})
                for n in range(8)
            ]
            return await asyncio.gather(*puts)

    assert sorted(with_run(address, scenario)) == list(range(1, 9))


def test_requests_of_runs_are_apart(address):
    async def scenario(store, run_id):
        other = (await store.runs.create(new_run())).run_id
        await store.operator.put(run_id, "stop", {})
        return await store.operator.waiting(other), await store.operator.put(other, "stop", {})

    assert with_run(address, scenario) == ([], 1)


@pytest.mark.parametrize("status", ["finished", "interrupted", "failed"])
def test_request_to_a_run_that_is_over_is_refused(address, status):
    async def scenario(store, run_id):
        await store.runs.close(run_id, status)
        with pytest.raises(ConfigError, match=f"'{run_id}' takes no requests, it is {status}"):
            await store.operator.put(run_id, "stop", {})
        with pytest.raises(ConfigError, match="there is no such run"):
            await store.operator.put("r9999", "stop", {})
        return await store.operator.all(run_id)

    assert with_run(address, scenario) == []


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("kill_switch", {}),
        ("kill_switch", {"on": "yes"}),
        ("rollback", {"playbook": "a"}),
        ("rollback", {"playbook_id": None}),
        ("replan", {}),
        ("stop", {"now": True}),
        ("dance", {}),
    ],
)
def test_request_with_other_fields_than_its_kind_has_is_refused(tmp_path, kind, payload):
    async def scenario(store, run_id):
        with pytest.raises(ConfigError):
            await store.operator.put(run_id, kind, payload)
        return await store.operator.all(run_id)

    assert with_run(f"sqlite:///{tmp_path}/store.db", scenario) == []
