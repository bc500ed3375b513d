"""The rows of one run by kind and id, payloads parsed: what lineage and the reference check look into."""

import json
from bisect import bisect_left
from collections.abc import AsyncIterable
from dataclasses import dataclass
from typing import Any

from schemas.errors import InvariantViolation, StoreError
from services.journal.chain import JournalRow

FILL_KINDS = ("entry_filled", "scale_out_filled", "exit_filled")
ID_FIELDS = {
    "order_accepted": "order_id",
    "entry_filled": "fill_id",
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
    "two_phase_phase1_complete": "plan_id",
    "playbook_version": "version_hash",
}


@dataclass(frozen=True)
class Event:
    """A journal row with its payload parsed."""

    row: JournalRow
    payload: dict[str, Any]


class JournalIndex:
    """Events of one run by kind and id; of rows under one id the first is kept, versions are kept all."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._kinds: dict[str, list[Event]] = {}
        self._by_id: dict[tuple[str, str], Event] = {}
        self._versions: dict[str, list[Event]] = {}
        self._renewals: dict[str, list[Event]] = {}

    @classmethod
    async def read(cls, rows: AsyncIterable[JournalRow]) -> "JournalIndex":
        """Index of all rows of a run.

        Raises:
            StoreError: a payload cannot be read.
        """
        index = cls()
        async for row in rows:
            try:
                index.add(Event(row, json.loads(row.payload)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise StoreError(
                    f"row {row.seq} ({row.kind}) is not what was written: see `thinktwice verify`"
                ) from error
        return index

    def add(self, event: Event) -> None:
        """Take one event; in order of sequence."""
        self.events.append(event)
        kind = event.row.kind
        self._kinds.setdefault(kind, []).append(event)
        if kind == "episode":
            key = event.payload["episode"]["episode_id"]
        else:
            key = event.payload.get(ID_FIELDS.get(kind, ""))
        if key is not None:
            self._by_id.setdefault((kind, key), event)
        if kind == "playbook_version":
            self._versions.setdefault(event.payload["version_hash"], []).append(event)
        elif kind == "measure_renewed":
            self._renewals.setdefault(event.payload["version_hash"], []).append(event)

    def get(self, kind: str, key: str | None) -> Event | None:
        """The event of this kind and id."""
        return None if key is None else self._by_id.get((kind, key))

    def of_kind(self, kind: str) -> list[Event]:
        """All events of a kind, in order."""
        return self._kinds.get(kind, [])

    def fills(self, prefix: str) -> list[Event]:
        """Fills whose id starts with `prefix`; exactly one when it is a whole id."""
        exact = [found for kind in FILL_KINDS if (found := self.get(kind, prefix))]
        fills = (event for kind in FILL_KINDS for event in self.of_kind(kind))
        started = [event for event in fills if event.payload["fill_id"].startswith(prefix)]
        return exact or sorted(started, key=lambda event: event.row.seq)

    def stop_moves(self, prefix: str) -> list[Event]:
        """Stop moves whose amendment's id starts with `prefix`; those of a policy's own rules have none."""
        return [
            event
            for event in self.of_kind("stop_tightened")
            if (key := event.payload.get("amendment_id")) is not None and key.startswith(prefix)
        ]

    def versions(self, version_hash: str) -> list[Event]:
        """Every lifecycle step of one playbook version, in order."""
        return self._versions.get(version_hash, [])

    def renewals(self, version_hash: str) -> list[Event]:
        """Every renewal of a measure that a playbook version holds, in order."""
        return self._renewals.get(version_hash, [])


class JournalIndexPart(JournalIndex):
    """The first rows of an index, which may grow behind them; a look at a kind costs its rows, not all."""

    def __init__(self, whole: JournalIndex, end: int) -> None:
        """Take the rows of `whole` before number `end`."""
        super().__init__()
        self.events = whole.events[:end]
        self._whole, self._end = whole, end

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

    def of_kind(self, kind: str) -> list[Event]:
        """All events of a kind, in order."""
        if kind not in self._kinds:
            self._kinds[kind] = self._known(self._whole.of_kind(kind))
        return self._kinds[kind]

    def versions(self, version_hash: str) -> list[Event]:
        """Every lifecycle step of one playbook version, in order."""
        return self._known(self._whole.versions(version_hash))

    def renewals(self, version_hash: str) -> list[Event]:
        """Every renewal of a measure that a playbook version holds, in order."""
        return self._known(self._whole.renewals(version_hash))

    def _known(self, events: list[Event]) -> list[Event]:
        return events[: bisect_left(events, self._end, key=lambda event: event.row.seq)]
