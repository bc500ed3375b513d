"""What is too large, too fine or too long to be read is unverifiable, as a whole and without an error."""

import pytest

from services.deliberation.claims import MOST_WORDS, TOO_LONG
from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import whole


def checked(text):
    return check_facts(text, whole("whole_embedded"))


@pytest.mark.parametrize(
    "digits", ["1e400", "5e99999999999", "1e-400", "9" * 400, "0." + "0" * 400 + "1", "1e99"]
)
@pytest.mark.parametrize(
    "text",
    [
        "AAPL earned {}R.",
        "AAPL won {} trades.",
        "AAPL won {} % of its trades.",
        "{} of 81 trades of AAPL won.",
        "The interval of squeeze_breakout is [-{}, 2].",
        "AAPL has {} times as many trades as MSFT.",
        "The account ended at {} dollars.",
    ],
)
def test_number_beyond_every_figure_of_a_run_does_not_pass(text, digits):
    found = checked(text.format(digits))
    assert not found.holds
    assert digits in " ".join(claim.said for claim in found.failures)


def test_number_with_an_exponent_is_read():
    assert checked("AAPL earned 2.92e1R.").holds
    assert not checked("AAPL earned 2.92e2R.").holds


@pytest.mark.parametrize("words", [MOST_WORDS + 1, 12_000])
def test_longer_sentence_is_unread_as_a_whole_and_says_so(words):
    found = checked("not " * (words - 1) + "AAPL. AAPL earned 29.2R.")
    assert [claim.found for claim in found.failures] == [TOO_LONG]
    assert found.struck_text == "AAPL earned 29.2R."


def test_sentence_of_the_most_words_is_read():
    text = "It is said that " * 74 + "AAPL earned 29.2R."
    assert len(text.split()) < MOST_WORDS
    assert TOO_LONG not in [claim.found for claim in checked(text).claims]


def test_long_sentence_that_names_nothing_of_a_run_claims_nothing():
    assert checked("word " * 12_000).claims == ()
