"""What narrows a sentence, or says how the account stands, is unverifiable where no claim holds it."""

import pytest

from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import whole


def unverifiable(text):
    found = check_facts(text, whole("whole_embedded")).claims
    return [claim.said for claim in found if claim.verdict == "unverifiable"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AAPL earned 29.2R, long.", "long"),
        ("AAPL earned 29.2R before fees.", "before fees"),
        ("AAPL earned 29.2R by Sharpe ratio.", "Sharpe ratio"),
        ("AAPL earned money among its losers.", "losers"),
    ],
)
def test_side_or_measure_of_no_claim_is_unverifiable(text, said):
    assert unverifiable(text) == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AAPL began trading in 2005.", "began"),
        ("AAPL traded only in 2005.", "only"),
        ("Trading in AAPL ended in 2005.", "ended"),
    ],
)
def test_beginning_or_end_is_more_than_that_there_were_trades_then(text, said):
    assert said in unverifiable(text)
    assert unverifiable("AAPL traded in 2005.") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AAPL made money and the others did too.", "the others"),
        ("AAPL earned 29.2R, as did the rest.", "the rest"),
        ("The rest of AAPL earned 29.2R.", "The rest"),
    ],
)
def test_what_is_said_of_all_others_is_unverifiable(text, said):
    assert unverifiable(text) == [said]


@pytest.mark.parametrize(
    "text",
    [
        "The open position is a short.",
        "The account is at a new high.",
        "Equity stands at its high.",
        "The drawdown is over.",
        "The account holds nothing.",
    ],
)
def test_state_of_the_account_in_plain_words_is_unverifiable(text):
    assert len(unverifiable(text)) == 1


@pytest.mark.parametrize("text", ["Patience is a virtue.", "This report covers the run.", "Trades by symbol"])
def test_sentence_of_no_state_claims_nothing(text):
    assert check_facts(text, whole("whole_embedded")).claims == ()


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("AAPL earned 29.20R, most of it on longs.", True),
        ("AAPL earned 29.20R, most of it on shorts.", False),
        ("AAPL earned 29.20R, half of it in 2008.", False),
        ("MSFT lost 3.57R overall, and most of that came from its longs.", False),
        ("MSFT lost 3.57R, most of that as planned.", False),
    ],
)
def test_part_of_an_amount_is_a_part_of_the_result_and_not_of_its_trades(text, holds):
    assert check_facts(text, whole("whole_embedded")).holds is holds


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ("whole_drawn", "channel_breakout returned +10.54R over 20 trades on longs in 2014."),
        ("whole_costly", "channel_breakout returned -3.72R over 10 trades in 2007."),
    ],
)
def test_sum_by_entries_beside_a_count_by_exits_does_not_pass(run, text):
    assert not check_facts(text, whole(run)).holds
