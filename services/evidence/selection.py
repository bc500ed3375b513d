"""Which trades does a subject name? A filter over resolved trades, in the words of `Subject`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from schemas.episode import Episode
from services.evidence.catalogue import is_loss, won
from services.evidence.facts import Subject

NAMED_FIELDS = {
    "playbook": "playbook_id",
    "regime": "regime",
    "timeframe": "timeframe",
    "symbol": "symbol",
    "direction": "direction",
    "failure_mode": "failure_mode",
    "exit_reason": "exit_reason",
}
Test = Callable[[Episode], bool]


class Known(Protocol):
    """A resolved trade with its row."""

    @property
    def episode(self) -> Episode:
        """The trade."""


K = TypeVar("K", bound=Known)
# Which of several trades is meant -> what it has most of.
ORDERS: dict[str, Callable[[Episode], float]] = {
    "first": lambda episode: -episode.entry_label,
    "last": lambda episode: episode.entry_label,
    "first_exit": lambda episode: -episode.exit_label,
    "last_exit": lambda episode: episode.exit_label,
    "best": lambda episode: episode.r,
    "worst": lambda episode: -episode.r,
    "best_pnl": lambda episode: episode.pnl,
    "worst_pnl": lambda episode: -episode.pnl,
    "longest": lambda episode: episode.hold_bars,
    "shortest": lambda episode: -episode.hold_bars,
}


def chosen_of(known: Sequence[K], subject: Subject) -> list[K]:
    """The trades that a subject names, in their order; of several, the one that its order asks for."""
    found = [*known] if subject.trial is None else []
    for test in _tests(subject):
        found = [item for item in found if test(item.episode)]
    if subject.order is None or not found:
        return found
    rank = ORDERS[subject.order]
    most = max(rank(item.episode) for item in found)
    return [item for item in found if rank(item.episode) == most]


def matches(asked: str | None, value: str | None) -> bool:
    """Whether a value is what is asked for: itself, one of several, none of several, or any."""
    if asked is None:
        return True
    if asked.startswith("!"):
        return not matches(asked[1:], value)
    return value is not None and any(_is_same(part, value) for part in asked.split("|"))


def _is_same(asked: str, value: str) -> bool:
    """Equal, or equal in the half of a regime that is not left open."""
    if "*" not in asked:
        return asked == value
    halves = zip(asked.partition("/")[::2], value.partition("/")[::2], strict=True)
    return all(part in ("*", held) for part, held in halves)


def _tests(subject: Subject) -> Iterator[Test]:
    """What a trade must be, one test for each field that the subject names."""
    for name, field in NAMED_FIELDS.items():
        asked = getattr(subject, name)
        if asked is not None:
            yield _name_test(field, asked)
    if subject.outcome is not None:
        yield won if subject.outcome == "won" else is_loss
    if subject.period is not None:
        yield _within(subject.period, "exit_label" if subject.basis == "exit" else "entry_label")
    if subject.episode is not None:
        begins = subject.episode
        yield lambda episode: episode.episode_id.startswith(begins)


def _name_test(field: str, asked: str) -> Test:
    if not any(mark in asked for mark in "!|*"):
        return lambda episode: bool(getattr(episode, field) == asked)
    return lambda episode: matches(asked, getattr(episode, field))


def _within(period: tuple[int, int], field: str) -> Test:
    return lambda episode: period[0] <= getattr(episode, field) < period[1]
