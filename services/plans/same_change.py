"""Which changes of plans are one and the same, whatever day they are proposed on. Pure.

A change is what an action does to the version in force, on whose evidence; its words, its day and how far its
evidence has grown are no part of it. It is one plan until it is decided, until it is another one, or expires.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from schemas.canonical import content_id
from schemas.plan import ChangePlan, PlanAction
from services.plans.editing import plan_diff, target_of
from services.plans.rows import WaitingPlan


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
