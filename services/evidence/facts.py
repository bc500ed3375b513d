"""What a figure of a run is about, and its unit."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from schemas.canonical import datetime_to_ns

Unit = Literal["r", "count", "share", "bars", "price", "money", "score", "bps"]


class Subject(NamedTuple):
    """Which trades, or which part of a run; None leaves a field open, and the empty subject is the whole run.

    Attributes:
        outcome: won or lost.
        period: of the entries, from and until, in ns.
    """

    playbook: str | None = None
    symbol: str | None = None
    regime: str | None = None
    direction: str | None = None
    exit_reason: str | None = None
    failure_mode: str | None = None
    outcome: str | None = None
    period: tuple[int, int] | None = None

    def having(self, name: str, value: Any) -> "Subject":
        """This subject with one field set."""
        return self._replace(**{name: value})

    @property
    def is_empty(self) -> bool:
        """Whether it names nothing."""
        return self == EMPTY

    @property
    def fields(self) -> frozenset[str]:
        """The fields that it names."""
        return _fields_named(self)


EMPTY = Subject()


@lru_cache(maxsize=4096)
def _fields_named(subject: Subject) -> frozenset[str]:
    return frozenset(name for name, value in subject._asdict().items() if value is not None)


def period_of(year: int, month: int | None = None) -> tuple[int, int]:
    """A year, or a month of it, from its first ns to the first one behind it."""
    first = datetime(year, month or 1, 1, tzinfo=UTC)
    last = datetime(year + (month in (None, 12)), 1 if month in (None, 12) else month + 1, 1, tzinfo=UTC)
    return datetime_to_ns(first), datetime_to_ns(last)
