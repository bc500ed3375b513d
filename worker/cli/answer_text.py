"""An answer for a person: what it claims with the rows behind it, then the items that its tools brought."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.planning.summaries import items_of
from schemas.settings.planner import OWN
from services.evidence.tools import TOOLS
from worker.pages.figures import comment_text, fact_text, plain_fields
from worker.pages.text_parts import Part, rows_table

Document = Mapping[str, Any]
MOST_ROWS = 3
MOST_DETAILS = 40
COLUMNS: Mapping[str, Sequence[str]] = {
    "runs": ("run_id", "name", "mode", "symbols", "timeframe", "status", "trades", "total_return"),
    "market": ("symbol", "bar", "close", "regime", "structure", "state"),
    "playbooks": ("playbook_id", "version", "state", "since"),
    "trades": (
        *("symbol", "playbook_id", "direction", "regime", "entered", "exited", "r", "exit_reason"),
        *("failure_mode", "fill_id"),
    ),
    "decisions": ("what", "reason", "count", "newest"),
    "reports": ("report_id", "known_at", "n_episodes", "recommended_action", "verdict"),
    "gate": (
        *("playbook_id", "regime", "timeframe", "grade", "n", "mean_r", "lower_r", "upper_r"),
        "strongest_action",
    ),
    "why": ("title", "symbol", "id", "facts"),
    "account": (
        *("symbol", "direction", "entered", "entry_price", "quantity", "playbook_id", "policy_id", "stop"),
        *("target", "fill_id"),
    ),
    "costs": ("seat", "calls", "input_tokens", "output_tokens", "usd"),
    "check": ("check", "code", "severity", "message"),
}
LISTS = {"trades": "trades", "reports": "reports", "gate": "clusters", "check": "findings"}
EMPTY = {"account": "no position was open", "costs": "no model was asked", "check": "no finding"}
DETAILS = {"market": "features", "playbooks": "definition", "reports": "narrative"}
HIDDEN = frozenset({"run_id", "known_at", "next_cursor", "total"})


def answer_parts(document: Document) -> Iterator[Part]:
    """An answer with the rows behind each claim and what its tools brought, or a question back."""
    yield from _lines(document)
    for call in document["tool_calls"]:
        if (result := document["results"].get(call["id"])) is not None:
            yield ""
            as_of = f"  as of {result['known_at']}" if result.get("known_at") else ""
            yield f"{shown_call(call)}{as_of}"
            yield from _result_parts(call, result)
    yield from _next(document)


def _lines(document: Document) -> Iterator[str]:
    statements = {
        answer["text"]: answer["rows"] for part in document["sections"] for answer in part["statements"]
    }
    for line in (document["answer"] or document["clarification"] or "").splitlines():
        rows = ", ".join(
            str(row["seq"]) for row in statements.get(line, ())[:MOST_ROWS] if row["seq"] is not None
        )
        yield f"{line} [row {rows}]" if rows else line
    for part in document["sections"]:
        if part["comment"]:
            yield comment_text(part["comment"])
    dropped = len(document["refused"]) + document["dropped_comments"]
    if dropped:
        comments = document["dropped_comments"]
        yield f"left out: {len(document['refused'])} claims that do not hold, {comments} comments"


def _result_parts(call: Document, result: Document) -> Iterator[Part]:
    tool = call["tool"]
    if call["client"] != OWN:
        yield f"answer of {call['client']}, not checked:"
        yield from _details(result)
        return
    items = result.get(LISTS[tool], []) if tool in LISTS else items_of(result) or []
    for name, value in result.items():
        if isinstance(value, str | int | float) and name not in HIDDEN:
            yield f"{name}: {fact_text('', value)}"
    if tool in COLUMNS and not items:
        yield EMPTY.get(tool, "nothing to list")
    elif tool in COLUMNS:
        names = [name for name in COLUMNS[tool] if any(item.get(name) not in (None, "") for item in items)]
        rows = [{name.removesuffix("_id"): _cell(item.get(name)) for name in names} for item in items]
        yield rows_table(rows, [name.removesuffix("_id") for name in names])
    detail = items[-1].get(DETAILS[tool]) if tool in DETAILS and len(items) == 1 else None
    if detail is not None:
        yield from _details(detail if isinstance(detail, Mapping) else {DETAILS[tool]: detail})
    if result.get("next_cursor") is not None:
        yield f"more: --cursor={result['next_cursor']}"


def shown_call(call: Document) -> str:
    """A call as it is typed; of another's server with its name."""
    given, name = dict(call["arguments"]), f"{call['client']}.{call['tool']}"
    words: list[str] = []
    if call["client"] == OWN:
        fields = TOOLS[call["tool"]].arguments.model_fields
        name = f"thinktwice ask {call['tool']}"
        words = [str(given.pop(field)) for field in fields if fields[field].is_required() and field in given]
    words += [f"--{name.removesuffix('_id').replace('_', '-')}={value}" for name, value in given.items()]
    return shlex.join([*name.split(), *words]) + (": failed" if call["status"] != "ok" else "")


def _details(named: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {value}" for name, value in plain_fields(named)][:MOST_DETAILS]


def _cell(value: Any) -> Any:
    """A value; of what was decided the decision."""
    return value.get("decision") or dict(value) if isinstance(value, Mapping) else value


def _next(document: Document) -> Iterator[str]:
    if document["status"] == "plan":
        yield f"next: thinktwice plans show {document['plan_id']}"
    kinds = dict.fromkeys(
        row["kind"]
        for part in document["sections"]
        for answer in part["statements"]
        for row in answer["rows"]
        if row["seq"]
    )
    if document["status"] == "answered" and kinds and document["run_id"]:
        shown = " ".join(f"--kind {kind}" for kind in kinds)
        yield f"next: thinktwice journal {document['run_id']} {shown}"
