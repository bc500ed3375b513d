"""What the parts of a question name: symbols, playbooks, regimes, moments, ids, outcomes, and their topics.

By rules over their words, whatever the case and with the commoner misspellings. A name that the run does
not have is said to be unknown, never replaced. A part that gives an order is no question.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.planning.question_names import QuestionNames
from agents.planning.question_words import (
    IT,
    LOST,
    NUMBERS,
    ORDERS,
    PHRASES,
    SPAN_NOUNS,
    SPANS,
    TOPICS,
    VAGUE,
    WANTED_WHOLE,
    WON,
    topic_word,
)
from schemas.canonical import ns_to_datetime
from schemas.vocabulary import Trend, VolatilityBand
from services.evidence.tool_arguments import MOST_ITEMS
from services.ports import EvidenceQuestion
from services.text.claims import sentences
from services.text.dates import places_of_days

SECOND_NS = 1_000_000_000
ID = re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{6,64}\b", re.IGNORECASE)
TRENDS, BANDS = "|".join(Trend), "|".join(VolatilityBand)
REGIME = re.compile(
    rf"\b({TRENDS})(?:trend)?\s*[/,-]?\s*({BANDS})(?:[\s-]+vol(?:atility)?)?\b", re.IGNORECASE
)
HALF_REGIME = re.compile(
    rf"\b(?:{TRENDS})[\s-]?(?:trend(?:s|ing)?|markets?|regimes?|moves?)\b"
    rf"|\b(?:{BANDS})[\s-]+vol(?:atility)?\b",
    re.IGNORECASE,
)
HOUR = re.compile(r"[T ,]+(?:at\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(?:Z|UTC)?", re.IGNORECASE)
BEFORE = re.compile(r"\b(?:before|prior to)\s*$", re.IGNORECASE)
AFTER = re.compile(r"\b(?:after|since|from|between)\s*$", re.IGNORECASE)
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_'/.-]*")
LIMITS = (
    re.compile(r"\b(?:last|latest|newest|recent|past|previous|top)\s+(\w+)\b"),
    re.compile(r"\b(\w+)\s+(?:most\s+)?(?:recent|latest|newest|last)\b"),
)
ONE = re.compile(
    r"\b(?:last|latest|newest|most recent|previous)\s+(?:\S+\s+){0,3}?"
    r"(?:trade|fill|exit|entry|episode|order|report|verdict|review|reflection|loss|loser|win|winner|stop)\b"
)
DIRECTED = re.compile(
    r"\b(?:long|short)\s+(?:trades?|episodes?|positions?|side|entries|exits|ones)\b|\b(?:longs|shorts)\b"
)
EARLIER = re.compile(
    r"\b(?:that|this|the same)\s+(symbol|ticker|stock|instrument|playbook|strategy|fill|trade|exit|loss)\b"
)
EARLIER_KINDS = {
    "ticker": "symbol",
    "stock": "symbol",
    "instrument": "symbol",
    "strategy": "playbook",
    "exit": "fill",
    "trade": "fill",
    "loss": "fill",
}
FOLLOWS = re.compile(r"^\W*(?:and\b|(?:and |but )?(?:what|how) about\b|same for\b)", re.IGNORECASE)
HOW_DID = re.compile(r"\bhow\s+(?:good|bad|well|badly|did|does|do|has|have|is|are|was|were)\b")
SHOULD = re.compile(r"\bshould (?:i|we)\b")
BOOKS = re.compile(r"\b(?:playbooks?|strategy|strategies)\b")
RANKED = re.compile(r"\b(?:which|best|worst|most|least|better|compare)\b")
OPENS = (
    r"what|how|why|which|who|when|where|show|list|tell|give|is|are|was|were|did|does|do|explain|would|should"
    r"|has|have|can"
)
PART = re.compile(
    rf"(?:,\s*(?:and|also|then)?|\b(?:and|then|also|plus)\b)\s+(?=(?:(?:also|then)\s+)?(?:{OPENS})\b)",
    re.IGNORECASE,
)
ASKS = re.compile(rf"^\W*(?:please\s+)?(?:{OPENS})\b|\?", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """What one part of a question names.

    Attributes:
        at: moment, ISO; a day stands for its end, since what happened on it is meant.
        is_span: whether it names a stretch of time.
        is_one: whether it speaks of the last one of something.
        earlier: kinds of things that an earlier turn is to name.
        follows: whether it goes on with what was asked before.
    """

    text: str
    names: QuestionNames
    topics: frozenset[str] = frozenset()
    cues: int = 0
    regimes: tuple[str, ...] = ()
    has_half_regime: bool = False
    ids: tuple[str, ...] = ()
    at: str | None = None
    is_span: bool = False
    outcome: Literal["won", "lost"] | None = None
    limit: int | None = None
    is_one: bool = False
    is_whole: bool = False
    is_vague: bool = False
    is_guessed: bool = False
    is_order: bool = False
    is_directed: bool = False
    asks_advice: bool = False
    direction: str | None = None
    earlier: frozenset[str] = frozenset()
    follows: bool = False

    @property
    def symbols(self) -> tuple[str, ...]:
        """Those that it names."""
        return self.names.symbols

    @property
    def playbooks(self) -> tuple[str, ...]:
        """Those that it names."""
        return self.names.playbooks

    @property
    def is_idle(self) -> bool:
        """Whether it asks for nothing, such as a greeting before a question."""
        found = self.topics or self.symbols or self.playbooks or self.ids or self.regimes or self.earlier
        doubtful = self.names.unknown or self.names.unsure or self.is_span
        return not (found or doubtful or (self.names.strange and ASKS.search(self.text)))

    @property
    def asks_why_of_fill(self) -> bool:
        """Whether it asks why a fill happened that it does not name by its id."""
        return "why" in self.topics and (self.is_one or "fill" in self.topics) and not self.ids

    @property
    def asks_of_all_playbooks(self) -> bool:
        """Whether it asks for playbooks and names none, and no more of them than how they do."""
        names = self.symbols or self.playbooks
        return "books" in self.topics and not names and not self.topics & {"market", "definition", "why"}

    def with_names(self, symbols: Sequence[str], playbooks: Sequence[str]) -> "Reading":
        """It with the names that it leaves out."""
        names = replace(self.names, symbols=tuple(symbols), playbooks=tuple(playbooks))
        return replace(self, names=names, earlier=self.earlier - {"it", "symbol", "playbook"})


def parts_of(question: EvidenceQuestion) -> tuple[Reading, ...]:
    """The parts of a question that ask for something; what `it` means in one is what the part before names.

    Orders are left out where something else is asked. A part is not empty.
    """
    spans = sentences(question.text, parts=True)
    texts = [part for span in spans for part in PART.split(span.text) if part.strip(" ?.!,;")]
    found: list[Reading] = []
    for text in texts or [question.text]:
        reading = read_part(text, question.context)
        found.append(_named_by(found[-1], reading) if found else reading)
    asking = [reading for reading in found if not reading.is_order and not reading.is_idle]
    return tuple(asking or [reading for reading in found if reading.is_order][:1] or found[:1])


def _named_by(before: Reading, reading: Reading) -> Reading:
    is_open = reading.earlier & {"it", "symbol", "playbook"} and not reading.symbols and not reading.playbooks
    if not is_open or not (before.symbols or before.playbooks):
        return reading
    return reading.with_names(before.symbols, before.playbooks)


def read_part(text: str, context: Mapping[str, Any]) -> Reading:
    """What a text names among the symbols and playbooks of `context`."""
    plain = text.replace("\u2019", "'")
    ids = tuple(dict.fromkeys(found.lower() for found in ID.findall(plain)))
    at, is_span, rest = _moment(ID.sub(" ", plain))
    regimes = tuple(dict.fromkeys("/".join(found).lower() for found in REGIME.findall(rest)))
    rest = _without_phrases(REGIME.sub(" ", rest))
    words = [word.strip("'./-") for word in WORD.findall(rest)]
    lower = [word.casefold() for word in words]
    names = QuestionNames.of(words, context)
    left = {word.casefold() for word in names.left}
    cues = {word: cue for word in lower if word in left and (cue := topic_word(word.removesuffix("'s")))}
    found, flat = frozenset(cues.values()), " ".join(lower)
    topics = frozenset(topic for topic, some in TOPICS.items() if found & some)
    topics |= _implied(flat, topics, names)
    if names.playbooks and not names.symbols and "market" in topics:
        topics = topics - {"market"} | {"trades"}  # a playbook has no price: its trades are meant
    return Reading(
        text=text,
        names=names,
        topics=topics,
        cues=len(cues),
        regimes=regimes,
        has_half_regime=HALF_REGIME.search(rest) is not None,
        ids=ids,
        at=at,
        is_span=is_span or bool(SPANS & set(lower)) or _is_relative(lower),
        outcome=_outcome(found),
        limit=_limit(flat),
        is_one=ONE.search(" ".join(cues.get(word, word) for word in lower)) is not None,
        is_whole=bool(WANTED_WHOLE & set(lower)),
        is_vague=bool(VAGUE & set(lower)),
        is_guessed=names.is_guessed or any(word.removesuffix("'s") != cue for word, cue in cues.items()),
        is_order=_is_order(lower),
        is_directed=DIRECTED.search(flat) is not None,
        asks_advice=SHOULD.search(flat) is not None,
        direction=next((word for word in lower if word in ("long", "short")), None),
        earlier=_earlier(flat, lower),
        follows=FOLLOWS.search(plain) is not None,
    )


def _implied(text: str, topics: frozenset[str], names: QuestionNames) -> frozenset[str]:
    """Topics that no single word names."""
    found = set()
    if SHOULD.search(text) and names.playbooks:
        found.add("against")
    if not topics and HOW_DID.search(text) and (names.playbooks or names.symbols or " we " in text):
        found.add("trades")
    if BOOKS.search(text) and not names.playbooks:
        found.add("books")
    if RANKED.search(text):
        found.add("ranked")
    return frozenset(found)


def _without_phrases(text: str) -> str:
    """The text with each phrase that means something else than its words as the word that it means."""
    for phrase, word in PHRASES:
        text = phrase.sub(f" {word} ", text)
    return text


def _moment(text: str) -> tuple[str | None, bool, str]:
    """The moment that a text names, whether it names a span, and the text without it."""
    places = sorted(places_of_days(text))
    if not places:
        return None, bool(YEAR.search(text)), text
    (start, end), first, following = places[0]
    hour = HOUR.match(text, end)
    rest = text[:start] + " " + text[hour.end() if hour else end :]
    if len(places) > 1 or AFTER.search(text[:start]):
        return None, True, rest
    if hour is not None:
        hours, minutes, seconds = (int(part or 0) for part in hour.groups())
        at = first + ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS
    else:
        at = (first if BEFORE.search(text[:start]) else following) - SECOND_NS
    return ns_to_datetime(at).strftime("%Y-%m-%dT%H:%M:%SZ"), False, rest


def _is_relative(words: Sequence[str]) -> bool:
    """Whether words like `last week` or `past 3 months` name a span."""
    spans = {*SPAN_NOUNS, *(f"{noun}s" for noun in SPAN_NOUNS)}
    marks = {"last", "past", "previous", "this", "recent", "ago"}
    return any(
        word in spans and marks & set(words[max(place - 2, 0) : place + 2])
        for place, word in enumerate(words)
    )


def _outcome(words: frozenset[str]) -> Literal["won", "lost"] | None:
    won, lost = bool(words & WON), bool(words & LOST)
    return None if won == lost else "won" if won else "lost"


def _limit(text: str) -> int | None:
    for word in (word for form in LIMITS for word in form.findall(text)):
        number = int(word) if word.isdecimal() else NUMBERS.get(word)
        if number and 1 <= number <= MOST_ITEMS:
            return number
    return None


def _is_order(words: Sequence[str]) -> bool:
    """Whether it tells somebody to do something that no question is."""
    rest = list(words)
    while rest and rest[0] in ("please", "now", "then", "and", "just", "also", "system", "assistant"):
        rest.pop(0)
    return bool(rest) and (
        rest[0] in ORDERS or rest[:2] in (["you", "must"], ["you", "should"], ["do", "not"])
    )


def _earlier(text: str, words: Sequence[str]) -> frozenset[str]:
    found = {EARLIER_KINDS.get(kind, kind) for kind in EARLIER.findall(text)}
    return frozenset(found | ({"it"} if IT & set(words) else set()))
