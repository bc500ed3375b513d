"""Why a fill happened, or a stop was moved: back to bar, ticks, policy event, findings, verdict and playbook.

Everything is resolved by the ids in the journal itself; an id that leads nowhere stays in the tree, marked as
not found. Read-only; called by `why` and, for dangling ids, by `verify`.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from sys import maxsize
from typing import Any

from services.journal.index import FILL_KINDS, ID_FIELDS, Event, JournalIndex
from services.journal.kinds import GUARD_KINDS, PRUNABLE_KINDS, TICK_KINDS

# Order, fills and what moved the stop of the position have nodes of their own.
TIME_FACTS = frozenset(
    {"bar_label", "label", "ts_event", "known_at", "since", "expires_at", "until"}
    | {"window_start", "window_end", "entry_label", "exit_label"}
)
SEEN_ON_BARS = tuple(sorted(TICK_KINDS - ID_FIELDS.keys() - {"stop_tightened"}))
OF_POSITION = ("add_filled", "scale_out_filled", "exit_filled")
RENEWED = ("measure", "since", "until", "shown")
MANAGED = {
    "add_filled": "added entry of the position",
    "scale_out_filled": "scale-out of the position",
    "stop_tightened": "stop move of the position",
}


@dataclass(frozen=True)
class LineageNode:
    """One step back. `found` is false when the journal holds nothing under this id.

    `pruned`: that is so because the text of its row was taken.
    `comment` is a model's own words: not checked, shown to people alone.
    """

    title: str
    kind: str
    id: str | None
    seq: int | None = None
    known_at: int | None = None
    symbol: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    children: tuple["LineageNode", ...] = ()
    found: bool = True
    pruned: bool = False
    comment: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether everything that it names was found."""
        return self.found and all(child.is_whole for child in self.children)


def mark_pruned(node: LineageNode) -> LineageNode:
    """The tree of a run of which rows were pruned: what is missing and may be among them says so."""
    children = tuple(mark_pruned(child) for child in node.children)
    is_old = node.kind in PRUNABLE_KINDS or node.id is None  # a pruned row would have named it
    return replace(node, pruned=not node.found and is_old, children=children)


def trace_named(index: JournalIndex, name: str) -> LineageNode | list[Event]:
    """The tree of a fill, stop move or guard's verdict; all whose ids start so where that is not one."""
    found = [*index.fills(name), *index.stop_moves(name), *index.starting("guard_verdict", name)]
    if len(found) != 1:
        return found
    if found[0].row.kind == "guard_verdict":
        return trace_order(index, found[0])
    return trace(index, found[0]) if found[0].row.kind in FILL_KINDS else trace_move(index, found[0])


def trace(index: JournalIndex, fill: Event) -> LineageNode:
    """The tree of reasons behind a fill."""
    payload = fill.payload
    frozen = index.get("policy_frozen", payload.get("policy_id"))
    children = [_bar(fill), *_order(index, fill), *_ticks(index, fill, frozen)]
    if fill.row.kind in OF_POSITION:
        children += _entry(index, fill)
        children += _management_nodes(index, fill)
    children.append(_policy(index, payload.get("policy_id"), frozen))
    return _node(f"{fill.row.kind} {payload['fill_id']}", fill, payload["fill_id"], _plain(payload), children)


def trace_move(index: JournalIndex, move: Event) -> LineageNode:
    """The tree of reasons behind a stop move that an evaluation made."""
    payload = move.payload
    key, policy_id = payload["amendment_id"], payload.get("policy_id")
    entries = index.between(("entry_filled",), move.row.symbol, -1, move.row.seq)
    children = [_bar(move, "bar of the stop move"), *(_entry_node(index, event) for event in entries[-1:])]
    children += [*_amendment(index, key), _policy(index, policy_id, index.get("policy_frozen", policy_id))]
    return _node(f"{move.row.kind} {key}", move, key, _plain(payload), children)


def trace_order(index: JournalIndex, verdict: Event) -> LineageNode:
    """The verdict of a guard on an order, with what became of both."""
    key = verdict.payload["verdict_id"]
    later = sorted(GUARD_KINDS - {"guard_opened", "guard_verdict"})
    of_order = [event for kind in later for event in index.naming(kind, "verdict_id", key)]
    children = [
        _node(event.row.kind.removeprefix("guard_"), event, None, _plain(event.payload))
        for event in sorted(of_order, key=lambda event: event.row.seq)
    ]
    return _node(f"verdict {key}", verdict, key, _plain(verdict.payload), children)


def trace_reflection(index: JournalIndex, reflection: Event) -> LineageNode:
    """The tree around one reflection: what was seen, what was planned, what was found, what was decided."""
    payload = reflection.payload
    key, snapshot = payload["reflection_hash"], index.get("policy_snapshot", payload["snapshot_hash"])
    found = _reflection(index, key)
    children = [_policy_event(index, snapshot), _snapshot(snapshot, payload["snapshot_hash"])]
    amendment = payload.get("amendment")
    if amendment is None:
        children.append(_artifact(index, "proposal", "policy_proposal", payload["proposal_hash"], "proposal"))
    else:
        facts = {"amendment": amendment}
        children.append(_node("amendment of the policy", reflection, payload["proposal_hash"], facts))
    verdict = _verdict_on(index, reflection)
    if verdict is not None:
        shown = verdict.payload["verdict"]
        children.append(_node("judge at the boundary", verdict, verdict.payload["verdict_hash"], shown))
    return replace(found, children=(*found.children, *children))


def _verdict_on(index: JournalIndex, reflection: Event) -> Event | None:
    """The judge's verdict on one reflection; it follows before the next policy event."""
    seq, events = reflection.row.seq, index.of_kind("policy_event")
    next_event = bisect_right(events, seq, key=lambda event: event.row.seq)
    end = events[next_event].row.seq if next_event < len(events) else maxsize
    verdicts = index.naming("boundary_verdict", "reflection_hash", reflection.payload["reflection_hash"])
    return next((verdict for verdict in verdicts if seq < verdict.row.seq < end), None)


def _bar(fill: Event, title: str = "bar of the fill") -> LineageNode:
    label = fill.payload.get("bar_label")
    facts = {"label": label, "ts_event": fill.row.ts_event, "known_at": fill.row.known_at}
    return LineageNode(title, "bar", None, symbol=fill.row.symbol, facts=facts)


def _order(index: JournalIndex, fill: Event) -> Iterator[LineageNode]:
    order_id = fill.payload.get("order_id")
    order = index.get("order_accepted", order_id)
    if order is not None:
        yield _node("order", order, order_id, _plain(order.payload))
    elif fill.row.kind == "entry_filled":
        yield _missing("order", "order_accepted", order_id)


def _entry(index: JournalIndex, fill: Event) -> Iterator[LineageNode]:
    """The entry of the position that this exit closed."""
    entry = _entry_of(index, fill)
    if entry is None:
        yield _missing("entry of the position", "entry_filled", fill.payload.get("entry_order_id"))
    else:
        yield _entry_node(index, entry)


def _entry_of(index: JournalIndex, fill: Event) -> Event | None:
    order_id = fill.payload.get("entry_order_id")
    entries = [] if order_id is None else index.naming("entry_filled", "order_id", order_id)
    return next((entry for entry in reversed(entries) if entry.row.seq < fill.row.seq), None)


def _entry_node(index: JournalIndex, entry: Event) -> LineageNode:
    order = list(_order(index, entry))
    return _node("entry of the position", entry, entry.payload["fill_id"], _plain(entry.payload), order)


def _management_nodes(index: JournalIndex, fill: Event) -> Iterator[LineageNode]:
    """Scale-outs and stop moves between the entry of the position and this fill."""
    entry = _entry_of(index, fill)
    if entry is None:
        return
    for event in index.between(tuple(MANAGED), fill.row.symbol, entry.row.seq, fill.row.seq):
        later = _amendment(index, event.payload.get("amendment_id"))
        yield _node(
            MANAGED[event.row.kind], event, event.payload.get("fill_id"), _plain(event.payload), later
        )


def _ticks(index: JournalIndex, fill: Event, frozen: Event | None) -> Iterator[LineageNode]:
    """Tick events of the symbol since the policy was frozen, up to the fill."""
    if frozen is None:
        return
    policy_id = fill.payload["policy_id"]
    for event in index.between(SEEN_ON_BARS, fill.row.symbol, frozen.row.seq, fill.row.seq):
        if event.payload.get("policy_id", policy_id) == policy_id:
            yield _node(f"tick event {event.row.kind}", event, None, _plain(event.payload))


def _amendment(index: JournalIndex, amendment_id: str | None) -> Iterator[LineageNode]:
    """What let an evaluation move the stop; nothing behind a move by the policy's own rules."""
    if amendment_id is None:
        return
    event = index.get("policy_amended", amendment_id)
    if event is None:
        yield _missing("amendment", "policy_amended", amendment_id)
        return
    amended = event.payload["amended"]
    snapshot = index.get("policy_snapshot", amended["snapshot_hash"])
    children = [
        _policy_event(index, snapshot),
        _snapshot(snapshot, amended["snapshot_hash"]),
        _reflection(index, amended["reflection_hash"]),
        *_clamps(index, amended["amendment_hash"], amended["snapshot_hash"]),
        _artifact(index, "judge at the boundary", "boundary_verdict", amended["verdict_hash"], "verdict"),
    ]
    facts = {**amended["amendment"], "amendment_hash": amended["amendment_hash"]}
    yield _node("amendment of the policy", event, amendment_id, facts, children)


def _clamps(index: JournalIndex, subject: str, snapshot: str) -> Iterator[LineageNode]:
    """What was asked for and not allowed of a plan or an amendment, before it was judged."""
    for event in index.naming("proposal_clamped", "snapshot_hash", snapshot):
        payload = event.payload
        if payload["proposal_hash"] == subject:
            facts = {name: payload[name] for name in ("asked", "allowed", "asked_hash")}
            yield _node(f"clamp of {payload['field']}", event, None, facts)


def _policy(index: JournalIndex, policy_id: str | None, frozen: Event | None) -> LineageNode:
    if frozen is None:
        return _missing("frozen policy", "policy_frozen", policy_id)
    policy = frozen.payload["policy"]
    snapshot = index.get("policy_snapshot", policy["snapshot_hash"])
    children = [
        _policy_event(index, snapshot),
        _snapshot(snapshot, policy["snapshot_hash"]),
        _artifact(index, "proposal", "policy_proposal", policy["proposal_hash"], "proposal"),
        *_clamps(index, policy["proposal_hash"], policy["snapshot_hash"]),
        _reflection(index, policy["reflection_hash"]),
        _artifact(index, "judge at the boundary", "boundary_verdict", policy["verdict_hash"], "verdict"),
        _playbook(index, policy),
    ]
    facts = {
        name: policy[name]
        for name in ("playbook_id", "playbook_version", "regime_key", "risk_fraction", "model")
    }
    facts |= {"direction": policy["proposal"]["direction"], "replaces": policy["replaces"]}
    return _node("frozen policy", frozen, policy_id, facts, children)


def _policy_event(index: JournalIndex, snapshot: Event | None) -> LineageNode:
    event_id = None if snapshot is None else snapshot.payload["event_id"]
    event = index.get("policy_event", event_id)
    if event is None:
        return _missing("policy event", "policy_event", event_id)
    return _node("policy event", event, event_id, event.payload)


def _snapshot(snapshot: Event | None, key: str) -> LineageNode:
    if snapshot is None:
        return _missing("snapshot", "policy_snapshot", key)
    content = snapshot.payload["snapshot"]
    facts = {
        name: content[name]
        for name in ("bar_label", "close", "state", "regime", "base_rates", "staleness_bars")
    }
    return _node("snapshot", snapshot, key, facts)


def _reflection(index: JournalIndex, key: str) -> LineageNode:
    event = index.get("policy_reflection", key)
    if event is None:
        return _missing("reflection", "policy_reflection", key)
    result = event.payload["result"]
    findings = tuple(
        LineageNode(f"finding {item['code']}", "finding", None, facts=item)
        for item in result.get("findings", ())
    )
    status = result.get("status", result.get("outcome"))
    facts = {
        "status": status,
        "checks_run": result.get("checks_run"),
        "findings": None if findings or "status" not in result else "none",
        "prompt_hash": result.get("prompt_hash"),
    }
    memory = result.get("memory")
    if memory is not None:
        cases = [
            case["episode_id"] for bucket in ("winners", "losers", "failures") for case in memory[bucket]
        ]
        facts["memory_cases"] = sorted(set(cases))
    return replace(_node("reflection", event, key, facts, findings), comment=result.get("comment"))


def _artifact(index: JournalIndex, title: str, kind: str, key: str, content: str) -> LineageNode:
    event = index.get(kind, key)
    if event is None:
        return _missing(title, kind, key)
    found = _node(title, event, key, event.payload[content])
    return replace(found, comment=event.payload.get("comment"))


def _playbook(index: JournalIndex, policy: dict[str, Any]) -> LineageNode:
    key = policy["playbook_hash"]
    if not key:
        return LineageNode(f"own rules, {policy['playbook_id']}", "playbook_version", None)
    title = f"playbook {policy['playbook_id']} version {policy['playbook_version']}"
    steps = index.versions(key)
    if not steps:
        return LineageNode(title, "playbook_version", key, facts={"origin": "from file"})
    first, last = steps[0], [e for e in steps if e.row.known_at <= policy["frozen_at"]][-1:]
    names = ("state", "reason", "since", "expires_at", "parent_hash", "action_id")
    facts = {name: first.payload.get(name) for name in names}
    if last:
        facts["state"] = last[0].payload["state"]
    renewed = [
        _node("measure renewed", event, None, {name: event.payload[name] for name in RENEWED})
        for event in index.naming("measure_renewed", "version_hash", key)
        if event.row.known_at <= policy["frozen_at"]
    ]
    report_id = first.payload.get("report_id")
    if report_id is None:
        return _node(title, first, key, facts | {"origin": "from file"}, renewed)
    children = (_report(index, report_id), _replan(index, first.payload.get("verdict_id")), *renewed)
    return _node(title, first, key, facts | {"origin": "from a report"}, children)


def _report(index: JournalIndex, report_id: str) -> LineageNode:
    event = index.get("high_level_report", report_id)
    if event is None:
        return _missing("report", "high_level_report", report_id)
    report = event.payload["report"]
    names = (
        "window_start",
        "window_end",
        "n_episodes",
        "recommended_action",
        "insufficient_sample",
        "narrative",
    )
    evidence = []
    for key in report["evidence_refs"]:
        episode = index.get("episode", key)
        evidence.append(_missing("evidence", "episode", key) if episode is None else _episode(episode, key))
    return _node("report", event, report_id, {name: report[name] for name in names}, evidence)


def _episode(event: Event, key: str) -> LineageNode:
    episode = event.payload["episode"]
    names = (
        "playbook_id",
        "direction",
        "regime",
        "r",
        "exit_reason",
        "failure_mode",
        "entry_label",
        "exit_label",
    )
    return _node("evidence episode", event, key, {name: episode[name] for name in names})


def _replan(index: JournalIndex, verdict_id: str | None) -> LineageNode:
    event = index.get("replan_verdict", verdict_id)
    if event is None:
        return _missing("judge on the report", "replan_verdict", verdict_id)
    verdict = event.payload["verdict"]
    facts = {name: verdict.get(name) for name in ("decision", "model", "fallback", "reason", "actions")}
    read = index.naming("evidence_plan", "report_id", event.payload["report_id"])
    found = _node("judge on the report", event, verdict_id, facts, [_read(index, plan) for plan in read])
    return replace(found, comment=verdict.get("comment"))


def _read(index: JournalIndex, plan: Event) -> LineageNode:
    """What the judge read about one recommendation."""
    key = plan.payload["evidence_id"]
    calls = [call.payload for call in index.naming("evidence_call", "evidence_id", key)]
    facts = {name: plan.payload[name] for name in ("question", "status", "confidence", "complete")}
    ids = {call["tool"]: call["ids"] for call in calls}
    return _node("evidence for the judge", plan, key, facts | ids)


def _node(
    title: str, event: Event, key: str | None, facts: dict[str, Any], children: Any = ()
) -> LineageNode:
    row = event.row
    return LineageNode(title, row.kind, key, row.seq, row.known_at, row.symbol, facts, tuple(children))


def _missing(title: str, kind: str, key: str | None) -> LineageNode:
    return LineageNode(title, kind, key, found=False)


def _plain(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if not name.endswith("_id")}
