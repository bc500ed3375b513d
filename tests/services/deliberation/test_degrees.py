"""Words of change and degree say more than the figure beside them: nothing bears that out."""

from itertools import permutations

import pytest

from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import recorded, whole


def checked(text):
    return check_facts(text, whole("whole_embedded"))


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
