import pytest

from services.policy_checks.direction_words import read_direction, terms_stated

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
]
NEITHER = [
    "",
    "The close lies above the average by half an ATR.",
    "Lower volatility and higher volume than last month.",
    "Supply and demand are in balance.",
    "If it rises, then good; unless it falls, no change.",
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
