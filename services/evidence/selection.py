"""Which trades does a subject name? A filter over resolved trades, in the words of `Subject`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from schemas.episode import Episode
from services.evidence.catalogue import is_loss, won
from services.evidence.facts import Subject

NAMED_FIELDS = {
    "playbook": "playbook_id",
    "regime": "regime",
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


def chosen_of(known: Sequence[K], subject: Subject) -> list[K]:
    """The trades that a subject names, in their order."""
    found = [*known]
    for test in _tests(subject):
        found = [item for item in found if test(item.episode)]
    return found


def _tests(subject: Subject) -> Iterator[Test]:
    """What a trade must be, one test for each field that the subject names."""
    for name, field in NAMED_FIELDS.items():
        asked = getattr(subject, name)
        if asked is not None:
            yield _name_test(field, asked)
    if subject.outcome is not None:
        yield won if subject.outcome == "won" else is_loss
    if subject.period is not None:
        start, end = subject.period
        yield lambda episode: start <= episode.entry_label < end


def _name_test(field: str, asked: str) -> Test:
    return lambda episode: bool(getattr(episode, field) == asked)
