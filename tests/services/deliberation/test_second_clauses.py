"""A second verb without a subject of its own is said of whom the first one was said of."""

import pytest

from services.deliberation.fact_check import check_facts
from services.text.claims import sentences
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


@pytest.mark.parametrize(
    "text",
    [
        "Neither the longs nor the short side made money.",
        "Neither longs nor shorts made money.",
        "Neither longs nor shorts lost money.",
        "Neither AAPL nor MSFT lost money.",
    ],
)
def test_neither_of_two_must_hold_for_both(text):
    assert not holds(text)


def test_neither_of_two_holds_where_it_is_so_of_both():
    assert holds("Neither AAPL nor GOOG lost money.")
    assert holds("Going short, neither MSFT nor GOOG made money.")


@pytest.mark.parametrize(
    "text",
    [
        "Only 2009 made money on MSFT.",
        "MSFT made money only in 2009.",
        "MSFT made money just in 2009.",
        "Only in 2009 did MSFT make money.",
    ],
)
def test_only_in_a_year_is_held_against_the_other_years(text):
    found = [claim for claim in check_facts(text, whole("whole_embedded")).claims if claim.found]
    assert "so is 2000, 2001, 2005, 2006, 2007, 2012" in [claim.found for claim in found]


def test_point_of_a_share_class_ends_no_sentence():
    for one, other in (("BRK.B", "BF.B"), ("NESN.SW", "0700.HK"), ("7203.T", "VOD.L")):
        text = f"{one} won 6 trades. {other} lost."
        assert [found.text.strip() for found in sentences(text)] == [f"{one} won 6 trades.", f"{other} lost."]
