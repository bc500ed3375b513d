"""Which changes of plans are one and the same, whatever day they are proposed on. Pure.

A change is what an action does to the version in force, on whose evidence; its words, its day and how far its
evidence has grown are no part of it. It is one plan until it is decided, until it is another one, or expires.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.canonical import content_id
from schemas.plan import ChangePlan, PlanAction, PlanStep


@dataclass(frozen=True)
class WaitingPlan:
    """A plan that waits for a decision, in which phase (2: the first to act), and whether it was edited.

    `changes` has the id of each change by its subject, as it was proposed: an edit is of the same change.
    """

    plan: ChangePlan
    phase: int = 2
    edited: bool = False
    changes: dict[str, str] = field(default_factory=dict)


def list_changes(plan: ChangePlan) -> list[tuple[str, str]]:
    """The ids of each step: of its subject (what is changed, by whose evidence), and of the change."""
    found = []
    for step in plan.steps:
        stood = plan.basis.versions.get(getattr(step.action, "playbook_id", None) or "")
        does = {name: value for name, value in step.action.payload().items() if name != "reason"}
        on = None if stood is None else stood.version_hash
        subject = content_id([*target_of(step), step.candidate])
        found.append((subject, content_id({"action": does, "evidence": step.candidate, "on": on})))
    return found


def list_proven(waiting: WaitingPlan) -> list[str]:
    """The changes of a plan that trades on paper have proven, as they were proposed."""
    subjects = [subject for subject, _ in list_changes(waiting.plan)]
    proven = (subject for step, subject in zip(waiting.plan.steps, subjects, strict=True) if step.candidate)
    return [waiting.changes[subject] for subject in proven if subject in waiting.changes]


def list_outdated(plan: ChangePlan, waiting: Iterable[WaitingPlan]) -> list[WaitingPlan]:
    """The plans of the same source that wait for what is another change by this one, or cannot act any more.

    The number that a version was to get is taken when a trial has begun since.
    """
    present = dict(list_changes(plan))
    numbers = {name: stood.next_version for name, stood in plan.basis.versions.items()}
    found = []
    for held in waiting:
        shared = present.keys() & held.changes.keys() if held.plan.trigger == plan.trigger else ()
        before = held.plan.basis.versions.items()
        taken = any(numbers.get(name, stood.next_version) != stood.next_version for name, stood in before)
        if shared and (taken or any(held.changes[subject] != present[subject] for subject in shared)):
            found.append(held)
    return found


def list_known(
    plan: ChangePlan, waiting: Iterable[WaitingPlan], closed: Mapping[str, int | None], now: int
) -> list[tuple[PlanAction, str]]:
    """The actions that wait in another plan or were decided (`closed`: until when, ns), and which it is."""
    names = {change: held.plan.plan_id for held in waiting for change in held.changes.values()}
    found = list[tuple[PlanAction, str]]()
    for step, (_, change) in zip(plan.steps, list_changes(plan), strict=True):
        until = closed.get(change, now)
        if change in names:
            found.append((step.action, f"plan {names[change]} waits for the same"))
        elif until is None or until > now:
            found.append((step.action, "the same was decided, and nothing has changed since"))
    return found


def describe_difference(old: ChangePlan, new: ChangePlan, stale: Collection[str]) -> Sequence[str]:
    """What differs from the plan in whose place another comes; `stale` is why that one no longer holds."""
    rows: list[dict[str, Any]] = plan_diff(old, new)
    return [f"step {row['step']}, {row['field']}: {row['from']} -> {row['to']}" for row in rows] + list(stale)


def plan_diff(before: ChangePlan, after: ChangePlan) -> list[dict[str, Any]]:
    """What differs: {step, field, from, to} by step of the plan before; a dropped step has `to` null."""
    found: list[dict[str, Any]] = []
    rest = list(after.steps)
    for step in before.steps:
        match = next((item for item in rest if target_of(item) == target_of(step)), None)
        if match is None:
            found.append({"step": step.number, "field": "step", "from": step.effect, "to": None})
            continue
        rest.remove(match)
        old, new = _values(step), _values(match)
        found += [
            {"step": step.number, "field": name, "from": old[name], "to": new[name]}
            for name in old
            if old[name] != new[name]
        ]
    found += [{"step": step.number, "field": "step", "from": None, "to": step.effect} for step in rest]
    return found


def target_of(step: PlanStep) -> tuple[Any, ...]:
    """What a step changes, whatever it makes of it."""
    names = ("kind", "playbook_id", "regime", "direction", "parameter", "folder")
    return tuple(getattr(step.action, name, None) for name in names)


def _values(step: PlanStep) -> dict[str, Any]:
    values = {name: getattr(step.action, name, None) for name in ("value", "life_blocks")}
    return values | {"checkpoint": step.checkpoint, "candidate": step.candidate}
