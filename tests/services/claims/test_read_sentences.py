"""A stranger's figures: read with subject, measure and unit, or not at all."""

import random

import pytest

from services.claims.check import ClaimResult, check
from services.claims.reading import ALSO
from services.claims.sections import render
from services.deliberation.extraction import check_read, read_by_rules
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


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("channel_breakout made 153 trades.", "verified"),
        ("AAPL: total R +29.2R", "verified"),
        ("- AAPL's win rate was 56.8 %.", "verified"),
        ("The mean R of channel_breakout was 0.19R over 153 trades.", "verified"),
        ("The mean R of channel_breakout was 0.18R.", "verified"),  # the winsorised one of the report
        ("AAPL had a win rate of 56.8 % and 81 trades of AAPL.", "verified"),
        ("The win rate of AAPL was 12.3 %.", "contradicted"),
        ("The mean R of channel_breakout was 0.19R over 154 trades.", "contradicted"),
        ("In 2004 the run made 12 trades.", "contradicted"),
        # A word that turns, bounds or narrows what is said; another subject; no unit; no subject.
        ("channel_breakout had not 153 trades.", "not read"),
        ("The profit factor of AAPL was above 2.30.", "not read"),
        ("AAPL made over 80 trades.", "not read"),
        ("AAPL made up to 100 trades.", "not read"),
        ("In 2004, the win rate of AAPL was lower: 12.3 %.", "not read"),
        ("AAPL had a win rate of 56.8 %, and MSFT lost.", "not read"),
        ("Stops ended 90 trades, all of them winners.", "not read"),
        ("The best playbook made 153 trades.", "not read"),
        ("The mean R of AAPL was 0.9.", "not read"),
        ("The mean R was 0.9R.", "not read"),
        ("Its win rate was 12.3 %.", "not read"),
        ("AAPL and MSFT made 12 trades.", "not read"),
        ("AAPL averaged 0.36R on 81 trades and 12 stops.", "not read"),
        ("AAPL gained 0.99R a trade.", "not read"),
        ("The win rate of TSLA was 12.3 %.", "not read"),
    ],
)
def test_sentence_is_verified_contradicted_or_not_read(text: str, verdict: str):
    assert verdicts(text) == [verdict]


def test_sentence_without_a_figure_is_not_read_and_places_are_those_of_the_text():
    text, facts = "A quiet year.\n- AAPL made 81 trades. It paid.", whole(EMBEDDED)
    read = read_by_rules(text, facts)
    (found,) = check_read(text, read, facts).claims
    assert text[found.start : found.end] == found.text == "- AAPL made 81 trades"
    assert found.rows
    assert read.not_read == ("A quiet year.", "It paid.")


def test_contradicted_sentence_says_what_is_so():
    text, facts = "The win rate of AAPL was 12.3 %.", whole(EMBEDDED)
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
        if claim.measure in ALSO:  # the report's own figure under the same words may be the other one
            continue
        shown, stated = result.figures[0].text, false[0]["stated"].lstrip("+")
        number = shown.strip("R%bars +").replace(",", "")
        lie = sentence.replace(f"was {shown}", f"was {shown.replace(',', '').replace(number, stated)}")
        assert verdicts(lie, run) == ["contradicted"], lie
