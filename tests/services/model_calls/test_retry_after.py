"""How long another side is waited for when it asks for a pause: as it asks, an hour at most, and told."""

import math

import pytest

from services.model_calls.retry_after import LONGEST_S, Pause, pause_of


@pytest.mark.parametrize(
    ("headers", "asked_s"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "3601"}, 3_601.0),
        ({"Retry-After": "9" * 40}, float("9" * 40)),
        ({"Retry-After": "9" * 400}, math.inf),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "\u0663"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_obeyed_for_an_hour_at_most_and_told_beyond(headers, asked_s) -> None:
    pause = pause_of(headers)
    assert (None if pause is None else pause.asked_s) == asked_s
    if pause is not None:
        assert pause.wait_s == min(pause.asked_s, 3_600.0)
        assert (pause.shown is not None) == (pause.asked_s > LONGEST_S)


def test_retry_after_that_is_cut_short_is_told_with_both_numbers() -> None:
    assert Pause(86_400.0).shown == "it asks for a pause of 86400 s, of which 3600 s are kept"
    assert Pause(math.inf).shown == "it asks for a pause up to a date, of which 3600 s are kept"
    assert pause_of({"retry-after-ms": "1500"}, name="retry-after-ms", unit_s=1e-3) == Pause(1.5)
    assert pause_of({"retry-after": "31"}, 30.0) == Pause(31.0, 30.0)
