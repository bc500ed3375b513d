"""The reviser without a model: what it puts in, what it strikes, and that nothing is wrong afterwards."""

import asyncio
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.deliberation import TextCandidate
from services.deliberation.budget import Budget
from services.deliberation.fact_check import FactCritic
from services.deliberation.policies import Round, aggregate
from services.deliberation.refine import NOTHING_LEFT, Draft, Task
from services.deliberation.rule_critics import RuleReviser, cut_off, end_whole
from services.model_calls.asking import NoReply
from tests.services.deliberation.recorded import recorded, recorded_report

FACTS = FactCritic(recorded())
REVISER = RuleReviser(FACTS)
NAMES = sorted(recorded().playbook_ids)
LINES = [line for line in recorded_report().narrative.splitlines() if line.strip()]
FOLLOWING = [
    "It lost -0.9R a trade.",
    "It won 99 % of its trades.",
    "They earned more than squeeze_breakout.",
    "The former is better.",
    "Its mean is +0.33R.",
    "That cluster has n 12.",
    "This is significant.",
    "All of them won.",
    "And so the",
    "Nothing was traded in IBM (so",
]


@st.composite
def mutated(draw):
    """Lines of the recorded report with other numbers, names and orders, and sentences that lean on them."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    parts = rng.sample(LINES, 3) + rng.sample(FOLLOWING, 3)
    rng.shuffle(parts)
    text = rng.choice([" ", "\n", "\n\n"]).join(parts)
    for _ in range(rng.randint(0, 3)):
        places = list(re.finditer(rng.choice([r"\d+(?:\.\d+)?", r"\w+_\w+", r"[+-]"]), text))
        if places:
            place = rng.choice(places)
            text = text[: place.start()] + rng.choice([*NAMES, "0.33", "7", "-", "45"]) + text[place.end() :]
    return text


@settings(max_examples=40)
@given(mutated())
def test_repaired_text_holds_and_stays_as_it_is(text):
    repaired = REVISER.repair(text)
    checked = FACTS.check(repaired)
    assert checked is not None
    assert checked.holds
    assert cut_off(repaired) is None
    assert REVISER.repair(repaired) == repaired
    FACTS.checks.clear()


def test_rule_narrative_is_left_alone():
    assert REVISER.repair(recorded_report().narrative) == recorded_report().narrative


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("channel_breakout earned +0.28R a trade.", ""),  # two values would pass: nobody chooses
        ("channel_breakout won 55 % of its trades.", "channel_breakout won 42 % of its trades."),
        ("The chanel_breakout earned +0.18R a trade.", ""),
        ("A quiet week. All 141 trades of channel_breakout won.", "A quiet week."),
        ("A quiet week. It will earn 3R next year", "A quiet week."),
        ("", ""),
    ],
)
def test_stored_values_are_put_in_and_the_rest_is_struck(text, left):
    repaired = REVISER.repair(text)
    assert repaired == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It holds. And then the", "It holds."),
        ("It holds.\nand the\nbecause of", "It holds."),
        ("It holds. So.\n```\ncode", "It holds. So."),
        ("It holds.\n```\na. b. c. d.", "It holds."),
        ("and the", ""),
        ("It holds.", "It holds."),
        ("(", ""),
        ("", ""),
    ],
)
def test_text_ends_where_its_last_whole_sentence_does(text, left):
    assert end_whole(text) == left
    assert end_whole(left) == left


def test_long_text_with_an_open_fence_ends_at_once():
    assert end_whole("It holds.\n```\n" + "a. " * 15_000) == "It holds."


def revised(text, reviser):
    first = TextCandidate(number=0, text=text, hash="h", author="given")
    seen = Round(first, (), aggregate(()))
    return asyncio.run(reviser.revise(Task(""), (seen,), Budget(0, 0)))


def test_draft_of_the_rules_uses_no_call_and_says_where_nothing_is_left():
    assert revised("It holds. And the", RuleReviser()) == Draft("It holds.", "rules")
    lost = revised("All 60 trades of channel_breakout won.", REVISER)
    assert isinstance(lost, NoReply)
    assert lost.kind == NOTHING_LEFT


def test_without_a_run_only_the_end_is_mended():
    lie = "All 60 trades of channel_breakout won."
    assert RuleReviser().repair(lie) == lie


def test_facts_that_were_never_read_correct_nothing():
    async def read():
        raise AssertionError("nobody asked for them")

    lie = "All 60 trades of channel_breakout won."
    assert RuleReviser(FactCritic(read)).repair(lie) == lie
