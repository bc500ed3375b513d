"""The hash chain: what a journal row is, how it is linked to the one before, and whether stored rows fit.

A link covers the previous hash, a header (sequence, times, kind, symbol) and the payload text exactly as
stored, so no byte of a row and no row can be changed, dropped, added or moved unseen. Telemetry is measured,
not decided: it is stored beside the payload and never hashed. Pure; called by the writer, by `verify` and by
the tests.
"""

import hashlib
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from functools import lru_cache

from schemas.canonical import canonical_json
from services.journal.kinds import PRUNABLE_KINDS
from services.model_calls.quoting import visible

GENESIS_HASH = "0" * 64


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One row. `payload` is canonical JSON text; `seq` counts from 0; times are integer ns, UTC."""

    seq: int
    ts_event: int
    known_at: int
    kind: str
    symbol: str | None
    payload: str
    telemetry: str | None
    prev_hash: str
    hash: str


@dataclass(frozen=True)
class ChainReport:
    """Result of a chain check. `problem` says what is wrong at `seq`, the first row that does not fit."""

    ok: bool
    rows: int
    head_hash: str
    problem: str | None = None
    seq: int | None = None


def link(
    prev_hash: str, *, seq: int, ts_event: int, known_at: int, kind: str, symbol: str | None, payload: str
) -> str:
    """SHA-256 (64 hex digits) over previous hash, header and payload text, each on its own line."""
    of = int.__repr__
    header = f"[{of(seq)},{of(ts_event)},{of(known_at)},{_names(kind, symbol)}]"
    return hashlib.sha256(f"{prev_hash}\n{header}\n{payload}".encode()).hexdigest()


@lru_cache(maxsize=4_096, typed=True)
def _names(kind: str, symbol: str | None) -> str:
    """Kind and symbol as they stand in canonical JSON: of a million rows there are few."""
    return canonical_json([kind, symbol])[1:-1]


def relink(row: JournalRow) -> str:
    """The hash that a stored row should have, from its other fields."""
    return link(
        row.prev_hash,
        seq=row.seq,
        ts_event=row.ts_event,
        known_at=row.known_at,
        kind=row.kind,
        symbol=row.symbol,
        payload=row.payload,
    )


def is_pruned(row: JournalRow) -> bool:
    """Whether the text of a row was taken; its hash stays, which a replay is held against."""
    return row.payload == "" and row.kind in PRUNABLE_KINDS


def damage(row: JournalRow) -> str | None:
    """What is wrong with a row by itself: its hash is not that of its stored bytes. None when nothing is."""
    if is_pruned(row):
        return None
    try:
        intact = relink(row) == row.hash
    except (TypeError, ValueError):  # something else than text and numbers lies there
        intact = False
    if intact:
        return None
    return f"row {row.seq} ({visible(str(row.kind))}) is damaged: it was changed after it was written"


def misfit(row: JournalRow, seq: int, prev_hash: str | None) -> str | None:
    """Why `row` cannot be row `seq` after `prev_hash`, or None when it fits; any row before it if None."""
    if row.seq != seq:
        if row.seq < seq:
            return f"row {row.seq} is damaged: it is stored twice"
        return f"the journal is damaged: row {seq} is missing, the next stored row is {row.seq}"
    problem = damage(row)
    if problem is None and prev_hash is not None and row.prev_hash != prev_hash:
        return f"row {seq} ({row.kind}) is damaged: it does not follow the row before it"
    return problem


async def follow(
    rows: AsyncIterable[JournalRow], after: int = -1
) -> AsyncIterator[tuple[JournalRow, str | None]]:
    """Rows of a chain in order, each with why it does not fit, None when it does; `after` is a row before."""
    last, previous = after, GENESIS_HASH if after < 0 else None
    async for row in rows:
        yield row, misfit(row, last + 1, previous)
        last, previous = row.seq, row.hash


async def check_chain(rows: AsyncIterable[JournalRow], *, events: int, head_hash: str) -> ChainReport:
    """Walk rows in order of sequence and hold them against the number and head that the run row records.

    Args:
        rows: stored rows, ascending.
        events: how many rows the run recorded.
        head_hash: hash of the last row the run recorded.
    """
    count, head = 0, GENESIS_HASH
    async for row, problem in follow(rows):
        if problem is not None:
            return ChainReport(False, count, head, problem, count)
        count, head = count + 1, row.hash
    if count != events:
        return ChainReport(
            False,
            count,
            head,
            f"the journal is damaged: {events} rows were recorded and {count} are stored",
            count,
        )
    if head != head_hash:
        return ChainReport(
            False, count, head, "the last row is not the recorded head of the chain", count - 1
        )
    return ChainReport(True, count, head)
