"""Change plans as the store tells them: how a plan stands, and its revisions, as plain frozen records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Row, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.canonical import canonical_json, ns_to_datetime
from schemas.plan import ChangePlan, FolderAction, PlanState, PlanStep, StepState, Trigger
from services.store.failures import MEND, StoreDamaged
from services.store.seals import CHANGED, hash_row, seal_row
from services.store.tables import change_plans, seals

WAITING = ("awaiting_approval", "approved")  # states in which a plan may be edited
EDIT = "edit"  # what changed a plan and decided nothing
STANDING = tuple(column for column in change_plans.c if column.name != "revisions")
IN_JSON = ("steps", "decisions", "reasons", "two_phase")
SEALED = ("seal_of_standing", "seal_of_revisions")  # of a plan, by number; columns of `PLAN_SEALS`
PART = literal(f"{change_plans.name} ") + change_plans.c.plan_id
_OF_PLAN = (seals.c.run_id == change_plans.c.run_id, seals.c.part == PART)
PLAN_SEALS = tuple(
    select(seals.c.hash).where(*_OF_PLAN, seals.c.number == number).scalar_subquery().label(name)
    for number, name in enumerate(SEALED)
)
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
    own = (change_plans.c.run_id == run_id) & (change_plans.c.plan_id == plan_id)
    locked = select(change_plans.c.plan_id).where(own).with_for_update()
    if (await connection.execute(locked)).one_or_none() is None:
        return None
    return as_plan((await connection.execute(select(*change_plans.c, *PLAN_SEALS).where(own))).one())


async def seal_plan(connection: AsyncConnection, run_id: str, plan_id: str) -> None:
    """Seal a plan as it stands, inside the transaction that has read it by its seal and changed it."""
    own = (change_plans.c.run_id == run_id) & (change_plans.c.plan_id == plan_id)
    await seal_row(connection, change_plans, own)


def as_plan(row: Row[Any]) -> StoredPlan:
    """A whole row, with its seals.

    Raises:
        StoreDamaged: it cannot be read, is not as it was sealed, or its hash is not that of its newest
            revision.
    """
    record = as_record(row)
    try:
        revisions = tuple(map(ChangePlan.model_validate, json.loads(row.revisions)))
    except (ValueError, TypeError, RecursionError, ValidationError) as error:
        raise _describe_damage(row, f"its revisions cannot be read: {type(error).__name__}") from error
    if not revisions or revisions[-1].content_hash != record.hash:
        raise _describe_damage(row, "its text is not that of its hash")
    return StoredPlan(record, revisions)


def as_record(row: Row[Any]) -> PlanRecord:
    """A row with its seals, with or without its revisions.

    Raises:
        StoreDamaged: it cannot be read, or is not as it was sealed.
    """
    hashes = hash_row(change_plans, row)
    if hashes != tuple(row._mapping[name] for name in SEALED[: len(hashes)]):
        raise _describe_damage(row, f"it {CHANGED}")
    values = {column.name: row._mapping[column.name] for column in STANDING}
    try:
        read = {name: values[name] and json.loads(values[name]) for name in IN_JSON}
        read["steps"] = {int(number): state for number, state in read["steps"].items()}
        read["decisions"] = tuple(PlanDecision(**shown) for shown in read["decisions"])
        read["reasons"] = tuple(read["reasons"])
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _describe_damage(row, f"its row cannot be read: {type(error).__name__}") from error
    return PlanRecord(**values | read | {"journalled": bool(values["journalled"])})


def _describe_damage(row: Row[Any], what: str) -> StoreDamaged:
    return StoreDamaged(f"plan {row.plan_id} of run {row.run_id} is damaged, {what}: {MEND}")
