"""The simulated clock: the one `now` that every reader of something that can teach has to pass."""

from schemas.errors import InvariantViolation


class SimulatedClock:
    """Bar time in integer ns; set by the runner, never by a reader."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    @property
    def now(self) -> int:
        """Close of the last bar that was validated."""
        return self._now

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
        if known_at > self._now:
            raise InvariantViolation(
                f"a read as of {known_at} lies after the clock {self._now}: that is the future"
            )
