"""What the parts of a question name: symbols, playbooks, regimes, moments, ids, outcomes, and their topics.

By rules over their words, whatever the case and with the commoner misspellings. A name that the run does
not have is said to be unknown, never replaced. A part that gives an order is no question.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.planning.question_forms import (
    AFTER,
    ASKS,
    BEFORE,
    BOOKS,
    BY_EXIT,
    DIRECTION,
    EARLIER,
    EARLIER_KINDS,
    FOLLOWS,
    HALF_REGIME,
    HOUR,
    HOW_DID,
    ID,
    INNER_POINT,
    LIMITS,
    ONE,
    PART,
    RANKED,
    RATE,
    REGIME,
    SHOULD,
    SINCE,
    SOME,
    WORD,
    YEAR,
)
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
from agents.planning.row_questions import RowQuestion, row_question
from schemas.canonical import ns_to_datetime
from services.evidence.tool_arguments import MOST_ITEMS
from services.ports import EvidenceQuestion
from services.text.claim_words import words as words_of
from services.text.claims import sentences
from services.text.dates import places_of_days

SECOND_NS = 1_000_000_000
# Words of a market that are as much words of a trade, and of what a playbook is that are also a market's.
OF_A_TRADE = TOPICS["market"] & words_of("hold holding trading position positions")
WHETHER = re.compile(r"^(?:and )?(?:was|were|is|did|has)\b")  # the outcome is what is asked
NOT_SOME = re.compile(rf"^(?!.*{SOME.pattern})")
OF_BOTH = TOPICS["definition"] & words_of("state states history change changes changed work works active")


@dataclass(frozen=True)
class Reading:
    """What one part of a question names.

    Attributes:
        at: moment, ISO; a day stands for its end, since what happened on it is meant.
        since: the first moment that is meant, ISO, where it names one.
        rows: what it wants of the rows that are found.
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
    since: str | None = None
    rows: RowQuestion = RowQuestion()
    is_span: bool = False
    outcome: Literal["won", "lost"] | None = None
    limit: int | None = None
    is_one: bool = False
    is_whole: bool = False
    is_vague: bool = False
    is_guessed: bool = False
    is_order: bool = False
    asks_advice: bool = False
    is_by_exit: bool = False
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
    def names_a_plan(self) -> bool:
        """Whether it names what a plan is on: one symbol and one playbook."""
        return len(self.symbols) == len(self.playbooks) == 1

    @property
    def asks_of_plan(self) -> bool:
        """Whether it asks if a plan would pass: it says so, or names all that a plan is on."""
        is_whole = self.names_a_plan and "trades" not in self.topics
        return self.direction is not None and ("check" in self.topics or is_whole)

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
    spans = sentences(INNER_POINT.sub("_", question.text), parts=True)
    asked = [question.text[span.start : span.end] for span in spans]
    texts = [part for text in asked for part in PART.split(text) if part.strip(" ?.!,;")]
    found: list[Reading] = []
    for text in texts or [question.text]:
        reading = read_part(text, question.context)
        if not (found and _is_of_the_same(found[-1], reading)):
            found.append(_named_by(found[-1], reading) if found else reading)
    asking = [reading for reading in found if not reading.is_order and not reading.is_idle]
    return tuple(asking or [reading for reading in found if reading.is_order][:1] or found[:1])


def _is_of_the_same(before: Reading, reading: Reading) -> bool:
    """Whether it asks no more of the one thing that the part before it names."""
    said = reading.outcome or reading.rows.order or reading.names.strange
    return before.is_one and "it" in reading.earlier and reading.topics <= {"trades"} and not said


def _named_by(before: Reading, reading: Reading) -> Reading:
    is_open = reading.earlier & {"it", "symbol", "playbook"} and not reading.symbols and not reading.playbooks
    if not is_open or not (before.symbols or before.playbooks):
        return reading
    return reading.with_names(before.symbols, before.playbooks)


def read_part(text: str, context: Mapping[str, Any]) -> Reading:
    """What a text names among the symbols and playbooks of `context`."""
    plain = text.replace("\u2019", "'")
    ids = tuple(dict.fromkeys(found.lower() for found in ID.findall(plain)))
    at, since, is_span, rest = _moment(ID.sub(" ", plain))
    regimes = tuple(dict.fromkeys("/".join(found).lower() for found in REGIME.findall(rest)))
    rest = _without_phrases(REGIME.sub(" ", rest))
    words = [word.strip("'./-") for word in WORD.findall(rest)]
    lower = [word.casefold() for word in words]
    names = QuestionNames.of(words, context)
    left = {word.casefold() for word in names.left}
    cues = {word: cue for word in lower if word in left and (cue := topic_word(word.removesuffix("'s")))}
    found, flat = frozenset(cues.values()), " ".join(lower)
    topics = frozenset(topic for topic, some in TOPICS.items() if found & some)
    spelled = " ".join(cues.get(word, word) for word in lower)
    rows = row_question(flat, spelled, has_playbook=bool(names.playbooks or IT & set(lower)))
    one = (ONE if rows.order is None else NOT_SOME).search(spelled) is not None
    topics = _meant(topics, found, names, one=one) | _implied(flat, topics, names)
    topics = _of_rows(topics, rows, one=one)
    is_asked = one and WHETHER.search(flat) is not None
    return Reading(
        text=text,
        names=names,
        topics=topics,
        cues=len(cues),
        regimes=regimes,
        has_half_regime=HALF_REGIME.search(rest) is not None,
        ids=ids,
        at=at,
        since=since,
        rows=rows,
        is_span=is_span or (since is None and bool(SPANS & set(lower))) or _is_relative(lower),
        outcome=None if RATE.search(rest.casefold()) or rows.by or is_asked else _outcome(found),
        limit=_limit(spelled),
        is_one=one,
        is_whole=bool(WANTED_WHOLE & set(lower)),
        is_vague=bool(VAGUE & set(lower)),
        is_guessed=names.is_guessed or any(word.removesuffix("'s") != cue for word, cue in cues.items()),
        is_order=_is_order(lower),
        asks_advice=SHOULD.search(flat) is not None,
        direction=next(iter(DIRECTION.findall(flat)), None),
        is_by_exit=BY_EXIT.search(flat) is not None,
        earlier=_earlier(flat, lower),
        follows=FOLLOWS.search(plain) is not None,
    )


def _meant(
    topics: frozenset[str], cues: frozenset[str], names: QuestionNames, *, one: bool
) -> frozenset[str]:
    """The topics without those that a word only seems to name."""
    of_market = cues & TOPICS["market"]
    is_trade = (names.playbooks and not names.symbols) or (
        of_market <= OF_A_TRADE and (one or "trades" in topics)
    )
    if of_market and is_trade:  # a playbook has no price, and a last position is a trade
        return topics - {"market"} | {"trades"}
    of_book = cues & TOPICS["definition"]
    if of_book <= OF_BOTH and not names.playbooks and (names.symbols or of_market):
        return topics - {"definition"}
    return topics


def _of_rows(topics: frozenset[str], rows: RowQuestion, *, one: bool) -> frozenset[str]:
    """The topics with those that a ranking, a count, a side or a state of a playbook means."""
    if rows.asks_of_a_playbook and not rows.not_traded:
        return topics - {"trades", "market", "against", "fill", "gate"} | {"definition"}
    if "why" in topics and rows.direction and not rows.by:
        return topics - {"market", "books"} | {"fill"}
    if rows.asks_of_trades or (one and rows.direction):
        return topics - {"market", "books"} | {"trades"}
    return topics


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


def _moment(text: str) -> tuple[str | None, str | None, bool, str]:
    """The last and the first moment that a text names, whether it names another span, and the rest."""
    places = sorted(places_of_days(text))
    if not places:
        return None, None, bool(YEAR.search(text)), text
    (start, end), first, following = places[0]
    hour = HOUR.match(text, end)
    rest = text[:start] + " " + text[hour.end() if hour else end :]
    if len(places) > 1 or AFTER.search(text[:start]):
        if len(places) == 1 and hour is None and SINCE.search(text[:start]):
            return None, _text_of(first)[:10], False, f"{SINCE.sub(' ', text[:start])} {text[end:]}"
        return None, None, True, rest
    if hour is not None:
        hours, minutes, seconds = (int(part or 0) for part in hour.groups())
        at = first + ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS
    else:
        at = (first if BEFORE.search(text[:start]) else following) - SECOND_NS
    return _text_of(at), None, False, rest


def _text_of(at: int) -> str:
    return ns_to_datetime(at).strftime("%Y-%m-%dT%H:%M:%SZ")


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
