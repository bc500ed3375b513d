"""What stands where in a sentence: subjects, measures, numbers, and the words that join them."""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from schemas.vocabulary import FailureMode
from services.deliberation.first_letters import beginnings, may_begin
from services.deliberation.layout import Mention
from services.deliberation.numerals import (
    BRACKETED,
    COUNT_WORDS,
    FRACTION,
    FROM_TO,
    NUMBER,
    RATIO,
    WORD_NUMBER,
    edges,
    fraction,
    is_out_of_reach,
    ratio,
    worded_figure,
    written_figure,
)
from services.evidence.facts import RunNames, period_of
from services.text.claim_words import words
from services.text.dates import MONTHS, places_of_days

LEXICON = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
PARTS: dict[str, str | list[str]] = LEXICON["parts"] | {
    "NUMBER": NUMBER, "WORD_NUMBER": WORD_NUMBER, "FRACTION": FRACTION, "RATIO": RATIO
}  # fmt: skip
PART = re.compile(r"<(\w+)>")
WHOLE_WORD = r"(?:@)(?!\w)"
CAPITALS = r"\b[A-Z][A-Z0-9]{1,5}(?:[/-][A-Z]{2,5})?\b"
OPENED = re.compile(r"\b(before|prior to|until|after) (?:the )?\Z", re.I)
LONGEST_OPENING = len(" prior to the ")
YEARS = re.compile(r"(?:19|20)\d\d")
FOREVER = (0, 2**63)
MOST_BEGINNINGS = 4_096  # of words whose entries are kept
BEGINNING = re.compile(r"(?<![\w-])\S")


def _spell_out(name: str) -> str:
    """A name with blanks or hyphens where it has underscores."""
    return re.escape(name).replace("_", "[_ -]")


def _fill_pattern(written: str | list[str]) -> str:
    """One pattern, or one of several, with the parts that it names."""
    pattern = written if isinstance(written, str) else "|".join(written)
    return PART.sub(lambda found: _fill_pattern(PARTS[found[1]]), pattern)


def _entries_of(name: str) -> Iterator[tuple[str, str, Any]]:
    """The entries of a table of the lexicon."""
    measures = LEXICON["measures"]
    for row in LEXICON[name]:
        says = row.get("says") or {None: row.get("pattern")}
        if "measures" in row:
            says = {measure: measures[measure] for measure in row["measures"] or measures}
        for value, written in says.items():
            pattern = _fill_pattern(row.get("form", WHOLE_WORD)).replace("@", _fill_pattern(written))
            yield row["kind"], pattern, float(value) if row["kind"] == "factor" else value


def _plural(mode: FailureMode) -> str:
    """A failure mode in one or in several trades, in its own words."""
    name = _spell_out(mode.value)
    return f"{name[:-1]}(?:y|ies)" if name.endswith("y") else f"{name}(?:s|es)?"


def _longest(names: Any) -> list[str]:
    return sorted(names, key=lambda name: (-len(name), name))


def _names_of(
    playbooks: tuple[str, ...], parameters: tuple[str, ...], features: tuple[str, ...]
) -> list[tuple[str, str, Any]]:
    """What a text may call the parts of a run, after what is read as a whole."""
    entries: list[tuple[str, str, Any]] = [("interval", BRACKETED, None), ("interval", FROM_TO, None)]
    entries += [
        ("playbook", rf"{_spell_out(name.lower())}s?(?:'s|’s|')?(?!\w)", name) for name in _longest(playbooks)
    ]
    named = _longest(parameters)
    plain = r"(?= (?:parameter\b|(?:of|is|was|at|=|set to) \d))"
    in_atr = [name for name in named if name.endswith("_atr")]
    entries += [
        ("parameter", rf"{name[:-4].lower()}s? (?:of|at|is)(?= \d+(?:\.\d+)? ?(?:atr|x atr|times))", name)
        for name in in_atr
    ]
    entries += [
        ("parameter", rf"{_spell_out(name.lower())}\b{'' if '_' in name else plain}", name) for name in named
    ]
    entries += [
        ("parameter", rf"(?:(?<=trial of )|(?<=experiment on )){name.lower()}\b", name) for name in named
    ]
    seen = [name for name in _longest(features) if "_" in name and name not in parameters]
    return entries + [("feature", rf"{_spell_out(name.lower())}\b", name) for name in seen]


# Kind, pattern and what it stands for; where two begin at the same place, the first one is read.
ENTRIES: list[tuple[str, str, Any]] = [
    *_entries_of("first"),
    *(("failure", rf"\b{_plural(mode)}\b", mode.value) for mode in FailureMode),
    *_entries_of("entries"),
]


class Scanner:
    """Tries at each word the entries that may begin with its first two characters.

    Trying every entry at every word takes many times as long. Compiling is dear, so an entry is compiled when
    a word first begins as it may.
    """

    def __init__(self, entries: list[tuple[str, str, Any]]) -> None:
        self.entries = entries
        self._lowered = [pattern.lower() for _, pattern, _ in entries]
        self._begin = [beginnings(pattern) for pattern in self._lowered]
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._fitting = lru_cache(maxsize=MOST_BEGINNINGS)(self._that_fit)

    def scan(self, lower: str) -> Iterator[re.Match[str]]:
        """Matches in a text in lower case, one behind the other; nothing begins inside a word."""
        end = 0
        for place in BEGINNING.finditer(lower):
            start = place.start()
            if start < end:
                continue
            for pattern in self._fitting(lower[start : start + 2]):
                match = pattern.match(lower, start)
                if match is not None:
                    break
            else:
                continue
            if match.end() > start:
                end = match.end()
                yield match

    def _that_fit(self, begins: str) -> tuple[re.Pattern[str], ...]:
        """The entries that may begin with two characters, in their order."""
        return tuple(self._of(n) for n, found in enumerate(self._begin) if may_begin(found, begins))

    def _of(self, number: int) -> re.Pattern[str]:
        """An entry, as a group of its number."""
        if number not in self._compiled:
            self._compiled[number] = re.compile(f"(?P<g{number}>{self._lowered[number]})", re.MULTILINE)
        return self._compiled[number]


@lru_cache(maxsize=4)
def _compile_scanner(
    playbooks: tuple[str, ...], parameters: tuple[str, ...], features: tuple[str, ...]
) -> Scanner:
    """The scanner of a run's names."""
    return Scanner([*_names_of(playbooks, parameters, features), *ENTRIES])


@lru_cache(maxsize=4)
def _exact(symbols: tuple[str, ...]) -> re.Pattern[str]:
    """Names that are spelt in one way: symbols of the run, and other words in capitals."""
    known = "|".join(re.escape(name) for name in _longest(symbols)) or r"(?!)"
    return re.compile(rf"(?<!\w)(?:(?P<symbol>{known})(?:'s|’s)?(?!\w)|(?P<capitals>{CAPITALS}))")


class Lexicon:
    """Finds mentions; the names are those of one run."""

    def __init__(self, facts: RunNames) -> None:
        self._names = facts.names
        self._scanner = _compile_scanner(
            facts.playbook_ids, tuple(sorted(facts.parameters)), tuple(sorted(facts.features))
        )
        self._exact = _exact(facts.symbols)

    def mentions(self, text: str) -> list[Mention]:
        """Everything that a text names, in order; nothing stands in two mentions."""
        found = [_day(text, *place, (start, following)) for place, start, following in places_of_days(text)]
        spelt = list(self._spelt(text))
        found += [mention for mention in spelt if mention.kind == "symbol"]
        found = _apart(found, self._read_words(text))
        found = _apart(found, (mention for mention in spelt if mention.kind == "capitals"))
        return sorted(found, key=lambda mention: mention.start)

    def _spelt(self, text: str) -> Iterator[Mention]:
        for match in self._exact.finditer(text):
            kind = str(match.lastgroup)
            name = match[kind]
            if kind == "symbol" or name not in ABBREVIATIONS and name not in self._names:
                yield Mention(kind, match.start(), match.end(), match[0], name)

    def _read_words(self, text: str) -> Iterator[Mention]:
        lower = text.translate(LOWER)
        for match in self._scanner.scan(lower):
            kind, _, value = self._scanner.entries[int(str(match.lastgroup)[1:])]
            said = text[match.start() : match.end()]
            if not said.strip() or CASED.get(said.casefold(), said) != said:
                continue
            if kind == "id" and said != said.casefold():
                continue
            if kind == "identifier" and said in self._names:
                kind = "known"
            yield _mention(kind, match.start(), said, value)


def _day(text: str, start: int, end: int, day: tuple[int, int]) -> Mention:
    """A day; before, until or after it is a time of its own."""
    opened = OPENED.search(text, max(0, start - LONGEST_OPENING), start)
    if opened is None:
        return Mention("date", start, end, text[start:end], day)
    begin, word = opened.start(), opened[1].casefold()
    last = day[1] if word == "until" else day[0]
    value = (day[1], FOREVER[1]) if word == "after" else (FOREVER[0], last)
    return Mention("period", begin, end, text[begin:end], value)


def _apart(kept: list[Mention], further: Iterable[Mention]) -> list[Mention]:
    """Mentions with those of a further reading that overlap none of them."""
    spans = sorted(mention.place for mention in kept)
    starts = [start for start, _ in spans]
    free = []
    for mention in further:
        before = bisect_left(starts, mention.end) - 1
        if before < 0 or spans[before][1] <= mention.start:
            free.append(mention)
    return [*kept, *free]


# Spelt so, and not the other way about, they are the measure.
CASED = {"e": "E", "n": "n"}
LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
# Capitals that name no symbol.
ABBREVIATIONS = words(
    "R E N II III IV A I AM PM UTC GMT MFE MAE ATR RSI EMA SMA ADX PSR DSR USD EUR GBP USDT OK NO NOT "
    "ALL AND OR BUT THE P50 P80 P90 CPU LLM CI US UK EU PNL PL VWAP OHLC HOLD ABSTAIN"
)


def _mention(kind: str, start: int, said: str, value: Any) -> Mention:
    text = said.strip()
    begin = start + len(said) - len(said.lstrip())
    end = begin + len(text)
    if kind in IN_DIGITS and is_out_of_reach(text):
        return Mention("out_of_reach", begin, end, text)
    return Mention(kind, begin, end, text, _value(kind, text, value))


def _value(kind: str, text: str, value: Any) -> Any:
    if kind in READ:
        return READ[kind](text)
    if kind == "factor" and value < 0:
        return _times(text)
    if kind == "period":
        return _period(text, value)
    if kind == "regime" and value is None:
        return text.casefold().replace("-", "/")
    return text.casefold() if kind in ("timeframe", "side") else value


IN_DIGITS = frozenset({"number", "interval", "ratio", "factor"})
READ: dict[str, Any] = {
    "number": written_figure,
    "count_word": worded_figure,
    "interval": edges,
    "fraction": fraction,
    "ratio": ratio,
}


def _times(text: str) -> float:
    """The number in "six times" and in "2.5x"."""
    first = text.split(" ", maxsplit=1)[0].removesuffix("x").casefold()
    return float(COUNT_WORDS[first]) if first in COUNT_WORDS else float(first)


def _period(text: str, form: str) -> tuple[int, int]:
    """The first ns of a period, and the first one behind it."""
    years = [int(year) for year in YEARS.findall(text)]
    if form == "month":
        return period_of(years[0], MONTHS.index(text[:3].casefold()) + 1)
    start, end = period_of(min(years))[0], period_of(max(years))[1]
    if form != "open":
        return start, end
    lower = text.casefold()
    if lower.startswith(("since", "from")):
        return start, FOREVER[1]
    if lower.startswith("after"):
        return end, FOREVER[1]
    return FOREVER[0], end if lower.startswith(("until", "up to")) else start
