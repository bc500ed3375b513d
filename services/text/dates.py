"""Which days does a text name? Read in the ways in which a trader writes a date, and in no ambiguous one.

`2024-03-12` (with or without a time behind it), `2024/03/12`, `12 March 2024`, `March 12, 2024`, months short
or whole. All digits with the day in front (`03/12/2024`) means one day here and another there, and is left
out. A date is a day of UTC as written.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from schemas.canonical import datetime_to_ns

DAY_NS = 86_400 * 1_000_000_000
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
YEAR = r"(?P<year>\d{4})"
FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b{YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})(?:(?!\d)|(?=t\d))",
        rf"\b{DAY}(?:\s+|-)(?:of\s+)?{MONTH}[\s,-]+{YEAR}\b",
        rf"\b{MONTH}\s*{DAY}[\s,]+{YEAR}\b",
    )
)


@lru_cache(maxsize=1024)
def days_in(text: str) -> tuple[tuple[str, int, int], ...]:
    """Each day that a text names, as (the words, first ns of the day, first ns of the next one)."""
    return tuple(_find_days(text))


def _find_days(text: str) -> Iterator[tuple[str, int, int]]:
    for form in FORMS:
        for found in form.finditer(text):
            month = found["month"]
            number = int(month) if month.isdigit() else MONTHS.index(month[:3].casefold()) + 1
            try:
                first = datetime(int(found["year"]), number, int(found["day"]), tzinfo=UTC)
            except ValueError:
                continue  # no such day
            start = datetime_to_ns(first)
            yield found[0], start, start + DAY_NS
