"""Texts that came in the reply which scored the one before: kept apart until a reviser takes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.deliberation import TextCandidate
from services.deliberation.forms import QualityRewriteReply, ReviewRewriteReply
from services.deliberation.policies import Round
from services.deliberation.refine import Draft, Task


@dataclass
class Rewrites:
    """Texts that came in the reply which scored the one before it; each is taken once.

    Attributes:
        most: texts without a fault that may be written again.
        threshold: the score that is enough, 0 to 1.
    """

    most: int = 0
    threshold: float = 0.0
    kept: dict[tuple[str, str], Draft] = field(default_factory=dict)

    def wanted(self, rounds: Sequence[Round]) -> bool:
        """Whether the newest text may still be written again."""
        return sum(not seen.failures for seen in rounds) < self.most

    def keep(
        self, task: Task, candidate: TextCandidate, said: QualityRewriteReply | ReviewRewriteReply
    ) -> None:
        """Keep the text of a reply, if it has one."""
        if said.text:
            self.kept[place_of(task, candidate)] = Draft(said.text.strip(), reasoning=said.reasoning)

    def take(self, task: Task, candidate: TextCandidate) -> Draft | None:
        """What is to stand in the place of a candidate; None where nothing came, or it was taken."""
        return self.kept.pop(place_of(task, candidate), None)


def place_of(task: Task, candidate: TextCandidate) -> tuple[str, str]:
    """One text to one question."""
    return candidate.hash, f"{task.question}\0{task.material}"
