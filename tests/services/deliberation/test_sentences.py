"""Sentences about a whole run: bounds, degrees, moments, what narrows, second verbs, what cannot be read.

A bound is held against what it bounds. Words of change and degree say more than the figure beside them, and
what narrows a sentence, or says how the account stands, is unverifiable where no claim holds it. Counts and
both sides of a comparison are those of one moment. A second verb without a subject of its own is said of whom
the first one was said of. What is too large, too fine or too long is unverifiable, as a whole.
"""

from itertools import permutations

import pytest

from services.deliberation.claims import MOST_WORDS, TOO_LONG
from services.deliberation.fact_check import check_facts
from services.text.claims import sentences
from tests.services.deliberation.recorded import checked, recorded, whole


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AAPL's win rate fell to 57 %.", "fell"),
        ("AAPL's win rate rose to 57 %.", "rose"),
        ("The mean of AAPL dropped back to +0.36R.", "dropped back to"),
        ("The win rate of AAPL went up to 57 %.", "went up to"),
        ("AAPL started losing in 2003.", "started"),
        ("AAPL began to lose in 2003.", "began to"),
        ("MSFT kept on losing.", "kept on"),
        ("AAPL barely earned 29.2R.", "barely"),
        ("AAPL barely made money.", "barely"),
        ("AAPL rarely lost.", "rarely"),
        ("AAPL seldom lost.", "seldom"),
        ("AAPL hardly ever lost.", "hardly ever"),
    ],
)
def test_word_of_change_or_degree_is_unverifiable(text, said):
    assert said in [claim.said for claim in checked(text).claims if claim.verdict == "unverifiable"]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("MSFT barely lost: -0.05R a trade.", True),
        ("AAPL barely earned: +0.36R a trade.", False),
        ("AAPL mostly won.", True),
        ("AAPL earned barely more than 29R.", True),
        ("AAPL earned barely more than 2R.", False),
        ("AAPL earned just under 30R.", True),
        ("AAPL earned just under 100R.", False),
    ],
)
def test_degree_beside_a_figure_is_as_near_as_it_says(text, holds):
    assert checked(text).holds is holds


@pytest.mark.parametrize("word", ["more", "a larger share"])
@pytest.mark.parametrize(("verb", "sign"), [("won", 1), ("lost", -1)])
def test_more_of_its_trades_is_the_larger_share_of_them(verb, sign, word):
    facts = recorded()
    results: dict[str, list[bool]] = {}
    for known in facts.episodes:
        results.setdefault(known.episode.playbook_id, []).append(sign * known.episode.r > 0)
    shares = {book: sum(of) / len(of) for book, of in results.items()}
    counts = {book: sum(of) for book, of in results.items()}
    pairs = [pair for pair in permutations(shares, 2) if shares[pair[0]] != shares[pair[1]]]
    assert any((shares[a] > shares[b]) != (counts[a] > counts[b]) for a, b in pairs)
    for a, b in pairs:
        held = check_facts(f"{a} {verb} {word} of its trades than {b}.", facts).holds
        assert held == (shares[a] > shares[b]), (a, b)


# At the end of the run 124 trades won and 156 lost; its last report classed 123 losers.
AT_THE_END = [
    ("Winners outnumber losers.", False),
    ("There were more winners than losers.", False),
    ("The losers are fewer than the winners.", False),
    ("Losers outnumber winners.", True),
    ("There were more losers than winners.", True),
    ("123 trades lost.", False),
    ("156 trades lost.", True),
    ("There are 123 losers.", False),
    ("channel_breakout closed 141 trades.", False),
    ("channel_breakout closed 153 trades.", True),
    ("channel_breakout is count_only on 141 trades.", True),
    ("trend_pullback has 41 trades in 33 blocks.", True),
    ("trend_pullback has 41 trades.", False),
    ("The report counts 123 losers.", True),
    ("As of the last report, 123 trades lost.", True),
    ("As of the last report, winners outnumbered losers.", False),
    ("As of the last report, 112 trades won.", True),
    ("As of the last report, 124 trades won.", False),
]


@pytest.mark.parametrize(("text", "holds"), AT_THE_END)
def test_counts_and_comparisons_are_of_one_moment(text, holds):
    assert checked(text).holds is holds


def test_text_of_a_report_is_held_against_what_was_known_then():
    facts = whole("whole_embedded")
    assert facts.report is not None
    then = facts.as_of(facts.report.known_at)
    assert check_facts("channel_breakout closed 141 trades.", then).holds
    assert check_facts("150 trades lost.", then).holds


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("MSFT was the only symbol whose trades lost money in total.", "R in total"),
        ("MSFT was a loser on average and lost money.", "R a trade"),
        ("MSFT lost money in the median.", "R in the median"),
    ],
)
def test_direction_tells_what_it_found_in_the_unit_of_what_was_asked(text, unit):
    claim = next(c for c in checked(text).claims if c.said == "lost money")
    found = str(claim.found)
    assert found.startswith("lost: -")
    assert found.endswith(unit)


def unverifiable(text):
    found = checked(text).claims
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
        "An effect was detected.",
        "The effect that was detected is large.",
        "Effects were found.",
        "The edge is real.",
        "A lesson was learned.",
        "There is an edge.",
    ],
)
def test_state_of_the_account_or_what_was_found_in_plain_words_is_unverifiable(text):
    assert len(unverifiable(text)) == 1


@pytest.mark.parametrize("text", ["Patience is a virtue.", "This report covers the run.", "Trades by symbol"])
def test_sentence_of_no_state_claims_nothing(text):
    assert checked(text).claims == ()


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
    assert checked(text).holds is holds


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ("whole_drawn", "channel_breakout returned +10.54R over 20 trades on longs in 2014."),
        ("whole_costly", "channel_breakout returned -3.72R over 10 trades in 2007."),
    ],
)
def test_sum_by_entries_beside_a_count_by_exits_does_not_pass(run, text):
    assert not check_facts(text, whole(run)).holds


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
    assert checked(true).holds
    assert not checked(false).holds


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
    assert not checked(text).holds


def test_neither_of_two_holds_where_it_is_so_of_both():
    assert checked("Neither AAPL nor GOOG lost money.").holds
    assert checked("Going short, neither MSFT nor GOOG made money.").holds


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
    found = [claim for claim in checked(text).claims if claim.found]
    assert "so is 2000, 2001, 2005, 2006, 2007, 2012" in [claim.found for claim in found]


def test_point_of_a_share_class_ends_no_sentence():
    for entry, other in (("BRK.B", "BF.B"), ("NESN.SW", "0700.HK"), ("7203.T", "VOD.L")):
        text = f"{entry} won 6 trades. {other} lost."
        assert [found.text.strip() for found in sentences(text)] == [
            f"{entry} won 6 trades.",
            f"{other} lost.",
        ]


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


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("The last trade of GOOG was a target.", 26572),
        ("The first trade of GOOG was a target.", 8087),
        ("The best trade of IBM was a loss.", 3049),
        ("The best trade of IBM was stopped out.", 3049),
        ("The best trade of IBM was a long.", 3049),
        ("The largest trade of IBM was a loss.", 3049),
        ("The best trade of the run was a loss.", 3049),
        ("IBM's worst trade was a win.", 22463),
        ("The longest trade of MSFT was a loss.", 24314),
        ("The first trade of 2005 was a loss.", 7765),
        ("AAPL's last trade of 2011 was stopped out.", 23130),
    ],
)
def test_what_is_told_of_a_first_last_or_best_trade_is_held_against_that_trade(text, row):
    (failure,) = checked(text).failures
    assert failure.verdict == "contradicted"
    assert [found.seq for found in failure.rows] == [row]


@pytest.mark.parametrize(
    "text",
    [
        "The best trade of GOOG was a win.",
        "The worst trade of IBM was a loss.",
        "GOOG's best trade was a win.",
        "The worst trade of IBM was long.",
        "IBM had the best trade.",
        "The run made its first trade on IBM.",
        "The best trade of 2005 was of GOOG.",
        "The best trade in 2005 made 3.00R.",
        "The first trade of 2005 was a win.",
        "AAPL's last trade of 2011 hit its target.",
    ],
)
def test_superlative_of_a_name_or_a_year_is_one_among_its_trades(text):
    assert checked(text).holds


@pytest.mark.parametrize(
    "text",
    [
        "The best trade, an AAPL short, was stopped out.",
        "The run had its best trade on GOOG.",
        "The run made the best trade on GOOG.",
        "The run closed its best trade on GOOG.",
        "The run had its best trade in 2005.",
        "The run made its first trade in 2005.",
        "IBM made its first trade in 2005.",
        "The run made its first trade on GOOG.",
        "It made its first trade with trend_pullback.",
    ],
)
def test_name_or_year_that_is_told_of_a_best_or_first_trade_is_no_part_of_whose_it_is(text):
    assert "contradicted" in [claim.verdict for claim in checked(text).failures]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AAPL won 46 trades in May.", "May"),
        ("AAPL won 46 trades in the month of may.", "may"),
        ("IBM earned more than MSFT in May.", "May"),
        ("In May, channel_breakout won 43.1 % of its trades.", "May"),
        ("May was profitable.", "May"),
        ("AAPL won 46 trades on Sat.", "Sat"),
        ("AAPL lost 35 trades in a row.", "in a row"),
        ("The run won 124 trades in a row.", "in a row"),
        ("AAPL won 46 trades on end.", "on end"),
        ("AAPL lost 35 trades back to back.", "back to back"),
        ("AAPL lost 35 trades running.", "trades running"),
    ],
)
def test_month_or_succession_in_plain_words_is_unverifiable(text, said):
    assert [(claim.said, claim.verdict) for claim in checked(text).failures] == [(said, "unverifiable")]


def test_may_of_what_is_allowed_claims_nothing():
    assert checked("It may be noted that AAPL won 46 trades.").holds


# The 46 winners of AAPL made 52.08R, 1.13R each, and all of its 81 trades 29.20R, 0.36R each.
@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("AAPL won 46 trades with a mean of {}R.", "1.13", "0.36"),
        ("AAPL won 46 trades of {}R each.", "1.13", "0.36"),
        ("AAPL won 46 trades, {}R each.", "1.13", "0.36"),
        ("AAPL won 46 trades for {}R.", "52.08", "29.20"),
        ("AAPL won 46 trades, for a total of {}R.", "52.08", "29.20"),
        ("AAPL made 81 trades for {}R.", "29.20", "52.08"),
        ("AAPL had 46 winners and a mean of {}R.", "0.36", "1.13"),
        ("AAPL won 46 trades, with a mean of {}R over all 81 trades.", "0.36", "1.13"),
        ("With 46 wins, AAPL made a total of {}R.", "29.20", "52.08"),
    ],
)
def test_result_that_goes_with_a_count_is_one_of_what_was_counted(text, true, false):
    assert checked(text.format(true)).holds
    assert checked(text.format(false)).failures[0].verdict == "contradicted"
