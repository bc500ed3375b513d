"""What a chart of a run shows at its bars: fills, stop and target lines, reflections with their verdicts.

A fold over the journal alone; times are ns of the label of a bar, prices in quote currency. Another fold has
the reports of a run, each with the verdict on it and what was read for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.journal.chain import JournalRow
from services.journal.index import FILL_KINDS, Event, JournalIndex
from services.slow_loop.evidence_rows import CALL, PLAN, told_evidence
from worker.pages.figures import shown_time

CLOSING, OPENING = "exit_filled", "entry_filled"
MOVES = "stop_tightened"
REFLECTION, JUDGED = "policy_reflection", "boundary_verdict"
MARKED_KINDS = (*FILL_KINDS, MOVES, REFLECTION, JUDGED)
REPORT, VERDICT = "high_level_report", "replan_verdict"
ENTRY_KINDS = frozenset({REPORT, VERDICT, PLAN, CALL, OPENING, CLOSING})


@dataclass(frozen=True)
class FillMark:
    """One fill: `r` and `reason` of an exit, None of what is none."""

    event: Event
    kind: str
    label: int
    price: float
    direction: str
    playbook_id: str
    r: float | None
    reason: str | None


@dataclass(frozen=True)
class LevelSpan:
    """A stop or a target that stood at one price from one bar to another, labels in ns."""

    kind: str
    start: int
    end: int
    price: float


@dataclass(frozen=True)
class ReflectionMark:
    """What the fast reflection said at a bar close, ns, and what the judge made of it."""

    event: Event
    known_at: int
    status: str
    decision: str | None
    findings: tuple[dict[str, Any], ...]
    amends: bool

    @property
    def matters(self) -> bool:
        """Whether something was found that is more than a note."""
        return self.status != "pass" or any(finding["severity"] != "info" for finding in self.findings)


@dataclass(frozen=True)
class SymbolMarks:
    """All marks of one symbol, in order."""

    fills: tuple[FillMark, ...]
    levels: tuple[LevelSpan, ...]
    reflections: tuple[ReflectionMark, ...]


def marks_of(index: JournalIndex, end: int) -> dict[str, SymbolMarks]:
    """Marks by symbol; a position that is open at the end has its lines up to `end`, a label in ns."""
    events: dict[str, list[Event]] = {}
    for kind in (*FILL_KINDS, MOVES):
        for event in index.of_kind(kind):
            events.setdefault(str(event.row.symbol), []).append(event)
    decisions = {
        event.payload["reflection_hash"]: str(event.payload["verdict"]["decision"])
        for event in index.of_kind(JUDGED)
    }
    reflections: dict[str, list[ReflectionMark]] = {}
    for event in index.of_kind(REFLECTION):
        reflections.setdefault(str(event.row.symbol), []).append(_reflection(event, decisions))
    found = {}
    for symbol in sorted(events.keys() | reflections.keys()):
        own = sorted(events.get(symbol, ()), key=lambda event: event.row.seq)
        found[symbol] = SymbolMarks(
            tuple(_fill(event) for event in own if event.row.kind in FILL_KINDS),
            tuple(_levels(own, end)),
            tuple(reflections.get(symbol, ())),
        )
    return found


def _fill(event: Event) -> FillMark:
    payload = event.payload
    return FillMark(
        event,
        event.row.kind,
        payload["bar_label"],
        payload["price"],
        payload["direction"],
        payload["playbook_id"],
        payload.get("r"),
        payload.get("reason"),
    )


def _levels(events: list[Event], end: int) -> Iterator[LevelSpan]:
    """Lines of each position; a stop that moves ends one line and begins the next."""
    open_at: dict[str, tuple[int, float]] = {}
    for event in events:
        payload, label = event.payload, event.payload["bar_label"]
        if event.row.kind == OPENING:
            open_at = {
                kind: (label, payload[kind]) for kind in ("stop", "target") if payload[kind] is not None
            }
        elif event.row.kind == MOVES and "stop" in open_at:
            start, price = open_at["stop"]
            yield LevelSpan("stop", start, label, price)
            open_at["stop"] = (label, payload["stop"])
        elif event.row.kind == CLOSING:
            yield from (LevelSpan(kind, start, label, price) for kind, (start, price) in open_at.items())
            open_at = {}
    yield from (LevelSpan(kind, start, end, price) for kind, (start, price) in open_at.items())


def _reflection(event: Event, decisions: dict[str, str]) -> ReflectionMark:
    result = event.payload["result"]
    return ReflectionMark(
        event,
        event.row.known_at,
        str(result.get("status", result.get("outcome"))),
        decisions.get(event.payload["reflection_hash"]),
        tuple(result.get("findings", ())),
        event.payload.get("amendment") is not None,
    )


def report_entries(rows: Iterable[tuple[JournalRow, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Every report among rows with their payloads, in order.

    `verdict` is the judge's on it, null while there is none, `evidence` what was read for it, `waiting` why
    trades of it do not count yet, a sentence for each playbook.
    """
    reports: dict[str, dict[str, Any]] = {}
    held: dict[str | None, Mapping[str, Any]] = {}
    read: list[tuple[str, Mapping[str, Any]]] = []
    for row, payload in rows:
        kind = row.kind
        read.append((kind, payload))
        if kind == OPENING:
            held[row.symbol] = payload
        elif kind == CLOSING:
            held.pop(row.symbol, None)
        elif kind == REPORT:
            waiting = [_why(found, held) for found in payload["report"]["clusters"] if _waits(found)]
            reports[payload["report_id"]] = {**payload, "verdict": None, "waiting": waiting}
        elif kind == VERDICT and payload["report_id"] in reports:
            reports[payload["report_id"]]["verdict"] = payload["verdict"]
    evidence = told_evidence(read)
    return [entry | {"evidence": evidence.get(name, [])} for name, entry in reports.items()]


def document_of_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a report: an entry without the words that only a page says."""
    return {name: value for name, value in entry.items() if name != "waiting"}


def _waits(cluster: Mapping[str, Any]) -> bool:
    whole = cluster["regime"] is None and cluster.get("timeframe") is None
    return whole and cluster["counted"] < cluster["n"]


def _why(cluster: Mapping[str, Any], held: Mapping[str | None, Mapping[str, Any]]) -> str:
    name, unit = cluster["playbook_id"], cluster["unit"]
    text = (
        f"{cluster['n'] - cluster['counted']} of {cluster['n']} trades of {name} do not count yet: a {unit} "
        f"of entries counts once it is over, its positions are closed, and every {unit} before it counts."
    )
    opened = {symbol: entry for symbol, entry in held.items() if entry["playbook_id"] == name}
    if not opened:
        return text
    symbol, entry = min(opened.items(), key=lambda item: (item[1]["bar_label"], item[0]))
    since = shown_time(entry["bar_label"])
    return (
        f"{text} Its position {entry['direction']} {symbol} is open since {since}: no trade entered in the "
        f"{unit} of that day or later counts before that one is closed."
    )
