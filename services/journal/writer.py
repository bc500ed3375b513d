"""JournalWriter: the one way in which anything is recorded.

`append` is synchronous and only buffers; rows leave through `checkpoint` (when enough have gathered) and
`flush`, which the runner awaits between bars. A failed or cancelled flush keeps its rows: sinks are
idempotent by sequence number.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from schemas.canonical import canonical_json
from schemas.errors import InvariantViolation, nearest
from schemas.state import Stateful
from services.journal.chain import GENESIS_HASH, JournalRow, link
from services.journal.kinds import JOURNAL_KINDS


class JournalSink(Protocol):
    """Takes rows in order of sequence; taking the same rows twice changes nothing."""

    async def write(self, rows: list[JournalRow]) -> None:
        """Keep or compare these rows."""
        ...


RowReader = Callable[[JournalRow, Mapping[str, Any]], None]


class JournalWriter(Stateful):
    """Appends to the chain of one run.

    Attributes:
        head_hash: hash of the last appended row; 64 zeros before the first.
        counts: number of appended rows by kind.
    """

    STATE: ClassVar = {"_events": int, "head_hash": str, "counts": Counter[str]}
    REBUILT = frozenset({"_sink", "_flush_rows", "_buffer", "_readers"})

    def __init__(
        self, sink: JournalSink, flush_rows: int = 2_000, after: tuple[int, str] = (0, GENESIS_HASH)
    ) -> None:
        """Begin behind the rows that are there: `after` is their number and the hash of the last."""
        self._sink = sink
        self._flush_rows = flush_rows
        self._buffer: list[JournalRow] = []
        self._events, self.head_hash = after
        self._readers: tuple[RowReader, ...] = ()
        self.counts: Counter[str] = Counter()

    @property
    def events(self) -> int:
        """Number of rows appended so far, flushed or not."""
        return self._events

    @property
    def waiting(self) -> int:
        """Number of rows that are not flushed."""
        return len(self._buffer)

    def append(
        self,
        kind: str,
        *,
        ts_event: int,
        known_at: int,
        symbol: str | None = None,
        payload: Mapping[str, Any],
        telemetry: Mapping[str, Any] | None = None,
    ) -> JournalRow:
        """Link one row to the chain and buffer it.

        Args:
            kind: one of `JOURNAL_KINDS`.
            ts_event: ns at which it happened.
            known_at: ns at which it could be known; never before `ts_event`.
            symbol: None for what concerns the portfolio or the run.
            payload: what was decided; hashed as canonical JSON.
            telemetry: what was measured; stored, never hashed.

        Raises:
            InvariantViolation: an unknown kind, or something known before it happened.
            ValueError: the payload has no canonical form (a number that is not finite, a naive time).
        """
        _demand_order(kind, ts_event, known_at)
        text = canonical_json(payload)
        before, seq = self.head_hash, self._events
        digest = link(
            before, seq=seq, ts_event=ts_event, known_at=known_at, kind=kind, symbol=symbol, payload=text
        )
        measured = None if telemetry is None else canonical_json(telemetry)
        row = JournalRow(seq, ts_event, known_at, kind, symbol, text, measured, before, digest)
        self._buffer.append(row)
        self._events += 1
        self.head_hash = digest
        self.counts[kind] += 1
        for reader in self._readers:
            reader(row, payload)
        return row

    def read_by(self, *readers: RowReader) -> None:
        """Hand every row to each reader as it is appended, with the payload that it was written from."""
        self._readers = readers

    async def checkpoint(self) -> None:
        """Flush when at least `flush_rows` rows have gathered; cheap to await after every boundary."""
        if len(self._buffer) >= self._flush_rows:
            await self.flush()

    async def flush(self) -> None:
        """Hand every buffered row to the sink."""
        if not self._buffer:
            return
        rows = list(self._buffer)
        await self._sink.write(rows)
        del self._buffer[: len(rows)]


def _demand_order(kind: str, ts_event: int, known_at: int) -> None:
    if kind not in JOURNAL_KINDS:
        raise InvariantViolation(f"journal kind {kind!r} is not declared.{nearest(kind, JOURNAL_KINDS)}")
    if known_at < ts_event:
        raise InvariantViolation(f"{kind} is known at {known_at}, before it happened at {ts_event}")
