"""Sentences of writers who were told, by the prompt of a narrative, which forms are read; none saw the code.

Each set is of one report of a whole run: what the prompt asked for, three times, then the same made false,
and what no run can answer. A set was read once, by code that was committed before: `FIRST_READINGS` has what
it came to then, and what it showed was mended before the next one was read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from schemas.fact_check import FactCheck
from services.deliberation.fact_check import check_facts
from services.evidence.run_facts import RunFacts
from services.high_level.report_lines import report_lines
from tests.services.deliberation.recorded import labelled, whole

FEWEST_WAYS = 12


@dataclass(frozen=True)
class Reading:
    """What came of a set.

    Attributes:
        struck: true sentences that were struck, of `true`.
        failed: claims of true sentences that were not verified, of `claims`.
        passed: false sentences that passed, of `false`.
        answered: unanswerable ones that passed, of `unanswerable`.
    """

    true: int
    struck: int
    claims: int
    failed: int
    false: int
    passed: int
    unanswerable: int
    answered: int


@dataclass(frozen=True)
class Sentence:
    """A sentence of a set with its label, T, F or U, and in which way it is false."""

    label: str
    way: str
    text: str


@cache
def sets() -> dict[str, list[Sentence]]:
    found: dict[str, list[Sentence]] = {}
    for name, label, way, text in labelled("guided_sentences", 4):
        found.setdefault(name, []).append(Sentence(label, way, text))
    return found


@cache
def facts_of(name: str) -> RunFacts:
    """Facts as of the report of a set: its run, and where the report stands among those that are kept."""
    run, number = name.rsplit(" ", 1)
    facts = whole(run)
    facts = facts.as_of(facts.past[int(number)][0].known_at)
    assert facts.report is not None
    return RunFacts(**vars(facts) | {"texts": report_lines(facts.report)})


def read(name: str) -> Iterator[tuple[Sentence, FactCheck]]:
    for set_ in sets()[name]:
        yield set_, check_facts(set_.text, facts_of(name))


# As each set was read first, before anything was mended for it, in that order.
FIRST_READINGS = {
    "guided_hours 0": Reading(53, 2, 266, 4, 62, 1, 10, 0),
    "guided_hours 4": Reading(53, 1, 252, 2, 56, 1, 10, 0),
    "guided_days 0": Reading(52, 0, 265, 0, 52, 0, 10, 0),
    "whole_embedded 12": Reading(54, 4, 268, 8, 67, 1, 10, 0),
    "whole_embedded 6": Reading(53, 11, 255, 18, 61, 0, 10, 1),
    "guided_hours 1": Reading(54, 1, 147, 1, 60, 0, 10, 0),
    "guided_coins 0": Reading(54, 1, 136, 2, 56, 1, 10, 0),
    "guided_hours 3": Reading(52, 0, 149, 0, 58, 0, 10, 0),
    "guided_shares 0": Reading(54, 0, 150, 0, 58, 0, 10, 0),
    "whole_embedded 10": Reading(54, 0, 121, 0, 64, 0, 10, 0),
}
# What is reached, and no more: true sentences that are struck.
STRUCK_NOW = {"guided_hours 4": 1, "whole_embedded 12": 1, "whole_embedded 6": 3}


@pytest.mark.parametrize("name", FIRST_READINGS)
def test_true_sentences_by_the_prompt_stand_but_for_a_few_and_no_other_passes(name):
    found = list(read(name))
    assert [episode.text for episode, check in found if episode.label != "T" and check.holds] == []
    struck = [episode.text for episode, check in found if episode.label == "T" and not check.holds]
    assert len(struck) <= STRUCK_NOW.get(name, 0), struck


@pytest.mark.parametrize("name", FIRST_READINGS)
def test_first_reading_is_of_the_sentences_of_its_set(name):
    labels, first = [set_.label for set_ in sets()[name]], FIRST_READINGS[name]
    assert [labels.count(label) for label in "TFU"] == [first.true, first.false, first.unanswerable]
    assert len({set_.way for set_ in sets()[name] if set_.label == "F"}) >= FEWEST_WAYS
