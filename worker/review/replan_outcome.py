"""What came of a report: the judge's verdict, what each action changed, and what was refused, as plain data.

Two sources tell the same: a verdict carried out on a rebuilt session, and the rows of a run that judged the
report itself.
"""

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.canonical import content_id, ns_to_datetime
from schemas.errors import ConfigError
from schemas.judge import JudgeAction, RefusedAction, ReplanVerdict
from schemas.plan import Proposed
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.settings import Settings
from schemas.vocabulary import VersionState
from services.journal.chain import JournalRow
from services.plans.drafting import EmptyPlan, draft
from services.playbooks.version_diff import changes
from services.store.change_plans import Operator
from worker.review.plan_document import action_document
from worker.review.plan_facts import read_plan_facts
from worker.review.plan_making import in_wall_time
from worker.review.playbook_files import (
    OPEN,
    carry_out,
    file_names,
    next_version,
    shown_version,
    write_in_force,
)
from worker.review.replanning import Effect
from worker.review.report_finder import FoundReport

if TYPE_CHECKING:
    from services.store import Store

Parent = Callable[[str], PlaybookDefinition]
KINDS = frozenset({"playbook_version", "measure_renewed", "action_refused"})


@dataclass(frozen=True)
class VerdictEffects:
    """What a run did on a verdict of its own: effects by action, and how versions came to stand, in order."""

    effects: tuple[Effect, ...]
    history: tuple[PlaybookVersion, ...]


def outcome(
    verdict: ReplanVerdict, effects: Sequence[Effect], versions: Sequence[PlaybookVersion], parent: Parent
) -> dict[str, Any]:
    """The document.

    Args:
        verdict: of the judge.
        effects: of its actions, in their order.
        versions: every playbook version as it stands after them.
        parent: the definition with a content hash.
    """
    late = [_describe_refused(effect.refused) for effect in effects if effect.refused is not None]
    return {
        "verdict": {
            "verdict_id": verdict.content_hash[:16],
            "decision": str(verdict.decision),
            "model": verdict.model,
            "fallback": verdict.fallback,
            "reason": verdict.reason,
            "evidence_ids": list(verdict.evidence_ids),
            "known_at": verdict.known_at,
        },
        "actions": [_effect(effect, parent) for effect in effects],
        "refused": [_describe_refused(refusal) for refusal in verdict.refused] + late,
        "active": [shown_version(version) for version in versions if version.state is VersionState.ACTIVE],
        "on_trial": [shown_version(version) for version in versions if version.state in OPEN],
    }


async def outcome_in_run(rows: AsyncIterator[JournalRow], verdict: ReplanVerdict) -> VerdictEffects:
    """What a run journalled on a verdict of its own, read from its rows up to and with that moment."""
    verdict_id = verdict.content_hash[:16]
    moved: dict[str, list[PlaybookVersion]] = {}
    refused: list[RefusedAction] = []
    history: list[PlaybookVersion] = []
    async for row in rows:
        if row.kind == "action_refused":
            payload = json.loads(row.payload)
            if payload.pop("verdict_id") == verdict_id:
                refused.append(RefusedAction.model_validate(payload))
            continue
        version = next_version(history, row)
        history.append(version)
        is_moved = row.kind == "playbook_version" and row.known_at == verdict.known_at
        if is_moved and version.action_id is not None:
            moved.setdefault(version.action_id, []).append(version)
    return VerdictEffects(
        tuple(_in_run(action, verdict.report_id, moved, refused) for action in verdict.actions),
        tuple(history),
    )


def _in_run(
    action: JudgeAction,
    report_id: str,
    moved: dict[str, list[PlaybookVersion]],
    refused: Sequence[RefusedAction],
) -> Effect:
    action_id = content_id({"action": action.payload(), "report_id": report_id})
    late = next((refusal for refusal in refused if refusal.action == action), None)
    return Effect(action, tuple(moved.get(action_id, ())), late)


def _effect(effect: Effect, parent: Parent) -> dict[str, Any]:
    return {
        "action": action_document(effect.action),
        "carried_out": effect.refused is None,
        "transitions": [_transition(transition, parent) for transition in effect.transitions],
        "boundaries": list(effect.boundaries),
    }


def _transition(one: PlaybookVersion, parent: Parent) -> dict[str, Any]:
    new = one.state in (VersionState.ACTIVE, VersionState.CANDIDATE) and one.parent_hash is not None
    before = parent(str(one.parent_hash)) if new else one.definition
    return {
        **shown_version(one),
        "since": ns_to_datetime(one.since).isoformat(),
        "from_version": before.version,
        "changes": [change.payload() for change in changes(before, one.definition)],
    }


def _describe_refused(one: RefusedAction) -> dict[str, Any]:
    return {"action": action_document(one.action), "code": one.code, "reason": one.reason}


async def write_approved(
    store: "Store",
    settings: Settings,
    folder: Path,
    effects: Sequence[Effect],
    versions: tuple[PlaybookVersion, ...],
    found: FoundReport,
    by: str,
) -> tuple[str | None, tuple[str, ...]]:
    """Write the versions that a verdict has led to, as a plan that is approved at once.

    Args:
        store: holds the run, and keeps the plan.
        settings: of the run.
        folder: where to write; absolute.
        effects: of the verdict's actions.
        versions: every version as it stands after them.
        found: the report.
        by: whoever approves.

    Returns:
        The plan's id, None where no version in force has changed; and the names of the files.

    Raises:
        ConfigError: the folder holds something else, or cannot be written.
    """
    run = await store.runs.find(found.run_id)
    before = found.known_at - (found.source == "run")  # what a run has decided itself is in force by then
    verdict_id = None if found.verdict is None else found.verdict.content_hash[:16]
    facts = await read_plan_facts(store, run, settings, trades=False, at=before)
    plan = draft(
        [item for effect in effects for item in _list_proposed(effect)], facts, "report",
        understanding=f"Replan on report {found.report_id}.", folder=str(folder),
        report_id=found.report_id, verdict_id=verdict_id,
    )  # fmt: skip
    if isinstance(plan, EmptyPlan):
        reason = f"replan on report {found.report_id}"
        return None, write_in_force(
            folder, versions, run_id=run.run_id, known_at=found.known_at, reason=reason
        )
    plan, now = in_wall_time(plan, facts.expires_at - facts.at), time.time_ns()
    await store.plans.put(run.run_id, plan)
    who = Operator(by, now, now)
    await store.plans.approve(run.run_id, plan.plan_id, plan.content_hash, who)
    ended = await store.plans.carry_out(
        run.run_id, plan.plan_id, lambda plan: carry_out(plan, versions, run.run_id, known_at=found.known_at)
    )
    if ended.state != "completed":
        raise ConfigError("; ".join(ended.reasons))
    return plan.plan_id, file_names(versions)


def _list_proposed(effect: Effect) -> list[Proposed]:
    """What an action has brought into force; what it only tries in shadow is no step."""
    made = [version for version in effect.transitions if version.state is VersionState.ACTIVE]
    return [Proposed(effect.action, after=made[-1].definition)] if made and effect.refused is None else []
