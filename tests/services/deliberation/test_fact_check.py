"""Claims of a text against a recorded run: places, verdicts, values that would pass, what is struck."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.fact_check import FactRow
from services.deliberation import fact_check
from services.deliberation.claims import read_sentence
from services.deliberation.fact_check import FactCritic, FactReader, check_facts
from services.evidence.run_facts import RunFacts
from tests.services.deliberation.recorded import recorded, recorded_report

LIE = (
    "All 60 trades of channel_breakout won and squeeze_breakout earned +0.96R a trade, which is significant."
)
WIN_RATE = "channel_breakout has a win rate of {}."
EMPTY = RunFacts(known_at=0)


def verdicts(text, facts=None):
    return {claim.said: claim.verdict for claim in check_facts(text, facts or recorded()).claims}


def test_rule_narrative_of_the_report_holds():
    checked = check_facts(recorded_report().narrative, recorded())
    assert checked.counts == {"verified": len(checked.claims), "contradicted": 0, "unverifiable": 0}
    assert len(checked.claims) > 100
    assert checked.struck_text == recorded_report().narrative


def test_every_changed_figure_of_the_rule_narrative_is_found():
    text, passed = recorded_report().narrative, []
    for row in (line for line in text.splitlines() if re.match(r"- \w+(?: in \w+/\w+)?: \w+, n ", line)):
        for found in re.finditer(r"(?<=[ +-])\d+(?:\.\d+)?(?=[R,])", row):
            digit = str((int(found[0][-1]) + 5) % 10)
            changed = row[: found.end() - 1] + digit + row[found.end() :]
            if check_facts(changed, recorded()).holds:
                passed.append(changed)
    assert passed == []


def test_lying_model_is_struck_whole():
    checked = check_facts(LIE, recorded())
    assert checked.struck_text == ""
    assert checked.count("contradicted") >= 3
    assert {claim.kind for claim in checked.failures} >= {"quantifier", "number", "grade"}


def test_claim_tells_its_place_its_rows_and_what_would_pass():
    text = "Then: channel_breakout earned +0.28R a trade."
    claim = next(found for found in check_facts(text, recorded()).claims if found.kind == "number")
    assert text[claim.start : claim.end] == claim.said == "+0.28R"
    assert claim.verdict == "contradicted"
    assert claim.would_pass[0] == "+0.18R"
    assert claim.rows == (recorded().report_row,)
    assert claim.confidence == 1.0
    passing = check_facts(text.replace("+0.28R", claim.would_pass[0]), recorded())
    assert passing.holds


@pytest.mark.parametrize(
    ("share", "holds"),
    [("42 %", True), ("41.8 %", True), ("0.42", True), ("0.418", True), ("43 %", False), ("0.42 %", False)],
)
def test_given_decimals_and_unit_decide(share, holds):
    assert check_facts(WIN_RATE.format(share), recorded()).holds is holds


def test_sentence_that_fails_is_struck_whole_and_the_others_stay():
    true = "channel_breakout earned +0.18R a trade."
    checked = check_facts(f"{true} It won 99 of its trades. {true}", recorded())
    assert checked.struck_text == f"{true} {true}"


@pytest.mark.parametrize(
    "text",
    [
        "If the mean of channel_breakout falls below -0.5R, it should be retired.",
        "Is channel_breakout significant?",
        "Retire channel_breakout unless it earns 3R.",
    ],
)
def test_case_and_question_claim_no_figure(text):
    assert {claim.kind for claim in check_facts(text, recorded()).claims} <= {"name"}


def test_line_of_the_report_may_be_quoted_whole_but_not_changed():
    line = recorded_report().drift_findings[0]
    assert check_facts(f"Drift: {line}.", recorded()).holds
    assert not check_facts(line.replace("400", "900"), recorded()).holds


def test_text_of_a_model_in_the_report_is_no_source():
    report = recorded_report().model_copy(
        update={"deferred_seen": ("the drawdown was 12 %",), "narrative": "the drawdown was 12 %"}
    )
    assert not check_facts("the drawdown was 12 %", replace(recorded(), report=report)).holds


def test_run_without_trades_and_without_a_report_answers_nothing():
    assert verdicts("trend_pullback earned +0.10R over 7 trades.", EMPTY)["+0.10R"] == "unverifiable"
    assert check_facts("Nothing happened.", EMPTY).claims == ()


def test_claim_of_the_future_of_the_text_is_contradicted():
    early = replace(recorded(), known_at=recorded().episodes[9].episode.known_at)
    cut = replace(early, episodes=recorded().episodes[:10], report=None, texts=())
    assert verdicts("The run closed 262 trades.", cut)["262"] == "contradicted"
    assert verdicts("The run closed 10 trades.", cut)["10"] == "verified"
    assert verdicts("It ended on 2012-07-20.", cut)["2012-07-20"] == "contradicted"


def test_names_with_marks_of_a_pattern_are_names():
    odd = replace(recorded(), symbols=("A+B(", "[x]*", "BTC/USDT"))
    assert verdicts("BTC/USDT and A+B( are traded.", odd) == {"BTC/USDT": "verified", "A+B(": "verified"}


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_any_text_is_read_and_claims_stand_where_they_say(text):
    checked = check_facts(text, recorded())
    for claim in checked.claims:
        assert 0 <= claim.start < claim.end <= len(text)
        assert text[claim.start : claim.end].strip() == claim.said
    if checked.holds:
        assert checked.struck_text == text


@given(
    st.lists(
        st.sampled_from(
            LIE.split()
            + ["more", "than", "3", "of", "0.2R", "44", "%", "E", "n", "in", "it", "no", ",", ";", ":", "."]
        ),
        max_size=60,
    )
)
def test_any_order_of_the_words_is_read(words):
    text = " ".join(words)
    again = check_facts(check_facts(text, recorded()).struck_text, recorded())
    assert again.counts["contradicted"] <= len(again.claims)


@pytest.mark.parametrize(
    "word", ["more ", "1 ", "1 of ", "channel_breakout ", "[-1, ", "of the ", "a" * 9 + " "]
)
def test_long_text_of_one_word_is_read_in_time(word):
    text = (word * (51_200 // len(word) + 1))[:51_200]
    assert check_facts(text, recorded()).known_at == recorded().known_at


def test_rows_name_where_a_fact_stands():
    claims = check_facts("AAPL won 43 of its 74 trades.", recorded()).claims
    rows = {claim.said: claim.rows for claim in claims}
    assert all(isinstance(row, FactRow) and row.kind == "episode" for row in rows["43"])


@pytest.mark.parametrize(
    "text",
    [
        "The trader was nervous and skipped several mean_reversion setups.",
        "channel_breakout will keep making money.",
        "channel_breakout made 24.7R because rates were cut.",
        "The win rate rose over the years.",
        "squeeze_breakout is a money machine.",
        "The Sortino ratio looks healthier than the Sharpe ratio.",
        "If the squeeze had been tighter, squeeze_breakout would have won half of its trades.",
        "channel_breakout is as good as trend_pullback.",
    ],
)
def test_what_no_rule_reads_of_a_sentence_about_a_run_is_unverifiable(text):
    checked = check_facts(text, recorded())
    assert checked.count("unverifiable") > 0
    assert checked.struck_text == ""


@pytest.mark.parametrize("text", ["Patience is a virtue.", "Nothing happened.", "See the notes."])
def test_sentence_that_names_nothing_of_a_run_passes(text):
    assert check_facts(text, recorded()).holds


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("squeeze_breakout version 2 expired in August 2010.", "verified"),
        ("squeeze_breakout version 2 expired in May 2009.", "contradicted"),
        ("Version 3 of squeeze_breakout is in shadow.", "verified"),
        ("Version 3 of squeeze_breakout is retired.", "contradicted"),
        ("channel_breakout is at version 7.", "contradicted"),
    ],
)
def test_version_is_held_against_its_states(text, verdict):
    claim = next(found for found in check_facts(text, recorded()).claims if found.kind == "count")
    assert claim.verdict == verdict


def test_report_that_says_that_nothing_has_enough_trades_holds():
    report = recorded_report().model_copy(update={"insufficient_sample": True})
    text = "insufficient_sample: no cluster has enough trades; what follows is monitoring only."
    assert check_facts(text, replace(recorded(), report=report)).holds
    assert not check_facts(text, recorded()).holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("The run closed more than 261 trades.", True),
        ("The run closed more than 262 trades.", False),
        ("channel_breakout earned 24.7R over 141 trades.", True),
        ("channel_breakout earned 24.7R over 41 trades.", False),
        ("MSFT lost about 3,900 dollars.", True),
        ("MSFT lost 3,950 dollars.", False),
        ("Together, mean_reversion and momentum_continuation earned 8.2R.", True),
        ("Outside up/mid, momentum_continuation took 19 trades.", True),
    ],
)
def test_bounds_loose_figures_and_sums_are_held_to_what_they_say(text, holds):
    assert check_facts(text, recorded()).holds is holds


@pytest.fixture
def read(monkeypatch):
    """The sentences that are read."""
    seen = []

    def reading(sentence, *rest):
        seen.append(sentence.text)
        return read_sentence(sentence, *rest)

    monkeypatch.setattr(fact_check, "read_sentence", reading)
    return seen


def test_sentence_that_was_read_is_not_read_again_in_another_text(read):
    critic, text = FactCritic(recorded()), recorded_report().narrative
    first = critic.check(text)
    count = len(read)
    assert count > 10
    later = critic.check(f"Nothing else was shown.\n{text}")
    assert first is not None
    assert later is not None
    assert read[count:] == ["Nothing else was shown."]
    assert later == check_facts(f"Nothing else was shown.\n{text}", recorded())
    shift = len("Nothing else was shown.\n")
    assert [claim.start for claim in later.claims] == [claim.start + shift for claim in first.claims]


def test_kept_sentence_says_nothing_of_another_run_or_of_an_earlier_moment():
    text = "channel_breakout won 42 % of its trades."
    critic = FactCritic(recorded())
    for facts in (recorded(), EMPTY, recorded().as_of(recorded().known_at - 10**17), recorded()):
        critic.facts = facts
        checked = critic.check(text)
        assert checked is not None
        assert checked == check_facts(text, facts)
        assert checked.holds is (facts is recorded())


def test_sentence_is_read_again_where_another_one_or_another_line_stands_before_it():
    reader = FactReader(recorded(), None)
    row = next(line for line in recorded_report().narrative.splitlines() if line.startswith("- channel"))
    texts = (
        "channel_breakout won 42 % of its trades. It won 42 % of its trades.",
        "squeeze_breakout won 42 % of its trades. It won 42 % of its trades.",
        "It won 42 % of its trades.",
        row,
        f"Of it all, {row[2:]}",
    )
    told = [reader.check(text) for text in texts]
    assert told == [check_facts(text, recorded()) for text in texts]
    assert [check.claims[-1].verdict for check in told[:3]] == ["verified", "contradicted", "contradicted"]
