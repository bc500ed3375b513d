"""What a run decided at each of its bars, and in which policy state a symbol was: a fold over some rows."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from schemas.vocabulary import PolicyState
from services.journal.chain import JournalRow
from services.journal.index import Event, JournalIndex
from services.model_calls.quoting import visible
from worker.pages.figures import shown_time

NS_PER_MS = 1_000_000
SKIP, CHANGE = "policy_skip", "state_transition"
BLOCKS, BREACH, RELEASED = "entries_blocked", "envelope_breach", "envelope_released"
HALTS = ("daily_loss", "drawdown")  # the other limits are released by bars, without a row
DECISION_KINDS = (SKIP, "policy_proposal", "policy_reflection", "boundary_verdict", "policy_evaluation")
DECIDED_KINDS = (*DECISION_KINDS, CHANGE, BLOCKS, BREACH, RELEASED)
# The words that differ by shape and colour wherever they are shown.
WORDS = {
    "held": "HOLD",
    "hold": "HOLD",
    "abstained": "ABSTAIN",
    "abstain": "ABSTAIN",
    "error": "ERROR",
    "stale": "STALE",
    "block": "BLOCKED",
}
BANDS = {
    PolicyState.IDLE: ("#8a929c", "blank"),
    PolicyState.THESIS_ARMED: ("#c79200", "right_diagonal_line"),
    PolicyState.POSITION_OPEN: ("#009e73", "cross"),
    PolicyState.HOLD_LOCK: ("#0072b2", "horizontal_line"),
    PolicyState.COOLDOWN: ("#b4568a", "dot"),
    PolicyState.INVALIDATED: ("#d55e00", "left_diagonal_line"),
}
Move = Literal["here", "previous", "next"]
NOTHING: dict[str, Any] = {"at": None, "time": None, "state": None, "entries": []}


@dataclass(frozen=True)
class SymbolDecisions:
    """Of one symbol, among rows that were read: what was decided or skipped, and its states.

    Attributes:
        symbol: its name.
        events: in order.
        changes: when a state began, ns, and which; ascending.
    """

    symbol: str
    events: list[Event]
    changes: list[tuple[int, str]]

    def state_at(self, at: int) -> str:
        """The policy state at a time, ns."""
        found = bisect_right(self.changes, at, key=lambda change: change[0])
        return self.changes[found - 1][1] if found else PolicyState.IDLE.value

    def bands(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """From when to when which state stood, between two times, ns."""
        edges = [(start, self.state_at(start))]
        edges += [change for change in self.changes if start < change[0] < end]
        ends = [*edges, (end, "")]
        return [(since, until, state) for (since, state), (until, _) in pairwise(ends)]

    def times(self, span: range, *, skips: bool) -> list[int]:
        """When something was decided in a span of rows, ns, ascending; `skips`: also what began nothing."""
        events = (event.row for event in self.events if event.row.seq in span)
        return [row.known_at for row in events if skips or row.kind != SKIP]

    def decision(self, at: int) -> dict[str, Any]:
        """What was decided at a time, ns."""
        same = [event for event in self.events if event.row.known_at == at]
        return {
            "at": at // NS_PER_MS,
            "time": shown_time(at),
            "state": self.state_at(at),
            "entries": [_entry(event, self.symbol) for event in same],
        }


def decisions_of(index: JournalIndex, symbol: str) -> SymbolDecisions:
    """Decisions on a symbol and its states, among rows of it and of none."""
    kinds = (*DECISION_KINDS, BREACH, RELEASED)
    events = [event for kind in kinds for event in index.of_kind(kind) if event.row.symbol in (symbol, None)]
    before = None
    for event in index.of_kind(BLOCKS):
        now = event.glance()["blocked"].get(symbol)
        if now != before:
            events.append(event)
        before = now
    changes = [
        (event.row.known_at, str(event.glance()["to"]))
        for event in index.of_kind(CHANGE)
        if event.row.symbol == symbol
    ]
    return SymbolDecisions(symbol, sorted(events, key=lambda event: event.row.seq), changes)


def halts_of(rows: Iterable[JournalRow]) -> list[str]:
    """Limits that broke and are not released yet, by the last rows that say so: no symbol enters."""
    last = {(row.kind, json.loads(row.payload)["limit"]): row.seq for row in rows}
    return [name for name in HALTS if last.get((BREACH, name), -1) > last.get((RELEASED, name), -1)]


def _entry(event: Event, symbol: str) -> dict[str, Any]:
    payload = event.glance()
    if event.row.kind == BLOCKS:
        reason = payload["blocked"].get(symbol)
        word, texts = "BLOCKED" if reason else "open", iter((reason or "entries are allowed again",))
    else:
        word, texts = _describe(event.row.kind, payload)
    text = "; ".join(visible(str(item)) for item in texts if item)
    return {"seq": event.row.seq, "kind": event.row.kind, "word": WORDS.get(word, word), "text": text}


def _describe(kind: str, payload: dict[str, Any]) -> tuple[str, Iterator[Any]]:
    if kind == SKIP:
        waits = payload.get("bars_to_wait")
        return "SKIPPED", iter(
            (payload["event"], payload["reason"], None if waits is None else f"{waits} bars to wait")
        )
    if kind in (BREACH, RELEASED):
        why = "no entries" if kind == BREACH else "entries are allowed again"
        return "BLOCKED" if kind == BREACH else "open", iter((payload["limit"], why))
    if kind == "policy_proposal":
        plan = payload["proposal"] or {}
        names = " ".join(str(plan[name]) for name in ("direction", "playbook_id") if plan.get(name))
        return str(payload["answer"]), iter((names, payload["reason"], payload["fallback"]))
    if kind == "policy_reflection":
        result = payload["result"]
        if "status" not in result:
            return str(result["outcome"]), iter((result["skip_reason"],))
        codes = (f"{item['severity']} {item['code']}: {item['message']}" for item in result["findings"])
        return str(result["status"]), iter([*codes] or ["nothing found"])
    if kind == "boundary_verdict":
        verdict = payload["verdict"]
        return str(verdict["decision"]), iter((verdict["reason"],))
    return str(payload["outcome"]), iter((payload["reason"],))
