"""What a text names that another does not: numbers, ids and identifiers, in order of appearance."""

import re
from functools import lru_cache

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
ID = re.compile(r"\b[0-9a-f]{12,64}\b")
NAME = re.compile(r"\b(?:[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|[A-Z][A-Z0-9]+(?:[./-][A-Z0-9]+)*)\b")


def unknown_numbers(text: str, source: str) -> tuple[str, ...]:
    """Ids and numbers of `text` that do not occur in `source`, ids first, each in order of appearance.

    Numbers are compared by absolute value. Digits inside an id are no numbers.
    """
    ids = [token for token in ID.findall(text) if token not in source]
    known = _numbers_of(source)
    numbers = [token for token in NUMBER.findall(ID.sub(" ", text)) if _as_number(token) not in known]
    return (*ids, *numbers)


@lru_cache(maxsize=4)
def _numbers_of(source: str) -> frozenset[float]:
    """Kept, because every word of a text is asked about with the same source."""
    return frozenset(_as_number(token) for token in NUMBER.findall(ID.sub(" ", source)))


def unknown_names(text: str, source: str) -> tuple[str, ...]:
    """Identifiers and words in capitals of `text` that `source` does not have, whatever its case."""
    known = {name.casefold() for name in NAME.findall(source)}
    known |= {word.casefold() for word in re.findall(r"\w+", source)}
    return tuple(dict.fromkeys(name for name in NAME.findall(text) if name.casefold() not in known))


def _as_number(token: str) -> float:
    return abs(float(token.replace(",", "")))
