from itertools import product

import pytest

from agents.strategies.rule_strategist import candidate, proposal_of
from schemas.regime import RegimeLabels, RegimeView
from services.policy_checks.direction_words import read_direction, terms_stated
from tests.services.policy_checks.plans import PLAN_IDS, PLANS, expected

FOR_LONG = [
    "The uptrend is intact and the dip to the mean is bought.",
    "Price fell for days; it is oversold and a rebound is likely.",
    "Sellers are exhausted. A bounce should follow.",
    "The rally is not over.",
    "Price is no longer falling and buyers step in.",
    "Despite the decline of last week, higher lows are in place.",
    "A short-term pullback within a long uptrend.",
    "A break-out above the range, not a false breakout.",
    "The downtrend has ended; bullish momentum builds. Wrong if price falls below the mean.",
    "A short squeeze is under way.",
    "It won't decline any further: demand is back.",
    "Sellers tried to push the price down, but buyers were strong and pushed it back up.",
    "Bears were unable to break support.",
    "Downside momentum is fading and a bounce is due.",
    "I like the chart because buyers defend the average.",
    "Sellers are not able to push price lower.",
    "The market refuses to go down.",
    "Despite heavy selling at the open it closed higher.",
    "The false breakdown trapped sellers.",
    "Selling pressure has been absorbed.",
    "Nobody wants to sell here.",
    "The market shrugs off every attempt to sell it.",
    "Each decline is bought.",
    "Supply has been soaked up.",
    "Long lower wicks show that buyers are absorbing supply.",
    "The selling is overdone.",
    "Bulls are in control; bears are not.",
    "There are more buyers than sellers.",
    "Sellers? Nowhere to be seen.",
    "It may look bearish, but buyers are loading up.",
    "Control has passed from sellers to buyers.",
]
AGAINST_LONG = [
    "The uptrend is broken and sellers are in control.",
    "The rally is over.",
    "There is no reason to expect higher prices.",
    "The breakout has failed and price will slide.",
    "Anything but bullish.",
    "Far from oversold, the market is overbought.",
    "Buyers have dried up and the market keeps making lower highs.",
    "I would sell here: a downtrend, a lower low, a breakdown.",
    "Price can't rally.",
    "Price can’t recover.",
    "Each rally is sold.",
    "Bulls were unable to maintain their advance.",
    "Rallies are capped by overhead supply from trapped longs.",
    "There is a lot of selling pressure and little appetite to buy.",
    "I'd fade this rally.",
    "Only a fool would buy here.",
    "Who would buy this?",
    "The pullback has turned into a rout and sellers dominate.",
    "It is too early to buy.",
    "Buying here is a bad idea.",
    "The supposed strength will fade.",
    "Although the trend was up, it has now turned down.",
    "Every push higher is rejected.",
    "I would rather be short than long.",
    "Good luck to those who buy here.",
    "The upside is capped, the downside is not.",
    "Demand has collapsed.",
    "Stay out of the long side.",
    "As if buyers would show up now.",
]
NEITHER = [
    "",
    "The close lies above the average by half an ATR.",
    "Lower volatility and higher volume than last month.",
    "Supply and demand are in balance.",
    "If it rises, then good; unless it falls, no change.",
    "A lower low would prove me wrong.",
    "Should sellers take the low, I leave.",
    "Were buyers to come back, I would not argue.",
    "The trade is off the moment sellers regain control.",
    "What would change my mind: a bearish close.",
    "The main risk is renewed selling.",
    "Volume is falling and the average true range has risen.",
    "I set up the trade, and it comes down to risk and reward.",
    "A stop order rests above the high; costs are lower than usual.",
]


@pytest.mark.parametrize("text", FOR_LONG)
def test_direction_words_text_for_a_long_supports_long_and_contradicts_short(text):
    assert not read_direction(text, "long").contradicts
    assert read_direction(text, "long").supporting
    assert read_direction(text, "short").contradicts


@pytest.mark.parametrize("text", AGAINST_LONG)
def test_direction_words_text_against_a_long_contradicts_long_and_supports_short(text):
    assert read_direction(text, "long").contradicts
    assert not read_direction(text, "short").contradicts


@pytest.mark.parametrize("text", NEITHER)
def test_direction_words_text_without_a_direction_contradicts_nothing(text):
    for direction in ("long", "short"):
        reading = read_direction(text, direction)
        assert (reading.supporting, reading.opposing) == ((), ())


def test_direction_words_mirror_image_is_read_the_other_way_round():
    for text in FOR_LONG + AGAINST_LONG:
        long, short = read_direction(text, "long"), read_direction(text, "short")
        assert (long.supporting, long.opposing) == (short.opposing, short.supporting)


def test_direction_words_terms_of_the_playbook_win_over_the_lexicon():
    own, other = ("relief rally",), ("dip",)
    assert not read_direction("A relief rally to the mean.", "short", own, other).contradicts
    assert read_direction("A dip to the mean.", "short", own, other).contradicts


def test_direction_words_term_of_both_sides_says_nothing():
    assert read_direction("A pullback.", "long", ("pullback",), ("pullback",)).opposing == ()


def test_terms_stated_ignores_negated_terms_and_inflection():
    terms = ("pullback", "snap back up")
    assert terms_stated("Pullbacks are bought.", terms) == ("pullbacks",)
    assert terms_stated("There was no pullback.", terms) == ()
    assert terms_stated("It snaps back up.", terms) == ("snaps back up",)


PULLBACK = {"own_terms": ("uptrend", "dip", "pullback"), "other_terms": ("downtrend", "relief rally")}
LISTS = [
    "Uptrend. Uptrend. Dip. Dip. Pullback.",
    "It is an uptrend. There is a dip. And a pullback!",
    "A fine uptrend. A textbook pullback here. Now the dip.",
    "Uptrend, dip; dip, pullback; pullback, uptrend; uptrend.",
]


@pytest.mark.parametrize("terms", LISTS)
@pytest.mark.parametrize("against", ["Sellers are in control.", "I expect lower prices.", "Do not buy."])
def test_direction_words_sentences_of_bare_terms_outvote_no_statement(terms, against):
    assert not read_direction(terms, "long", **PULLBACK).contradicts
    for text in (f"{terms} {against}", f"{against} {terms}"):
        assert read_direction(text, "long", **PULLBACK).contradicts


def test_direction_words_sentences_that_state_something_of_their_terms_count_each():
    text = "The uptrend has been intact for weeks. Price came back in a shallow dip. Sellers are loud."
    assert not read_direction(text, "long", **PULLBACK).contradicts


@pytest.mark.parametrize(
    "text",
    [
        "A crash in what was an uptrend.",
        "A crash in what had been a strong uptrend.",
        "I see the former uptrend.",
        "This used to be an uptrend.",
        "It is no longer an uptrend.",
        "It has ceased to be a pullback.",
        "What was a dip is a rout now.",
    ],
)
def test_direction_words_term_told_as_what_was_is_taken_back(text):
    assert read_direction(text, "long", **PULLBACK).contradicts
    assert terms_stated(text, PULLBACK["own_terms"]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "A dip in what was a downtrend.",
        "The former downtrend has become an uptrend.",
        "Buyers return in what used to be a downtrend.",
        "A dip to what was the ceiling.",
        "A dip to the former high in an uptrend.",
        "What was expected of the uptrend has come about.",
    ],
)
def test_direction_words_what_was_of_something_else_leaves_the_term(text):
    assert not read_direction(text, "long", **PULLBACK).contradicts


def test_direction_words_move_told_as_what_was_is_past_and_does_not_turn():
    assert read_direction("A crash in what was a rally.", "long").contradicts
    assert not read_direction("Buyers bid for the high of the former rally.", "long").contradicts


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_direction_words_plan_of_the_rules_contradicts_itself_in_no_regime_it_is_for(playbook, direction):
    known, allowed = expected(playbook), playbook.eligibility[direction]
    other = "short" if direction == "long" else "long"
    terms = playbook.rationale_terms[direction], playbook.rationale_terms[other]
    for trend, volatility, structure in product(allowed.trend, allowed.volatility, allowed.structure):
        labels = RegimeLabels(trend=trend, volatility=volatility, structure=structure)
        regime = RegimeView(labels=labels, fingerprint=(0.5,) * 5)
        plan = proposal_of(candidate(playbook, direction, known), regime)
        for text in (plan.thesis, plan.rationale):
            assert not read_direction(text, direction, *terms).contradicts, text
