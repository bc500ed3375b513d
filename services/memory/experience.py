"""What the resolved trades of a run have taught, for those who decide on the next one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from schemas.episode import Episode
from schemas.settings import MemorySettings
from schemas.state import PART, Stateful
from services.memory.episode_memory import EpisodeMemory
from services.playbooks.expectations import ExpectationBook
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard


@dataclass(frozen=True)
class Experience(Stateful):
    """The memory of comparable cases and the outcomes that playbooks are measured by.

    Attributes:
        memory: cases by playbook and regime.
        expectations: outcomes by playbook.
    """

    STATE: ClassVar = {"memory": PART, "expectations": PART}

    memory: EpisodeMemory
    expectations: ExpectationBook

    def add(self, episode: Episode) -> None:
        """Take in one resolved trade, where it may teach.

        Raises:
            InvariantViolation: inside the tick path, or the episode is there already.
        """
        self.memory.add(episode)
        self.expectations.record(episode)


def assemble_experience(
    settings: MemorySettings, clock: SimulatedClock, guard: TickGuard, rules_of: Callable[[str], str]
) -> Experience:
    """Begin without a trade; `rules_of` tells by which rules trades of the version with a hash end."""
    return Experience(
        EpisodeMemory(settings, clock, guard, rules_of=rules_of), ExpectationBook(clock, rules_of)
    )
