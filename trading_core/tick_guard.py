"""Runtime guard of the tick path.

No model call, no memory read, no policy or playbook write while bars are validated.

The engine enters `tick_path()` around the kernel; everything that is forbidden there asks the guard first.
The counters are therefore zero because an attempt raises, not because none was looked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal

from schemas.errors import InvariantViolation
from schemas.state import Stateful

Forbidden = Literal["llm_calls", "memory_reads", "policy_writes"]


class TickGuard(Stateful):
    """One guard per run, shared by the engine and by every service that could break the rule."""

    STATE: ClassVar = {"attempts": dict[Forbidden, int]}
    REBUILT = frozenset({"_inside"})

    def __init__(self) -> None:
        self._inside = False
        self.attempts: dict[Forbidden, int] = {"llm_calls": 0, "memory_reads": 0, "policy_writes": 0}

    @contextmanager
    def tick_path(self) -> Iterator[None]:
        """Mark the stretch in which bars are validated."""
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    def forbid(self, what: Forbidden) -> None:
        """Called before each model call, memory read and policy write.

        Raises:
            InvariantViolation: the call comes from inside the tick path; it is counted and does not happen.
        """
        if self._inside:
            self.attempts[what] += 1
            raise InvariantViolation(
                f"{what} inside the tick path: tick validation is deterministic only (R2)"
            )
