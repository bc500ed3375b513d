"""Sentences of an answer, each with the rows that it stands on and its place in the order of an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any

from agents.planning.question_times import named_time
from schemas.fact_check import FactRow
from services.model_calls.quoting import visible

MOST_ROWS = 3
LONGEST_QUOTE = 200


class Part(IntEnum):
    """What a sentence tells, in the order that a trader wants it."""

    WHAT, AMOUNT, REASON, PROOF, NEXT = range(5)


@dataclass(frozen=True)
class Statement:
    """One sentence, or a line that holds several.

    Attributes:
        text: with its end mark.
        rows: that it stands on.
        part: where in an answer it stands.
        told: whether it tells what rows hold beside the trades and reports that the fact catalogue asks for;
            then it is held against the tool's reply, word for figure, else against the catalogue.
    """

    text: str
    rows: tuple[FactRow, ...]
    part: Part
    told: bool = False


@dataclass(frozen=True)
class Reply:
    """What one tool answered.

    Attributes:
        params: its arguments.
        content: its document.
        newest: the row up to which the run was read.
        question: what was asked.
        alone: whether no other tool was asked, so that all of the document is wanted.
    """

    params: Mapping[str, Any]
    content: Mapping[str, Any]
    newest: FactRow
    alone: bool = True
    question: str = ""

    @property
    def rows(self) -> tuple[FactRow, ...]:
        """Rows that the answer stands on; the newest one that was read where it stands on none."""
        found = tuple(FactRow.model_validate(row) for row in self.content.get("rows", ())[:MOST_ROWS])
        return found or (self.newest,)

    @property
    def named_day(self) -> str | None:
        """The one day that the question names, ISO."""
        named = named_time(self.question.casefold(), None)
        return named.since if named.is_day else None

    @property
    def day(self) -> str:
        """The date that the answer is as of."""
        return day_of(self.params.get("at") or self.content.get("known_at"))

    def absent(self, what: str) -> Statement:
        """That nothing of a kind was known."""
        return Statement(f"Not known as of {self.day}: {what}.", (self.newest,), Part.WHAT, told=True)

    def tell(self, text: str, part: Part, *rows: Mapping[str, Any] | None) -> Statement:
        """A sentence on rows of the reply, by default on those of all of it."""
        own = tuple(FactRow.model_validate(row) for row in rows if row is not None)
        return Statement(visible(" ".join(text.split())), own[:MOST_ROWS] or self.rows, part, told=True)

    def tell_known(self, text: str, part: Part) -> Statement:
        """A sentence that the fact catalogue can answer, as long as it is not as of an earlier time."""
        at = self.params.get("at")
        if at is None:
            return Statement(text, self.rows, part)
        return self.tell(f"As of {day_of(at)}: {text}", part)


def day_of(moment: Any) -> str:
    """The date of an ISO time, with the time of day where it neither begins nor ends the day."""
    text = str(moment or "the newest row")
    is_whole = text[10:19] in ("", "T00:00:00", "T23:59:59")
    return text[:10] if is_whole else f"{text[:10]} {text[11:16]}"


def r_of(value: float) -> str:
    """R with its sign and two decimals."""
    return f"{value:+.2f}R"


def share_of(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.0f} %"


def price_of(value: float) -> str:
    """A price with at most six digits."""
    return f"{value:,.2f}" if abs(value) >= 1e6 else f"{Decimal(f'{value:.6g}'):f}"


def quote_line(text: str) -> str:
    """Words of others on one line, in quotation marks, cut."""
    plain = visible(" ".join(text.split())).replace("“", "'").replace("”", "'")
    return f"“{plain if len(plain) <= LONGEST_QUOTE else f'{plain[:LONGEST_QUOTE]}...'}”"


def join_words(items: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1]))) if items else ""
