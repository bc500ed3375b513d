"""Counts and both sides of a comparison are those of one moment: the run's end, or that of a report."""

import pytest

from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import whole

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
    assert check_facts(text, whole("whole_embedded")).holds is holds


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
    claim = next(c for c in check_facts(text, whole("whole_embedded")).claims if c.said == "lost money")
    found = str(claim.found)
    assert found.startswith("lost: -")
    assert found.endswith(unit)
