"""Sentences of writers who were told, by the prompt of a narrative, which forms are read; none saw the code.

Each set is of one report of a whole run: what the prompt asked for, three times, then the same made false,
and what no run can answer. A set was read once, by code that was committed before; what it came to then stands
in `FIRST_READINGS`, and what it showed was mended before the next one was read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from schemas.fact_check import FactCheck
from services.deliberation.fact_check import check_facts
from services.evidence.run_facts import RunFacts
from services.high_level.report_lines import report_lines
from tests.services.deliberation.recorded import whole

FILE = Path(__file__).with_name("guided_sentences.txt")
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
    for line in FILE.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, label, way, text = line.split("|", 3)
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
    for one in sets()[name]:
        yield one, check_facts(one.text, facts_of(name))


def reading_of(name: str) -> Reading:
    found = list(read(name))
    held = {label: [check.holds for one, check in found if one.label == label] for label in "TFU"}
    claims = [claim.verdict for one, check in found if one.label == "T" for claim in check.claims]
    return Reading(
        true=len(held["T"]), struck=held["T"].count(False),
        claims=len(claims), failed=len(claims) - claims.count("verified"),
        false=len(held["F"]), passed=sum(held["F"]), unanswerable=len(held["U"]), answered=sum(held["U"]),
    )  # fmt: skip


# As each set was read first, before anything was mended for it.
FIRST_READINGS = {
    "guided_hours 0": Reading(53, 2, 266, 4, 62, 1, 10, 0),
    "guided_hours 2": Reading(53, 1, 252, 2, 56, 1, 10, 0),
    "guided_days 0": Reading(52, 0, 265, 0, 52, 0, 10, 0),
}
MOST_STRUCK = 0.02


@pytest.mark.parametrize("name", FIRST_READINGS)
def test_true_sentences_by_the_prompt_stand_and_no_other_passes(name):
    found = list(read(name))
    assert [one.text for one, check in found if one.label != "T" and check.holds] == []
    claims = [claim for one, check in found if one.label == "T" for claim in check.claims]
    failed = [claim.said for claim in claims if claim.verdict != "verified"]
    assert len(failed) <= MOST_STRUCK * len(claims), failed


@pytest.mark.parametrize("name", FIRST_READINGS)
def test_first_reading_is_of_the_set_and_the_reading_now_is_no_worse(name):
    first, now = FIRST_READINGS[name], reading_of(name)
    assert (now.true, now.false, now.unanswerable) == (first.true, first.false, first.unanswerable)
    assert (now.struck, now.passed, now.answered) <= (first.struck, 0, 0)
    assert len({one.way for one in sets()[name] if one.label == "F"}) >= FEWEST_WAYS


def test_two_percent_of_true_claims_were_struck_at_the_first_reading():
    readings = FIRST_READINGS.values()
    assert sum(one.failed for one in readings) <= MOST_STRUCK * sum(one.claims for one in readings)
