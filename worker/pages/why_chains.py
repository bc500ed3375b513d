"""Why-chains of a page: every node once, so that what many fills rest on costs its room one time."""

from typing import Any

from services.journal.lineage import LineageNode
from services.model_calls.quoting import visible
from worker.pages.figures import fact_text, shown_time

LONGEST, LONGEST_TOLD = 300, 2_000
TOLD = ("narrative", "rationale", "thesis")
Written = tuple[str, str, str, int, tuple[str, ...], tuple[int, ...]]


class WhyChains:
    """Nodes in order of first use; a chain is the number of its root."""

    def __init__(self) -> None:
        self._numbers: dict[Written, int] = {}

    def add(self, root: LineageNode) -> int:
        """Take a chain, give its number."""
        children = tuple(self.add(child) for child in root.children)
        where = "" if root.seq is None else f"row {root.seq}"
        if root.known_at is not None:
            where += f", known {shown_time(root.known_at)}"
        node: Written = (
            visible(root.title),
            "" if root.id is None else visible(root.id[:16]),
            where,
            int(root.found),
            tuple(_facts(root.facts)),
            children,
        )
        return self._numbers.setdefault(node, len(self._numbers))

    @property
    def nodes(self) -> list[list[Any]]:
        """Each as title, id, place, whether it was found, facts (name, text, name, ...) and children."""
        return [list(node) for node in self._numbers]


def _facts(facts: dict[str, Any]) -> list[str]:
    told: list[str] = []
    for name, value in facts.items():
        if value not in (None, [], {}, ""):
            text = visible(fact_text(name, value), lines=name == "narrative")
            longest = LONGEST_TOLD if name in TOLD else LONGEST
            told += [visible(name), text if len(text) <= longest else f"{text[: longest - 1]}…"]
    return told
