"""What a question names: symbols, playbooks, regimes, moments, ids, outcomes, and the topics it speaks of.

By rules over its words, whatever their case and with their commoner misspellings. A name that the run does
not have is said to be unknown, never replaced.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.planning.name_matching import NameVectors
from agents.planning.question_words import (
    IT,
    LOST,
    NUMBERS,
    PLAIN,
    SPAN_NOUNS,
    SPANS,
    TOPICS,
    VAGUE,
    WANTED_WHOLE,
    WON,
    is_plain,
    topic_word,
)
from schemas.canonical import ns_to_datetime
from schemas.vocabulary import Trend, VolatilityBand
from services.evidence.tool_arguments import MOST_ITEMS
from services.text.claim_words import words as words_of
from services.text.dates import places_of_days

ID = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{6,64}\b", re.IGNORECASE)
REGIME = re.compile(
    rf"\b({'|'.join(Trend)})(?:trend)?\s*[/,-]?\s*({'|'.join(VolatilityBand)})(?:\s+vol(?:atility)?)?\b",
    re.IGNORECASE,
)
HOUR = re.compile(r"[T ,]+(?:at\s+)?(\d{1,2}:\d{2}(?::\d{2})?)\s*(?:Z|UTC)?", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_'/.-]*")
LIMITS = (
    re.compile(r"\b(?:last|latest|newest|recent|past|previous|top)\s+(\w+)\b"),
    re.compile(r"\b(\w+)\s+(?:most\s+)?(?:recent|latest|newest|last)\b"),
)
ONE = re.compile(
    r"\b(?:last|latest|newest|most recent|previous)\s+(?:\S+\s+){0,3}?"
    r"(?:trade|fill|exit|entry|episode|order|report|loss|loser|win|winner|stop)\b"
)
BEFORE = re.compile(r"\b(?:before|prior to)\s*$", re.IGNORECASE)
AFTER = re.compile(r"\b(?:after|since|from|between)\s*$", re.IGNORECASE)
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
EARLIER = re.compile(
    r"\b(?:that|this|the same|the)\s+(symbol|ticker|stock|instrument|playbook|strategy|fill|trade|exit|one)\b"
)
PLAYBOOK_CLOSE, SYMBOL_CLOSE = 0.64, 0.62
NAME_BEFORE = words_of("of for on in about did does is has was with at between and or vs versus")
MOST_WORDS = 3


@dataclass(frozen=True)
class Reading:
    """What one part of a question names.

    Attributes:
        unsure: names that may be meant, of which the question does not say which.
        unknown: words where a name should be that the run does not have.
        earlier: kinds of things that an earlier turn is to name.
    """

    text: str
    topics: frozenset[str] = frozenset()
    symbols: tuple[str, ...] = ()
    playbooks: tuple[str, ...] = ()
    regimes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    at: str | None = None
    is_span: bool = False
    outcome: Literal["won", "lost"] | None = None
    limit: int | None = None
    is_one: bool = False
    is_whole: bool = False
    is_vague: bool = False
    is_guessed: bool = False
    direction: str | None = None
    unsure: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    earlier: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether it speaks of nothing."""
        return not (self.topics or self.symbols or self.playbooks or self.ids or self.regimes)


def read_question(text: str, context: Mapping[str, Any]) -> Reading:
    """What a text names among the symbols and playbooks of `context`."""
    plain = text.replace("\u2019", "'")
    ids = tuple(dict.fromkeys(found.lower() for found in ID.findall(plain)))
    at, is_span, rest = _moment(ID.sub(" ", plain))
    regimes = tuple(dict.fromkeys("/".join(found).lower() for found in REGIME.findall(rest)))
    rest = REGIME.sub(" ", rest)
    words = [word.strip("'./-") for word in WORD.findall(rest)]
    names = _Names.of(words, context)
    lower = [word.casefold() for word in words]
    left = {word.casefold() for word in names.left}
    cues = {word: cue for word in lower if word in left and (cue := topic_word(word.removesuffix("'s")))}
    found = frozenset(cues.values())
    flat = " ".join(lower)
    return Reading(
        text=text,
        topics=frozenset(topic for topic, some in TOPICS.items() if found & some),
        regimes=regimes,
        ids=ids,
        at=at,
        is_span=is_span or bool(SPANS & set(lower)) or _is_relative(lower),
        outcome=_outcome(found),
        limit=_limit(flat),
        is_one=ONE.search(" ".join(cues.get(word, word) for word in lower)) is not None,
        is_whole=bool(WANTED_WHOLE & set(lower)),
        is_vague=bool(VAGUE & set(lower)),
        is_guessed=names.is_guessed or any(word.removesuffix("'s") != cue for word, cue in cues.items()),
        direction=next((word for word in lower if word in ("long", "short")), None),
        symbols=names.symbols,
        playbooks=names.playbooks,
        unsure=names.unsure,
        unknown=names.unknown,
        earlier=_earlier(flat, lower),
    )


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
    if hour:
        day = ns_to_datetime(first).date().isoformat()
        clock = hour.group(1).zfill(5) if hour.group(1).count(":") == 1 else hour.group(1).zfill(8)
        return f"{day}T{clock if len(clock) == 8 else clock + ':00'}Z", False, rest
    last = first - 1_000_000_000 if BEFORE.search(text[:start]) else following - 1_000_000_000
    return ns_to_datetime(last).strftime("%Y-%m-%dT%H:%M:%SZ"), False, rest


def _is_relative(words: Sequence[str]) -> bool:
    """Whether words like `last week` or `past 3 months` name a span."""
    spans = {*SPAN_NOUNS, *(f"{noun}s" for noun in SPAN_NOUNS)}
    return any(
        word in spans
        and {"last", "past", "previous", "this", "recent", "ago"} & set(words[max(place - 2, 0) : place + 2])
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


def _earlier(text: str, words: Sequence[str]) -> frozenset[str]:
    kinds = {
        "ticker": "symbol",
        "stock": "symbol",
        "instrument": "symbol",
        "strategy": "playbook",
        "exit": "fill",
    }
    found = {kinds.get(kind, kind) for kind in EARLIER.findall(text)}
    return frozenset(found | ({"it"} if IT & set(words) else set()))


@dataclass
class _Names:
    """Names among words."""

    symbols: tuple[str, ...] = ()
    playbooks: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    is_guessed: bool = False

    @classmethod
    def of(cls, words: Sequence[str], context: Mapping[str, Any]) -> "_Names":
        """Names of playbooks first, as they are longer, then of symbols, then those that are unknown."""
        found = cls()
        left = found._take_playbooks(list(words), tuple(context.get("playbooks", ())))
        left = found._take_symbols(left, tuple(context.get("symbols", ())))
        found.left = tuple(word for word in left if word)
        found.unknown = tuple(dict.fromkeys(_unknown(left)))
        return found

    def _take_playbooks(self, words: list[str], known: Sequence[str]) -> list[str]:
        if not known:
            return words
        vectors = NameVectors(known)
        windows = [
            (matched, start, size)
            for size in range(1, MOST_WORDS + 1)
            for start in range(len(words) - size + 1)
            if (matched := _playbook(vectors, words[start : start + size]))
        ]
        for (cosine, names), start, size in sorted(windows, key=lambda one: (-one[0][0], one[2], one[1])):
            if "" in words[start : start + size]:
                continue  # a nearer name was made of one of these words
            words[start : start + size] = [""] * size
            self.is_guessed |= cosine < 1
            if len(names) > 1 and not set(names) & set(self.playbooks):
                self.unsure += names
            elif len(names) == 1:
                self.playbooks = tuple(dict.fromkeys((*self.playbooks, names[0])))
        return words

    def _take_symbols(self, words: list[str], known: Sequence[str]) -> list[str]:
        whole = {symbol.casefold(): symbol for symbol in known}
        bases = [symbol.partition("/")[0].casefold() for symbol in known]
        whole |= {base: symbol for base, symbol in zip(bases, known, strict=True) if bases.count(base) == 1}
        vectors = NameVectors(known) if known else None
        for place, word in enumerate(words):
            bare = word.casefold().removesuffix("'s").strip("'./-")
            symbol = whole.get(bare)
            if (
                symbol is not None
                and (is_plain(bare) or topic_word(bare))
                and not word.removesuffix("'s").isupper()
            ):
                continue
            if symbol is None and vectors and len(bare) > 3 and not is_plain(bare) and not topic_word(bare):
                near = vectors.match(bare, SYMBOL_CLOSE)
                symbol = near[0] if len(near) == 1 else None
                self.is_guessed |= symbol is not None
            if symbol is not None:
                self.symbols = tuple(dict.fromkeys((*self.symbols, symbol)))
                words[place] = ""
        return words


def _playbook(vectors: NameVectors, words: Sequence[str]) -> tuple[float, tuple[str, ...]] | None:
    """The playbooks that some words mean, with how near they are."""
    bare = [word.casefold().removesuffix("'s") for word in words]
    if any(word in PLAIN or not word for word in bare) or (len(bare) == 1 and topic_word(bare[0]) == bare[0]):
        return None
    text = " ".join(bare)
    names = vectors.match(text, PLAYBOOK_CLOSE)
    return (vectors.nearest(text)[0][0], names) if names else None


def _unknown(words: Sequence[str]) -> Iterator[str]:
    """Words that stand where a name stands, or look like one, and are no words of ours."""
    shouted = sum(word.isupper() for word in words) > len(words) / 2
    for place, word in enumerate(words):
        bare = word.casefold().removesuffix("'s")
        if not bare or is_plain(bare) or topic_word(bare) or bare.replace(".", "").isdigit():
            continue
        before = words[place - 1].casefold() if place else ""
        is_symbol = word.isupper() and 2 <= len(word) <= 6 and not shouted
        if "_" in word or is_symbol or before in NAME_BEFORE:
            yield word


def named_before(reading: Reading, earlier: Reading) -> Reading:
    """A reading whose `it` is what an earlier part of the same question names."""
    if (
        "it" not in reading.earlier
        or reading.symbols
        or reading.playbooks
        or not (earlier.symbols or earlier.playbooks)
    ):
        return reading
    return replace(
        reading, symbols=earlier.symbols, playbooks=earlier.playbooks, earlier=reading.earlier - {"it"}
    )


def joined(names: Iterable[str]) -> str:
    """Names as a sentence has them."""
    return ", ".join(names) or "none"
