"""True and false sentences about a recorded run: none that is false passes, few that are true are struck."""

from collections import Counter
from pathlib import Path

import pytest

from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import recorded

LINES = Path(__file__).with_name("labelled_sentences.txt").read_text().splitlines()
LABELLED = [tuple(line.split("|", 2)) for line in LINES if line and not line.startswith("#")]
TRUE = [text for label, _, text in LABELLED if label == "T"]
FALSE = [(way, text) for label, way, text in LABELLED if label == "F"]
FEWEST_CLAIMS, FEWEST_WAYS, MOST_STRUCK = 400, 12, 0.02


@pytest.mark.parametrize(("way", "text"), FALSE)
def test_false_sentence_does_not_pass(way, text):
    checked = check_facts(text, recorded())
    assert not checked.holds, f"{way}: every claim was verified"
    assert checked.failures[0].said not in checked.struck_text


def test_true_claims_are_seldom_struck():
    checked = {text: check_facts(text, recorded()) for text in TRUE}
    claims = sum(len(found.claims) for found in checked.values())
    struck = {text: found.failures for text, found in checked.items() if not found.holds}
    assert sum(map(len, struck.values())) <= MOST_STRUCK * claims, struck


def test_set_is_large_and_false_in_many_ways():
    claims = sum(len(check_facts(text, recorded()).claims) for _, _, text in LABELLED)
    assert claims >= FEWEST_CLAIMS
    assert len(Counter(way for way, _ in FALSE)) >= FEWEST_WAYS
    assert 0.45 <= len(FALSE) / len(LABELLED) <= 0.55


def test_sentences_of_another_hand_are_read_no_worse_than_the_limits_page_says():
    """Read once, and nothing was changed for them: most of what is read wrong is true, and is struck."""
    lines = Path(__file__).with_name("sentences_of_another_hand.txt").read_text().splitlines()
    labelled = [line.split("|", 2) for line in lines if not line.startswith("#")]
    held = Counter((label, check_facts(text, recorded()).holds) for label, _, text in labelled)
    assert Counter(label for label, _, _ in labelled) == {"T": 70, "F": 70, "U": 20}
    assert held["T", False] <= 38
    assert held["F", True] <= 13
    assert held["U", True] <= 10
