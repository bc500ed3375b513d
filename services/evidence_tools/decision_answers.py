"""What a run decided: how far its policies came, and what stopped those that became no trade."""

from collections.abc import Iterator
from dataclasses import dataclass

from services.evidence import tool_arguments as asked
from services.evidence import tool_results as told
from services.evidence.tools import demand_known, page_of
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
NO_PLAYBOOK = frozenset({"policy_skip", "envelope_breach"})
FROZEN = frozenset({"frozen", "tightened"})
NOT_ACTIVATED = "its activation did not come in time"


@dataclass
class _Counted:
    count: int
    newest: Event


def decisions(view: RunView, arguments: asked.DecisionArguments) -> told.DecisionResult:
    """Counts of what was decided and of each reason against it."""
    demand_known("symbol", arguments.symbol, view.symbols)
    demand_known("playbook", arguments.playbook_id, view.playbook_ids)
    counted: dict[tuple[str, str], _Counted] = {}
    for event, reason in _stopped(view, arguments):
        known = counted.setdefault((STOPPED[event.row.kind], reason), _Counted(0, event))
        known.count, known.newest = known.count + 1, event
    ranked = sorted(counted.items(), key=lambda item: (-item[1].count, item[0]))
    page, cursor = page_of(list(enumerate(ranked)), arguments, lambda item: item[0])
    reasons = tuple(_reason(what, reason, known) for _, ((what, reason), known) in page)
    entries = list(_chosen(view, "entry_filled", arguments))
    rows = [one.row for one in reasons] + [row_of(event) for event in entries[-1:]]
    return told.DecisionResult(
        run_id=view.run_id,
        known_at=view.moment,
        rows=tuple(rows),
        next_cursor=cursor,
        evaluations=sum(1 for _ in _chosen(view, "policy_evaluation", arguments)),
        policies_frozen=sum(1 for _ in _chosen(view, "policy_frozen", arguments)),
        theses_armed=sum(1 for _ in _chosen(view, "thesis_armed", arguments)),
        entries=len(entries),
        newest_entry=row_of(entries[-1]) if entries else None,
        reasons=reasons,
    )


def _reason(what: str, reason: str, known: _Counted) -> told.ReasonSeen:
    newest = known.newest
    return told.ReasonSeen(
        what=what, reason=reason, count=known.count, newest=iso(newest.row.known_at), row=row_of(newest)
    )


def _chosen(view: RunView, kind: str, arguments: asked.DecisionArguments) -> Iterator[Event]:
    """Rows of a kind that are of the symbol and the playbook, and not too old."""
    since, symbol, book = arguments.since, arguments.symbol, arguments.playbook_id
    for event in view.index.of_kind(kind):
        is_of = symbol in (None, event.row.symbol) and (book is None or book in view.playbooks_of(event))
        if is_of and (since is None or event.row.known_at >= since):
            yield event


def _stopped(view: RunView, arguments: asked.DecisionArguments) -> Iterator[tuple[Event, str]]:
    """Rows at which something ended, with the reason; what waits is of no playbook."""
    for kind in STOPPED:
        if arguments.playbook_id is not None and kind in NO_PLAYBOOK:
            continue
        for event in _chosen(view, kind, arguments):
            payload = event.payload
            if kind == "policy_evaluation":
                if payload["outcome"] not in FROZEN:
                    yield event, f"{payload['outcome']}: {payload['reason']}"
            else:
                yield event, str(payload.get("reason") or payload.get("limit") or NOT_ACTIVATED)
