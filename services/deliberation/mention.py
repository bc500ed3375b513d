"""One thing that a sentence names."""

from typing import Any, NamedTuple

# Kinds that say what something is said of.
SUBJECT_KINDS = (
    "playbook", "regime", "timeframe", "symbol", "parameter", "period", "date", "order", "id", "trial",
    "feature",
)  # fmt: skip


class Mention(NamedTuple):
    """One thing that a sentence names: what kind of thing, where, its words, and what they stand for."""

    kind: str
    start: int
    end: int
    text: str
    value: Any = None

    @property
    def place(self) -> tuple[int, int]:
        """Its first character, and the one behind its last."""
        return self.start, self.end

    def moved(self, by: int) -> "Mention":
        """The same mention in a text that begins elsewhere."""
        return Mention(self.kind, self.start + by, self.end + by, self.text, self.value)
