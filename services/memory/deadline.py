"""Deadlines of retrievals: a live feed waits 150 ms and no longer, a replay repeats what that wait decided.

Which retrievals of an evaluation were too late is an input like a bar: the live loop records their numbers,
counted from 0 within the evaluation, and a replay reads them and measures nothing.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Retrievals:
    """The retrievals of one evaluation.

    Attributes:
        recorded: numbers of those that were too late, as recorded; None while the deadline is live.
        late: numbers of those that were too late.
        count: how many there were.
        added: episodes in memory when the first began; later ones are not known to this evaluation.
    """

    recorded: frozenset[int] | None = None
    late: list[int] = field(default_factory=list)
    count: int = 0
    added: int | None = None


_PRESENT: ContextVar[Retrievals | None] = ContextVar("retrievals", default=None)


@contextmanager
def retrievals(recorded: Collection[int] | None = None) -> Iterator[Retrievals]:
    """Put whatever this task retrieves inside under the deadline, or under what was recorded of it."""
    present = Retrievals(None if recorded is None else frozenset(recorded))
    token = _PRESENT.set(present)
    try:
        yield present
    finally:
        _PRESENT.reset(token)


def present_retrievals() -> Retrievals | None:
    """Those of the present evaluation; None where no clock decides what is retrieved."""
    return _PRESENT.get()
