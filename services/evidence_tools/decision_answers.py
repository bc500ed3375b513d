"""What a run decided: how far its policies came, and what stopped those that became no trade."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from services.evidence import tool_arguments, tool_results
from services.evidence.tools import demand_known, demand_span, page_of
from services.evidence_tools.run_view import RunView, iso, row_of
from services.journal.index import Event

# Kinds of rows that end a way to a trade -> what was stopped.
STOPPED = {
    "policy_skip": "evaluation skipped",
    "policy_evaluation": "no policy",
    "thesis_expired": "thesis expired",
    "order_refused": "order refused",
    "envelope_breach": "trading stopped",
}
FROZEN = frozenset({"frozen", "tightened"})
NOT_ACTIVATED = "its activation did not come in time"
REACHED = ("policy_evaluation", "policy_frozen", "thesis_armed", "entry_filled")


@dataclass
class _Group:
    """Rows of one kind, symbol, playbooks and reason, in order of sequence."""

    events: list[Event] = field(default_factory=list)

    def between(self, end: int, since: int | None) -> Sequence[Event]:
        """Those before row `end` that were known after `since`, ns."""
        last = bisect_left(self.events, end, key=lambda event: event.row.seq)
        at = attrgetter("row.known_at")
        first = 0 if since is None else bisect_right(self.events, since, hi=last, key=at)
        return self.events[first:last]


@dataclass(frozen=True)
class _Key:
    kind: str
    symbol: str | None
    playbooks: tuple[str, ...]
    reason: str | None


class DecisionCounts:
    """What was decided, by kind, symbol, playbooks and reason: each row is looked at once for all views."""

    def __init__(self) -> None:
        self._alike: dict[_Key, _Group] = {}
        self._taken: dict[str, int] = {}

    def take(self, view: RunView) -> None:
        """Take the rows that came since."""
        for kind in {*STOPPED, *REACHED}:
            events = view.index.of_kind(kind)
            for event in events[self._taken.get(kind, 0) :]:
                books = tuple(sorted(view.playbooks_of(event)))
                key = _Key(kind, event.row.symbol, books, _reason_of(event))
                self._alike.setdefault(key, _Group()).events.append(event)
            self._taken[kind] = max(len(events), self._taken.get(kind, 0))

    def chosen(
        self, end: int, arguments: tool_arguments.DecisionArguments
    ) -> Iterator[tuple[_Key, Sequence[Event]]]:
        """The rows before number `end` that are of the symbol and the playbook, and not too old."""
        symbol, book = arguments.symbol, arguments.playbook_id
        for key, alike in self._alike.items():
            if symbol in (None, key.symbol) and (book is None or book in key.playbooks):
                found = alike.between(end, arguments.since)
                if found:
                    yield key, found


def decisions(view: RunView, arguments: tool_arguments.DecisionArguments) -> tool_results.DecisionResult:
    """Counts of what was decided and of each reason against it."""
    demand_known("symbol", arguments.symbol, view.symbols)
    demand_known("playbook", arguments.playbook_id, view.playbook_ids)
    demand_span(arguments.since, arguments.at)
    tally: DecisionCounts = view.index.made.setdefault(("decisions", 0), DecisionCounts())
    tally.take(view)
    counts, newest = Counter[tuple[str, str | None]](), dict[tuple[str, str | None], Event]()
    for key, found in tally.chosen(len(view.index.events), arguments):
        both = key.kind, key.reason
        counts[both] += len(found)
        newest[both] = max(newest.get(both, found[-1]), found[-1], key=lambda event: event.row.seq)
    stopped = [both for both in counts if both[1] is not None]
    ranked = sorted(stopped, key=lambda both: (-counts[both], both[0], str(both[1])))
    page, cursor = page_of(ranked, arguments)
    reasons = tuple(_reason(both, counts[both], newest[both]) for both in page)
    reached = {
        kind: sum(n for (reached_kind, _), n in counts.items() if reached_kind == kind) for kind in REACHED
    }
    filled = newest.get(("entry_filled", None))
    entry = None if filled is None else row_of(filled)
    return tool_results.DecisionResult(
        **view.cite((*(reason.row for reason in reasons), entry), cursor),
        evaluations=reached["policy_evaluation"],
        policies_frozen=reached["policy_frozen"],
        theses_armed=reached["thesis_armed"],
        entries=reached["entry_filled"],
        newest_entry=entry,
        reasons=reasons,
    )


def _reason(both: tuple[str, str | None], count: int, event: Event) -> tool_results.ReasonSeen:
    at = iso(event.row.known_at)
    return tool_results.ReasonSeen(
        what=STOPPED[both[0]], reason=str(both[1]), count=count, newest=at, row=row_of(event)
    )


def _reason_of(event: Event) -> str | None:
    """Why a row is the end of a way to a trade; None where it is none."""
    kind, payload = event.row.kind, event.glance()
    if kind not in STOPPED or payload.get("outcome") in FROZEN:
        return None
    told_reason = payload.get("reason") or payload.get("limit") or NOT_ACTIVATED
    return f"{payload['outcome']}: {told_reason}" if kind == "policy_evaluation" else str(told_reason)
