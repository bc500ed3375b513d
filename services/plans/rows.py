"""The journal rows of a plan: phase 1, its decision, each step, phase 2; times measured stand beside them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schemas.plan import ChangePlan, Decision, PlanState, PlanStep
from schemas.playbook import PlaybookVersion
from services.plans.drafting import EMPTY_PLAN, EmptyPlan
from services.plans.same_change import WaitingPlan
from services.ports import EventJournal


@dataclass(frozen=True)
class FinishedPlan:
    """A plan that is over, without its text; `made` holds (playbook, version before, after) in order."""

    state: PlanState
    plan_id: str
    plan_hash: str
    revision: int
    length: int
    made: tuple[tuple[str, str, str], ...] = ()
    edited: bool = False


def finish(
    waiting: WaitingPlan, state: PlanState, made: tuple[tuple[str, str, str], ...] = ()
) -> FinishedPlan:
    """What is kept of a plan that is over."""
    plan = waiting.plan
    length = len(plan.canonical_text())
    return FinishedPlan(state, plan.plan_id, plan.content_hash, plan.revision, length, made, waiting.edited)


class PlanRows:
    """Writes them."""

    def __init__(self, journal: EventJournal) -> None:
        self._journal = journal

    def write_draft(
        self,
        plan: ChangePlan | EmptyPlan,
        trigger: str,
        source: tuple[str | None, str | None],
        now: int,
        started: float | None = None,
        replaced: Sequence[tuple[ChangePlan, Sequence[str]]] = (),
    ) -> None:
        """Phase 1, of a plan or of one of which nothing was left; `source` names report and verdict.

        `replaced` has the plans in whose place it waits, and what differs.
        """
        about = {"plan_trigger": trigger, "report_id": source[0], "verdict_id": source[1]}
        self._append(now, "two_phase_phase1_start", about)
        made = plan if isinstance(plan, ChangePlan) else None
        payload: dict[str, Any] = {
            **about,
            "plan_id": None if made is None else made.plan_id,
            "plan_hash": None if made is None else made.content_hash,
            "revision": None if made is None else made.revision,
            "status": EMPTY_PLAN if made is None else "awaiting_approval",
            "plan_length": 0 if made is None else len(made.canonical_text()),
            "plan": made,
            "refused": list(plan.refused),
            "reasoning": None,
        }
        if replaced:
            payload["replaces"] = [{"plan_id": old.plan_id, "diff": list(diff)} for old, diff in replaced]
        self._append(now, "two_phase_phase1_complete", payload, started)

    def write_decision(
        self,
        decided: WaitingPlan | FinishedPlan,
        decision: Decision,
        by: str,
        state: PlanState,
        reasons: Sequence[str],
        now: int,
        change_plan: ChangePlan | None = None,
    ) -> None:
        """A decision, and what became of the plan by it; the bytes where they differ from `change_plan`."""
        plan = decided.plan if isinstance(decided, WaitingPlan) else None
        other = plan is not None and change_plan is not None and change_plan.content_hash != plan.content_hash
        about = _about(decided)
        payload = {
            "plan_id": about.plan_id,
            "plan_hash": about.plan_hash,
            "revision": about.revision,
            "decision": decision,
            "by": by,
            "state": state,
            "reasons": list(reasons),
            "plan_edited": about.edited,
            "plan": plan if other else None,
        }
        self._append(now, "plan_decided", payload)

    def step(
        self,
        waiting: WaitingPlan,
        step: PlanStep,
        state: str,
        versions: Sequence[PlaybookVersion],
        reason: str | None,
        now: int,
    ) -> None:
        """What became of a step, with the versions that moved."""
        payload = {
            "plan_id": waiting.plan.plan_id,
            "plan_hash": waiting.plan.content_hash,
            "phase": waiting.phase,
            "number": step.number,
            "kind": step.action.kind,
            "state": state,
            "versions": [version.definition.content_hash for version in versions],
            "reason": reason,
        }
        self._append(now, "plan_step", payload)

    def write_end(
        self, acted: WaitingPlan | FinishedPlan, status: str, done: int, now: int, started: float
    ) -> None:
        """The end of a phase that acted, with the number of steps carried out."""
        about = _about(acted)
        payload = {
            "plan_id": about.plan_id,
            "plan_hash": about.plan_hash,
            "phase": acted.phase if isinstance(acted, WaitingPlan) else WaitingPlan.phase,
            "status": status,
            "plan_edited": about.edited,
            "plan_length": about.length,
            "tools_used": done,
        }
        self._append(now, "two_phase_phase2_complete", payload, started)

    def _append(self, now: int, kind: str, payload: dict[str, Any], started: float | None = None) -> None:
        elapsed = None if started is None else {"elapsed_ms": round((time.perf_counter() - started) * 1e3, 3)}
        self._journal.append(kind, ts_event=now, known_at=now, payload=payload, telemetry=elapsed)


def _about(plan: WaitingPlan | FinishedPlan) -> FinishedPlan:
    return finish(plan, "awaiting_approval") if isinstance(plan, WaitingPlan) else plan
