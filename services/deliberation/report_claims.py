"""What a text states of a report: expectations, drift, what could be detected, what is advised.

The forms of `report_forms` are whole statements: one stands between two boundaries of a sentence, and every
word between them belongs to the form. It holds where its names and figures are those of one record.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from services.deliberation.held import Held, judged, plainly, unknown
from services.deliberation.numerals import worded_figure, written_figure
from services.deliberation.report_forms import BOUNDARY, MARK, NAMES, Form, forms
from services.deliberation.report_records import Record, records_of
from services.evidence.run_facts import RunFacts

SLACK = 0.5000001  # of the last digit: a stored value may be rounded already
LEAD = re.compile(r"\s{0,3}(?:(?:however|overall|still|so far|therefore|thus|and|but),? )?", re.IGNORECASE)
NEXT = re.compile(BOUNDARY, re.IGNORECASE)
BARS = re.compile(r" bars?$")
BELOW, NONE, WENT = "<", "none", "went"
RISING = frozenset({"rose", "climbed", "increased", "grew"})
FALLING = frozenset({"fell", "dropped", "decreased", "declined"})
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
        return {} if self._facts.report is None else records_of(self._facts.report)

    def _read(self, text: str) -> Iterator[tuple[tuple[int, int], Held]]:
        lead = LEAD.match(text)
        place = lead.end() if lead else 0
        while place < len(text):
            read = _longest(text, place)
            if read:
                held = [self._held(form, found, self._names(found, text[:place])) for form, found in read]
                best = next((one for one in held if one.verdict == "verified"), held[0])
                yield read[0][1].span(), best
                place = read[0][1].end()
            following = (one.end() for one in NEXT.finditer(text, place) if one.end() > place)
            place = next(following, len(text))

    @cached_property
    def _cluster(self) -> re.Pattern[str]:
        """A playbook, with a side and a regime where it is named with them."""
        books = "|".join(re.escape(book).replace("_", "[_ ]") for book in self._facts.playbook_ids)
        return re.compile(
            rf"\b({books})\b(?: (long|short)\b)?(?:,? (?:in|under)(?: the)? (\w+/\w+))?", re.IGNORECASE
        )

    def _names(self, found: re.Match[str], before: str) -> dict[str, str]:
        """The names in a statement; what it calls "it" is the one that the sentence named before."""
        named = {group: said for group in NAMES if (said := found.groupdict().get(group)) is not None}
        if "book" not in named and "book" in found.re.groupindex:
            clusters = {one.groups() for one in self._cluster.finditer(before)}
            for told in clusters if len(clusters) == 1 else ():
                meant = zip(("book", "side", "regime"), told, strict=True)
                named |= {name: said for name, said in meant if said and name in found.re.groupindex}
        if "book" in named:
            named["book"] = named["book"].casefold().replace(" ", "_")
        return named

    def _held(self, form: Form, found: re.Match[str], named: Mapping[str, str]) -> Held:
        """The verdict on one statement by the record that it names."""
        records = [one for one in self._records[form.of] if _is_of(one, found, named)]
        if len(records) != 1:
            return unknown()
        record = records[0]
        said = {name: text for name, text in found.groupdict().items() if text and name not in NAMES}
        wrong = [name for name, text in said.items() if not _is_so(name, text, record)]
        wrong += [name for name, must in form.where.items() if not _meets(record[name], must)]
        told = [
            (name.strip("_").replace("_", " "), _told(record.get(name.partition("__")[0]))) for name in wrong
        ]
        differs = ", ".join(f"{name} is {value}" for name, value in told)
        values = [value for _, value in told]
        return judged(not wrong, differs or "a record of the report", (self._facts.report_row,), values)


def _longest(text: str, place: int) -> list[tuple[Form, re.Match[str]]]:
    """The forms that reach furthest from a place to a boundary."""
    read = [(form, found) for form in forms() if (found := form.pattern.match(text, place)) is not None]
    end = max((found.end() for _, found in read), default=None)
    return [one for one in read if one[1].end() == end]


def _is_of(record: Record, found: re.Match[str], named: Mapping[str, str]) -> bool:
    """Whether a record is the one that a statement names."""
    groups = [group for group in NAMES if group in found.re.groupindex and NAMES[group] in record]
    return all(_plain(record[NAMES[group]]) == named.get(group) for group in groups)


def _plain(name: object) -> object:
    return name.casefold() if isinstance(name, str) else name


def _is_so(name: str, text: str, record: Record) -> bool:
    """Whether what a statement says in one slot is what the record has."""
    if name.startswith(WENT):
        measure = name.removeprefix(WENT).lstrip("_")
        ends = (f"{measure}_before", f"{measure}_now") if measure else ("older", "newer")
        before, now = (record[end] or 0.0 for end in ends)
        return text.casefold() not in (RISING if now <= before else FALLING if now >= before else ())
    value = record[name.partition("__")[0]]
    if not isinstance(value, int | float):
        return str(value) == text.casefold().replace(" ", "_")
    plain = BARS.sub("", text)
    held = written_figure(plain) if re.search(r"\d", plain) else worded_figure(plain)
    if held is None:
        return False
    value = value * 100.0 if held.unit in ("%", "percent") else value
    return abs(held.value - value) <= held.step * SLACK


def _meets(value: object, must: object) -> bool:
    """Whether a value of a record is as a form must have it: `none`, below a limit, or the value itself."""
    if isinstance(must, str) and must.startswith(BELOW):
        return isinstance(value, float) and value < float(must.removeprefix(BELOW))
    return value is None if must == NONE else value == must


def _told(value: object) -> str:
    return "not known" if value is None else plainly(value) if isinstance(value, float) else str(value)
