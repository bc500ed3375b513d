"""The state of one symbol of a feed: its last bar, whether it is stale, its quarantine after a conflict."""

from dataclasses import dataclass, field

from services.feeds.block_reasons import BlockReason


@dataclass
class SymbolWatch:
    """One symbol.

    Attributes:
        last: label of its last bar that was handed over.
        missed: bars that did not come since then.
        unsaid: bars that did not come while it was stale; its return tells their number.
        stale: it has been told so.
        quarantine: clean bars without entries that are left.
        doubtful: labels of bars that wait to be handed over and had a conflict.
    """

    last: int | None = None
    missed: int = 0
    unsaid: int = 0
    stale: bool = False
    quarantine: int = 0
    doubtful: set[int] = field(default_factory=set)

    def arrived(self, label: int, quarantine_bars: int) -> BlockReason | None:
        """Note the bar of a row; why the symbol may not enter on it, as far as its own bars tell."""
        self.last, self.missed = label, 0
        reason = BlockReason.CONFLICT if self.quarantine or label in self.doubtful else None
        if label in self.doubtful:
            self.doubtful.remove(label)
            self.quarantine = quarantine_bars
        elif self.quarantine:
            self.quarantine -= 1
        return BlockReason.STALE if self.stale else reason

    def conflicted(self, label: int, waiting: bool, quarantine_bars: int) -> None:
        """Note a second bar of a label with other values; `waiting`: the first was not handed over yet."""
        if waiting:
            self.doubtful.add(label)
        else:
            self.quarantine = quarantine_bars
