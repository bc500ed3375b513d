"""What does a text claim that a run can answer? Claims with their place, their subject and their question.

A sentence is read for what it says is so: cases ("if the mean falls below 0") and questions claim nothing. A
figure belongs to the measure that is named beside it and to the subject that it is said of; where the words
leave that open, the claim keeps no question, and nothing can verify it.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.deliberation.claim import Claim
from services.deliberation.comparison_claims import claims_of_comparison, factor
from services.deliberation.figure_claims import figure, interval, zero
from services.deliberation.held import UNREAD
from services.deliberation.layout import Mention, SentenceLayout
from services.deliberation.plain_claims import (
    advice,
    alone,
    claims_of_a_trade,
    day,
    degree,
    direction,
    evaluation,
    grade,
    grown,
    name,
    present,
    rank,
)
from services.deliberation.portion_claims import members, share
from services.deliberation.ranking_claims import claims_of_one, extreme, owner
from services.deliberation.sentence_reading import SentenceReading
from services.deliberation.unread import ABOUT_A_RUN, Places, unread
from services.evidence.facts import Subject
from services.text.claims import Span, find_asserted

MOST_MENTIONS = 80  # of one sentence; what names more is a list of words
MOST_WORDS = 300  # of one sentence: to read it takes time by the square of its length
TOO_LONG = (
    f"the sentence is too long to be read: more than {MOST_WORDS} words or {MOST_MENTIONS} names and figures"
)
COUNTERFACTUAL = re.compile(
    r"\b(?:if|had)\b.{0,200}\bwould (?:not )?have\b|\bwould (?:not )?have\b.{0,200}\bif\b", re.I
)
Reader = Callable[[SentenceReading, int, Mention], list[Claim]]
# In the order in which they read; what one has taken up, the next ones leave.
READERS: tuple[dict[str, Reader], ...] = (
    {"factor": factor, "ratio": factor, "change": grown},
    {"quantifier": members},
    {"number": figure, "count_word": figure, "interval": interval, "zero": zero},
    {"quantifier": share, "fraction": share},
    {"extreme": extreme, "rank": rank, "measure": owner},
    {"compared": claims_of_comparison, "bound": claims_of_comparison},
    {
        "advice": advice,
        "grade": grade,
        "not_graded": grade,
        "direction": direction,
        "result": direction,
        "evaluation": evaluation,
        "degree": degree,
    },
    {"exit": claims_of_a_trade, "failure": claims_of_a_trade, "side": claims_of_a_trade},
    {
        "playbook": name,
        "symbol": name,
        "regime": name,
        "identifier": name,
        "capitals": name,
        "id": name,
        "date": day,
        "period": day,
    },
)


class SentenceClaims(NamedTuple):
    """What a sentence claims, whom a pronoun of the next one means, whether it rests on the one before."""

    claims: list[Claim]
    last: Subject
    rests: bool


def read_sentence(
    sentence: Span, named: Sequence[Mention], carried: Subject, quoted: Places = ()
) -> SentenceClaims:
    """Read one sentence.

    Args:
        sentence: with its place in the text.
        named: what it names, at places of its own.
        carried: whom the sentence before was about.
        quoted: places of the text that are the run's own words.
    """
    said = sentence.text.casefold().split()
    if len(said) > MOST_WORDS:
        of_a_run = named or not ABOUT_A_RUN.isdisjoint(said)
        return SentenceClaims([_whole(sentence, TOO_LONG)] if of_a_run else [], carried, True)
    begin, end = find_asserted(sentence.text)
    if COUNTERFACTUAL.search(sentence.text):
        return SentenceClaims([_whole(sentence)], carried, True)
    if begin >= end:
        return SentenceClaims([], carried, True)
    inside = [mention for mention in named if begin <= mention.start < end and mention.end <= end]
    if len(inside) > MOST_MENTIONS:
        return SentenceClaims([_whole(sentence, TOO_LONG)], carried, True)
    reading = SentenceReading(SentenceLayout(sentence, inside), carried)
    claims = _claims_of(reading, (begin, end), quoted)
    return SentenceClaims(claims, reading.subjects.last, reading.subjects.rests)


def _claims_of(reading: SentenceReading, said: tuple[int, int], quoted: Places) -> list[Claim]:
    claims: list[Claim] = []
    kinds = {mention.kind for mention in reading.mentions}
    for readers in READERS:
        if kinds.isdisjoint(readers):
            continue
        for index, mention in enumerate(reading.mentions):
            if mention.kind in readers:
                claims += readers[mention.kind](reading, index, mention)
    claims += claims_of_one(reading)
    for index, mention in enumerate(reading.mentions):
        if mention.kind == "only":
            claims = alone(reading, index, mention, claims)
    claims += present(reading, claims)
    claims += unread(reading, said, quoted, claims)
    return sorted(claims, key=lambda claim: (claim.start, claim.end))


def _whole(sentence: Span, why: str = UNREAD) -> Claim:
    """All of a sentence that names more than can be read, or tells what never was: nothing verifies it."""
    return Claim("number", sentence.start, sentence.end, sentence, (Subject(),), 1.0, "unread", value=why)
