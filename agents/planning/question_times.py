"""Which moment or stretch of time does a question name?

Days, months, quarters, halves and years, written in the usual ways or told from the clock, as the first
moment that is meant and the last one.

A day in digits with day or month in front is read where it can mean one day alone. Without a clock, words
like `last week` and months without a year are a stretch that is not determined.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.planning.question_words import NUMBERS
from schemas.canonical import ns_to_datetime
from services.text.dates import DAY, MONTH, MONTHS
from services.text.dates import YEAR as YEAR_OF_DAY

PLACE = " DATE "
LAST_DAY = 31
LEAP_YEARS = 8  # two leap years are at most so far apart
YEAR = r"(?P<year>(?:19|20)\d\d)"
NUMBER = rf"(?P<number>\d{{1,3}}|couple of|few|{'|'.join(NUMBERS)})"
HOUR = re.compile(r"(?:T|[ ,]+(?:at\s+)?)(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(?:Z|UTC)?", re.IGNORECASE)
QUARTERS = {
    "first": 1,
    "1st": 1,
    "second": 2,
    "2nd": 2,
    "third": 3,
    "3rd": 3,
    "fourth": 4,
    "4th": 4,
    "last": 4,
    "final": 4,
}
ORDER = rf"(?P<order>{'|'.join(QUARTERS)})"
FORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(form, re.IGNORECASE))
    for kind, form in (
        ("day", (
            rf"\b{YEAR_OF_DAY}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})(?:(?!\d)"
            r"|(?=t\d))"
        )),
        ("day", rf"\b(?:the )?{DAY}(?:\s+|-)(?:of\s+)?{MONTH}[\s,-]+{YEAR_OF_DAY}\b"),
        ("day", rf"\b{MONTH}\s*(?:the )?{DAY}[\s,]+(?:of )?{YEAR_OF_DAY}\b"),
        ("digits", r"\b(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})(?P=mark)(?P<year>\d{4})\b"),
        ("quarter", rf"\bq(?P<quarter>[1-4])[\s,/-]*(?:of )?{YEAR}\b"),
        ("quarter", rf"\b{YEAR}[\s-]*q(?P<quarter>[1-4])\b"),
        ("quarter", rf"\b(?:the )?{ORDER} quarter(?: of|,)? {YEAR}\b"),
        ("half", rf"\bh(?P<half>[12])[\s,/-]*(?:of )?{YEAR}\b"),
        ("half", rf"\b(?:the )?{ORDER} half(?: of|,)? {YEAR}\b"),
        ("month", rf"\b{MONTH}[\s,-]*(?:of )?{YEAR}\b"),
        ("month", rf"\b{YEAR}[-/](?P<month>0[1-9]|1[0-2])\b(?![-/]\d)"),
        ("day", rf"\b(?:the )?{DAY}(?:\s+|-)(?:of\s+)?{MONTH}(?!\w)"),
        ("day", rf"\b{MONTH}\s*(?:the )?{DAY}\b(?![:\d])"),
        ("year", rf"\b(?:the )?(?:(?:calendar|whole|full) )?(?:year )?{YEAR}\b(?![-/_.]\d)"),
        ("year", (
            r"(?:(?<=\bin )|(?<=\bsince )|(?<=\bbefore )|(?<=\bafter )|(?<=\buntil )|(?<=\bduring )"
            r"|(?<=\bbetween )|(?<=\bfrom ))(?P<year>1[0-8]\d\d|2[1-9]\d\d)\b(?![-/_.]\d)"
        )),
        ("month", (
            rf"(?<=\bin ){MONTH}(?!\w)|(?<=\bsince )(?P<month2>{MONTH.replace('?P<month>', '?:')})"
            r"(?!\w)"
        )),
        ("clock", (
            rf"\b(?:in |over |during |for |within )?(?:the )?(?:last|past|previous) {NUMBER} "
            r"(?P<unit>day|week|month|year)s?\b"
        )),
        ("ago", (
            rf"\b(?:{NUMBER} (?P<unit>day|week|month|year)s?|(?P<a>an?) (?P<unit2>week|month|year)) "
            r"(?:ago\b|before the end\b(?: of (?:the|our) (?:run|test|backtest|data)\b)?)"
        )),
        ("calendar", r"\b(?P<which>this|last|past|previous|current) (?P<unit>week|month|quarter|year)\b"),
        ("calendar", r"\b(?P<which>year|month|quarter|week)[- ]to[- ]date\b|\b(?P<ytd>ytd|mtd)\b"),
        ("day", r"\b(?P<word>today|yesterday)\b|\bthis (?P<session>morning|session|afternoon)\b"),
    )
)  # fmt: skip
BETWEEN = re.compile(r"\b(?:between|from)\s*$", re.IGNORECASE)
JOINED = re.compile(r"\s*(?:to|until|till|and|through|thru|up to|-|\u2013|\u2014|\.\.\.?)\s*", re.IGNORECASE)
EDGE = re.compile(
    r"\b(?:(?:at|by|as of|in|on|until|(?P<since>since|from|after)) )?(?:the )?(?:very )?"
    r"(?P<edge>end|close|start|beginning|last day|first day) of\s*$",
    re.IGNORECASE,
)
FROM = re.compile(
    r"\b(?P<word>since|after|from|following|starting(?: (?:in|on|from|with))?|beginning(?: (?:in|on|with))?)"
    r"(?: (?:about|the (?:day|month|year)))?\s*$",
    re.IGNORECASE,
)
UNTIL = re.compile(
    r"\b(?P<word>before|prior to|until|till|til|up to|through|by|as of|as at|as it was on|not after)"
    r"(?: (?:the (?:day|month|year)))?(?: (?:in|on))?\s*$",
    re.IGNORECASE,
)
NAMED_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
# A day that may be any of several.
SOME_DAY = re.compile(
    rf"\b{NAMED_DAY},? the \d{{1,2}}(?:st|nd|rd|th)\b"
    rf"|(?<=\bon )(?:the )?{NAMED_DAY}\b|\b(?:last|next|this|past|previous) {NAMED_DAY}\b"
    rf"|\b(?:since|until|till|by|before|after|from) {NAMED_DAY}\b"
    r"|(?<=\bon )the \d{1,2}(?:st|nd|rd|th)\b(?=\W*$)",
    re.IGNORECASE,
)
BESIDE = re.compile(rf"\b(?P<name>{NAMED_DAY}),?\s+(?:the )?$", re.IGNORECASE)
YEAR_LIKE = re.compile(r"(?:19|20)\d\d")
SPAN_LEFT = re.compile(
    r"\b(?:next (?:week|month|quarter|year)|tomorrow|decade|(?:year|month|week|day) \d{1,3}"
    r"|(?:day|week|month|year)s? (?:before|after|into) the (?:start|beginning|end|run|test|backtest)"
    r"|\d0s|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|(?:last|past|this|previous) (?:day|hour"
    r"|minute|second|night|couple)s?|(?:january|february|march|april|june|july|august|september"
    r"|october|november|december))\b", re.IGNORECASE)  # fmt: skip


@dataclass(frozen=True)
class NamedTime:
    """What a text says of time.

    Attributes:
        since: first day that is meant, ISO, where it names one.
        at: last moment that is meant, ISO; a day stands for its end, since what happened on it is meant.
        is_day: whether since and at are of one day.
        is_unclear: whether it names a time that is not determined.
        rest: the text with `DATE` in place of each.
        wrong: what is wrong with a day or a span that it names; None where nothing is.
        of_day: end of the day in `from DAY`, which may be that day alone.
        is_within: whether one month, quarter or year is named, as in `in 2004`.
    """

    since: str | None
    at: str | None
    is_day: bool
    is_unclear: bool
    rest: str
    wrong: str | None = None
    of_day: str | None = None
    is_within: bool = False


@dataclass(frozen=True)
class _Span:
    start: int
    end: int
    first: datetime
    following: datetime
    hour: datetime | None = None
    is_about: bool = False  # as `a year ago`, which is not that day alone


def named_time(text: str, known_at: datetime | None, symbols: Sequence[str] = ()) -> NamedTime:
    """The time that a text names, with words like `last month` told from the clock.

    A symbol that reads as a month or a year is one where a time stands beside it.
    """
    if wrong := _no_such_day(text, known_at):
        return NamedTime(None, None, False, False, text, wrong)
    named = _symbols_in(text, symbols)
    found = sorted(_stretches(text, known_at, named), key=_start)
    if not found and named:
        found = sorted(_stretches(text, known_at, _symbols_in(text, symbols, sure=True)), key=_start)
    if not found:
        some = SOME_DAY.search(text)
        wrong = f"{some[0]!r} may be any of several days: name one, such as 2004-06-30." if some else None
        return NamedTime(None, None, False, SPAN_LEFT.search(text) is not None, text, wrong)
    for begun in (span for span in found if _is_day(span)):
        if named_day := BESIDE.search(text, 0, begun.start):
            name, told = named_day["name"], f"{begun.first:%A}"
            if name.casefold() != told.casefold():
                wrong = f"{_day(begun.first)} is a {told}, no {name}."
                return NamedTime(None, None, False, False, text, wrong)
            rest = text[: named_day.start()] + " " * len(named_day[0]) + text[named_day.end() :]
            return named_time(rest, known_at, symbols)
    if len(found) == 2:
        one, other = found
        is_within = one.first <= other.first and other.following <= one.following
        if is_within and not JOINED.fullmatch(text[one.end : other.start]):  # the same, said more exactly
            rest = text[: one.start] + " " * (one.end - one.start) + text[one.end :]
            return named_time(rest, known_at, symbols)
    first, last = found[0], found[-1]
    if len(found) == 2 and JOINED.fullmatch(text[first.end : last.start]):
        before = BETWEEN.sub(" ", text[: first.start])
        rest = f"{before}{PLACE}{text[last.end :]}"
        if last.following <= first.first:
            wrong = f"The span from {_day(first.first)} to {_day(last.first)} ends before it begins."
            return NamedTime(None, None, False, False, rest, wrong)
        return NamedTime(_day(first.first), _moment(last.following), False, False, rest)
    if len(found) > 1:
        for span in reversed(found):
            text = text[: span.start] + PLACE + text[span.end :]
        return NamedTime(None, None, False, True, text)
    return _of_one(text, first, known_at)


def _of_one(text: str, first: _Span, known_at: datetime | None) -> NamedTime:
    """The time that one stretch and the words before it name."""
    before, after = text[: first.start], text[first.end :]
    rest = before + PLACE + after
    if edge := EDGE.search(before):
        at = (
            first.following
            if edge["edge"].casefold() in ("end", "close", "last day")
            else first.first + timedelta(days=1)
        )
        rest = before[: edge.start()] + PLACE + after
        if edge["since"]:
            return NamedTime(_day(at - timedelta(days=1)), None, False, False, rest)
        return NamedTime(None, _moment(at), False, False, rest)
    if first.hour is not None:
        return NamedTime(None, _moment(first.hour, 0), False, False, rest)
    if since := FROM.search(before):
        is_day = first.following - first.first == timedelta(days=1)
        begin = (
            first.following
            if since["word"].casefold() in ("after", "following") and not is_day
            else first.first
        )
        of_day = _moment(first.following) if is_day and since["word"].casefold() == "from" else None
        rest = before[: since.start()] + PLACE + after
        return NamedTime(_day(begin), None, False, False, rest, of_day=of_day)
    if until := UNTIL.search(before):
        is_before = until["word"].casefold() in ("before", "prior to")
        at = first.first if is_before else first.following
        return NamedTime(None, _moment(at), False, False, before[: until.start()] + PLACE + after)
    if first.is_about:
        return NamedTime(None, _moment(first.following), False, False, rest)
    if known_at is not None and first.following > known_at >= first.first:
        return NamedTime(_day(first.first), None, _is_day(first), False, rest)
    is_day = _is_day(first)
    return NamedTime(_day(first.first), _moment(first.following), is_day, False, rest, is_within=not is_day)


def _is_day(one: _Span) -> bool:
    return one.following - one.first == timedelta(days=1)


def _start(span: _Span) -> int:
    return span.start


def _no_such_day(text: str, known_at: datetime | None) -> str | None:
    """What is wrong with a day that no calendar has; None where there is no such day."""
    for kind, form in FORMS:
        for found in form.finditer(text) if kind in ("day", "digits") else ():
            said = found.groupdict()
            if kind == "day" and not said.get("year") and int(said.get("day") or 99) > LAST_DAY:
                continue  # a number beside a month
            try:
                _span(kind, found, _before(known_at))
            except (ValueError, OverflowError):
                return f"There is no day {found[0].strip()!r}: name one, such as 2004-06-30."
    return None


def _symbols_in(text: str, symbols: Sequence[str], *, sure: bool = False) -> list[tuple[int, int]]:
    """Where symbols stand that read as a month, in capitals, or as a year; `sure`: those that are no time."""
    found: list[tuple[int, int]] = []
    for symbol in symbols:
        if symbol.isdigit() and not YEAR_LIKE.fullmatch(symbol):
            form = rf"\b{symbol}\b(?![-/.]\d)"
        elif sure:
            continue
        elif symbol.isdigit():
            form = rf"(?:(?<=\bof )|(?<=\bfor )|(?<=\bsymbol )){symbol}\b(?![-/.]\d)(?! (?:to|and|until) )"
        elif re.fullmatch(MONTH, symbol, re.IGNORECASE):
            form = rf"\b{re.escape(symbol.upper())}\b(?!\.?[\s,-]*\d)"
        else:
            continue
        found += [match.span() for match in re.finditer(form, text)]
    return found


def _before(known_at: datetime | None) -> datetime | None:
    """The last moment of the clock."""
    return None if known_at is None else known_at - timedelta(microseconds=1)


def _stretches(
    text: str, known_at: datetime | None, named: Sequence[tuple[int, int]] = ()
) -> Iterator[_Span]:
    """The times of a text, but for what stands where something is named."""
    taken, clock = list(named), _before(known_at)
    for kind, form in FORMS:
        for found in form.finditer(text):
            start, end = found.span()
            if any(start < stop and end > begin for begin, stop in taken):
                continue
            try:
                span = _span(kind, found, clock)
            except (ValueError, OverflowError):
                continue  # no such day
            if span is None:
                taken.append(found.span())  # no part of it is a time of its own
                continue
            hour = HOUR.match(text, end) if span[1] - span[0] == timedelta(days=1) else None
            moment = None
            if hour is not None:
                hours, minutes, seconds = (int(part or 0) for part in hour.groups())
                moment, end = span[0] + timedelta(hours=hours, minutes=minutes, seconds=seconds), hour.end()
            taken.append((start, end))
            is_about = kind == "ago" and "day" not in (found["unit"], found["unit2"])
            yield _Span(start, end, *span, moment, is_about)


def _span(kind: str, found: re.Match[str], clock: datetime | None) -> tuple[datetime, datetime] | None:
    """First moment and the first one after it; None where it is not determined.

    Raises:
        ValueError: there is no such day.
    """
    said = found.groupdict()
    if kind in ("clock", "ago", "calendar") or said.get("word") or said.get("session"):
        return None if clock is None else _read_range(kind, said, clock)
    if kind == "digits":
        return _of_digits(int(said["one"]), int(said["two"]), int(said["year"]))
    year = int(said["year"]) if said.get("year") else None
    if kind == "year":
        return (_midnight(year or 1, 1, 1), _midnight((year or 1) + 1, 1, 1))
    if kind in ("quarter", "half"):
        size = 3 if kind == "quarter" else 6
        number = int(
            said.get("quarter") or said.get("half") or min(QUARTERS[said["order"].casefold()], 12 // size)
        )
        return _months(year or 1, size * (number - 1) + 1, size)
    named = said.get("month") or said.get("month2") or ""
    month = int(named) if named.isdigit() else MONTHS.index(named[:3].casefold()) + 1
    if kind == "month":
        return (
            _latest(clock, lambda guess: _months(guess, month, 1))
            if year is None
            else _months(year, month, 1)
        )
    day = int(said["day"])
    return (
        _latest(clock, lambda guess: _one_day(guess, month, day))
        if year is None
        else _one_day(year, month, day)
    )


def _latest(
    clock: datetime | None, span: Callable[[int], tuple[datetime, datetime]]
) -> tuple[datetime, datetime] | None:
    """The newest of its kind, which is one of a year, that had begun by the clock."""
    if clock is None:
        return None
    for year in range(clock.year, clock.year - LEAP_YEARS - 1, -1):
        with suppress(ValueError):
            first, following = span(year)
            if first <= clock:
                return first, following
    raise ValueError("no year has it")


def _of_digits(one: int, two: int, year: int) -> tuple[datetime, datetime] | None:
    """A day whose first or second number can only be the day."""
    if one == two or max(one, two) > 12:
        day, month = (one, two) if one > 12 else (two, one)
        return _one_day(year, month, day)
    return None


def _one_day(year: int, month: int, day: int) -> tuple[datetime, datetime]:
    first = _midnight(year, month, day)
    return first, first + timedelta(days=1)


def _months(year: int, month: int, size: int) -> tuple[datetime, datetime]:
    after = month + size
    return _midnight(year, month, 1), _midnight(year + (after > 12), after - 12 if after > 12 else after, 1)


def _read_range(kind: str, said: dict[str, str | None], clock: datetime) -> tuple[datetime, datetime]:
    today = _midnight(clock.year, clock.month, clock.day)
    word = (said.get("word") or "").casefold()
    if kind == "day":
        first = today - timedelta(days=word == "yesterday")
        return first, first + timedelta(days=1)
    if kind == "calendar":
        which = (said.get("which") or "").casefold()
        unit = (
            said.get("unit")
            or {"ytd": "year", "mtd": "month"}.get((said.get("ytd") or "").casefold())
            or which
        ).casefold()
        first = _begin(unit, today)
        if which in ("last", "past", "previous"):
            return _begin(unit, first - timedelta(days=1)), first
        return first, _following(unit, first)
    unit = (said.get("unit") or said.get("unit2") or "day").casefold()
    count = (said.get("number") or "1").casefold()
    number = int(count) if count.isdigit() else NUMBERS.get(count, 2 if count == "couple of" else 3)
    first = _back(today, unit, number)
    if kind == "ago":
        return first, first + timedelta(days=1)
    return first, today + timedelta(days=1)


def _begin(unit: str, day: datetime) -> datetime:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    month = {"month": day.month, "quarter": 3 * ((day.month - 1) // 3) + 1, "year": 1}[unit]
    return _midnight(day.year, month, 1)


def _following(unit: str, first: datetime) -> datetime:
    if unit == "week":
        return first + timedelta(days=7)
    return _months(first.year, first.month, {"month": 1, "quarter": 3, "year": 12}[unit])[1]


def _back(day: datetime, unit: str, number: int) -> datetime:
    if unit in ("day", "week"):
        return day - timedelta(days=number * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 - number * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    length = (_months(year, month + 1, 1)[1] - _midnight(year, month + 1, 1)).days
    return _midnight(year, month + 1, min(day.day, length))


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _moment(end: datetime, before: int = 1) -> str:
    return (end - timedelta(seconds=before)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _midnight(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def clock_of(context: Mapping[str, Any]) -> datetime | None:
    """The moment up to which things are known, UTC."""
    known_at = context.get("known_at")
    if known_at is None:
        return None
    known = ns_to_datetime(known_at) if isinstance(known_at, int) else datetime.fromisoformat(str(known_at))
    return known.astimezone(UTC) if known.tzinfo else known.replace(tzinfo=UTC)
