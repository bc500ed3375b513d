"""What a text states of a report: expectations, drift, what could be detected, what is advised.

The forms of `report_forms.toml` are whole statements: one stands between two boundaries of a sentence, and
every word between them belongs to the form. It holds where its names and figures are those of one record.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from services.deliberation.held import Held, judge_claim, plainly, unknown
from services.deliberation.numerals import COUNT_WORDS, DIGITS, SIGN, worded_figure, written_figure
from services.deliberation.report_records import Record, records_of
from services.evidence.facts import Subject
from services.evidence.run_facts import RunFacts

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
SLACK = 0.5000001  # of the last digit: a stored value may be rounded already
LEAD = re.compile(r"\s{0,3}(?:(?:however|overall|still|so far|therefore|thus|and|but),? )?", re.IGNORECASE)
NEXT = re.compile(BOUNDARY, re.IGNORECASE)
COUNTS_ON = re.compile(r"\bof (?:them|these|those|which)\b", re.IGNORECASE)
BARS = re.compile(r" bars?$")
CARRIED = ("action", "mode")  # what a second statement leaves out: "hold for P with ... and for Q with ..."
WHOM = ("book", "side", "regime")
OF_TRADES = frozenset({"failure", "failure_of"})
RISING = frozenset({"rose", "climbed", "increased", "grew"})
FALLING = frozenset({"fell", "dropped", "decreased", "declined"})
BEYOND, NONE, SOME, WENT = "<>", "none", "some", "went"


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
    written = dict(_read_forms())
    words, _ = written.pop("words"), written.pop("told")
    return tuple(
        Form(of, _compile_form(statement, words), where)
        for of, statements in written.items()
        for statement, where in statements.items()
    )


def words_of_value(name: str) -> str:
    """What a value of a record is called where a reader is told of it."""
    return str(_read_forms()["told"][name])


@cache
def _read_forms() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("report_forms.toml").read_text("utf-8"))


def _compile_form(statement: str, words: Mapping[str, str]) -> re.Pattern[str]:
    named = re.compile("|".join(sorted(words, key=len, reverse=True)))
    while named.search(statement):
        statement = named.sub(lambda found: words[found[0]], statement)
    filled = SLOT.sub(lambda slot: f"(?P<{slot[1]}>{UNITS[slot[2] or '']})", statement)
    return re.compile(f"{filled}(?={BOUNDARY})", re.IGNORECASE)


Places = Mapping[tuple[int, int], Held]


class ReportStatements:
    """Reads what sentences state of the newest report of some facts."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts

    def of(self, text: str) -> Places:
        """The statements of a sentence, by place, with their verdicts."""
        if self._facts.report is None or MARK.search(text) is None:
            return {}
        return dict(self._read(text))

    @cached_property
    def _records(self) -> Mapping[str, tuple[Record, ...]]:
        lost = len(self._facts.trades(Subject(outcome="lost")))
        return {} if self._facts.report is None else records_of(self._facts.report, lost)

    def _read(self, text: str) -> Iterator[tuple[tuple[int, int], Held]]:
        lead = LEAD.match(text)
        place = lead.end() if lead else 0
        carried: dict[str, str] = {}
        while place < len(text):
            read = [item for item in _longest(text, place, carried) if item[0].of not in self._later]
            said = read[0][1].groupdict() if read else {}
            carried = (carried if read else {}) | {name: said[name] for name in CARRIED if said.get(name)}
            if read:
                others, end = self._read_list(read[0][1], text)
                held = [self._best(read, text[:place], carried, whom) for whom in (None, *others)]
                yield (place, end), next((claim for claim in held if claim.verdict != "verified"), held[0])
                place = end
            following = (match.end() for match in NEXT.finditer(text, place) if match.end() > place)
            place = next(following, len(text))

    @cached_property
    def _later(self) -> frozenset[str]:
        """Sorts that count trades, where more may be known than the report has: their forms are not read."""
        report = self._facts.report
        return OF_TRADES if report is None or self._facts.known_at > report.known_at else frozenset()

    @cached_property
    def _whom(self) -> str:
        """A playbook, with a side and a regime where it is named with them."""
        books = "|".join(re.escape(book).replace("_", "[_ ]") for book in self._facts.playbook_ids)
        return rf"\b({books})\b(?: (long|short)\b)?(?:,? (?:in|under)(?: the)? (\w+/\w+))?"

    @cached_property
    def _cluster(self) -> re.Pattern[str]:
        return re.compile(self._whom, re.IGNORECASE)

    @cached_property
    def _list(self) -> re.Pattern[str]:
        """What goes on behind the one that a statement ends with: ", Q and S"."""
        one = rf"(?:\s{{0,3}},{GAP}(?:and{GAP})?|{GAP}and{GAP})(?:for |of |in )?{self._whom}"
        return re.compile(rf"(?:{one}(?={BOUNDARY}))+", re.IGNORECASE)

    def _read_list(self, found: re.Match[str], text: str) -> tuple[list[dict[str, str]], int]:
        """Of whom else a statement is told, by name, and where that list ends."""
        ends = [found.end(group) for group in WHOM if group in found.re.groupindex]
        more = self._list.match(text, found.end()) if found.end() in ends else None
        if more is None:
            return [], found.end()
        others = [self._list_names(match) for match in self._cluster.finditer(more[0])]
        known = found.re.groupindex.keys()  # no record of this sort is of a side or a regime beside them
        return [other if other.keys() <= known else {"book": ""} for other in others], more.end()

    def _list_names(self, one: re.Match[str]) -> dict[str, str]:
        return {name: said for name, said in zip(WHOM, one.groups(), strict=True) if said}

    def _best(
        self,
        read: list[tuple[Form, re.Match[str]]],
        before: str,
        carried: Mapping[str, str],
        whom: Mapping[str, str] | None,
    ) -> Held:
        """What is held of one of those that a statement is told of, by the form that bears it out best."""
        held = [
            self._hold(form, _read_slots(found, carried), self._names(found, before, carried, whom))
            for form, found in read
        ]
        return next((claim for claim in held if claim.verdict == "verified"), held[0])

    def _names(
        self, found: re.Match[str], before: str, carried: Mapping[str, str], whom: Mapping[str, str] | None
    ) -> dict[str, str | None]:
        """Whose record is meant; what is called "it" is the one that the sentence named before."""
        groups = [group for group in NAMES if group in found.re.groupindex]
        named = {group: found[group] or carried.get(group) for group in groups}
        clusters = {match.groups() for match in self._cluster.finditer(before)}
        if whom is None and "book" in named and named["book"] is None and len(clusters) == 1:
            whom = dict(zip(WHOM, clusters.pop(), strict=True))
        if whom is not None:
            named |= {group: whom.get(group) for group in WHOM if group in named}
        return {group: said and said.casefold().replace(" ", "_") for group, said in named.items()}

    def _hold(self, form: Form, said: Mapping[str, str], named: Mapping[str, str | None]) -> Held:
        """The verdict on one statement by the record that it names."""
        records = [record for record in self._records[form.of] if _is_of(record, named)]
        if len(records) != 1:
            return unknown()
        record = records[0]
        wrong = [name for name, text in said.items() if not _is_so(name, text, record)]
        wrong += [name for name, must in form.where.items() if not _meets(record[name], must)]
        names = dict.fromkeys(name for slot in wrong for name in values_of(slot))
        values = [_write_value(record[name]) for name in names]
        told = zip(map(words_of_value, names), values, strict=True)
        differs = ", ".join(f"{name}: {value}" for name, value in told)
        return judge_claim(not wrong, differs or "a record of the report", (self._facts.report_row,), values)


def leading(text: str, stated: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The statements with which a sentence begins, each up to where what follows it begins.

    None where what follows counts on ("281 trades were made, and 60 of them ..."): it is read with them.
    """
    if COUNTS_ON.search(text):
        return
    lead = LEAD.match(text)
    begin = lead.end() if lead else 0
    for start, end in sorted(stated):
        if start > begin:
            return
        following = NEXT.match(text, end)
        begin = end if following is None else following.end()
        yield start, begin


def _longest(text: str, place: int, carried: Mapping[str, str]) -> list[tuple[Form, re.Match[str]]]:
    """The forms that reach furthest from a place to a boundary."""
    read = [(form, found) for form in forms() if (found := form.pattern.match(text, place)) is not None]
    read = [statement for statement in read if _is_whole(statement[1], carried)]
    end = max((found.end() for _, found in read), default=None)
    return [statement for statement in read if statement[1].end() == end]


def _is_whole(found: re.Match[str], carried: Mapping[str, str]) -> bool:
    """Whether what a statement leaves out was said before it."""
    told = found.groupdict()
    return all(told[name] or carried.get(name) for name in CARRIED if name in told)


def _read_slots(found: re.Match[str], carried: Mapping[str, str]) -> dict[str, str]:
    """What a statement says of a record, by slot, beside whose it is."""
    told = {name: text or carried.get(name) for name, text in found.groupdict().items()}
    return {name: text for name, text in told.items() if text and name not in NAMES}


def _is_of(record: Record, named: Mapping[str, str | None]) -> bool:
    """Whether a record is the one that a statement names."""
    return all(
        _plain(record[NAMES[group]]) == said for group, said in named.items() if NAMES[group] in record
    )


def _plain(name: object) -> object:
    return name.casefold() if isinstance(name, str) else name


def values_of(slot: str) -> tuple[str, ...]:
    """The values of a record that a slot is of: where it says which way one went, both ends."""
    if not slot.startswith(WENT):
        return (slot.partition("__")[0],)
    measure = slot.removeprefix(WENT).lstrip("_")
    return (f"{measure}_before", f"{measure}_now") if measure else ("older", "newer")


def _is_so(name: str, text: str, record: Record) -> bool:
    """Whether what a statement says in one slot is what the record has."""
    if name.startswith(WENT):
        before, now = (record[end] or 0.0 for end in values_of(name))
        return text.casefold() not in (RISING if now <= before else FALLING if now >= before else ())
    [named] = values_of(name)
    value = record[named]
    if not isinstance(value, int | float):
        return str(value) == text.casefold().replace(" ", "_")
    plain = BARS.sub("", text)
    held = written_figure(plain) if re.search(r"\d", plain) else worded_figure(plain)
    if held is None:
        return False
    value = value * 100.0 if held.unit in ("%", "percent") else value
    return abs(held.value - value) <= held.step * SLACK


def _meets(value: object, must: object) -> bool:
    """Whether a value of a record is as a form must have it: none, some, beyond a limit, or itself."""
    if isinstance(must, str) and must[0] in BEYOND:
        limit = float(must[1:])
        return isinstance(value, float) and (value < limit if must[0] == "<" else value >= limit)
    if must == SOME:
        return bool(value)
    return value is None if must == NONE else value == must


def _write_value(value: object) -> str:
    return "not known" if value is None else plainly(value) if isinstance(value, float) else str(value)
