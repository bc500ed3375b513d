"""What the words of a question speak of: the topic of each, also where it is written wrong."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

from agents.planning.name_matching import vectors_of
from services.text.claim_words import words

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
TOPICS = {topic: words(listed) for topic, listed in _LISTS.pop("topics").items()}
WON, LOST, WANTED_WHOLE, VAGUE, SPANS, SPAN_NOUNS, PLAIN = (
    words(_LISTS[name]) for name in ("won", "lost", "wanted_whole", "vague", "spans", "span_nouns", "plain")
)
ORDERS = words(_LISTS["orders"])
PHRASES = tuple(
    (re.compile(rf"\b{phrase}\b", re.IGNORECASE), word) for phrase, word in _LISTS["phrases"].items()
)
IT = words("it its")
NUMBERS = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1
    )
}
ENDING = re.compile(r"\w+'(?:ve|re|ll|d|s|m)")
FUZZY_FROM = 5
FUZZY = 0.56
_SPEAKING = frozenset().union(*TOPICS.values(), WON, LOST)
_SPOKEN = tuple(sorted(_SPEAKING))
_NAMING_NOTHING = frozenset().union(PLAIN, VAGUE, WANTED_WHOLE, SPANS, SPAN_NOUNS, NUMBERS)


@lru_cache(maxsize=4096)
def topic_word(word: str) -> str | None:
    """The word of a topic that a word is, or is written wrong; None for any other."""
    if word in _SPEAKING:
        return word
    if len(word) < FUZZY_FROM or is_plain(word):
        return None
    found = vectors_of(_SPOKEN).match(word, FUZZY)
    return found[0] if found and found[0][0] == word[0] else None


def is_plain(word: str) -> bool:
    """Whether a word names nothing that could be looked up."""
    whole = word.removesuffix("s") in SPAN_NOUNS or word in _NAMING_NOTHING
    return whole or ("'" in word and ENDING.fullmatch(word) is not None and is_plain(word.split("'")[0]))
