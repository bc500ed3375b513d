"""An index of the rows that a question needs, and no others: what it looks for in vain is read next.

The question is put again until it has looked for nothing new, so it reads what it would read of all rows.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from services.journal.chain import JournalRow
from services.journal.index import Event, JournalIndex, RecentRows, StoredEvent, id_field

Answer = TypeVar("Answer")


class KeyReference(NamedTuple):
    """Rows of a kind that name a key in a field, or one that starts so."""

    kind: str
    field: str
    key: str
    whole: bool = True


class RowSpan(NamedTuple):
    """Rows of some kinds and one symbol whose numbers lie between two others."""

    kinds: tuple[str, ...]
    symbol: str | None
    after: int
    before: int


Sought = KeyReference | RowSpan
Find = Callable[[Collection[Sought]], AsyncIterator[JournalRow]]


class KnownRows(JournalIndex):
    """Rows that were found so far; `wanted` is what was looked for and has not been read."""

    def __init__(self, events: Iterable[StoredEvent], known: Collection[Sought]) -> None:
        """Take events in order, which are all rows of what is `known`."""
        super().__init__()
        self.wanted: dict[Sought, None] = {}
        self._known = known
        for event in events:
            self.add(event)

    def get(self, kind: str, key: str | None) -> Event | None:
        """The event of this kind and id."""
        field = id_field(kind)
        found = [] if key is None or field is None else self.naming(kind, field, key)
        return found[0] if found else None

    def starting(self, kind: str, prefix: str) -> list[Event]:
        """The events of this kind whose id starts with `prefix`, in order."""
        field = id_field(kind)
        known = field is not None and self._knows(KeyReference(kind, field, prefix, whole=False))
        return super().starting(kind, prefix) if known else []

    def naming(self, kind: str, field: str, key: str) -> list[Event]:
        """The events of this kind that name `key` in a field, in order."""
        return super().naming(kind, field, key) if self._knows(KeyReference(kind, field, key)) else []

    def between(self, kinds: Sequence[str], symbol: str | None, after: int, before: int) -> list[Event]:
        """Events of some kinds and one symbol, in order, whose row numbers lie between two others."""
        known = self._knows(RowSpan(tuple(kinds), symbol, after, before))
        return super().between(kinds, symbol, after, before) if known else []

    def _knows(self, sought: Sought) -> bool:
        if sought not in self._known:
            self.wanted[sought] = None
        return sought in self._known


async def read_sparsely(find: Find, ask: Callable[[JournalIndex], Answer]) -> Answer:
    """What `ask` makes of a journal, of which `find` brings the rows that it looks for.

    `ask` is called again with more rows, so that it must bear an index that lacks them.
    """
    parsed, known = RecentRows(), set[Sought]()
    rows: dict[int, StoredEvent] = {}
    while True:
        index = KnownRows((rows[seq] for seq in sorted(rows)), known)
        answer = ask(index)
        if not index.wanted:
            return answer
        async for row in find(index.wanted):
            rows[row.seq] = StoredEvent(row, parsed)
        known |= index.wanted.keys()
