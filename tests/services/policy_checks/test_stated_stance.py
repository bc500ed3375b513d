"""What a text says outright against its plan is found; what it supposes, reports or denies is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.policy_checks.stated_stance import terms_stated, words_against

AGAINST_LONG = [
    "Sell short.",
    "We should go short here.",
    "The trend is gone, so sell it short.",
    "I would rather be short than long.",
    "Let's short this.",
    "The right trade is to go short.",
    "My advice is to open a short position now.",
]
AGAINST_SHORT = [
    "Go long.",
    "Buy this dip.",
    "I'd buy it here.",
    "We are going long now.",
    "The only trade is to buy here.",
    "So take the long side.",
]
AGAINST_BOTH = [
    "I would not take this trade.",
    "I wouldn't take this trade at these levels.",
    "Do not enter this position.",
    "Don't place the order.",
    "We should skip this trade.",
    "Please reject this plan.",
    "This trade is not worth taking.",
    "This setup should be avoided.",
    "I recommend against this trade.",
    "No trade here.",
    "Skip this trade, because the tape is thin.",
]
# Each holds words of the other side that its author does not tell anybody to follow.
NOT_AGAINST_LONG = [
    "",
    "I would be stopped out below 180.",
    "I would go short below 180.",
    "Below 180 I would go short.",
    "If sellers return, go short.",
    "I would not go short here.",
    "Nobody should sell short into this.",
    "Those who sell short here get squeezed.",
    "Sellers press and go short, and are trapped each time.",
    'The crowd says "sell short" and is wrong.',
    "The crowd says that we should go short.",
    "Should we go short? No.",
    "Late sellers went short at the low.",
    "Sell half at the target.",
    "I would not take this trade without a stop.",
    "I would not take this trade in a range, but this is an uptrend.",
    "I would not take this trade if the mean were falling.",
    "I would not skip this trade.",
    "Last week I would have passed. That trade was a bad idea.",
    "It may be that I should go short, but the dip is bought.",
    "Shorts are covering; a short squeeze is on.",
    "Go short-term only: the short side is crowded.",
    "As if I would go short.",
]


@pytest.mark.parametrize("text", AGAINST_LONG)
def test_order_for_the_short_side_speaks_against_a_long_plan_only(text):
    assert words_against(text, "long")
    assert words_against(text, "short") == ()


@pytest.mark.parametrize("text", AGAINST_SHORT)
def test_order_for_the_long_side_speaks_against_a_short_plan_only(text):
    assert words_against(text, "short")
    assert words_against(text, "long") == ()


@pytest.mark.parametrize("text", AGAINST_BOTH)
def test_verdict_against_the_trade_speaks_against_a_plan_of_either_direction(text):
    assert words_against(text, "long")
    assert words_against(text, "short")


@pytest.mark.parametrize("text", NOT_AGAINST_LONG)
def test_words_that_are_supposed_reported_or_denied_are_no_order(text):
    assert words_against(text, "long") == ()


def test_words_against_are_told_as_they_were_read():
    assert words_against("The dip is fine. However, I would not take this trade today.", "long") == (
        "i would not take this trade today",
    )


@given(st.text(max_size=300), st.sampled_from(["long", "short"]))
def test_any_text_is_read_without_an_error(text, direction):
    assert isinstance(words_against(text, direction), tuple)


def test_term_is_stated_in_any_form_and_not_where_it_is_denied():
    terms = ("uptrend", "dip", "pullback")
    assert terms_stated("Dips in uptrends get bought.", terms) == ("uptrend", "dip")
    assert terms_stated("There is no real pullback, and it isn't an uptrend.", terms) == ()
    assert terms_stated("No trend. If the pullback holds, we buy.", terms) == ("pullback",)
    assert terms_stated("", terms) == ()
