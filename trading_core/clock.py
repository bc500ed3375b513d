"""The simulated clock that every reader of what can teach has to pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar

from schemas.errors import InvariantViolation
from schemas.state import Stateful

_PINNED: ContextVar[int | None] = ContextVar("pinned_bar_time", default=None)


class SimulatedClock(Stateful):
    """Bar time in integer ns; set by the runner, never by a reader."""

    STATE: ClassVar = {"_now": int}

    def __init__(self, now: int = 0) -> None:
        self._now = now

    @property
    def now(self) -> int:
        """Close of the last bar that was validated; inside `pinned`, the time given there."""
        pinned = _PINNED.get()
        return self._now if pinned is None else pinned

    @contextmanager
    def pin(self, now: int) -> Iterator[None]:
        """For whatever this task does inside, the clock stands at `now`, while bars go on elsewhere.

        An evaluation beside a live feed sees the present of its own boundary, as it does in a replay.
        """
        self.check(now)
        token = _PINNED.set(now)
        try:
            yield
        finally:
            _PINNED.reset(token)

    def advance(self, now: int) -> None:
        """Move forward to `now`.

        Raises:
            InvariantViolation: `now` lies before the present clock.
        """
        if now < self._now:
            raise InvariantViolation(f"the clock stands at {self._now} and cannot go back to {now}")
        self._now = now

    def check(self, known_at: int) -> None:
        """Refuse a read of what is not known yet.

        Raises:
            InvariantViolation: `known_at` lies after the clock.
        """
        if known_at > self.now:
            raise InvariantViolation(
                f"a read as of {known_at} lies after the clock {self.now}: that is the future"
            )
