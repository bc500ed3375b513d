"""Which trades does a subject name? A filter over resolved trades, in the words of `Subject`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from schemas.claims import FactRow
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


@dataclass(frozen=True)
class KnownEpisode:
    """A resolved trade with its row."""

    episode: Episode
    row: FactRow


def chosen_of(known: Sequence[KnownEpisode], subject: Subject) -> list[KnownEpisode]:
    """The trades that a subject names, in their order."""
    found = [*known]
    for test in _tests(subject):
        found = [item for item in found if test(item.episode)]
    return found


def _tests(subject: Subject) -> Iterator[Test]:
    for name, field in NAMED_FIELDS.items():
        request = getattr(subject, name)
        if request is not None:
            yield _name_test(field, request)
    if subject.outcome is not None:
        yield won if subject.outcome == "won" else is_loss
    if subject.period is not None:
        start, end = subject.period
        yield lambda episode: start <= episode.entry_label < end


def _name_test(field: str, question: str) -> Test:
    return lambda episode: bool(getattr(episode, field) == question)
