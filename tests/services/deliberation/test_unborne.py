"""What is said beside a true statement and borne out by nothing: it does not pass because the statement does.

Each sentence begins with what the report of the recorded embedded run says; the rest is false or unknown.
"""

import re

import pytest

from services.deliberation.fact_check import check_facts
from services.deliberation.report_claims import forms
from services.deliberation.scopes import UNBORNE
from tests.services.deliberation.recorded import recorded

TRUE = (
    "No decay alarm was raised.",
    "No mean rank moved by 0.2 over 400 decision windows.",
    "Drift is no reason to act.",
    "Hold is recommended for channel_breakout.",
    "channel_breakout averaged +0.18R a trade.",
    "No decay alarm was raised, and channel_breakout is count_only.",
    "No decay alarm was raised, but drift is monitoring and no reason to act.",
)
FALSE = (
    "No decay alarm was raised and channel_breakout is significant.",
    "No decay alarm was raised and squeeze_breakout gained.",
    "No change is recommended and mean_reversion is significant.",
    "No mean rank moved by 0.2 over 400 decision windows and channel_breakout is significant.",
    "Drift is no reason to act and trend_pullback is suggestive.",
    "No decay alarm was raised, but one was.",
    "Hold is recommended for channel_breakout, and a change is needed.",
    "Hold is recommended for channel_breakout, which is a lie.",
    "Hold is recommended for channel_breakout, a lie.",
    "Hold is recommended for channel_breakout. It is not.",
    "Hold is recommended for channel_breakout. Not.",
    "The report recommends hold against channel_breakout.",
    "A decay alarm was raised.",
    "The decay limit was crossed.",
    "The market drifted.",
    "squeeze_breakout needs an E of 920 to be significant and has it.",
    "Hold is recommended for channel_breakout, mean_reversion long.",
    "thesis_failed ended 1 losers of mean_reversion and momentum_continuation in down/high.",
    "24 % of all trades were false_breakout.",
    "29 % of the trades were low_volume_breakout.",
    "channel_breakout won 42 % of its signals.",
    "channel_breakout averaged \N{EM DASH}0.18R a trade.",
    "channel_breakout averaged \N{NON-BREAKING HYPHEN}0.18R a trade.",
    "channel_breakout averaged \N{FULLWIDTH HYPHEN-MINUS}0.18R a trade.",
    "channel_breakout averaged - 0.18R a trade.",
    "channel_breakout averaged -(0.18R) a trade.",
    "channel_breakout averaged -+0.18R a trade.",
    "channel_breakout averaged +0.18R a trade this month.",
    "channel_breakout averaged +0.18R a trade today.",
    "channel_breakout averaged +0.18R a trade on paper.",
    "channel_breakout averaged +0.18R a trade recently.",
    "channel_breakout averaged +0.18R a trade live.",
)


@pytest.mark.parametrize("text", TRUE)
def test_true_statements_pass(text):
    assert check_facts(text, recorded()).holds


@pytest.mark.parametrize("text", FALSE)
def test_what_nothing_bears_out_beside_a_true_statement_does_not_pass(text):
    assert not check_facts(text, recorded()).holds


def test_grade_that_a_second_one_leaves_out_is_not_that_of_the_first():
    report = recorded().report
    assert report is not None
    whole = [
        cluster
        for cluster in report.clusters
        if not cluster.regime and not cluster.timeframe and cluster.e_value
    ]
    one, other = (
        next(c for c in whole if c.playbook_id == name) for name in ("channel_breakout", "trend_pullback")
    )
    said = f"{one.playbook_id} is {one.grade.value} with an E of {one.e_value:.2f} and {other.playbook_id}"
    assert not check_facts(f"{said} with an E of {other.e_value:.2f}.", recorded()).holds


def test_who_lost_more_trades_has_more_losers():
    facts = recorded()
    losers: dict[str, int] = {}
    for known in facts.episodes:
        losers[known.episode.playbook_id] = losers.get(known.episode.playbook_id, 0) + (known.episode.r < 0)
    most, fewest = max(losers, key=losers.__getitem__), min(losers, key=losers.__getitem__)
    assert losers[most] > losers[fewest]
    assert check_facts(f"{most} lost more trades than {fewest}.", facts).holds
    assert not check_facts(f"{fewest} lost more trades than {most}.", facts).holds


def test_no_pattern_is_without_end():
    """Names and gaps are bounded: one without end would be tried again at each of its letters."""
    patterns = [*UNBORNE, *(form.pattern for form in forms())]
    endless = re.compile(r"(?:\\w|\]|\\s|\.)[*+]")
    digits = re.compile(r"\(\?:\\d.*?\)|\\d[*+]|\[[^\]]*\d[^\]]*\][*+]")
    assert [pattern.pattern for pattern in patterns if endless.search(digits.sub("", pattern.pattern))] == []
