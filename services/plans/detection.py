"""Does a text ask for high stakes, so that a plan has to be approved before anything happens?

Each pattern that the text asks for adds its weight once; the sum, at most 1, is held against the threshold of
the run. What is only quoted, denied, reported or asked about adds nothing. This decides how a request is
handled, never what it may do: a typed structural action takes two phases whatever its words.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from schemas.contract import Contract
from schemas.settings import PlansSettings
from services.plans.detection_words import (
    CARRIED_OUT,
    CHANGE,
    LAST_PLAN,
    NEGATION,
    NOT_DENIED,
    OF_THE_MARKET,
    PATTERNS,
    READING,
    REPORTED,
    STILL_ASKS,
    WEIGHTS,
    Category,
    Pattern,
)

QUOTED = re.compile(r"\"[^\"]{1,400}\"|(?<![a-z])'[^']{1,400}'(?![a-z])|«[^»]{1,400}»")
SENTENCE_END = re.compile(r"[.!?;]+(?=\s|$)")
JOINT = re.compile(r",|:|\s-+\s|[()]|\b(?:and|but|then|so|however|because)\b")
# A denial of a list ("do not deploy, delete or rewrite") holds for all of it.
JOINT_OF_LISTS = re.compile(r":|\b(?:and|but|then|so|instead)\b")
LISTED = re.compile(r"\bn?or\b")
FEWEST_WORDS = 3  # a shorter piece is no sentence of its own


class PatternMatch(Contract):
    """A pattern that a text asks for, and what it adds."""

    pattern: str
    category: Category
    weight: float


class TwoPhase(Contract):
    """Whether a text takes two phases, from 0 to 1 how surely, and why."""

    should_use: bool
    confidence: float
    matches: tuple[PatternMatch, ...] = ()
    reason: str


@dataclass(frozen=True)
class DetectionContext:
    """What is known beside the text.

    Attributes:
        live: whether the run trades live.
        last_plan_failed: whether the last plan of the run went stale, failed or expired.
        forced: whether two phases were asked for.
        typed: whether the text is a typed structural action.
    """

    live: bool = False
    last_plan_failed: bool = False
    forced: bool = False
    typed: bool = False


@dataclass(frozen=True)
class _Clause:
    """A piece of a sentence: where it stands, whether it only asks, whether its sentence wants a change."""

    start: int
    end: int
    reads: bool
    changes: bool


def detect_two_phase(text: str, context: DetectionContext, settings: PlansSettings) -> TwoPhase:
    """What the patterns find in a text; nothing where `auto_detect` is off, unless it is forced or typed."""
    found = _matches(text, context) if settings.auto_detect else ()
    confidence = min(1.0, round(sum(match.weight for match in found), 6))
    least = settings.live_threshold if context.live else settings.threshold
    reached = settings.auto_detect and confidence >= least
    if context.typed:
        reason = "a typed action that changes structure always takes two phases"
    elif context.forced:
        reason = "two phases were asked for"
    elif not settings.auto_detect:
        reason = "plans.auto_detect is off"
    else:
        names = ", ".join(match.pattern for match in found) or "no sign of high stakes"
        reason = f"confidence {confidence:.2f} {'reaches' if reached else 'is below'} {least:.2f}: {names}"
    should_use = reached or context.forced or context.typed
    return TwoPhase(should_use=should_use, confidence=confidence, matches=found, reason=reason)


def _matches(text: str, context: DetectionContext) -> tuple[PatternMatch, ...]:
    """The patterns that any reading of the text asks for, in the order of their table."""
    asked: set[Pattern] = set()
    for plain in readings(text):
        spoken = _spoken(plain)
        clauses = [clause for start, end in _sentences(spoken) for clause in _clauses(spoken, start, end)]
        asked |= {pattern for pattern in PATTERNS if pattern not in asked and _asks(pattern, spoken, clauses)}
    found = [_match(pattern.name, pattern.category) for pattern in PATTERNS if pattern in asked]
    if context.last_plan_failed:
        found.append(_match(LAST_PLAN, "context"))
    return tuple(found)


def _match(name: str, category: Category) -> PatternMatch:
    return PatternMatch(pattern=name, category=category, weight=WEIGHTS[category])


def _spoken(plain: str) -> str:
    """The text with what it only quotes, and what markets do, blanked out; places stay."""
    for start, end in _sentences(plain):
        sentence = plain[start:end]
        outside = QUOTED.sub(" ", sentence)
        if REPORTED.search(outside) and not CARRIED_OUT.search(outside):
            plain = plain[:start] + QUOTED.sub(lambda quote: " " * len(quote[0]), sentence) + plain[end:]
    return OF_THE_MARKET.sub(lambda told: " " * len(told[0]), plain)


def _sentences(plain: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end; a piece of one or two words belongs to what follows it."""
    inside = [quote.span() for quote in QUOTED.finditer(plain)]
    ends = [
        end.end()
        for end in SENTENCE_END.finditer(plain)
        if not any(start < end.start() < stop - 2 for start, stop in inside)
    ]
    start = 0
    for end in [*ends, len(plain)]:
        if end == len(plain) or len(re.findall(r"\w+", plain[start:end])) >= FEWEST_WORDS:
            yield start, end
            start = end


def _clauses(plain: str, start: int, end: int) -> list[_Clause]:
    """The clauses of a sentence; one that opens in no way of its own goes on as the one before it."""
    sentence = plain[start:end]
    joint = JOINT_OF_LISTS if NEGATION.search(sentence) and LISTED.search(sentence) else JOINT
    edges = [0, *(found.start() for found in joint.finditer(sentence)), len(sentence)]
    reads = changes = False
    pieces = list[tuple[int, int, bool]]()
    for first, last in pairwise(edges):
        said = joint.sub("", sentence[first:last], count=1) if first else sentence[:last]
        opening = said.lstrip(" -*.,:()'\"0123456789>#")
        if STILL_ASKS.match(opening):
            reads, changes = False, True
        elif READING.match(opening):
            reads = True
        elif _changes(said):
            reads, changes = reads and not _begins_with_change(opening), True
        pieces.append((start + first, start + last, reads))
    return [_Clause(first, last, reads, changes) for first, last, reads in pieces]


def _begins_with_change(opening: str) -> bool:
    found = CHANGE.search(opening)
    return found is not None and len(opening[: found.start()].split()) <= FEWEST_WORDS


def _changes(said: str) -> bool:
    found = CHANGE.search(said)
    return found is not None and not _is_denied(said[: found.start()])


def _is_denied(before: str) -> bool:
    """Whether what stands before a match in its clause denies it."""
    return NEGATION.search(NOT_DENIED.sub(" ", before)) is not None


def _asks(pattern: Pattern, plain: str, clauses: list[_Clause]) -> bool:
    """Whether one of the places of a pattern asks for it."""
    for found in pattern.expression.finditer(plain):
        clause = next((item for item in clauses if item.start <= found.start() < item.end), None)
        if clause is None or _is_denied(plain[clause.start : found.start()]):
            continue
        if pattern.category == "plan_request" or (not clause.reads and (pattern.deed or clause.changes)):
            return True
    return False


_LOOK_ALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухіјѕһԁԛԝкмтнвпґзΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχօսհցոıɑɡɩʟᴀʙᴄᴅᴇɢʜɪᴊᴋᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢøđłŧ’‘´`“”„‟‐‑‒–—−",
    "ABESIJKMHOPCTYXaeopcyxijshdqwkmthbnr3ABEZHIKMNOPTYXaeikvoptuxouhgniaglLabcdeghijkmnoprstuvwyzodlt''''\"\"\"\"------",
)
_DIGITS = str.maketrans("034578@$", "oeastbas")
_MIXED = re.compile(r"[a-z0-9@$!|]*(?:[a-z][0-9@$!|]|[0-9@$!|][a-z])[a-z0-9@$!|]*")
_SPACED = re.compile(r"\b[a-z](?:[ ._*/-][a-z]\b){2,}")
_CUT = re.compile(r"(?<=[a-z])-\n\s*(?=[a-z])")
_INNER = re.compile(r"(?<=[a-z])[-._*'~^+](?=[a-z])")
_BLANK_LINE = re.compile(r"\n[ \t]*\n\s*")


def readings(text: str) -> tuple[str, ...]:
    """Small letters of the Latin alphabet on one line, in each way in which the text may be read.

    They are for finding words, never for showing or storing a text: what comes back is another text.
    The first has its words and marks as they stand; others join what marks tear apart, or take a 1 for an l.
    """
    whole = unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKES)).translate(_LOOK_ALIKES).casefold()
    seen = "".join(
        character
        for character in unicodedata.normalize("NFKD", whole)
        if character in "\n\t\r" or unicodedata.category(character) not in ("Mn", "Me", "Cf", "Cc", "Co")
    )
    lines = _BLANK_LINE.sub(". ", _CUT.sub("", seen.replace("\r\n", "\n")))
    found = []
    for letter in ("i", "l"):
        spelt = _MIXED.sub(lambda mixed, line=letter: _as_letters(mixed[0], line), lines)  # type: ignore[misc]
        joined = _SPACED.sub(lambda spaced: re.sub(r"[^a-z]", "", spaced[0]), spelt)
        found += [" ".join(spelt.split()), " ".join(joined.split()), " ".join(_INNER.sub("", joined).split())]
    return tuple(dict.fromkeys(found))


def _as_letters(word: str, one: str) -> str:
    """A word with the letters that its digits stand for; a number with a unit (`20x`, `0.5r`) stays."""
    if re.fullmatch(r"\d+[a-z]{1,2}", word):
        return word
    return re.sub(r"1|[!|](?=[a-z0-9])", one, word).translate(_DIGITS)
