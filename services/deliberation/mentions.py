"""What stands where in a sentence: subjects, measures, numbers, and the words that join them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from schemas.vocabulary import FailureMode
from services.deliberation.claim_words import (
    ABBREVIATIONS,
    ABOVE,
    ALL,
    BEATS,
    BELOW,
    COUNT_WORDS,
    EXITS,
    FACTORS,
    GAINED,
    GRADES,
    HALF,
    HIGHEST,
    LESS,
    LOST,
    LOWEST,
    MEASURES,
    MORE,
    MOST,
    NONE,
    R_UNIT,
    SHARE_UNIT,
    TRAILS,
)
from services.evidence.run_facts import RunFacts
from services.text.dates import places_of_days

DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
NUMBER = rf"(?<![\w.])[-+−–]?[$€£]?{DIGITS}(?:\s?(?:{R_UNIT}|{SHARE_UNIT}))?(?!\w)"
WRITTEN = re.compile(
    rf"(?P<sign>[-+−–]?)(?P<money>[$€£]?)(?P<digits>{DIGITS})(?P<unit>\s?(?:{R_UNIT}|{SHARE_UNIT}))?"
)
EDGE = rf"(?:open|[-+−–]?{DIGITS}(?:\s?R)?)"
BRACKETED = rf"\[\s*{EDGE}\s*(?:,|to)\s*{EDGE}\s*\]"
FROM_TO = rf"\b(?:from|between) [-+−–]?{DIGITS}\s?R (?:to|and) [-+−–]?{DIGITS}\s?R\b"
WORD_NUMBER = rf"\b(?:(?:{'|'.join(COUNT_WORDS)})(?:[ -](?:{'|'.join(COUNT_WORDS)}))?)\b"
REGIME = r"\b(?:up|down|sideways)/(?:low|mid|high|extreme)\b"
TIMEFRAME = r"\b(?:1m|5m|15m|1h|4h|1d)\b"
IDENTIFIER = r"\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b"
CAPITALS = r"\b[A-Z][A-Z0-9]{1,5}(?:[/-][A-Z]{2,5})?\b"
ID = r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b"
YEAR = r"(?<=\b(?:in|of) )(?:19|20)\d\d\b(?!\s*(?:trades|R\b|%))"
ITEM = r"^\s*(?:[-*] )?\d{1,2}[.)](?=\s)"  # of a numbered list


@dataclass(frozen=True)
class Mention:
    """One thing that a sentence names: what kind of thing, where, its words, and what they stand for."""

    kind: str
    start: int
    end: int
    text: str
    value: Any = None

    def moved(self, by: int) -> "Mention":
        """The same mention in a text that begins elsewhere."""
        return Mention(self.kind, self.start + by, self.end + by, self.text, self.value)


@dataclass(frozen=True)
class Figure:
    """A number as it is written: in its unit, with the step of its last digit.

    `sign` is what is written before it, empty where nothing is.
    """

    value: float
    step: float
    sign: str
    unit: str


def _worded(name: str) -> str:
    """A name with blanks or hyphens where it has underscores."""
    return re.escape(name).replace("_", "[_ -]")


def _listed(kind: str, patterns: dict[str, str]) -> list[tuple[str, str, Any]]:
    return [(kind, rf"(?<![\w-])(?:{pattern})(?![\w])", value) for value, pattern in patterns.items()]


def _plural(mode: FailureMode) -> str:
    """A failure mode in one or in several trades."""
    name = _worded(mode.value)
    return f"{name[:-1]}(?:y|ies)" if name.endswith("y") else f"{name}(?:s|es)?"


def _longest(names: Any) -> list[str]:
    return sorted(names, key=lambda name: (-len(name), name))


def _names_of(
    playbooks: tuple[str, ...], symbols: tuple[str, ...], parameters: tuple[str, ...]
) -> list[tuple[str, str, Any]]:
    """What a text may call the playbooks, symbols and parameters of a run, after what is read as a whole."""
    entries: list[tuple[str, str, Any]] = [("interval", BRACKETED, None), ("interval", FROM_TO, None)]
    entries += [("playbook", rf"\b{_worded(name)}(?:'s)?(?!\w)", name) for name in _longest(playbooks)]
    entries += [("symbol", rf"(?<!\w){re.escape(name)}(?:'s)?(?!\w)", name) for name in _longest(symbols)]
    named = [name for name in _longest(parameters) if "_" in name]
    return entries + [("parameter", rf"\b{_worded(name)}\b", name) for name in named]


EXACT = frozenset({"symbol", "capitals", "id", "number"})
# Kind, pattern and what it stands for; where two begin at the same place, the first one is read.
ENTRIES: list[tuple[str, str, Any]] = [
    *(("failure", rf"\b{_plural(mode)}\b", mode.value) for mode in FailureMode),
    *_listed("grade", GRADES),
    *_listed("exit", EXITS),
    ("regime", REGIME, None),
    ("timeframe", TIMEFRAME, None),
    ("identifier", IDENTIFIER, None),
    ("id", ID, None),
    ("year", YEAR, None),
    ("item", ITEM, None),
    *_listed("factor", {"": FACTORS}),
    *_listed("quantifier", {"all": ALL, "most": MOST, "half": HALF}),
    *_listed("bound", {">": ABOVE, "<": BELOW}),
    ("compared", rf"\b(?:{MORE})\b(?=[^.;]{{0,120}}\bthan\b)", ">"),
    ("compared", rf"\b(?:{LESS})\b(?=[^.;]{{0,120}}\bthan\b)", "<"),
    *_listed("compared", {">": BEATS, "<": TRAILS}),
    *_listed("measure", MEASURES),
    *_listed("extreme", {"highest": HIGHEST, "lowest": LOWEST}),
    *_listed("direction", {"gained": GAINED, "lost": LOST}),
    *_listed("quantifier", {"none": NONE}),
    ("number", NUMBER, None),
    ("count_word", WORD_NUMBER, None),
    ("capitals", CAPITALS, None),
    ("side", r"\b(?:long|short)\b", None),
]


@lru_cache(maxsize=4)
def _compiled(
    playbooks: tuple[str, ...], symbols: tuple[str, ...], parameters: tuple[str, ...]
) -> tuple[re.Pattern[str], list[tuple[str, str, Any]]]:
    """One pattern of every entry, each as a group of its own number."""
    entries = [*_names_of(playbooks, symbols, parameters), *ENTRIES]
    groups = (
        f"(?P<g{number}>{f'(?-i:{pattern})' if kind in EXACT else pattern})"
        for number, (kind, pattern, _) in enumerate(entries)
    )
    # Nothing begins inside a word, or with a blank.
    return re.compile(rf"(?<!\w)(?=\S)(?:{'|'.join(groups)})", re.MULTILINE | re.IGNORECASE), entries


class Lexicon:
    """Finds mentions; the names are those of one run."""

    def __init__(self, facts: RunFacts) -> None:
        self._names = facts.names
        self._pattern, self._entries = _compiled(
            facts.playbook_ids, facts.symbols, tuple(sorted(facts.parameters))
        )

    def mentions(self, text: str) -> list[Mention]:
        """Everything that a text names, in order; nothing stands in two mentions."""
        days = [
            Mention("date", *place, text[slice(*place)], (start, following))
            for place, start, following in places_of_days(text)
        ]
        taken = [(day.start, day.end) for day in days]
        found = []
        for match in self._pattern.finditer(text):
            begin, end = match.span()
            if not any(begin < last and first < end for first, last in taken):
                kind, _, value = self._entries[int(str(match.lastgroup)[1:])]
                found.append(Mention(kind, begin, end, match[0], _value(kind, match[0], value)))
        return sorted([*days, *self._known(found)], key=lambda mention: mention.start)

    def _known(self, found: list[Mention]) -> Iterator[Mention]:
        for mention in found:
            if mention.kind == "capitals" and (mention.text in ABBREVIATIONS or mention.text in self._names):
                continue
            if mention.kind == "identifier" and mention.text in self._names:
                continue
            yield mention


def _value(kind: str, text: str, value: Any) -> Any:
    if kind == "number":
        written = WRITTEN.fullmatch(text)
        return None if written is None else _figure_of(written)
    if kind == "count_word":
        return Figure(float(_counted(re.split(r"[ -]", text.casefold()))), 1.0, "", "")
    if kind == "interval":
        return tuple(None if edge == "open" else _edge(edge) for edge in re.findall(EDGE, text))
    return text.casefold() if kind in ("regime", "timeframe", "side") else value


def _figure_of(written: re.Match[str]) -> Figure:
    return figure(written["digits"], written["sign"], (written["unit"] or written["money"]).strip())


def _counted(parts: list[str]) -> int:
    total = 0
    for part in parts:
        number = COUNT_WORDS[part]
        total = total * number if part in ("hundred", "dozen") and total else total + number
    return total


def _edge(text: str) -> Figure:
    sign = text[0] if text[0] in "-+−–" else ""
    return figure(text.removeprefix(sign).removesuffix("R").strip(), sign, "R")


def figure(digits: str, sign: str, unit: str) -> Figure:
    """A number from its digits, with the step of the last one that is written."""
    plain = digits.replace(",", "")
    mantissa, _, exponent = plain.lower().partition("e")
    step = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    value = float(plain)
    return Figure(-value if sign in ("-", "−", "–") else value, step, sign, unit)
