"""A change plan: what would change, step by step, why, on which basis and until when, for one decision.

A plan is frozen and hashed: what is approved is the hash of the bytes that were shown, and exactly these run.
An edit is a new revision with a hash of its own. A plan names no run: a run and its replay make the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from schemas.contract import FINITE, Contract, FrozenMap
from schemas.judge import ACTION_FORMS, ActionForm, ActionKind, JudgeAction
from schemas.playbook import PlaybookDefinition
from schemas.vocabulary import Direction

PlanState = Literal[
    "awaiting_approval",
    "approved",
    "executing",
    "completed",
    "cancelled",
    "declined",
    "expired",
    "stale",
    "failed",
    "rolled_back",
]
StepState = Literal["waiting", "done", "failed", "undone"]
Trigger = Literal["verdict", "candidate", "measure", "rollback", "text", "report"]
Decision = Literal["approve", "cancel", "decline", "expire", "replace", "rollback"]
MOST_STEPS = 50
MOST_ACTIONS = MOST_STEPS - 1  # a plan of a run that is over has one step more, its folder
Line = Annotated[str, StringConstraints(max_length=1_000)]
ID_DIGITS = 16
HASH_DIGITS = 12  # that a decision has to name at least


class RollbackAction(Contract):
    """Return a playbook to an earlier version: by its hash, or to the last one that traded differently."""

    kind: Literal["rollback"] = "rollback"
    playbook_id: str
    version_hash: str | None = None
    reason: str


ChangeKind = Literal[ActionKind, "rollback"]
CHANGE_FORMS: Mapping[ChangeKind, ActionForm] = {
    **dict[ChangeKind, ActionForm](ACTION_FORMS.items()),
    "rollback": ActionForm("Return a playbook to its version of before.", ("playbook_id",)),
}


def fields_of(kind: ChangeKind) -> tuple[str, ...]:
    """The fields that a change of a kind may have, those that it needs first."""
    return (*CHANGE_FORMS[kind].needed, *CHANGE_FORMS[kind].optional)


@dataclass(frozen=True)
class Proposed:
    """One action with what speaks for it.

    Attributes:
        action: of the action contract, or a rollback.
        candidate: hash of the version in shadow that it promotes; None where a person's word carries it.
        evidence: what the trades of the candidate, or since a measure, have shown.
        after: the definition that comes into force, where the lifecycle knows it; None: as the action says.
        checkpoint: whether the plan asks again behind it.
    """

    action: JudgeAction | RollbackAction
    candidate: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    after: PlaybookDefinition | None = None
    checkpoint: bool = False


class FolderAction(Contract):
    """Write the playbooks that result as a folder of files."""

    kind: Literal["write_folder"] = "write_folder"
    folder: str
    reason: str


PlanAction = JudgeAction | RollbackAction | FolderAction


class RefusedStep(Contract):
    """An action that became no step: a stable code, and what would be accepted."""

    action: PlanAction
    code: str
    reason: str


class FieldChange(Contract):
    """One field of a playbook before and after."""

    model_config = ConfigDict(populate_by_name=True)

    field: str
    before: Any = Field(default=None, alias="from")
    after: Any = Field(default=None, alias="to")


class MadeVersion(Contract):
    """The version of a playbook that a step brings into force; the hash is that of its definition."""

    playbook_id: str
    version: int
    version_hash: str
    definition: PlaybookDefinition
    changes: tuple[FieldChange, ...] = ()


class PlanStep(Contract):
    """One step: an action, what has to hold before it, what it does, and how it is undone.

    `candidate` is what proves it: the hash of the version in shadow that it promotes, or the ledger of the
    measure that it ends, `HASH|CELL`; None where a person's word carries it. Behind a step with a
    `checkpoint` the plan asks again.
    """

    number: int = Field(ge=1)
    action: PlanAction
    candidate: str | None = None
    precondition: Line
    effect: Line
    undo: Line
    makes: tuple[MadeVersion, ...] = ()
    lowers_exposure: bool = False
    checkpoint: bool = False


class VersionInForce(Contract):
    """The version of a playbook in force when a plan was made, and the number that a new one gets."""

    definition: PlaybookDefinition
    version_hash: str
    next_version: int


class PositionHeld(Contract):
    """A position that was open when a plan was made."""

    symbol: str
    side: Direction
    playbook_id: str


class PlanBasis(Contract):
    """The state for which a plan was made; another state makes it stale.

    Attributes:
        at: close of the bar as of which it was made, ns.
        versions: of the playbooks that the plan changes, by id.
        positions: of these playbooks, by symbol.
        closes: of the symbols in which these playbooks hold a position or a policy, in price.
        atr: mean true range of the last 14 bars of the same symbols, in price.
        kill_switch: whether the operator's switch was on.
        safe_mode: whether entries were blocked for the whole run.
        evidence: what the trades of each candidate had shown, by its version hash.
    """

    model_config = FINITE

    at: int
    versions: FrozenMap[str, VersionInForce] = Field(default={}, validate_default=True)
    positions: tuple[PositionHeld, ...] = ()
    closes: FrozenMap[str, float] = Field(default={}, validate_default=True)
    atr: FrozenMap[str, float] = Field(default={}, validate_default=True)
    kill_switch: bool = False
    safe_mode: bool = False
    evidence: FrozenMap[str, dict[str, float | int | str | None]] = Field(default={}, validate_default=True)


class ChangePlan(Contract):
    """A plan, frozen.

    Attributes:
        revision: 1, and one more with each edit.
        first: the id of the first revision; None in it.
        made_at: ns, bar time in a run that trades, the present for a run that is over; expires_at likewise.
        refused: actions that the contract refused, with the code and what would be accepted.
        report_id, verdict_id: what it came from, where it did.
    """

    revision: int = Field(default=1, ge=1)
    first: str | None = None
    trigger: Trigger
    understanding: Line
    approach: Line
    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=MOST_STEPS)
    risks: tuple[Line, ...] = ()
    expected_outcome: Line
    basis: PlanBasis
    made_at: int
    expires_at: int
    refused: tuple[RefusedStep, ...] = ()
    report_id: str | None = None
    verdict_id: str | None = None

    @model_validator(mode="after")
    def _numbers_ascend(self) -> "ChangePlan":
        numbers = [step.number for step in self.steps]
        if numbers != sorted(set(numbers)):
            raise ValueError(f"steps are numbered {numbers}: they must ascend without repeats")
        if (self.revision == 1) != (self.first is None):
            raise ValueError(f"revision {self.revision} names {self.first!r} as its first")
        return self

    @property
    def plan_id(self) -> str:
        """Of all revisions: the start of the hash of the first."""
        return self.first or self.content_hash[:ID_DIGITS]

    @property
    def due(self) -> tuple[PlanStep, ...]:
        """The steps of one phase: up to the first checkpoint, or all."""
        ends = [place for place, step in enumerate(self.steps, 1) if step.checkpoint]
        return self.steps[: ends[0]] if ends else self.steps

    @property
    def playbooks(self) -> tuple[str, ...]:
        """Ids of the playbooks that its steps change, in name order."""
        names = {getattr(step.action, "playbook_id", None) for step in self.steps}
        return tuple(sorted(name for name in names if name is not None))
