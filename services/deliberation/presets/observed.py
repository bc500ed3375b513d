"""Critics and revisers that are watched: a preset tells what they said as events of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.deliberation import Critique, CritiqueSource, TextCandidate
from services.deliberation.budget import Budget
from services.deliberation.policies import Round
from services.deliberation.refine import Critic, Draft, Reviser, Task
from services.model_calls.asking import NoReply


@dataclass(frozen=True)
class ObservedCritic:
    """A critic whose every word is told on, with the ms that it took."""

    inner: Critic
    tell: Callable[[Critique | NoReply, float], None]

    @property
    def name(self) -> str:
        """Of the critic behind it."""
        return self.inner.name

    @property
    def source(self) -> CritiqueSource:
        """Of the critic behind it."""
        return self.inner.source

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """As the critic behind it."""
        started = budget.elapsed_ms
        said = await self.inner.critique(task, candidate, rounds, budget)
        self.tell(said, budget.elapsed_ms - started)
        return said


@dataclass(frozen=True)
class ObservedReviser:
    """A reviser whose every text is told on, with the one before it and the ms that it took."""

    inner: Reviser
    tell: Callable[[Draft | NoReply, str, float], None]

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """As the reviser behind it."""
        started = budget.elapsed_ms
        said = await self.inner.revise(task, rounds, budget)
        self.tell(said, rounds[-1].candidate.text, budget.elapsed_ms - started)
        return said
