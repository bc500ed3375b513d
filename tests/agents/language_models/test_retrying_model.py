import asyncio
import math

import pytest

from agents.language_models.retrying import PASSING, RetryingModel
from schemas.errors import ModelError
from services.model_calls.language_model import ModelReply

REPLY = ModelReply("fine", "m", 1, 1, 3.0)


class Scripted:
    """Plays outcomes; every call takes `call_ms` on a clock that only calls and waits move."""

    def __init__(self, *outcomes, call_ms=10.0):
        self.outcomes = list(outcomes)
        self.call_ms = call_ms
        self.now_ms = 0.0
        self.deadlines = []
        self.waits = []

    async def complete(self, *, system, prompt, max_tokens, deadline_ms):
        self.deadlines.append(deadline_ms)
        self.now_ms += self.call_ms
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    def timer(self):
        return int(self.now_ms * 1e6)

    async def sleep(self, seconds):
        self.waits.append(seconds * 1e3)
        self.now_ms += seconds * 1e3


def failed(kind, words="happened", **context):
    return ModelError(f"{kind} {words}", retryable=True, kind=kind, **context)


def run(scripted, attempts=3, deadline_ms=1_000.0, first_wait_ms=20.0):
    model = RetryingModel(
        scripted,
        attempts=attempts,
        first_wait_ms=first_wait_ms,
        timer=scripted.timer,
        sleep=scripted.sleep,
    )
    return asyncio.run(model.complete(system="s", prompt="p", max_tokens=8, deadline_ms=deadline_ms))


@pytest.mark.parametrize("kind", sorted(PASSING))
def test_retrying_passing_failure_is_tried_again_with_what_is_left(kind):
    scripted = Scripted(failed(kind), failed(kind), REPLY)
    reply = run(scripted, deadline_ms=5_000.0)
    assert (reply.text, reply.requests) == ("fine", 3)
    first, second = (1_000.0, 1_000.0) if kind == "throttled" else (20.0, 40.0)
    assert scripted.waits == [first, second]
    assert scripted.deadlines == [5_000.0, 4_990.0 - first, 4_980.0 - first - second]
    assert reply.latency_ms == 30.0 + first + second


@pytest.mark.parametrize(
    ("failures", "passes"),
    [
        ([{}, {}, {}], False),
        ([{"retry_after_ms": 5.0}] * 3, True),
        ([{}, {}, {"retry_after_ms": 5.0}], True),
        ([{"words": "used 7 of 9"}, {"words": "used 8 of 9"}, {"words": "used 9 of 9"}], True),
    ],
)
def test_retrying_server_that_throttles_every_try_alike_and_names_no_pause_is_not_retryable(failures, passes):
    tries = [failed(**{"words": "spent", "kind": "throttled"} | each) for each in failures]
    with pytest.raises(ModelError) as caught:
        run(Scripted(*tries), deadline_ms=5_000.0)
    assert caught.value.retryable is passes


@pytest.mark.parametrize(
    "kind", ["timeout", "malformed", "refusal", "cut", "rejected", "wrong_model", "error"]
)
def test_retrying_failure_that_is_billed_or_final_error_at_once(kind):
    scripted = Scripted(failed(kind), REPLY)
    with pytest.raises(ModelError) as caught:
        run(scripted)
    assert caught.value.context == {"kind": kind, "requests": 1}
    assert scripted.waits == []


def test_retrying_attempts_are_bounded_and_the_last_failure_is_told():
    scripted = Scripted(failed("server"), failed("network"), failed("overloaded"), REPLY)
    with pytest.raises(ModelError, match="overloaded happened") as caught:
        run(scripted)
    assert caught.value.context["requests"] == 3


def test_retrying_attempts_that_found_no_connection_are_attempts_but_no_requests():
    unsent = [failed("network", requests=0) for _ in range(3)]
    with pytest.raises(ModelError) as caught:
        run(Scripted(*unsent))
    assert caught.value.context["requests"] == 0
    scripted = Scripted(failed("network", requests=0), failed("network"), REPLY)
    assert run(scripted).requests == 2
    assert scripted.waits == [20.0, 40.0]


def test_retrying_one_attempt_never_waits():
    scripted = Scripted(failed("throttled", retry_after_ms=0.0), REPLY)
    with pytest.raises(ModelError):
        run(scripted, attempts=1)
    assert scripted.waits == []


def test_retrying_wait_that_the_server_asks_for_is_kept_when_it_fits():
    scripted = Scripted(failed("throttled", retry_after_ms=300.0), REPLY)
    assert run(scripted).requests == 2
    assert scripted.waits == [300.0]


@pytest.mark.parametrize("asked_ms", [990.0, 60_000.0, math.inf])
def test_retrying_wait_beyond_the_deadline_error_at_once(asked_ms):
    scripted = Scripted(failed("throttled", retry_after_ms=asked_ms), REPLY)
    with pytest.raises(ModelError, match="throttled"):
        run(scripted)
    assert scripted.waits == []
    assert scripted.now_ms == 10.0


def test_retrying_never_sleeps_past_the_deadline_however_often_it_fails():
    scripted = Scripted(*(failed("server") for _ in range(5)))
    with pytest.raises(ModelError):
        run(scripted, attempts=5, deadline_ms=100.0)
    assert scripted.now_ms <= 100.0


def test_retrying_bug_in_the_model_is_not_tried_again():
    class Broken(Scripted):
        async def complete(self, **request):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(Broken())
