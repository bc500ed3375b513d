"""When an answer of memory may be used again: in one evaluation, for one question, with nothing new known.

An evaluation is a symbol at one `known_at`; its reflection asks through here in every revision round. A
proposal that changes playbook or direction is looked up anew, and so is every one once an episode arrived.
"""

from dataclasses import dataclass, field

from schemas.reflection import MemorySummary
from services.ports import MemoryQuery


@dataclass(slots=True)
class Answers:
    """Answers as of one time and one state of memory; forgotten when either moves.

    Attributes:
        known_at: the time they were asked for.
        added: episodes in memory when they were given.
    """

    known_at: int = -1
    added: int = -1
    summaries: dict[MemoryQuery, MemorySummary] = field(default_factory=dict)
    _last: dict[str, MemoryQuery] = field(default_factory=dict)
    _outdated: dict[str, MemoryQuery] = field(default_factory=dict)

    def turn_to(self, known_at: int, added: int) -> None:
        """Forget what was answered for another time, or before an episode arrived."""
        if (known_at, added) == (self.known_at, self.added):
            return
        self._outdated = self._outdated | self._last if known_at == self.known_at else {}
        self.known_at, self.added = known_at, added
        self.summaries, self._last = {}, {}

    def keep(self, query: MemoryQuery, summary: MemorySummary) -> None:
        """Remember the answer of this evaluation to `query`."""
        self.summaries[query] = summary
        self._last[query.symbol] = query

    def changed_since(self, query: MemoryQuery) -> str | None:
        """Why this evaluation asks again; None when it asks for the first time."""
        last = self._last.get(query.symbol)
        if last is None:
            return "new_episodes" if query.symbol in self._outdated else None
        if last.playbook_id != query.playbook_id:
            return "playbook"
        return "direction" if last.direction != query.direction else "fingerprint"
