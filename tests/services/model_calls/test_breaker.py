import pytest

from services.model_calls.budget import FAILURES, Breaker, BreakerChange


def after(breaker: Breaker, *outcomes: str) -> list[BreakerChange | None]:
    return [breaker.note(outcome) for outcome in outcomes]


@pytest.mark.parametrize("failure", sorted(FAILURES))
def test_breaker_opens_at_the_limit_and_not_before(failure):
    breaker = Breaker(limit=3, pause=2)
    assert after(breaker, failure, failure) == [None, None]
    assert breaker.admit()
    assert breaker.note(failure) is BreakerChange.OPENED
    assert [breaker.admit() for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("answer", ["reply", "budget_spent", "budget"])
def test_breaker_anything_that_is_no_failure_starts_the_count_anew(answer):
    breaker = Breaker(limit=2, pause=2)
    assert after(breaker, "network", answer, "network") == [None, None, None]
    assert breaker.admit()


def test_breaker_try_that_fails_opens_it_again_without_another_word():
    breaker = Breaker(limit=1, pause=1)
    assert breaker.note("timeout") is BreakerChange.OPENED
    assert [breaker.admit(), breaker.admit()] == [False, True]
    assert breaker.note("timeout") is None
    assert [breaker.admit(), breaker.admit()] == [False, True]
    assert breaker.note("reply") is BreakerChange.CLOSED
    assert breaker.admit()
