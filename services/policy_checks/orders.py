"""Explicit orders for the other side in a text that a stranger hands over: "go short" in a long plan.

A clause that begins with an order counts, unless its sentence denies it or makes it depend on something.
Whatever says it in other words is not read.
"""

import re
from functools import lru_cache

from schemas.vocabulary import Direction

SENTENCE = re.compile(r"[^.!?;\n]+")
CLAUSE = re.compile(r"[,:()\u2013\u2014-]|\b(?:but|and|so|then|instead)\b")
GUARD = re.compile(
    r"\b(?:not|no|never|nor|without|cannot|if|unless|when|until|once|would|could)\b|n['\u2019]t\b", re.I
)
OPENER = r"\s*(?:(?:now|please|just|i|we|you|should|must|will|better|to)\s+)*"
HERE = r"(?:\s+(?:it|this|here|now|today|the\s+\w+))*\s*"
ORDERS: dict[Direction, re.Pattern[str]] = {
    "long": re.compile(rf"{OPENER}(?:(?:go|be|stay|sell)\s+short|sell|short){HERE}", re.I),
    "short": re.compile(rf"{OPENER}(?:(?:go|be|stay)\s+long|buy){HERE}", re.I),
}


@lru_cache(maxsize=1_024)  # a plan is read as a base and again when it is reflected on
def orders_against(text: str, direction: Direction) -> tuple[str, ...]:
    """The clauses of a text that order the opposite of a plan of `direction`, in its order."""
    found = []
    for sentence in SENTENCE.findall(text):
        if not GUARD.search(sentence):
            clauses = (" ".join(clause.split()) for clause in CLAUSE.split(sentence))
            found += [clause for clause in clauses if ORDERS[direction].fullmatch(clause)]
    return tuple(found)
