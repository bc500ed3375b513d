"""Does a sentence say what a tool answered? Each of its figures, dates and ids has to stand in the reply.

A figure stands if a number of the reply rounds to it at the decimals that it is given with; a share may be
written in percent. Words are not read: this bears out what was copied, never what is concluded.
"""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from schemas.canonical import canonical_json

DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d)?")
ID = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b")
NUMBER = re.compile(
    r"(?<![\w.])(?P<number>[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d{1,3})?)(?P<percent>\s?%)?(?!\d)(?=R\b|\b|\W|$)"
)
WITHIN = Decimal("0.5000001")


def stands_in(sentence: str, reply: str, params: Mapping[str, Any]) -> bool:
    """Whether all figures, dates and ids of a sentence stand in a reply, or in what was asked."""
    source = f"{reply} {canonical_json(dict(params))}"
    left = sentence
    for pattern in (DATE, ID):
        if any(found.replace(" ", "T") not in source for found in pattern.findall(left)):
            return False
        left = pattern.sub(" ", left)
    numbers = list(NUMBER.finditer(left))
    known = list(_numbers(reply, params)) if numbers else []
    return all(any(_rounds(found, value) for value in known) for found in numbers)


def _numbers(reply: str, params: Mapping[str, Any]) -> Iterator[Decimal]:
    try:
        document = json.loads(reply)
    except ValueError:  # a sentence that says what would work
        document = reply
    yield from _of(document)
    yield from _of(dict(params))


def _of(value: Any) -> Iterator[Decimal]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _of(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = Decimal(repr(value))
        yield from (number,) if number.is_finite() else ()
    elif isinstance(value, str):
        for found in NUMBER.finditer(ID.sub(" ", value)):  # an id may read as `415e492780156912`
            yield Decimal(found["number"].replace(",", ""))


def _rounds(found: re.Match[str], value: Decimal) -> bool:
    """Whether a number, or as many percent, rounds to what is written."""
    written = Decimal(found["number"].replace(",", ""))
    step = Decimal(1).scaleb(int(written.as_tuple().exponent))
    told = value * 100 if found["percent"] else value
    return abs(told - written) <= WITHIN * step
