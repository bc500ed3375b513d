"""An answer for a reader: what it says, the rows behind it, what was asked of tools, and what comes next."""

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def answer_lines(document: Document) -> Iterator[str]:
    """Lines of an answer; a question back alone where there is none."""
    yield from (
        document["answer"] or document["clarification"] or "Nothing of the answer holds."
    ).splitlines()
    if document["citations"]:
        yield ""
        yield from map(_citation, document["citations"])
    if document["tool_calls"]:
        yield ""
        yield f"asked as of {document['known_at']}:"
        yield from map(_call, document["tool_calls"])
    left_out = sum(claim["verdict"] == "contradicted" for claim in document["claims"])
    if left_out:
        yield f"struck: {left_out} claims that the run contradicts (--json has them)"
    yield from _next(document)


def _citation(citation: Document) -> str:
    row = "an answer of that server" if citation["seq"] is None else f"row {citation['seq']}"
    return f"[{citation['n']}] {citation['kind']}, {row}"


def _call(call: Document) -> str:
    given = ", ".join(f"{name}={value}" for name, value in call["arguments"].items())
    failed = "" if call["status"] == "ok" else ": failed"
    return f"  {call['client']}.{call['tool']}({given}){failed}"


def _next(document: Document) -> Iterator[str]:
    kinds = dict.fromkeys(one["kind"] for one in document["citations"] if one["seq"] is not None)
    calls = document["tool_calls"]
    if calls and all(call["status"] == "error" for call in calls):
        asked = "reports" if calls[0]["tool"] == "reports" else "trades"
        yield f"next: thinktwice ask {asked} --run {document['run_id']}"
    elif document["status"] in ("clarify", "abstained") and "`" not in document["clarification"]:
        yield f"next: thinktwice ask trades --run {document['run_id']}"
    elif document["status"] == "answered" and kinds:
        shown = " ".join(f"--kind {kind}" for kind in kinds)
        yield f"next: thinktwice journal {document['run_id']} {shown}"
    if document["status"] == "plan":
        yield f"next: thinktwice plans show {document['plan_id']}"
