"""The rows of one run by kind and id, payloads parsed: what lineage and the reference check look into."""

import json
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any, overload

from schemas.errors import InvariantViolation, StoreError
from services.journal.chain import JournalRow, is_pruned

MOST_PARSED = 20_000_000  # characters of text: parsed they take some five times as much
FILL_KINDS = ("entry_filled", "add_filled", "scale_out_filled", "exit_filled")
ID_FIELDS = {
    "order_accepted": "order_id",
    "entry_filled": "fill_id",
    "add_filled": "fill_id",
    "scale_out_filled": "fill_id",
    "exit_filled": "fill_id",
    "policy_event": "event_id",
    "policy_snapshot": "snapshot_hash",
    "policy_proposal": "proposal_hash",
    "policy_reflection": "reflection_hash",
    "boundary_verdict": "verdict_hash",
    "policy_frozen": "policy_id",
    "policy_amended": "amendment_id",
    "high_level_request": "request_hash",
    "high_level_report": "report_id",
    "deliberation": "deliberation_id",
    "evidence_plan": "evidence_id",
    "replan_verdict": "verdict_id",
    "guard_verdict": "verdict_id",
    "two_phase_phase1_complete": "plan_id",
    "playbook_version": "version_hash",
}


# Ids that a person may give the start of, beside those of `ID_FIELDS`.
MOVE_FIELDS = {"stop_tightened": "amendment_id"}


def id_field(kind: str) -> str | None:
    """The field in which rows of a kind have their id; None where they have none."""
    return "episode_id" if kind == "episode" else ID_FIELDS.get(kind) or MOVE_FIELDS.get(kind)


@dataclass(frozen=True, slots=True)
class Event:
    """A journal row with its payload parsed."""

    row: JournalRow
    payload: dict[str, Any]

    def glance(self) -> dict[str, Any]:
        """The payload for one look at one row of many."""
        return self.payload

    @property
    def own_id(self) -> str | None:
        """Its id among those of `ID_FIELDS`; None where its kind has none, or it has none."""
        field = ID_FIELDS.get(self.row.kind)
        if field is None:
            return None
        written = set(written_ids(self.row.payload, field))
        if len(written) == 1 and f'"{field}":null' not in self.row.payload:
            key = written.pop()
            if key and "\\" not in key:
                return key
        found: str | None = self.glance().get(field)
        return found


class RecentRows:
    """Payloads of the rows that were parsed last, so many that their texts have `most` characters."""

    def __init__(self, most: int = MOST_PARSED) -> None:
        self._most, self._length = most, 0
        self._kept: OrderedDict[int, tuple[dict[str, Any], int]] = OrderedDict()

    def of(self, row: JournalRow) -> dict[str, Any]:
        """The payload of a row, which is kept.

        Raises:
            StoreError: the text is not what was written.
        """
        kept = self._kept.get(row.seq)
        if kept is not None:
            return kept[0]
        payload = self.glance(row)
        self._kept[row.seq] = payload, len(row.payload)
        self._length += len(row.payload)
        while self._length > self._most and len(self._kept) > 1:
            self._length -= self._kept.popitem(last=False)[1][1]
        return payload

    def glance(self, row: JournalRow) -> dict[str, Any]:
        """The payload of a row, of which nothing is kept."""
        kept = self._kept.get(row.seq)
        if kept is not None:
            return kept[0]
        try:
            payload: dict[str, Any] = json.loads(row.payload)
        except ValueError as error:
            raise StoreError(f"row {row.seq} ({row.kind}) is not what was written") from error
        return payload


class StoredEvent(Event):
    """A stored row of many: its payload is parsed when it is looked at, and forgotten in time.

    Its text was held against its hash, so the hashes are not kept, and kind and symbol are kept once.
    """

    __slots__ = ("_parsed",)
    _parsed: RecentRows

    def __init__(self, row: JournalRow, parsed: RecentRows) -> None:
        kind, symbol = intern(row.kind), None if row.symbol is None else intern(row.symbol)
        kept = JournalRow(row.seq, row.ts_event, row.known_at, kind, symbol, row.payload, None, "", "")
        object.__setattr__(self, "row", kept)
        object.__setattr__(self, "_parsed", parsed)

    @property
    def payload(self) -> dict[str, Any]:
        """The payload, parsed.

        Raises:
            StoreError: the text is not what was written.
        """
        return self._parsed.of(self.row)

    def glance(self) -> dict[str, Any]:
        """The payload for one look at one row of many: it is not kept.

        Raises:
            StoreError: the text is not what was written.
        """
        return self._parsed.glance(self.row)


def written_ids(text: str, field: str) -> Iterator[str]:
    """What stands behind the name of a field, anywhere in a payload, as it is written."""
    before = f'"{field}":"'
    at = text.find(before)
    while at >= 0:
        start = at + len(before)
        end = text.find('"', start)
        yield text[start:end]
        at = text.find(before, end)


class RowIds:
    """Rows of one kind by their id: texts are searched for it, and parsed when it is asked for."""

    def __init__(self, field: str) -> None:
        self.field = field
        self._rows: dict[str, Event | list[Event]] = {}
        self._sorted: list[str] = []
        self._taken = 0

    def take(self, events: Sequence[Event]) -> None:
        """Take those that came since the last time."""
        for event in events[self._taken :]:
            for key in self._scan_ids(event.row.payload) or self._read(event):
                there = self._rows.setdefault(key, event)
                if isinstance(there, list):
                    there.append(event)
                elif there is not event:
                    self._rows[key] = [there, event]
        if self._taken < len(events):
            self._taken, self._sorted = len(events), []

    def _scan_ids(self, text: str) -> set[str]:
        """Ids anywhere in a payload; nothing that is escaped."""
        return {key for key in written_ids(text, self.field) if key and "\\" not in key}

    def _read(self, event: Event) -> set[str]:
        """The id of a row in whose text none was found: one that is escaped, or none."""
        if f'"{self.field}":null' in event.row.payload:
            return set()
        key = self._of(event)
        return set() if key is None else {key}

    def _under(self, key: str) -> Sequence[Event]:
        there = self._rows.get(key, ())
        return (there,) if isinstance(there, Event) else there

    def all(self, key: str) -> list[Event]:
        """Every row under an id, in order."""
        return [event for event in self._under(key) if self._of(event) == key]

    def first(self, key: str) -> Event | None:
        """The first row under an id."""
        return next((event for event in self._under(key) if self._of(event) == key), None)

    def starting(self, prefix: str) -> list[Event]:
        """Rows whose id starts with a text, by sequence."""
        self._sorted = self._sorted or sorted(self._rows)
        at, found = bisect_left(self._sorted, prefix), list[Event]()
        while at < len(self._sorted) and self._sorted[at].startswith(prefix):
            key = self._sorted[at]
            found += [event for event in self._under(key) if self._of(event) == key]
            at += 1
        return sorted(found, key=lambda event: event.row.seq)

    def _of(self, event: Event) -> str | None:
        if ID_FIELDS.get(event.row.kind) == self.field:
            return event.own_id
        payload = event.glance()
        found: str | None = (payload["episode"] if event.row.kind == "episode" else payload).get(self.field)
        return found


class JournalIndex:
    """Events of one run by kind and id; of rows under one id the first is found, versions are kept all.

    Attributes:
        events: all, in order.
        made: what was made of rows, by what and seq, so that several views make it once.
    """

    def __init__(self) -> None:
        self._all: list[Event] = []
        self.events: Sequence[Event] = self._all
        self.made: dict[tuple[str, int], Any] = {}
        self.pruned = Counter[str]()  # rows without a text, by kind
        self._kinds: dict[str, list[Event]] = {}
        self._ids: dict[tuple[str, str], RowIds] = {}

    @classmethod
    async def read(cls, rows: AsyncIterable[JournalRow], *, lazily: bool = False) -> "JournalIndex":
        """Index of all rows of a run; `lazily` leaves a payload as text until it is looked at.

        Raises:
            StoreError: a payload cannot be read.
        """
        index = cls()
        async for _ in index.take(rows, lazily=lazily):
            pass
        return index

    async def take(
        self, rows: AsyncIterable[JournalRow], *, lazily: bool = False
    ) -> AsyncIterator[JournalRow]:
        """The same rows; each is in the index when the next one is asked for. See `read`."""
        parsed = RecentRows()
        async for row in rows:
            yield row
            if is_pruned(row):
                self.pruned[row.kind] += 1
                continue
            try:
                self.add(StoredEvent(row, parsed) if lazily else Event(row, json.loads(row.payload)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise StoreError(
                    f"row {row.seq} ({row.kind}) is not what was written: see `thinktwice verify`"
                ) from error

    def add(self, event: Event) -> None:
        """Take one event; in order of sequence."""
        self._all.append(event)
        self._kinds.setdefault(event.row.kind, []).append(event)

    def get(self, kind: str, key: str | None) -> Event | None:
        """The event of this kind and id."""
        field = id_field(kind)
        return None if key is None or field is None else self._ids_of(kind, field).first(key)

    def _ids_of(self, kind: str, field: str) -> RowIds:
        ids = self._ids.setdefault((kind, field), RowIds(field))
        ids.take(self._kinds.get(kind, ()))
        return ids

    def starting(self, kind: str, prefix: str) -> list[Event]:
        """The events of this kind whose id starts with `prefix`, in order."""
        field = id_field(kind)
        return [] if field is None else self._ids_of(kind, field).starting(prefix)

    def naming(self, kind: str, field: str, key: str) -> list[Event]:
        """The events of this kind that name `key` in a field, in order."""
        return self._ids_of(kind, field).all(key)

    def between(self, kinds: Sequence[str], symbol: str | None, after: int, before: int) -> list[Event]:
        """Events of some kinds and one symbol, in order, whose row numbers lie between two others."""
        found = []
        for kind in kinds:
            events = self.of_kind(kind)
            first = bisect_right(events, after, key=lambda event: event.row.seq)
            end = bisect_left(events, before, key=lambda event: event.row.seq)
            found += [event for event in events[first:end] if event.row.symbol == symbol]
        return sorted(found, key=lambda event: event.row.seq)

    def of_kind(self, kind: str) -> list[Event]:
        """All events of a kind, in order."""
        return self._kinds.get(kind, [])

    def fills(self, prefix: str) -> list[Event]:
        """Fills whose id starts with `prefix`; exactly one when it is a whole id."""
        exact = [found for kind in FILL_KINDS if (found := self.get(kind, prefix))]
        started = [event for kind in FILL_KINDS for event in self.starting(kind, prefix)]
        return exact or sorted(started, key=lambda event: event.row.seq)

    def stop_moves(self, prefix: str) -> list[Event]:
        """Stop moves whose amendment's id starts with `prefix`; those of a policy's own rules have none."""
        return self.starting("stop_tightened", prefix)

    def versions(self, version_hash: str) -> list[Event]:
        """Every lifecycle step of one playbook version, in order."""
        return self.naming("playbook_version", "version_hash", version_hash)


class FirstRows(Sequence[Event]):
    """The first rows of a list that may grow, without a copy of it."""

    def __init__(self, rows: Sequence[Event], end: int) -> None:
        self._rows, self._end = rows, end

    def __len__(self) -> int:
        return self._end

    @overload
    def __getitem__(self, at: int) -> Event: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...
    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        if isinstance(at, slice):
            return [self._rows[number] for number in range(*at.indices(self._end))]
        return self._rows[range(self._end)[at]]


class JournalIndexPart(JournalIndex):
    """The first rows of an index, which may grow behind them; a look at a kind costs its rows, not all."""

    def __init__(self, whole: JournalIndex, end: int) -> None:
        """Take the rows of `whole` before number `end`."""
        super().__init__()
        self.made = whole.made
        self._whole, self._end = whole, end
        self.events = FirstRows(whole.events, end)

    def add(self, event: Event) -> None:
        """Refuse: rows are added to the whole.

        Raises:
            InvariantViolation: always.
        """
        raise InvariantViolation(f"row {event.row.seq} is added to a part of a journal")

    def get(self, kind: str, key: str | None) -> Event | None:
        """The event of this kind and id."""
        found = self._whole.get(kind, key)
        return found if found is not None and found.row.seq < self._end else None

    def starting(self, kind: str, prefix: str) -> list[Event]:
        """The events of this kind whose id starts with `prefix`, in order."""
        return self._select_known(self._whole.starting(kind, prefix))

    def of_kind(self, kind: str) -> list[Event]:
        """All events of a kind, in order."""
        if kind not in self._kinds:
            self._kinds[kind] = self._select_known(self._whole.of_kind(kind))
        return self._kinds[kind]

    def naming(self, kind: str, field: str, key: str) -> list[Event]:
        """The events of this kind that name `key` in a field, in order."""
        return self._select_known(self._whole.naming(kind, field, key))

    def _select_known(self, events: list[Event]) -> list[Event]:
        return events[: bisect_left(events, self._end, key=lambda event: event.row.seq)]
