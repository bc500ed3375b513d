"""Circuit breaker of one model at one prompt: after failures in a row it is left alone for a number of calls.

Counted in calls, not in seconds, so that a replay opens and closes it at the same places. A pure state; the
account journals what it says.
"""

from dataclasses import dataclass
from enum import StrEnum

from schemas.state import Stateful

# A reply came that its caller could not read.
UNUSABLE = "unusable"
# The machine failed. A refusal or a cut reply is an answer, and a call that was not made shows nothing.
FAILURES = frozenset(
    {
        "timeout", "network", "throttled", "overloaded", "conflict", "server", "rejected", "malformed",
        "wrong_model", UNUSABLE,
    }
)  # fmt: skip


class BreakerChange(StrEnum):
    """What an outcome did to the breaker."""

    OPENED = "opened"
    CLOSED = "closed"


@dataclass
class Breaker(Stateful):
    """`limit` failures in a row open it for `pause` calls; then one call tries, and decides.

    Attributes:
        failures: in a row.
        waiting: calls still to be refused; 0 while closed or trying.
        open: whether the last word was a failure at the limit.
    """

    REBUILT = frozenset({"limit", "pause"})

    limit: int
    pause: int
    failures: int = 0
    waiting: int = 0
    open: bool = False

    def admit(self) -> bool:
        """Whether the next call may be made; a refused one counts towards the pause."""
        if self.waiting == 0:
            return True
        self.waiting -= 1
        return False

    def note(self, outcome: str) -> BreakerChange | None:
        """Take in the outcome of a call that was made."""
        if outcome not in FAILURES:
            was_open, self.open, self.failures = self.open, False, 0
            return BreakerChange.CLOSED if was_open else None
        self.failures += 1
        if self.failures < self.limit:
            return None
        first, self.open, self.waiting = not self.open, True, self.pause
        return BreakerChange.OPENED if first else None
