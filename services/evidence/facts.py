"""What a fact of a run is about, its unit, and the names that a run has for its parts."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

from schemas.canonical import datetime_to_ns

Unit = Literal["r", "count", "share", "bars", "days", "price", "money", "score", "bps"]
WHOLE_RUN = "the run"
ANY_TRIAL = "any"


class Subject(NamedTuple):
    """What a claim is about; a field that is None leaves it open, and the empty subject is the whole run.

    Playbook, symbol, regime and their like may be several ("a|b"), all others ("!a"), or a part of a regime
    ("up/*").

    Attributes:
        outcome: won or lost.
        period: from and until, in ns.
        basis: whether a period is of the entry (the default) or of the exit.
        order: which one of the trades is meant: first, last, best, worst, longest, shortest,
            best_pnl, worst_pnl.
        trial: kind of the trial on paper that is meant, or any; none of the account's trades then.
        feature: of a bar in a snapshot.
    """

    playbook: str | None = None
    regime: str | None = None
    timeframe: str | None = None
    symbol: str | None = None
    direction: str | None = None
    failure_mode: str | None = None
    parameter: str | None = None
    episode: str | None = None
    exit_reason: str | None = None
    outcome: str | None = None
    period: tuple[int, int] | None = None
    basis: str | None = None
    order: str | None = None
    trial: str | None = None
    feature: str | None = None

    def merge(self, other: "Subject") -> "Subject":
        """This subject with every field that the other one names."""
        if EMPTY in (self, other):
            return self if other == EMPTY else other
        return Subject._make([mine if told is None else told for mine, told in zip(self, other, strict=True)])

    def having(self, name: str, value: Any) -> "Subject":
        """This subject with one field set."""
        return self._replace(**{name: value})

    def without(self, *names: str) -> "Subject":
        """This subject with these fields left open."""
        return self._replace(**dict.fromkeys(names))

    @property
    def is_empty(self) -> bool:
        """Whether it names nothing."""
        return self == EMPTY

    @property
    def fields(self) -> frozenset[str]:
        """The fields that it names."""
        return _fields_named(self)

    @property
    def text(self) -> str:
        """The subject in words."""
        return ", ".join(str(value) for value in self if value is not None) or WHOLE_RUN


EMPTY = Subject()


@lru_cache(maxsize=4096)
def _fields_named(subject: Subject) -> frozenset[str]:
    """The fields that a subject names."""
    return frozenset(name for name, value in subject._asdict().items() if value is not None)


class RunNames(Protocol):
    """What a run calls its parts: all that the reading of a text needs of it."""

    @property
    def names(self) -> frozenset[str]:
        """Identifiers that the run uses anywhere."""
        ...

    @property
    def playbook_ids(self) -> tuple[str, ...]:
        """Every playbook that it names."""
        ...

    @property
    def parameters(self) -> frozenset[str]:
        """Names of parameters of the playbooks."""
        ...

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every symbol."""
        ...

    @property
    def features(self) -> frozenset[str]:
        """Names of features of bars."""
        ...


def period_of(year: int, month: int | None = None) -> tuple[int, int]:
    """A year, or a month of it, from its first ns to the first one behind it."""
    first = datetime(year, month or 1, 1, tzinfo=UTC)
    last = datetime(year + (month in (None, 12)), 1 if month in (None, 12) else month + 1, 1, tzinfo=UTC)
    return datetime_to_ns(first), datetime_to_ns(last)
