"""A change plan as plain data, as lines for a person who has to decide on it, and as that person edits it."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.contract import Contract
from schemas.errors import ConfigError
from schemas.plan import HASH_DIGITS, PlanStep
from services.model_calls.quoting import visible
from services.plans.editing import StepEdit
from services.plans.same_change import plan_diff
from services.store.change_plans import ENDED_BETWEEN
from services.store.plan_records import summary_of
from services.text.given_files import read_given
from worker.pages.figures import shown_time

if TYPE_CHECKING:
    from services.store.plan_records import PlanRecord, StoredPlan

ASSIGNMENT = re.compile(r"steps\.(?P<number>\d{1,3})\.(?P<field>[a-z_]{1,40})=(?P<value>.{0,100})", re.ASCII)
TYPED = {
    "should_use": True,
    "confidence": 0.0,
    "matches": [],
    "reason": "a typed action that changes structure always takes two phases",
}
STATES = {
    "awaiting_approval": "waits for a decision",
    "approved": "is approved: the process takes it between two bars",
    "executing": "is being carried out",
    "completed": "was carried out",
    "rolled_back": "was carried out and rolled back",
}


def document_of(stored: "StoredPlan", revision: int | None = None) -> dict[str, Any]:
    """A plan; an earlier revision as it was shown, with how the plan stands now."""
    record = stored.record
    plan = stored.plan if revision is None else stored.revisions[revision - 1]
    earlier = {step.number: "done" for number, step in stored.carried_out if number == plan.revision}
    states: Mapping[int, str] = record.steps if plan is stored.plan else earlier
    payload = plan.payload()
    return summary_of(record) | {
        "revision": plan.revision,
        "hash": plan.content_hash,
        "two_phase": record.two_phase or TYPED,
        "understanding": plan.understanding,
        "approach": plan.approach,
        "steps": [_step(step, states.get(step.number, "waiting")) for step in plan.steps],
        "carried_out": [
            {"revision": number, **_step(step, "undone" if record.state == "rolled_back" else "done")}
            for number, step in stored.carried_out
            if number < plan.revision
        ],
        "risks": list(plan.risks),
        "expected_outcome": plan.expected_outcome,
        "basis": payload["basis"],
        "refused": payload["refused"],
        "reasoning": record.reasoning,
        "elapsed_ms": record.elapsed_ms,
    }


def _step(step: PlanStep, state: str) -> dict[str, Any]:
    return {
        "number": step.number,
        "kind": step.action.kind,
        "action": action_document(step.action),
        "precondition": step.precondition,
        "effect": step.effect,
        "undo": step.undo,
        "state": state,
        "changes": [change.payload() for made in step.makes for change in made.changes],
        "checkpoint": step.checkpoint,
    }


def action_document(action: Contract) -> dict[str, Any]:
    """What an action says, without what it leaves open."""
    return {name: value for name, value in action.payload().items() if value is not None}


def plan_lines(stored: "StoredPlan", document: Mapping[str, Any]) -> Iterator[str]:
    """Everything that a decision needs: steps, changes, hash, deadline, and the command to type."""
    record = stored.record
    yield f"plan {record.plan_id} of run {record.run_id}, revision {document['revision']}: {_state(record)}"
    yield document["understanding"]
    yield document["approach"]
    for step in document["carried_out"]:
        yield f"{step['state']} in revision {step['revision']}: {step['number']}. {step['effect']}"
    for step in document["steps"]:
        yield from _step_lines(step)
    yield from (f"risk: {risk}" for risk in document["risks"])
    yield f"expected: {document['expected_outcome']}"
    for refusal in document["refused"]:
        yield f"refused {refusal['action']['kind']}: {refusal['code']}, {refusal['reason']}"
    if record.reasoning is not None:
        yield f"reasoning: {record.reasoning}"
    answer = document["two_phase"]
    yield f"two phases: {'yes' if answer['should_use'] else 'no'}, {answer['reason']}"
    yield f"hash {document['hash']}"
    yield f"expires {shown_time(record.expires_at)}"
    yield from (f"because: {reason}" for reason in record.reasons)
    if document["revision"] == record.revision:
        yield from next_lines(record, between=bool(document["carried_out"]))
    else:
        yield f"its newest revision is {record.revision}: thinktwice plans show {record.plan_id}"


def revision_changes(stored: "StoredPlan") -> list[dict[str, Any]]:
    """What each revision has changed: {revision, hash, changes}; steps that were carried out are told so."""
    found = []
    for before, after in pairwise(stored.revisions):
        done = [step for number, step in stored.carried_out if number == before.revision]
        rest = before.model_copy(update={"steps": before.steps[len(done) :]})
        changes = [{"step": step.number, "field": "state", "from": "waiting", "to": "done"} for step in done]
        changes += plan_diff(rest, after)
        found.append({"revision": after.revision, "hash": after.content_hash, "changes": changes})
    return found


def diff_lines(differences: list[dict[str, Any]]) -> Iterator[str]:
    """One line for each field that a revision changes."""
    for change in differences:
        yield f"  step {change['step']}: {change['field']} {_show(change['from'])} -> {_show(change['to'])}"


def revision_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """What each edit has changed, of the document of `plans diff`."""
    if not document["revisions"]:
        yield f"plan {document['plan_id']} was not edited"
    for item in document["revisions"]:
        yield f"revision {item['revision']}, hash {item['hash']}"
        yield from diff_lines(item["changes"])


def next_lines(record: "PlanRecord", *, between: bool) -> Iterator[str]:
    """What can be typed now; `between`: phases before have carried out steps."""
    if record.state == "awaiting_approval":
        yield f"Next: thinktwice plans approve {record.plan_id} --hash {record.hash[:HASH_DIGITS]}"
        yield f"      or plans edit, or thinktwice plans cancel {record.plan_id}"
    elif record.state == "approved":
        yield f"Next: thinktwice plans show {record.plan_id}"
    elif record.state == "completed" or (between and record.state in ENDED_BETWEEN):
        yield f"Next: thinktwice plans rollback {record.plan_id} takes it back"


def _state(record: "PlanRecord") -> str:
    reply = STATES.get(record.state, record.state)
    decided = record.decided
    return reply if decided is None else f"{reply}; {decided.shown}"


def _step_lines(step: Mapping[str, Any]) -> Iterator[str]:
    yield f"{step['number']}. {step['effect']} ({step['state']})"
    yield f"   because: {step['action']['reason']}"
    yield f"   before: {step['precondition']}"
    for change in step["changes"]:
        yield f"   {change['field']} {_show(change['from'])} -> {_show(change['to'])}"
    yield f"   undo: {step['undo']}"
    if step["checkpoint"]:
        yield "   then it asks again"


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def typed_edit(text: str) -> StepEdit:
    """`steps.N.FIELD=VALUE`.

    Raises:
        ConfigError: it is none.
    """
    found = ASSIGNMENT.fullmatch(text)
    if found is None or visible(text) != text:
        raise ConfigError(
            f"--set {text!r}: write it like steps.1.value=0.0025, the number as `plans show` has it"
        )
    return StepEdit(int(found["number"]), found["field"], found["value"].strip())


def edits_of_file(
    path: Path, stored: "StoredPlan", shown: Mapping[str, Any]
) -> tuple[list[StepEdit], list[int]]:
    """Edits, and numbers of the steps that are left out, of a plan that `plans show --json` printed.

    Args:
        path: the file.
        stored: the plan as it stands.
        shown: its document.

    Raises:
        ConfigError: it cannot be read, is of another revision, or changes what is no step.
    """
    payload = _read(path)
    if payload.get("hash") != stored.record.hash:
        raise ConfigError(
            f"--file {str(path)!r} is not of revision {stored.record.revision}: write it anew with "
            f"`thinktwice plans show {stored.record.plan_id} --json`"
        )
    others = sorted(name for name in {*payload, *shown} - {"steps"} if payload.get(name) != shown.get(name))
    if others:
        raise ConfigError(f"--file {str(path)!r} changes {', '.join(others)}: only steps can be edited")
    given = {step.get("number"): step for step in payload["steps"]}
    before = {step["number"]: step for step in shown["steps"]}
    strange = [number for number in given if number not in before]
    if strange or len(given) != len(payload["steps"]):
        raise ConfigError(
            f"--file {str(path)!r} has steps that the plan has not: other actions are another plan"
        )
    edits = [edit for number, step in given.items() for edit in _edits(number, before[number], step)]
    return edits, [number for number in before if number not in given]


def _edits(number: int, before: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[StepEdit]:
    old, new = dict(before) | dict(before["action"]), dict(given) | dict(given.get("action") or {})
    for name in sorted({*old, *new} - {"action"}):
        if old.get(name) != new.get(name):
            value = new.get(name)
            yield StepEdit(number, name, json.dumps(value) if not isinstance(value, str) else value)


def _read(path: Path) -> dict[str, Any]:
    try:
        payload = json.loads(read_given(path, error=ConfigError))
        if not all(isinstance(step, dict) for step in payload["steps"]):
            raise TypeError("steps")
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"--file {str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(
            f"--file {str(path)!r} holds no plan: give what `plans show --json` prints"
        ) from error
    return dict(payload)
