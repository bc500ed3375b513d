"""Parking: what an evaluation beside a live feed has to say waits until its answer has arrived.

The chain of a run has one order, and a replay must find it again. So what happens beside the bars is not
written when it happens, at a moment that no replay could know, but when the trading loop takes the answer, at
a bar that the journal names. Outside of `parking` every row goes straight to the writer.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from services.ports import EventJournal

_PARKED: ContextVar["list[ParkedRow] | None"] = ContextVar("parked_rows", default=None)


@dataclass(frozen=True)
class ParkedRow:
    """A row that waits; fields as in `JournalWriter.append`."""

    kind: str
    ts_event: int
    known_at: int
    symbol: str | None
    payload: Mapping[str, Any]
    telemetry: Mapping[str, Any] | None


class ParkingJournal:
    """The journal as everything inside a run sees it."""

    def __init__(self, writer: EventJournal) -> None:
        self._writer = writer

    def append(
        self,
        kind: str,
        *,
        ts_event: int,
        known_at: int,
        symbol: str | None = None,
        payload: dict[str, Any],
        telemetry: dict[str, Any] | None = None,
    ) -> None:
        """Write one row, or park it inside `parking`."""
        parked = _PARKED.get()
        if parked is None:
            self._writer.append(
                kind,
                ts_event=ts_event,
                known_at=known_at,
                symbol=symbol,
                payload=payload,
                telemetry=telemetry,
            )
        else:
            parked.append(ParkedRow(kind, ts_event, known_at, symbol, payload, telemetry))

    @contextmanager
    def parking(self) -> Iterator[list[ParkedRow]]:
        """Park what this task appends; the list fills while the context is open."""
        rows: list[ParkedRow] = []
        token = _PARKED.set(rows)
        try:
            yield rows
        finally:
            _PARKED.reset(token)

    def deliver(self, rows: list[ParkedRow], now: int) -> None:
        """Write parked rows, in order; nobody could know them before `now`, ns."""
        for row in rows:
            self._writer.append(
                row.kind,
                ts_event=row.ts_event,
                known_at=max(row.known_at, now),
                symbol=row.symbol,
                payload=dict(row.payload),
                telemetry=None if row.telemetry is None else dict(row.telemetry),
            )
