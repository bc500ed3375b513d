"""Change plans as the store tells them: how a plan stands, and its revisions, as plain frozen records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Row, select, update

from schemas.canonical import canonical_json, ns_to_datetime
from schemas.plan import ChangePlan, FolderAction, PlanState, PlanStep, StepState, Trigger
from services.store.connections import AsyncConnection
from services.store.failures import MEND, StoreDamaged, readable
from services.store.seals import name_row, require_sealed, seal_row, sealed_rows
from services.store.tables import change_plans

WAITING = ("awaiting_approval", "approved")  # states in which a plan may be edited
EDIT = "edit"  # what changed a plan and decided nothing
STANDING = frozenset(column.name for column in change_plans.c) - {"revisions"}
IN_JSON = ("steps", "decisions", "reasons", "two_phase")
SUMMARY = ("plan_id", "run_id", "revision", "hash", "phase", "state", "trigger", "made_at", "expires_at")
DECIDED = ("decision", "hash", "by", "at")


@dataclass(frozen=True)
class PlanDecision:
    """A decision on a revision of a plan, or an edit that made the revision.

    Attributes:
        decision: of `Decision`, or `edit`.
        revision, hash: of the plan.
        by: whoever decided: a name, `auto`, or `expiry`.
        at: ns; wall time of a command, bar time of the run that decided by itself.
    """

    decision: str
    revision: int
    hash: str
    by: str
    at: int

    @property
    def shown(self) -> str:
        """`cancel by ann at 2026-01-31 16:00 UTC (revision 2)`."""
        moment = f"{ns_to_datetime(self.at):%Y-%m-%d %H:%M} UTC"
        return f"{self.decision} by {self.by} at {moment} (revision {self.revision})"


@dataclass(frozen=True)
class PlanRecord:
    """How a plan of a run stands.

    Attributes:
        run_id, plan_id: its key; runs over the same bars share the id.
        state: of `PlanState`.
        revision, hash: of the newest revision.
        phase: that it is in; 1 while it is drafted and waits, 2 and up once it runs.
        trigger: where it comes from.
        made_at, expires_at: ns.
        journalled: whether the run's journal has it; a plan from a command may wait beside the journal.
        steps: state of each step of the newest revision, by number.
        decisions: and edits, oldest first.
        reasons: why it is stale, declined, failed or refused.
        two_phase: what detection said of the text behind it; None where it comes from no text.
        reasoning: of a model that drafted it.
        elapsed_ms: of phase 1.
        clock: the time by which it expires as it was read, ns: the last close of a run that trades.
    """

    run_id: str
    plan_id: str
    state: PlanState
    revision: int
    hash: str
    phase: int
    trigger: Trigger
    made_at: int
    expires_at: int
    journalled: bool
    steps: Mapping[int, StepState]
    decisions: tuple[PlanDecision, ...]
    reasons: tuple[str, ...]
    two_phase: Mapping[str, Any] | None
    reasoning: str | None
    elapsed_ms: int | None
    clock: int = field(default=0, compare=False)

    @property
    def decided(self) -> PlanDecision | None:
        """The decision in force; None while it waits for one."""
        last = self.decisions[-1] if self.decisions else None
        return None if last is None or last.decision == EDIT or self.state == WAITING[0] else last


@dataclass(frozen=True)
class StoredPlan:
    """A plan with all of its revisions, oldest first."""

    record: PlanRecord
    revisions: tuple[ChangePlan, ...]

    @property
    def plan(self) -> ChangePlan:
        """The newest revision."""
        return self.revisions[-1]

    @property
    def folder(self) -> str | None:
        """Where it writes playbooks; None for a plan of a process that trades."""
        found = (step.action.folder for step in self.plan.steps if isinstance(step.action, FolderAction))
        return next(found, None)

    @property
    def carried_out(self) -> tuple[tuple[int, PlanStep], ...]:
        """Steps of earlier phases, behind which the plan asked again, each with the revision that had it."""
        made_by_edit = {shown.revision for shown in self.record.decisions if shown.decision == EDIT}
        approved = {shown.hash for shown in self.record.decisions if shown.decision == "approve"}
        return tuple(
            (before.revision, step)
            for before, after in pairwise(self.revisions)
            if before.content_hash in approved and after.revision not in made_by_edit
            for step in before.due
        )

    @property
    def hashes(self) -> frozenset[str]:
        """Of all revisions."""
        return frozenset(plan.content_hash for plan in self.revisions)


def new_columns(run_id: str, plan: ChangePlan, **payload: Any) -> dict[str, Any]:
    """The row of a plan that waits for a decision; `payload` may hold two_phase, reasoning and elapsed_ms."""
    two_phase = payload.get("two_phase")
    return {
        "run_id": run_id,
        "plan_id": plan.plan_id,
        "state": "awaiting_approval",
        "phase": 1,
        "trigger": plan.trigger,
        "made_at": plan.made_at,
        "journalled": int(payload.get("journalled", False)),
        "decisions": "[]",
        "reasons": "[]",
        "two_phase": None if two_phase is None else canonical_json(two_phase),
        "reasoning": payload.get("reasoning"),
        "elapsed_ms": payload.get("elapsed_ms"),
        **revision_columns((plan,)),
    }


def summary_of(record: PlanRecord) -> dict[str, Any]:
    """How a plan stands, times in ns, without its text."""
    decided = record.decided
    return {
        **{name: getattr(record, name) for name in SUMMARY},
        "edited": any(change.decision == EDIT for change in record.decisions),
        "decided": None if decided is None else {name: getattr(decided, name) for name in DECIDED},
        "reasons": list(record.reasons),
    }


def revision_columns(revisions: Sequence[ChangePlan]) -> dict[str, Any]:
    """What the newest of some revisions says of itself, and all of them."""
    plan = revisions[-1]
    return {
        "revision": plan.revision,
        "hash": plan.content_hash,
        "expires_at": plan.expires_at,
        "steps": canonical_json({str(step.number): "waiting" for step in plan.steps}),
        "revisions": f"[{','.join(kept.canonical_text() for kept in revisions)}]",
    }


def with_decision(decisions: Sequence[PlanDecision], new: PlanDecision) -> str:
    """Decisions and one more, as they are stored."""
    return canonical_json([vars(decision) for decision in (*decisions, new)])


async def stored_plan(connection: AsyncConnection, run_id: str, plan_id: str) -> StoredPlan | None:
    """A plan, locked until the transaction ends; None where there is none.

    Raises:
        StoreDamaged: it cannot be read, or is not as it was sealed.
    """
    own = of_plan(run_id, plan_id)
    locked = select(change_plans.c.plan_id).where(own).with_for_update()
    if (await connection.execute(locked)).one_or_none() is None:
        return None
    return as_plan((await connection.execute(sealed_rows(change_plans).where(own))).one())


def of_plan(run_id: str, plan_id: str) -> ColumnElement[bool]:
    """The row of a plan."""
    return (change_plans.c.run_id == run_id) & (change_plans.c.plan_id == plan_id)


async def put_plan(connection: AsyncConnection, run_id: str, plan_id: str, values: Mapping[str, Any]) -> None:
    """Change a plan and seal it, inside the transaction that has read it by its seal."""
    own = of_plan(run_id, plan_id)
    await connection.execute(update(change_plans).where(own).values(values))
    await seal_row(connection, change_plans, own)


def as_plan(row: Row[Any]) -> StoredPlan:
    """A row with its seal.

    Raises:
        StoreDamaged: it cannot be read, is not as it was sealed, or its hash is not that of its newest
            revision.
    """
    record = as_record(row)
    what = f"{name_row(change_plans, row)} of run {row.run_id}"
    with readable(what):
        revisions = tuple(map(ChangePlan.model_validate, json.loads(row.revisions)))
    if not revisions or revisions[-1].content_hash != record.hash:
        raise StoreDamaged(f"{what} is damaged, its text is not that of its hash: {MEND}")
    return StoredPlan(record, revisions)


def as_record(row: Row[Any]) -> PlanRecord:
    """How a plan stands, by its row with its seal.

    Raises:
        StoreDamaged: it cannot be read, or is not as it was sealed.
    """
    require_sealed(change_plans, row)
    values = {name: value for name, value in row._mapping.items() if name in STANDING}
    with readable(f"{name_row(change_plans, row)} of run {row.run_id}"):
        values |= {name: values[name] and json.loads(values[name]) for name in IN_JSON}
        values["steps"] = {int(number): state for number, state in values["steps"].items()}
        values["decisions"] = tuple(PlanDecision(**shown) for shown in values["decisions"])
        values |= {"reasons": tuple(values["reasons"]), "journalled": bool(values["journalled"])}
    return PlanRecord(**values)
