"""The words of a question that say which trades, how much or whom it means, and those that name nothing."""

import re
import tomllib
from pathlib import Path

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
