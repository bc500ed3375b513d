"""Names by the angle between vectors of n-grams: near where letters are swapped, far where they differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.planning.name_matching import NameVectors
from tests.agents.planning.fakes import CONTEXT

BOOKS = NameVectors(CONTEXT["playbooks"])


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("Squeeze Breakout", ("squeeze_breakout",)),
        ("squeze brekout", ("squeeze_breakout",)),
        ("trned pullbak", ("trend_pullback",)),
        ("momentum", ("momentum_continuation",)),
        ("breakout", ("squeeze_breakout", "channel_breakout")),
        ("weather", ()),
        ("", ()),
    ],
)
def test_words_match_the_names_that_they_may_mean(words, names):
    assert BOOKS.match(words, 0.64) == names


def test_nearest_is_one_for_the_name_itself_whatever_its_case_and_joints():
    assert BOOKS.nearest("TREND-PULLBACK")[0] == (1.0, "trend_pullback")


def test_no_names_match_nothing():
    assert NameVectors(()).match("anything", 0.5) == ()


@given(st.text(max_size=40), st.permutations(CONTEXT["playbooks"]))
def test_ranking_is_the_same_whatever_the_order_of_the_names(words, names):
    ranked = NameVectors(names).nearest(words)
    assert ranked == BOOKS.nearest(words)
    assert all(0 <= cosine <= 1 for cosine, _ in ranked)
