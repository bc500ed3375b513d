"""What a claim was held against: its verdict, what the run has, the rows, and the values that would pass."""

import math
from collections.abc import Sequence

from schemas.fact_check import ClaimVerdict, FactRow
from services.deliberation.numerals import Figure
from services.evidence.run_facts import Fact, KnownEpisode

MOST_VALUES = 3
OF_A_REPORT = "high_level_report"
UNKNOWN = "the run has no answer to it"
UNREAD = "the words name no measure that the run has"


class Held:
    """What a claim was held against."""

    def __init__(
        self,
        verdict: ClaimVerdict,
        found: str | None = None,
        rows: tuple[FactRow, ...] = (),
        would_pass: Sequence[str] = (),
    ) -> None:
        self.verdict = verdict
        self.found = found
        self.rows = rows
        self.would_pass = tuple(dict.fromkeys(would_pass))[:MOST_VALUES]


def judge_claim(
    true: bool, found: str, rows: tuple[FactRow, ...] = (), would_pass: Sequence[str] = ()
) -> Held:
    """Verified or contradicted."""
    if true:
        return Held("verified", found, rows)
    return Held("contradicted", found, rows, would_pass or (found,))


def unknown(why: str = UNKNOWN) -> Held:
    """Unverifiable, with the reason."""
    return Held("unverifiable", why)


def at_the_end(found: Sequence[Fact]) -> tuple[Fact, ...]:
    """Facts of the run's end, where it has any; those of its report are of an earlier moment."""
    later = tuple(fact for fact in found if all(row.kind != OF_A_REPORT for row in fact.rows))
    return later or tuple(found)


def rows_of(chosen: Sequence[KnownEpisode]) -> tuple[FactRow, ...]:
    """The row of the last of some trades."""
    return (chosen[-1].row,) if chosen else ()


def plainly(value: float) -> str:
    """A value in four digits."""
    return f"{value:.4g}"


def write_fact(fact: Fact, held: Figure, share: bool) -> str:
    """A fact as a text would write it: at the decimals and in the unit of the figure that it answers."""
    decimals = max(0, -math.floor(math.log10(held.step) + 0.5)) if held.step < 1 else 0
    value = fact.value * 100.0 if share and fact.unit == "share" else fact.value
    if fact.unit == "r":
        return f"{value:+.{max(decimals, 2)}f}R"
    return f"{value:,.{decimals}f}{' %' if share else ''}"
