"""What the scheduler is given from outside: a clock, a place for its events, and points to be stopped at."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from services.ports import Clock as Clock  # named here for who starts a worker

JOB = "slow_loop"  # the name of the slow loop in claims and reports

Reflect = Callable[
    [HighLevelReflectionRequest, Sequence[Episode], Sequence[PlaybookDefinition]],
    Awaitable[HighLevelReflectionReport],
]


def lease_name(run_id: str) -> str:
    """The lease under which the slots of a run are examined."""
    return f"{JOB}/{run_id}"


class SystemClock:
    """The wall clock."""

    @property
    def now(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()


class CrashPoints(Protocol):
    """Told of every step that a killed worker may not have come to; tests end the worker there."""

    def reach(self, point: str) -> None:
        """The worker stands between two steps."""
        ...


POINTS = ("examined", "claimed", "reflected", "reported", "taken", "judged", "delivered")


class NoCrash:
    """Nothing happens at any point."""

    def reach(self, point: str) -> None:
        """Go on."""


NO_CRASH = NoCrash()
