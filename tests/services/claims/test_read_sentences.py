"""A stranger's figures: read with subject, measure and unit, or not at all."""

import random

import pytest

from services.claims.check import ClaimResult, check
from services.claims.measures import Figure
from services.claims.reading import SAME_WORDS
from services.claims.sections import render
from services.deliberation.extraction import check_read, read_by_rules
from tests.each_case import check_each
from tests.services.claims.test_typed_claims import READ, RUNS, draw_value
from tests.services.deliberation.recorded import whole

EMBEDDED = "whole_embedded"


def verdicts(text: str, run: str = EMBEDDED) -> list[str]:
    """The strictest verdict on each sentence with a figure."""
    facts = whole(run)
    read = read_by_rules(text, facts)
    found = {item.start: item.verdict for item in check_read(text, read, facts).claims}
    found |= {
        item.start: item.verdict
        for item in check_read(text, read, facts).claims
        if item.verdict == "contradicted"
    }
    figures = [sentence for sentence in read.not_read if any(letter.isdigit() for letter in sentence)]
    return [*found.values(), *["not read"] * len(figures)]


@check_each(
    ("text", "verdict"),
    [
        ("channel_breakout made 153 trades.", "verified"),
        ("- AAPL's share of winners was 56.8 %.", "verified"),
        ("AAPL had a mean R of 0.36R.", "verified"),
        ("The longs of AAPL made 58 trades.", "verified"),
        ("The worst profit of MSFT was -1,397.55.", "verified"),
        ("The share of winners of AAPL was 57 %.", "verified"),
        ("The share of winners of AAPL was 12.3 %.", "contradicted"),
        ("The mean R of AAPL was -0.36R.", "contradicted"),
        ("The profit after costs of AAPL was -15,927.98.", "contradicted"),
        ("The mean R of channel_breakout was 0.19R over 154 trades.", "contradicted"),
        ("In 2004 the run made 12 trades.", "contradicted"),
        # Another subject; no unit; no subject; two of one.
        ("Stops ended 90 trades, all of them winners.", "not read"),
        ("The best playbook made 153 trades.", "not read"),
        ("The mean R of AAPL was 0.9.", "not read"),
        ("The mean R was 0.9R.", "not read"),
        ("Its share of winners was 12.3 %.", "not read"),
        ("AAPL and MSFT made 12 trades.", "not read"),
        ("The number of trades of AAPL in MSFT was 81.", "not read"),
        ("The share of winners of TSLA was 12.3 %.", "not read"),
        ("In 2004 the number of trades of AAPL in 2005 was 81.", "not read"),
    ],
)
def test_sentence_is_verified_contradicted_or_not_read(text: str, verdict: str):
    assert verdicts(text) == [verdict]


@check_each(
    "turned",
    [
        "channel_breakout had not 153 trades.", "AAPL made over 81 trades.", "AAPL made up to 81 trades.",
        "In 2004, the share of winners of AAPL was lower: 56.8 %.", "AAPL gained 0.36R a trade.",
        "AAPL had a share of winners of 56.8 %, and MSFT lost.", "AAPL: total R +29.2R",
        "The fees per trade of AAPL were 605.10.", "The fees of AAPL averaged 605.10.",
        "The pnl per trade of AAPL was 15,927.98.", "AAPL averaged a total R of 29.2R.",
        "The trades of AAPL averaged 81.", "All trades of AAPL were winners: 46.",
        "All trades of AAPL were long: 58 trades.", "All trades were short: 94.",
        "All trades of MSFT were losers: 45.", "In the long run AAPL had 58 trades.",
        "The run was short: 94 trades.", "The mean R of AAPL was never 0.36R.",
        "The mean R of AAPL was only 0.36R.", "The mean R of AAPL was at most 0.36R.",
        "The mean R of AAPL was 0.36R since 2004.", "The mean R of AAPL was 0.36R in 2004.",
        "The mean R of AAPL was 0.36R to 0.40R.", "The mean R of AAPL was 0.30-0.36R.",
        "The mean R of AAPL was 0.36R less than that of MSFT.", "AAPL had 46 winners of 81 trades.",
        "AAPL had 81 trades more than MSFT.", "AAPL had 81 trades in May.", "AAPL had nearly 81 trades.",
        "In 2004 the run made 18 trades and AAPL made 81 trades.", "Had AAPL made 81 trades.",
        "In 2004 the run made 18 trades; AAPL made 81 trades.", "AAPL made 81 trades?",
        "The mean R of AAPL was 0.36R on the fourth of May.", "The return of the run was 24.4 % a year.",
        "The mean R of AAPL\nwas 0.36R.",
        "It is false that\nthe mean R of AAPL was 0.36R.", "It is false, i.e. AAPL made 81 trades.",
        "The profit after costs of AAPL was 15,927.98 a trade.", "AAPL made 80 trades or 81 trades.",
    ],
)  # fmt: skip
def test_true_figure_in_words_that_turn_it_is_not_read(turned: str):
    assert verdicts(turned) == ["not read"]


@pytest.mark.parametrize(
    "words",
    [
        "The profit factor of the run was 1.46.", "The profit factor of AAPL was 2.30.",
        "The exposure of the run was 58.7 %.", "The drawdown of the run was 6.1 %.",
        "The fees of the run were 2,913.34.", "The fees per trade of AAPL were 7.47.",
        "The pnl per trade of AAPL was 196.64.", "In the long run AAPL had 81 trades.",
        "The mean R of channel_breakout was 0.18R.", "channel_breakout had 141 trades.",
        "The run had 262 trades.",
    ],
)  # fmt: skip
def test_figure_that_the_program_shows_for_another_measure_is_not_read(words: str):
    assert verdicts(words) == ["not read"]


@check_each(
    "figure",
    [
        "The number of trades of AAPL was 8,1.", "The number of trades of AAPL was 081.",
        "The mean R of AAPL was 0,36R.", "The mean R of AAPL was 0R.", "The mean R of the run was -0R.",
        "The mean R of AAPL was - 0.36R.", "The mean R of MSFT was - 0.05R.", "AAPL's best R was 3R.",
        "The mean favourable excursion of AAPL was 0.93R.", "The largest drawdown was -6.1 %.",
        "The mean adverse excursion of AAPL was 0.42R.", "The profit after costs of AAPL was 15,928.",
        "The profit after costs of AAPL was 15.928.", "The profit after costs of AAPL was 15.927,98.",
        "The profit after costs of AAPL was -$15,927.98.", "The worst profit of MSFT was -$1,397.55.",
        "The profit after costs of AAPL was €15,927.98.", "The profit after costs of AAPL was 15.9k.",
        "The mean hold of AAPL was 10.0 days.", "The share of winners of AAPL was 0.568.",
        "The share of winners of AAPL was 56.8 bp.", "AAPL made 1234567890123456 trades.",
    ],
)  # fmt: skip
def test_figure_in_another_notation_unit_or_precision_is_not_read(figure: str):
    assert verdicts(figure) == ["not read"]


def test_stated_zero_holds_only_where_zero_is_shown():
    held = {(0.36, "0"): False, (0.004, "0.00"): True, (0.006, "0.0"): False, (-0.4, "0"): False}
    assert {key: Figure(key[0], "r", 2).is_stated_by(key[1]) for key in held} == held


@pytest.mark.parametrize(
    ("heading", "verdict"),
    [
        ("window:\n- ", "verified"),
        ("## Recommendation\n\n", "verified"),
        ("In 2004:\n- ", "not read"),
        ("## 2004\n\n", "not read"),
        ("MSFT\n\n", "not read"),
        ("- sideways/low:\n  - ", "not read"),
        ("- MSFT\n  - ", "not read"),
        ("In 2004:\n- It rained\n- ", "not read"),
        ("MSFT:\n- It rained\n\nIn all\n- ", "verified"),
        ("In 2004:\n  \n- ", "not read"),
        ("What I got wrong:\n- ", "not read"),
    ],
)
def test_sentence_below_a_heading_that_narrows_it_is_not_read(heading: str, verdict: str):
    assert verdicts(f"{heading}AAPL made 81 trades.")[-1] == verdict


def test_sentence_without_a_figure_is_not_read_and_places_are_those_of_the_text():
    text, facts = "A quiet year.\n- AAPL made 81 trades. It paid.", whole(EMBEDDED)
    read = read_by_rules(text, facts)
    (found,) = check_read(text, read, facts).claims
    assert text[found.start : found.end] == found.text == "- AAPL made 81 trades"
    assert found.rows
    assert read.not_read == ("A quiet year.", "It paid.")


def test_each_sentence_of_a_paragraph_is_read_by_itself():
    text = "The mean R of AAPL was 0.36R. The share of winners of AAPL was 12.3 %. AAPL made 81 trades. Fine."
    assert verdicts(text) == ["verified", "contradicted", "verified"]


def test_contradicted_sentence_says_what_is_so():
    text, facts = "The share of winners of AAPL was 12.3 %.", whole(EMBEDDED)
    (found,) = check_read(text, read_by_rules(text, facts), facts).claims
    assert found.so == "the share of winners of AAPL is 56.8 %"


@pytest.mark.parametrize("run", RUNS)
def test_sentences_of_the_renderer_are_read_and_false_ones_among_them_never_pass(run: str):
    rng, facts = random.Random(run), whole(run)
    drawn = [found for _ in range(200) if (found := draw_value(rng, run)) is not None]
    named = [
        found for found in drawn if found[0]["of"] and not {"outcome", "exit_reason"} & set(found[0]["of"])
    ]
    assert len(named) > 50
    for true, false in named:
        claim = READ.validate_python(true)
        result = check(claim, facts)
        assert isinstance(result, ClaimResult)
        sentence = render(claim, result)
        (verdict,) = verdicts(sentence, run)
        assert verdict == "verified", sentence
        shown, stated = result.figures[0].text, false[0]["stated"].lstrip("+")
        number = shown.strip("R%bars +").replace(",", "")
        lie = sentence.replace(f"was {shown}", f"was {shown.replace(',', '').replace(number, stated)}")
        may_be_another = claim.measure in SAME_WORDS or not stated.strip("-0.")
        assert verdicts(lie, run) in (["contradicted"], ["not read"][:may_be_another]), lie
