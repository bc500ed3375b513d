"""A bound is held against what it bounds: the sum, the mean of a trade, and never a sum for each trade."""

import pytest

from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import whole


def checked(text):
    return check_facts(text, whole("whole_embedded"))


@pytest.mark.parametrize(
    "text",
    [
        "63 targets were hit, each for at least 2R.",
        "Every target made more than 1R.",
        "Each trade made at least 0.1R.",
        "AAPL won 46 trades, each worth at least 0.5R.",
        "AAPL earned at least 0.1R on every trade.",
        "AAPL earned more than $100 on each of its trades.",
        "AAPL never lost more than 0.1R.",
    ],
)
def test_bound_of_each_trade_is_held_against_no_sum_and_no_mean(text):
    bounded = [claim for claim in checked(text).claims if claim.said.endswith(("R", "$100"))]
    assert [claim.verdict for claim in bounded] == ["unverifiable"]


# AAPL earned +29.20R in all and +0.36R a trade, MSFT lost -3.57R in all and -0.05R a trade.
BOUNDS = [
    ("AAPL and GOOG each earned more than 2R.", True),
    ("AAPL earned at most 20R.", False),
    ("AAPL earned at most 30R.", True),
    ("AAPL earned just under 29R.", False),
    ("AAPL earned just over 29R.", True),
    ("AAPL earned at least 29R.", True),
    ("AAPL earned more than 30R.", False),
    ("AAPL earned less than 20,000 dollars.", True),
    ("AAPL earned less than 1,000 dollars.", False),
    ("AAPL earned at least 0.3R a trade.", True),
    ("AAPL earned at most 0.3R a trade.", False),
    ("AAPL earned more than 29R in all.", True),
    ("MSFT lost more than 3R.", True),
    ("MSFT lost at most 1R.", False),
    ("MSFT lost at most 4R.", True),
    ("MSFT earned more than -4R.", True),
    ("MSFT did not lose more than 5R.", True),
    ("MSFT earned at most 20R.", False),
    ("AAPL lost less than 1R.", False),
]


@pytest.mark.parametrize(("text", "holds"), BOUNDS)
def test_bound_of_an_amount_is_one_of_the_sum_unless_a_trade_is_named(text, holds):
    assert checked(text).holds is holds


@pytest.mark.parametrize("sign", ["-∞ R", "∞R", "±29.2R", "≥ 29R", "≠29.2R", "29.2R 📉"])
def test_sign_that_nothing_has_read_is_unverifiable(sign):
    assert checked(f"AAPL earned {sign}.").count("unverifiable") == 1


@pytest.mark.parametrize(
    "text", ["AAPL earned “29.2R”…", "AAPL earned 29.2R — as said.", "• AAPL earned 29.2R."]
)
def test_mark_of_punctuation_claims_nothing(text):
    assert checked(text).holds
