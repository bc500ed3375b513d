"""Citations: behind every sentence the numbers of the rows that it stands on; a figure without a row goes."""

import re
from collections.abc import Iterator, Sequence

from agents.answering.statements import MOST_ROWS, Statement
from schemas.contract import Contract
from schemas.fact_check import CheckedClaim, FactRow
from services.text.claims import sentences

FIGURE = re.compile(r"\d")
MARK = re.compile(r"\s?\[\d{1,3}\]")


class Citation(Contract):
    """A row that an answer stands on; `seq` is None for the reply of another's tool."""

    n: int
    kind: str
    seq: int | None


def without_marks(text: str) -> str:
    """A text without the numbers of citations that a model may have put into it."""
    return MARK.sub("", text)


def cite(
    text: str, statements: Sequence[Statement], claims: Sequence[CheckedClaim]
) -> tuple[str, tuple[Citation, ...]]:
    """The text with marks such as `[1]`, and what they stand for, by number.

    A statement that stands whole is marked at its end. Any other sentence stands on the rows that verified
    its claims; one with a figure that stands on no row is left out.
    """
    numbers, parts = dict[FactRow, int](), list[str]()
    for said, rows in _pieces(text, statements, claims):
        if not rows and FIGURE.search(said):
            continue
        marks = "".join(f"[{numbers.setdefault(row, len(numbers) + 1)}]" for row in rows)
        cut = len(said.rstrip().rstrip(".!?"))
        parts.append(f"{said[:cut]} {marks}{said[cut:]}" if marks else said)
    found = tuple(Citation(n=n, kind=row.kind, seq=row.seq) for row, n in numbers.items())
    return "".join(parts).strip(), found


def _pieces(
    text: str, statements: Sequence[Statement], claims: Sequence[CheckedClaim]
) -> Iterator[tuple[str, tuple[FactRow, ...]]]:
    """Statements that stand whole, and the sentences between them, with their rows."""
    rest = text
    while rest:
        places = [
            (rest.find(statement.text), -len(statement.text), statement)
            for statement in statements
            if statement.text in rest
        ]
        at, _, whole = min(places, key=lambda place: place[:2], default=(len(rest), 0, None))
        between = rest[:at]
        if not between.strip():
            yield between, ()
        for sentence in sentences(between) if between.strip() else ():
            yield sentence.text, _list_verified(sentence.text.strip(), claims)
        if whole is None:
            return
        yield whole.text, whole.rows
        rest = rest[at + len(whole.text) :]


def _list_verified(said: str, claims: Sequence[CheckedClaim]) -> tuple[FactRow, ...]:
    own = [claim for claim in claims if claim.text == said and claim.verdict == "verified"]
    rows = dict.fromkeys(row for claim in own for row in claim.rows)
    return tuple([row for row in rows if row.seq is not None or "." in row.kind][:MOST_ROWS])
