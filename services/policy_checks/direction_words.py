"""Which direction does a text argue for? Words of the trade, read clause by clause with their negations.

A small lexicon and a playbook's own terms are matched as phrases. An odd number of negating words around
a phrase turns it ("the rally is over", "no sellers left"); conditional and concessive clauses are no
claims and are left out ("wrong if it falls", "despite the decline"). A word list reads plain prose only:
irony and long sentences are left to the optional model. Called by the coherence check.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from schemas.vocabulary import Direction
from services.policy_checks.lexicon import BEARISH, BULLISH, CONCESSIVE, CONDITIONAL, JOINTS, NEGATORS

Phrase = tuple[str, ...]

NEUTRAL = re.compile(
    r"\b(?:short|long)(?:er)?[- ](?:term|lived|run|dated|standing|time|of|as|enough|before|after|ago)\b"
    r"|\b(?:in short|as long as|how long|too long|so long as|bars long|if anything)\b"
    r"|\b(?:higher|lower) (?:volatility|volume|timeframe|band|risk|channel|bound|boundary|range|"
    r"edge|half|third|quartile|cost|costs|odds)\b"
    r"|\b(?:supply and demand|buy and hold)\b"
)
REACH_BEFORE = 4
REACH_AFTER = 3
WORD = re.compile(r"[a-z][a-z']*")
TOKEN = re.compile(rf"{WORD.pattern}|[.,;:!?()\n]")
BREAK = frozenset(".,;:!?()\n")
NOT = re.compile(r"n't\b|n’t\b|\b(?:far from|instead of|rather than|anything but)\b")


@dataclass(frozen=True)
class DirectionReading:
    """Phrases of a text that argue for and against a direction, in the order in which they stand."""

    supporting: tuple[str, ...]
    opposing: tuple[str, ...]

    @property
    def contradicts(self) -> bool:
        """More phrases against the direction than for it."""
        return len(self.opposing) > len(self.supporting)


@dataclass(frozen=True)
class Lexicon:
    """Stemmed phrases with +1 for a direction and -1 against it."""

    signs: dict[Phrase, int]

    @cached_property
    def longest(self) -> int:
        """Words in the longest phrase."""
        return max((len(phrase) for phrase in self.signs), default=0)


def read_direction(
    text: str, direction: Direction, own_terms: Iterable[str] = (), other_terms: Iterable[str] = ()
) -> DirectionReading:
    """Phrases for and against `direction`; terms that both directions of a playbook share say nothing."""
    own, other = frozenset(own_terms), frozenset(other_terms)
    supporting: list[str] = []
    opposing: list[str] = []
    for phrase, sign in _claims(text, _lexicon(direction, own - other, other - own)):
        (supporting if sign > 0 else opposing).append(phrase)
    return DirectionReading(tuple(supporting), tuple(opposing))


def terms_stated(text: str, terms: Iterable[str]) -> tuple[str, ...]:
    """The terms a text states without negating them, in the order in which they stand."""
    lexicon = Lexicon({_phrase(term): 1 for term in terms})
    return tuple(phrase for phrase, sign in _claims(text, lexicon) if sign > 0)


@lru_cache(maxsize=256)
def _lexicon(direction: Direction, own: frozenset[str], other: frozenset[str]) -> Lexicon:
    """Both sides of the general vocabulary and of a playbook's terms; its own terms win."""
    toward, away = (BULLISH, BEARISH) if direction == "long" else (BEARISH, BULLISH)
    signs = {_phrase(word): 1 for word in toward}
    signs.update({_phrase(word): -1 for word in away})
    signs.update({_phrase(term): -1 for term in other})
    signs.update({_phrase(term): 1 for term in own})
    return Lexicon(signs)


def _claims(text: str, lexicon: Lexicon) -> list[tuple[str, int]]:
    """Phrases of the lexicon that the text claims, with their sign after negation."""
    signs, longest = lexicon.signs, lexicon.longest
    found: list[tuple[str, int]] = []
    for words in _clauses(text):
        stems = [_stem(word) for word in words]
        claimed_until = _claim_end(words)
        i = 0
        while i < claimed_until:
            size = next((n for n in range(longest, 0, -1) if tuple(stems[i : i + n]) in signs), 0)
            if not size:
                i += 1
                continue
            sign = signs[tuple(stems[i : i + size])]
            found.append((" ".join(words[i : i + size]), -sign if _is_negated(words, i, i + size) else sign))
            i += size
    return found


def _clauses(text: str) -> list[list[str]]:
    plain = NEUTRAL.sub(" ", NOT.sub(" not", text.casefold())).replace("-", " ")
    clauses: list[list[str]] = [[]]
    for token in TOKEN.findall(plain):
        if token in BREAK:
            clauses.append([])
        else:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause]


def _claim_end(words: list[str]) -> int:
    """Number of leading words of a clause that are a claim; conditions and concessions are not."""
    return next((i for i, word in enumerate(words) if word in CONDITIONAL or word in CONCESSIVE), len(words))


def _is_negated(words: list[str], start: int, end: int) -> bool:
    """Whether an odd number of negating words stands within reach of words[start:end]."""
    before = words[max(0, start - REACH_BEFORE) : start][::-1]
    after = words[end : end + REACH_AFTER]
    return sum(_reach(side) for side in (before, after)) % 2 == 1


def _reach(side: list[str]) -> int:
    until = next((i for i, word in enumerate(side) if word in JOINTS), len(side))
    return sum(word in NEGATORS for word in side[:until])


def _phrase(text: str) -> Phrase:
    return tuple(_stem(word) for word in WORD.findall(text.casefold().replace("-", " ")))


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    for suffix in ("ing", "ed", "es", "s"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            return word[: -len(suffix)]
    return word
