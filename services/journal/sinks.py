"""Where rows go: into the store, into a list, or against a stored run that is being replayed."""

from dataclasses import dataclass, field
from typing import Protocol

from services.journal.chain import JournalRow


class RowStore(Protocol):
    """The part of the journal repository that a sink needs."""

    async def append(self, run_id: str, rows: list[JournalRow]) -> None:
        """Store rows; rows that are there already are left alone."""
        ...


class HashReader(Protocol):
    """The part of the journal repository that a comparison needs."""

    async def hashes(self, run_id: str, first: int, last: int) -> list[str]:
        """Stored hashes of rows first..last, inclusive, ascending; fewer when the journal ends before."""
        ...


class StoreSink:
    """Rows of one run into the store, a batch in one transaction."""

    def __init__(self, journal: RowStore, run_id: str) -> None:
        self._journal = journal
        self._run_id = run_id

    async def write(self, rows: list[JournalRow]) -> None:
        """Store a batch."""
        await self._journal.append(self._run_id, rows)


@dataclass
class MemorySink:
    """Rows in a list; for tests and for runs that nobody keeps."""

    rows: list[JournalRow] = field(default_factory=list)

    async def write(self, rows: list[JournalRow]) -> None:
        """Keep what is not there yet."""
        self.rows.extend(row for row in rows if row.seq >= len(self.rows))


class ReplayStopped(Exception):
    """A replay need not go on. `row` is the first that differs, None when the stored rows ended."""

    def __init__(self, row: JournalRow | None) -> None:
        super().__init__("the stored journal ends here" if row is None else f"row {row.seq} differs")
        self.row = row


class DiscardingSink:
    """Takes rows and keeps none: of a run whose head hash, or count of questions, is enough."""

    async def write(self, rows: list[JournalRow]) -> None:
        """Forget a batch."""


class ComparingSink:
    """Compares replayed rows with stored ones; stops at the first that differs, or past the last stored.

    Rows `beyond` the last stored one of a run that broke off may be let pass instead.

    It compares when rows are flushed, never inside `append`: a stop raised there could be taken for the
    failure of whatever was being recorded.
    """

    def __init__(self, journal: HashReader, run_id: str, stored: int, *, beyond: bool = False) -> None:
        self._journal = journal
        self._run_id = run_id
        self._stored = stored
        self._beyond = beyond
        self.compared = 0

    async def write(self, rows: list[JournalRow]) -> None:
        """Compare a batch.

        Raises:
            ReplayStopped: a row differs, or there is no stored row left to compare with.
        """
        expected = await self._journal.hashes(self._run_id, rows[0].seq, rows[-1].seq)
        for row, stored_hash in zip(rows, expected, strict=False):
            if row.hash != stored_hash:
                raise ReplayStopped(row)
            self.compared = row.seq + 1
        if not self._beyond and self.compared >= self._stored and rows[-1].seq >= self._stored:
            raise ReplayStopped(None)
