"""Citations: behind every sentence the numbers of the rows that it stands on; a figure without a row goes."""

import re
from collections.abc import Sequence

from agents.answering.statements import MOST_ROWS, Statement
from schemas.contract import Contract
from schemas.fact_check import CheckedClaim, FactRow
from services.text.claims import Span, sentences

END = re.compile(r"[.!?:;]*\s*$")
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


def cited(
    text: str, statements: Sequence[Statement], claims: Sequence[CheckedClaim]
) -> tuple[str, tuple[Citation, ...]]:
    """The text with marks such as `[1]`, and what they stand for, by number.

    A sentence stands on the rows of the statement that it is part of, else on those that verified its claims.
    One with a figure that stands on no row is left out.
    """
    numbers, parts = dict[FactRow, int](), list[str]()
    for sentence in sentences(text):
        rows = _rows(sentence, statements, claims)
        if not rows and FIGURE.search(sentence.text):
            continue
        marks = "".join(f"[{numbers.setdefault(row, len(numbers) + 1)}]" for row in rows)
        end = END.search(sentence.text)
        cut = len(sentence.text) if end is None else end.start()
        said = sentence.text
        parts.append(f"{said[:cut]} {marks}{said[cut:]}" if marks and said.strip() else said)
    found = tuple(Citation(n=n, kind=row.kind, seq=row.seq) for row, n in numbers.items())
    return "".join(parts).strip(), found


def _rows(
    sentence: Span, statements: Sequence[Statement], claims: Sequence[CheckedClaim]
) -> tuple[FactRow, ...]:
    said = sentence.text.strip()
    whole = [statement.rows for statement in statements if said in statement.text]
    if whole:
        return whole[0][:MOST_ROWS]
    own = [claim for claim in claims if claim.text == said and claim.verdict == "verified"]
    verified = [row for claim in own for row in claim.rows]
    named = [row for row in dict.fromkeys(verified) if row.seq is not None or "." in row.kind]
    return tuple(named[:MOST_ROWS])
