"""Words without their endings, so that one entry of the lexicon covers its inflected forms."""

import re
from functools import lru_cache

Phrase = tuple[str, ...]

WORD = re.compile(r"[a-z][a-z']*")
SHORTEST = 3
VOWELS = frozenset("aeiouy")


def phrase(text: str) -> Phrase:
    """The stems of a phrase; hyphens part words."""
    return tuple(stem(word) for word in WORD.findall(text.casefold().replace("-", " ")))


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The word without a plural or verb ending: rallies, rallied and rally share theirs."""
    base = word.removesuffix("'s").removesuffix("'")
    for suffix in ("ing", "ed", "es", "s"):
        rest = base.removesuffix(suffix)
        plural_of_s = suffix == "s" and rest.endswith("s")  # "press" has no ending
        if rest != base and len(rest) >= SHORTEST and not plural_of_s and not VOWELS.isdisjoint(rest):
            base = rest
            break
    if len(base) > SHORTEST and base[-1] == base[-2] and base[-1] not in VOWELS:
        base = base[:-1]
    if base.endswith("e") and len(base) > SHORTEST:
        base = base[:-1]
    return base[:-1] + "i" if base.endswith("y") and len(base) >= SHORTEST else base
