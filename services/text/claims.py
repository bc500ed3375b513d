"""Which parts of a text are claims? Sentences, cut into clauses, without what is only supposed or granted.

A claim is what the writer says is so. What would have to happen ("if sellers return"), what is granted
("despite the decline"), and a question are no claims; a question that is answered with a no, or that asks
who would, claims the opposite. No word here has a direction.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from services.text.claim_words import (
    BACKGROUND,
    CONCESSIVE,
    CONDITIONAL,
    DENIALS,
    ENDS_THE_PLAN,
    HEDGES,
    IRONY,
    JOINTS,
    OWN_RISK,
    PRONOUNS,
    REWRITES,
    RISK_NAMED,
    SUPPOSES,
    SUPPOSING,
    THAT_IS_SAID,
    TURNS,
)

# No sentence ends with a point between digits, of a share class or an exchange (BRK.B, NESN.SW, 0700.HK), or
# those of "e.g.", "i.e." and "vs.".
CLASS = r"(?<=[A-Z\d])\.(?=[A-Z]{1,3}\b)"
INNER = rf"\.(?=\d)|{CLASS}|(?<=\b[eEiI])\.(?=[gGeE]\.)|(?<=\b[eE]\.[gG])\.|(?<=\b[iI]\.[eE])\.|(?<=\bvs)\."
WHOLE_SENTENCE = re.compile(rf"(?:[^.!?\n]|{INNER})+(?:[.!?]+|\n)?")
PART_OF_SENTENCE = re.compile(rf"(?:[^.!?;\n]|{INNER})+(?:[.!?;]+|\n)?")
CASES_ONLY = SUPPOSING - {"had", "once", "until", "whenever"}
CONDITION = re.compile(r"\b(?:if|unless|otherwise)\b", re.IGNORECASE)
MODAL = re.compile(r"\b(?:would|should|could|may|might|will|must|then)\b", re.IGNORECASE)
SENTENCE = re.compile(r"[^.!?;\n]+[.!?;\n]?")
TOKEN = re.compile(r"[a-z][a-z']*|[,:()\"]")
BREAKS = frozenset(',:()"')
RHETORICAL = re.compile(
    r"^\W*(?:who|why|what|how|where)\b.*\b(?:would|should|could|on earth|else|anyone|bother)\b"
)


@dataclass(frozen=True)
class Clause:
    """Words that claim one thing.

    Attributes:
        words: lower case, without the joint that opens the clause.
        joint: the joint, or the sign, that opens it; empty at the start of a sentence.
        background: it tells what went before.
        hedged: it says that something may be so.
        turn: how many "but" stand before it in its sentence.
        conditional: its sentence goes on with a condition for it.
    """

    words: tuple[str, ...]
    joint: str = ""
    background: bool = False
    hedged: bool = False
    turn: int = 0
    conditional: bool = False


@dataclass(frozen=True)
class Sentence:
    """Claimed clauses of one sentence; `denied` when the text says the opposite of them."""

    clauses: tuple[Clause, ...]
    denied: bool = False


@dataclass(frozen=True)
class Span:
    """A piece of a text with its place, in characters of the text."""

    start: int
    end: int
    text: str


def sentences(text: str, *, parts: bool = False) -> Iterator[Span]:
    """The sentences of a text in order, with their end marks; a line ends one, and `;` for `parts`."""
    for found in (PART_OF_SENTENCE if parts else WHOLE_SENTENCE).finditer(text):
        if found[0].strip():
            yield Span(found.start(), found.end(), found[0])


def find_asserted(sentence: str) -> tuple[int, int]:
    """From where to where a sentence says what is so, in its own characters; a question says nothing.

    A case that opens it ("if ..., ") ends at its comma, and takes in what follows only where that is said to
    be possible; a condition further on takes in the rest.
    """
    stripped = sentence.rstrip()
    if stripped.endswith("?"):
        return 0, 0
    first = TOKEN.search(sentence.casefold())
    if first is not None and first[0] in CASES_ONLY:
        comma = sentence.find(",")
        if comma < 0 or MODAL.search(sentence, comma):
            return 0, 0
        return comma + 1, len(stripped)
    condition = CONDITION.search(sentence)
    return 0, len(stripped) if condition is None else condition.start()


@lru_cache(maxsize=1024)
def read_claims(text: str) -> tuple[Sentence, ...]:
    """The claims of a text, sentence by sentence."""
    plain = text.casefold()
    for pattern, put in REWRITES:
        plain = pattern.sub(put, plain)
    raw = [part for part in SENTENCE.findall(plain) if TOKEN.search(part)]
    found = []
    for part, following in zip(raw, raw[1:] + [""] * bool(raw), strict=True):
        denied = bool(IRONY.search(part))
        if part.endswith("?") and not denied:
            denied = bool(RHETORICAL.search(part)) or _first_word(following) in DENIALS
            if not denied:
                continue
        if denied or not _is_supposed(part):
            found.append(Sentence(tuple(_clauses(part)), denied))
    return tuple(found)


def _first_word(part: str) -> str:
    words = TOKEN.findall(part)
    return words[0] if words else ""


def _is_supposed(part: str) -> bool:
    """Whether the whole sentence is a case that is only supposed."""
    words = [token for token in TOKEN.findall(part) if token not in BREAKS]
    first = next((word for word in words if word not in TURNS and word not in ("and", "only", "so")), "")
    return (
        first in SUPPOSING
        or bool(RISK_NAMED.search(part))
        or bool(ENDS_THE_PLAN.search(part) and SUPPOSES.search(part))
    )


def _clauses(part: str) -> list[Clause]:
    """Clauses of a sentence that are claims, in order."""
    found: list[Clause] = []
    words: list[str] = []
    joint, turn, granted = "", 0, False

    def close(*, conditional: bool = False) -> None:
        if words and not granted:
            hedged = not HEDGES.isdisjoint(words)
            found.append(Clause(tuple(words), joint, joint in BACKGROUND, hedged, turn, conditional))
        words.clear()

    before = ""
    for token in TOKEN.findall(part):
        relative = token == "that" and words and before not in THAT_IS_SAID
        before = token
        if token in CONDITIONAL:
            words.extend({token} & OWN_RISK)
            close(conditional=True)
            break
        if token == "than" or token in CONCESSIVE and not (token == "while" and words):
            close()
            granted = True
        elif relative or token in BREAKS or token in JOINTS or token in TURNS:
            if granted and token in JOINTS and token not in TURNS:
                continue
            close()
            granted, joint = False, token
            turn += token in TURNS
            if token == "nor":
                words.append(token)
        elif granted and token in PRONOUNS and words:
            close()
            granted, joint = False, ""
            words.append(token)
        else:
            words.append(token)
    close()
    return found
