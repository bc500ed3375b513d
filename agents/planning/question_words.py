"""The words of a question that say which trades, how much or whom it means, and those that name nothing."""

import re
import tomllib
from pathlib import Path

from schemas.vocabulary import (
    AmendmentKind,
    EvaluationOutcome,
    EvidenceGrade,
    ExitReason,
    FailureMode,
    RecommendedAction,
    SkipReason,
)
from services.text.claim_words import words

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
WON, LOST, WANTED_WHOLE, SPAN_NOUNS, PLAIN = (
    words(_LISTS[name]) for name in ("won", "lost", "wanted_whole", "span_nouns", "plain")
)
ORDERS = words(_LISTS["orders"])
# Symbols that go by each name.
COMPANIES: dict[str, tuple[str, ...]] = {}
for _symbol, _names in _LISTS["companies"].items():
    for _name in _names:
        COMPANIES[_name] = (*COMPANIES.get(_name, ()), _symbol)
# Names that the run gives to what it does, by a word that means their sort.
TERMS: dict[str, str] = {
    str(name): word
    for word, names in (
        ("skipped", (*SkipReason, *EvaluationOutcome, *AmendmentKind)),
        ("exit", tuple(ExitReason)),
        ("failure", tuple(FailureMode)),
        ("grade", tuple(EvidenceGrade)),
        ("recommendation", tuple(RecommendedAction)),
    )
    for name in names
    if "_" in name
}
FEATURE = re.compile(r"[a-z]+(?:_[a-z]+)*(?:_\d+)+(?:_[a-z]+)*")
IT = words("it its")
NUMBERS = {
    word: number
    for number, word in enumerate(
        (
            "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
            "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
        ),
        1,
    )
} | {"dozen": 12, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100}  # fmt: skip
ENDING = re.compile(r"\w+'(?:ve|re|ll|d|s|m)")
_NAMING_NOTHING = frozenset().union(PLAIN, WANTED_WHOLE, SPAN_NOUNS, NUMBERS)


def is_plain(word: str) -> bool:
    """Whether a word names nothing that could be looked up."""
    whole = word.removesuffix("s") in SPAN_NOUNS or word in _NAMING_NOTHING
    return whole or ("'" in word and ENDING.fullmatch(word) is not None and is_plain(word.split("'")[0]))


def term_of(word: str) -> str | None:
    """The word that a name of the run's own means, such as a grade's; None for any other."""
    plain = word.casefold()
    return TERMS.get(plain) or ("indicator" if FEATURE.fullmatch(plain) else None)
