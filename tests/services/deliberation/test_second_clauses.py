"""A second verb without a subject of its own is said of whom the first one was said of."""

import pytest

from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import whole


def holds(text):
    return check_facts(text, whole("whole_embedded")).holds


@pytest.mark.parametrize(
    ("true", "false"),
    [
        (
            "IBM lost money going long but made money going short.",
            "IBM lost money going long while it lost money going short.",
        ),
        (
            "The shorts lost money on MSFT but made money on IBM.",
            "The shorts lost money on MSFT but made money on GOOG.",
        ),
        (
            "The shorts lost 8.1R on MSFT but earned 5.7R on IBM.",
            "The shorts lost 8.1R on MSFT but earned 12.7R on GOOG.",
        ),
        (
            "MSFT earned 4.5R going long but lost 8.1R going short.",
            "MSFT earned 4.5R going long but lost 2.0R going short.",
        ),
        (
            "MSFT lost with mean_reversion but it came out ahead with squeeze_breakout.",
            "MSFT lost with mean_reversion but it came out ahead with channel_breakout.",
        ),
        (
            "During 2011, GOOG was profitable going long and made money on the short side.",
            "During 2011, GOOG was profitable going long while it made a loss on the short side.",
        ),
    ],
)
def test_a_second_verb_keeps_the_subject_of_the_first(true, false):
    assert holds(true)
    assert not holds(false)
