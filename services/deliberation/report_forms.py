"""The forms in which a text states a record of a report, compiled from `report_forms.toml`."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from services.deliberation.measure_words import COUNT_WORDS
from services.deliberation.numerals import DIGITS, SIGN

# Of at most three spaces: patterns that may repeat them without end take time by the cube of their number.
GAP = r"\s{1,3}"
BOUNDARY = (
    r"[.!]?\s{0,3}$"
    rf"|(?:\s{{0,3}}[,;:])?{GAP}(?:and|but|while|whereas|yet|because){GAP}"
    rf"|\s{{0,3}}[,;:]{GAP}"
)
SLOT = re.compile(r"\{(\w+)(?::(\w+))?\}")
UNITS = {
    "": rf"{SIGN}?{DIGITS}(?: ?%)?|(?:{'|'.join(sorted(COUNT_WORDS, key=len, reverse=True))})\b",
    "r": rf"{SIGN}?{DIGITS} ?R\b",
    "bars": rf"{DIGITS}(?: bars?\b)?",
    "date": r"\d{4}-\d\d-\d\d",
    "share": rf"{DIGITS}(?: ?%| percent\b)?",
}
# What names the record that is meant, by the group that reads it.
NAMES = {
    "book": "playbook_id",
    "regime": "regime",
    "side": "direction",
    "mode": "mode",
    "why": "why",
    "rank": "rank",
    "parameter": "parameter",
}
# What shows that a sentence may hold one of the forms.
MARK = re.compile(
    r"detect|\b(?:seen|found|shown)\b|need|\breach\b|\b(?:has|have) to\b|\bof (?:the )?\d+\b|\bP[589]0\b"
    r"|\b(?:review|window|report|run) (?:cover|count|h[oea])|fingerprint|mean \w*.?rank|energy"
    r"|\bp[ -]?value\b|\bof p\b|\bz of\b|expir|activat|\bmean R\b|recommend|strongest action|monitoring"
    r"|decay|\balarm|\blimit\b|averaged|unclassified|\blosers\b|\bchange\b|\bE of\b|reason to act|\bdrift",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Form:
    """One form.

    Attributes:
        of: sort of its record.
        pattern: the whole statement.
        where: what must be so of the record beside its names and figures.
    """

    of: str
    pattern: re.Pattern[str]
    where: Mapping[str, object]


@cache
def forms() -> tuple[Form, ...]:
    """Every form."""
    written = dict(_written())
    words, _ = written.pop("words"), written.pop("told")
    return tuple(
        Form(of, _compiled(statement, words), where)
        for of, statements in written.items()
        for statement, where in statements.items()
    )


def words_of_value(name: str) -> str:
    """What a value of a record is called where a reader is told of it."""
    return str(_written()["told"][name])


@cache
def _written() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _compiled(statement: str, words: Mapping[str, str]) -> re.Pattern[str]:
    named = re.compile("|".join(sorted(words, key=len, reverse=True)))
    while named.search(statement):
        statement = named.sub(lambda found: words[found[0]], statement)
    return re.compile(SLOT.sub(_slot, statement) + f"(?={BOUNDARY})", re.IGNORECASE)


def _slot(found: re.Match[str]) -> str:
    return f"(?P<{found[1]}>{UNITS[found[2] or '']})"
