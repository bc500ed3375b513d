"""How much one text may cost: rounds, calls, tokens, and the time that is left for a call.

Rounds, calls and tokens decide; time never does. A call without time left is made all the same and recorded
as late, so that a replay, which reads the record, ends at the same place.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from schemas.deliberation import CallUsage

NS_PER_MS = 1_000_000


@dataclass
class Budget:
    """What is left for one text; a child charges its parent, too.

    Attributes:
        rounds: revisions at most.
        calls: of models at most.
        tokens: both ways, at most; None: no bound.
        deadline_ms: from the start, for all calls together.
        timer: monotonic ns.
        texts_ms: for critiques and improvements together, whatever a writer takes; None: no such bound.
    """

    rounds: int
    calls: int
    tokens: int | None = None
    deadline_ms: float = 45_000.0
    timer: Callable[[], int] = time.perf_counter_ns
    parent: "Budget | None" = None
    texts_ms: float | None = None
    asked_ms: float = field(default=0.0, init=False)
    used: CallUsage = field(default=CallUsage(), init=False)
    started: int = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.timer()

    @property
    def allows_call(self) -> bool:
        """Whether calls and tokens are left, here and above."""
        left = self.used.calls < self.calls and (self.tokens is None or self.used.tokens < self.tokens)
        return left and (self.parent is None or self.parent.allows_call)

    @property
    def calls_at_once(self) -> int:
        """Calls that may be made before any is answered: one where tokens are bounded, none where none is."""
        if not self.allows_call:
            return 0
        own = self.calls - self.used.calls if self.tokens is None else 1
        return own if self.parent is None else min(own, self.parent.calls_at_once)

    @property
    def elapsed_ms(self) -> float:
        """Since the start."""
        return (self.timer() - self.started) / NS_PER_MS

    @property
    def left_ms(self) -> float:
        """Time for the next call; 0 when it is over."""
        own = max(0.0, self.deadline_ms - self.elapsed_ms)
        return own if self.parent is None else min(own, self.parent.left_ms)

    @property
    def left_for_texts_ms(self) -> float:
        """Time for the next critique or improvement."""
        left = (
            self.left_ms
            if self.texts_ms is None
            else min(self.left_ms, max(0.0, self.texts_ms - self.asked_ms))
        )
        return left if self.parent is None else min(left, self.parent.left_for_texts_ms)

    def note_asked(self, elapsed_ms: float) -> None:
        """Enter the time of a critique or an improvement."""
        self.asked_ms += elapsed_ms
        if self.parent is not None:
            self.parent.note_asked(elapsed_ms)

    def charge(self, usage: CallUsage) -> None:
        """Enter what a call used."""
        self.used = self.used.plus(usage)
        if self.parent is not None:
            self.parent.charge(usage)

    def child(self, *, rounds: int, calls: int | None = None) -> "Budget":
        """A part of what is left."""
        left = self.calls - self.used.calls
        return Budget(
            rounds,
            left if calls is None else min(calls, left),
            self.tokens,
            self.left_ms,
            self.timer,
            parent=self,
        )
