"""Requests wait for their turn on a clock of their own; what comes too late is not sent."""

import asyncio

import pytest

from agents.language_models.paced import PACED, RequestRate
from agents.language_models.retrying import RetryingModel
from schemas.errors import ModelError
from services.model_calls.budget import FAILURES
from services.model_calls.language_model import ModelReply
from tests.worker.live.virtual_time import run_virtually


class Timed:
    """Notes when it is asked, and answers after a while."""

    def __init__(self, takes_s=1.0):
        self.takes_s, self.at, self.left, self.under_way, self.most = takes_s, [], [], 0, 0

    async def complete(self, *, system, prompt, max_tokens, deadline_ms):
        self.at.append(asyncio.get_running_loop().time())
        self.left.append(deadline_ms)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.under_way -= 1
        return ModelReply("fine", "m", 1, 1, 1.0)


def read_requests(model, number, *, at_once=10, per_minute=None, deadline_ms=600_000.0, cancelled=()):
    """The ends of questions that are all asked at once; `cancelled` ones are given up after 1.5 s."""

    async def ask():
        virtual = asyncio.get_running_loop().time
        rate = RequestRate(at_once, per_minute)
        paced = RetryingModel(
            model, attempts=1, first_wait_ms=1.0, rate=rate, timer=lambda: int(virtual() * 1e9)
        )

        async def one(index):
            work = paced.complete(system="s", prompt="p", max_tokens=8, deadline_ms=deadline_ms)
            return await asyncio.wait_for(work, 1.5 if index in cancelled else 600.0)

        return await asyncio.gather(*map(one, range(number)), return_exceptions=True)

    return run_virtually(ask())


def test_no_more_requests_than_allowed_are_under_way():
    model = Timed()
    ends = read_requests(model, 7, at_once=3)
    assert model.most == 3
    assert [end.text for end in ends] == ["fine"] * 7
    assert [at - model.at[0] for at in model.at] == pytest.approx([0, 0, 0, 1, 1, 1, 2])


def test_no_minute_sees_more_requests_than_allowed():
    model = Timed()
    read_requests(model, 7, per_minute=3)
    assert [at - model.at[0] for at in model.at] == pytest.approx([0, 0, 0, 60, 60, 60, 120])


def test_waiting_comes_off_the_deadline():
    model = Timed()
    read_requests(model, 2, at_once=1, deadline_ms=5_000.0)
    assert model.left == pytest.approx([5_000.0, 4_000.0])


@pytest.mark.parametrize("limit", [{"at_once": 1}, {"per_minute": 1}])
def test_request_whose_turn_comes_too_late_is_not_sent_and_takes_no_place(limit):
    model = Timed(takes_s=20.0)
    ends = read_requests(model, 3, deadline_ms=10_000.0, **limit)
    assert len(model.at) == 1
    late = [end for end in ends if isinstance(end, ModelError)]
    assert [(end.context["kind"], end.context["requests"]) for end in late] == [(PACED, 0)] * 2
    assert all(name in str(late[0]) for name in ("not sent", *(f"llm.{name}" for name in limit)))


def test_request_that_is_given_up_frees_its_turn():
    model = Timed(takes_s=5.0)
    ends = read_requests(model, 4, at_once=1, cancelled={0, 2})  # one under way, one that waits
    replies = ["TimeoutError", "ModelReply", "TimeoutError", "ModelReply"]
    assert [type(end).__name__ for end in ends] == replies
    assert [at - model.at[0] for at in model.at] == pytest.approx([0, 1.5, 6.5])


def test_being_paced_is_no_failure_of_the_machine_and_is_not_tried_again():
    model = Timed(takes_s=20.0)

    async def ask():
        virtual, rate = asyncio.get_running_loop().time, RequestRate(1, None)
        retrying = RetryingModel(
            model, attempts=3, first_wait_ms=1.0, rate=rate, timer=lambda: int(virtual() * 1e9)
        )
        asking = [
            retrying.complete(system="s", prompt="p", max_tokens=8, deadline_ms=5_000.0) for _ in range(2)
        ]
        return await asyncio.gather(*asking, return_exceptions=True)

    _, late = run_virtually(ask())
    assert late.context["kind"] == PACED
    assert late.context["requests"] == 0
    assert PACED not in FAILURES
    assert len(model.at) == 1
