"""What is tried where a refinement failed: fewer iterations, no facts, no improvement, nothing.

Each rung says which failures of the one before lead to it. The last is the text as it was, with the error.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.deliberation import Deliberation
from services.deliberation.refine import FACTS_FAILED
from services.deliberation.text_models import MALFORMED

FULL, FEWER, NO_FACTS = "full", "fewer_iterations", "no_fact_check"
CRITIQUE_ONLY, ORIGINAL = "critique_without_improvement", "original"
OUT_OF_CALLS = frozenset({"budget", "breaker"})
SLOW = frozenset({"timeout", "budget_spent"})


@dataclass(frozen=True)
class Rung:
    """One way to go on; `after` holds the kinds of failure that lead here, None is every one."""

    name: str
    after: frozenset[str] | None = None

    def takes(self, kind: str) -> bool:
        """Whether a failure leads here."""
        return self.after is None or kind in self.after


LADDER = (
    Rung(FULL, frozenset()),
    Rung(FEWER, OUT_OF_CALLS | SLOW),
    Rung(NO_FACTS, frozenset({FACTS_FAILED})),
    Rung(CRITIQUE_ONLY, frozenset({MALFORMED})),
    Rung(ORIGINAL),
)


async def climb_down(
    rungs: Sequence[Rung],
    attempt: Callable[[Rung], Awaitable[Deliberation]],
    failure_of: Callable[[Deliberation], str | None],
) -> Deliberation:
    """The outcome of the first rung that does not fail; it says which one failed first, and how.

    Args:
        rungs: in order; the last one takes every failure.
        attempt: one refinement by a rung.
        failure_of: the kind of failure of an outcome; None where it did not fail.
    """
    done = seen = await attempt(rungs[0])
    first, error = None, None
    left = list(rungs[1:])
    while (kind := failure_of(done)) is not None and left:
        first, error = first or f"{rungs[0].name}: {kind}", done.error
        while left and not left[0].takes(kind):
            left.pop(0)
        if not left:
            break
        done = await attempt(left.pop(0))
    if first is None:
        return done
    update: dict[str, Any] = {"degraded_from": first, "error": done.error or error}
    if not done.critiques:  # the last rung looks at nothing again: what was found stays said
        update |= {"critiques": seen.critiques, "candidates": seen.candidates}
    return done.model_copy(update=update)
