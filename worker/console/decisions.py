"""What a run decided at each of its bars, and in which policy state a symbol was: a fold over its journal."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from schemas.vocabulary import PolicyState
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


@dataclass
class SymbolDecisions:
    """Of one symbol: times, ns, at which something was decided or skipped, and its states.

    Attributes:
        symbol: its name.
        events: in order of their time.
        changes: when a state began, ns, and which; ascending.
    """

    symbol: str = ""
    events: list[Event] = field(default_factory=list)
    changes: list[tuple[int, str]] = field(default_factory=list)

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

    def decision(self, at: int, move: Move, *, skips: bool) -> dict[str, Any]:
        """What was decided at a time, ns, or at the next or previous one at which something was.

        `at` is null where there is none; with `skips`, an event that started no evaluation counts.
        """
        times = sorted({event.row.known_at for event in self.events if skips or event.row.kind != SKIP})
        place = {
            "here": bisect_right(times, at) - 1,
            "previous": bisect_left(times, at) - 1,
            "next": bisect_right(times, at),
        }[move]
        if not 0 <= place < len(times):
            return {"at": None, "time": None, "state": None, "entries": []}
        found = times[place]
        same = [event for event in self.events if event.row.known_at == found]
        return {
            "at": found // NS_PER_MS,
            "time": shown_time(found),
            "state": self.state_at(found),
            "entries": [_entry(event, self.symbol) for event in same],
        }


def decisions_of(index: JournalIndex) -> dict[str, SymbolDecisions]:
    """Decisions and states of each symbol of a run."""
    found: dict[str, SymbolDecisions] = {}

    def of(symbol: str) -> SymbolDecisions:
        return found.setdefault(symbol, SymbolDecisions(symbol))

    for event in index.of_kind(CHANGE):
        of(str(event.row.symbol)).changes.append((event.row.known_at, str(event.glance()["to"])))
    for kind in DECISION_KINDS:
        for event in index.of_kind(kind):
            of(str(event.row.symbol)).events.append(event)
    before: dict[str, str] = {}
    for event in index.of_kind(BLOCKS):
        now = event.glance()["blocked"]
        for symbol in before.keys() | now.keys():
            if before.get(symbol) != now.get(symbol):
                of(symbol).events.append(event)
        before = now
    for event in (*index.of_kind(BREACH), *index.of_kind(RELEASED)):
        own = event.row.symbol
        for known in found.values() if own is None else [of(own)]:
            known.events.append(event)
    for known in found.values():
        known.events.sort(key=lambda event: event.row.seq)
    return found


def halts_of(index: JournalIndex) -> list[str]:
    """Limits that broke and are not released yet: no symbol enters."""
    last = {
        kind: {str(event.glance()["limit"]): event.row.seq for event in index.of_kind(kind)}
        for kind in (BREACH, RELEASED)
    }
    return [name for name in HALTS if last[BREACH].get(name, -1) > last[RELEASED].get(name, -1)]


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
