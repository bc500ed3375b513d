"""Edits of a plan: steps dropped and values changed within the contract. Pure.

Other actions are another plan.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from schemas.errors import ConfigError
from schemas.judge import JudgeAction
from schemas.plan import ChangePlan, FolderAction, PlanStep, Proposed, RollbackAction
from schemas.settings import JudgeSettings
from services.plans.drafting import EmptyPlan, PlanFacts, draft
from services.plans.same_change import plan_diff

FIELDS = ("value", "life_blocks", "checkpoint")
WHOLE = "a folder is written whole: there is nothing to ask again about, leave the checkpoint out"


@dataclass(frozen=True)
class StepEdit:
    """`steps.NUMBER.FIELD=VALUE`."""

    number: int
    field: str
    value: str


def revise(
    plan: ChangePlan,
    *,
    judge: JudgeSettings,
    edits: Sequence[StepEdit] = (),
    drop: Sequence[int] = (),
) -> ChangePlan:
    """The next revision of a plan, drafted anew on the same basis; steps are numbered anew.

    Raises:
        ConfigError: there is no such step or field, a value that the contract refuses, or nothing is left.
    """
    _demand_edits(plan, edits, drop)
    folder = next((step.action.folder for step in plan.steps if isinstance(step.action, FolderAction)), None)
    kept = list(_keep_steps(plan, edits, drop))
    made = draft(
        kept,
        _facts(plan, judge),
        plan.trigger,
        understanding=plan.understanding,
        folder=folder,
        report_id=plan.report_id,
        verdict_id=plan.verdict_id,
        revises=plan,
    )
    if isinstance(made, EmptyPlan):
        refused = "; ".join(f"{item.code}, {item.reason}" for item in made.refused)
        raise ConfigError(
            f"plan {plan.plan_id}: no step would be left{': ' + refused if refused else ''}: "
            f"`thinktwice plans cancel {plan.plan_id}` ends it"
        )
    if made.refused:
        first = made.refused[0]
        raise ConfigError(
            f"plan {plan.plan_id}: {first.action.kind} is refused: {first.code}, {first.reason}"
        )
    if not plan_diff(plan, made):
        raise ConfigError(f"plan {plan.plan_id}: nothing changes, its revision {plan.revision} stays")
    return made


def _demand_edits(plan: ChangePlan, edits: Sequence[StepEdit], drop: Sequence[int]) -> None:
    """Refuse steps that are not there, a field set twice, and a folder that is edited or dropped."""
    named = [(edit.number, edit.field) for edit in edits]
    for number, field in [*named, *((number, "step") for number in drop)]:
        step = _demand_step(plan, number)
        if isinstance(step.action, FolderAction):
            raise ConfigError(
                f"steps.{number}: the folder of a plan cannot be edited or dropped: cancel the plan and "
                "make another"
            )
        if field == "checkpoint" and any(isinstance(other.action, FolderAction) for other in plan.steps):
            raise ConfigError(f"steps.{number}.checkpoint: {WHOLE}")
        if named.count((number, field)) > 1:
            raise ConfigError(f"steps.{number}.{field} is set twice: give it once")
        if number in drop and (number, field) in named:
            raise ConfigError(f"step {number} is edited and dropped: do one of them")


def _demand_step(plan: ChangePlan, number: int) -> PlanStep:
    found = next((step for step in plan.steps if step.number == number), None)
    if found is None:
        there = ", ".join(str(step.number) for step in plan.steps)
        raise ConfigError(f"plan {plan.plan_id} has no step {number}: its steps are {there}")
    return found


def _keep_steps(plan: ChangePlan, edits: Sequence[StepEdit], drop: Sequence[int]) -> Iterator[Proposed]:
    """The steps that stay; one whose playbook nothing before it moves otherwise makes what it made."""
    touched: set[str | None] = set()
    for step in plan.steps:
        if isinstance(step.action, FolderAction):
            continue
        name, own = step.action.playbook_id, [edit for edit in edits if edit.number == step.number]
        if step.number in drop:
            touched.add(name)
            continue
        item = _edit_step(step, step.action, own)
        if item.action != step.action:
            touched.add(name)
        if name not in touched and step.makes:
            item = replace(item, after=step.makes[0].definition, candidate=step.candidate)
            item = replace(item, evidence=plan.basis.evidence.get(step.candidate or "", {}))
        yield item


def _edit_step(step: PlanStep, action: JudgeAction | RollbackAction, edits: Sequence[StepEdit]) -> Proposed:
    """A step as it is proposed again, without candidate and evidence."""
    checkpoint = step.checkpoint
    for edit in edits:
        if edit.field == "checkpoint":
            checkpoint = _truth(edit)
        elif isinstance(action, JudgeAction) and edit.field in FIELDS:
            if getattr(action, edit.field) is None:
                raise ConfigError(f"steps.{step.number}.{edit.field}: a {action.kind} has no {edit.field}")
            new = _number(edit, whole=edit.field == "life_blocks")
            payload = {"reason": f"{edit.field} was edited from {getattr(action, edit.field):g}"}
            action = JudgeAction(**(action.payload() | payload | {edit.field: new, "lowers_exposure": False}))
        else:
            raise ConfigError(
                f"steps.{step.number}.{edit.field} cannot be edited: {', '.join(FIELDS)} can; other actions "
                "are another plan"
            )
    return Proposed(action, checkpoint=checkpoint)


def _facts(plan: ChangePlan, judge: JudgeSettings) -> PlanFacts:
    """The facts of a plan's basis: an edit does not look at the present again, phase 2 does."""
    basis = plan.basis
    definitions = {name: stood.definition for name, stood in basis.versions.items()}
    owners = {name: tuple(basis.closes) for name in definitions}
    return PlanFacts(
        at=basis.at,
        expires_at=plan.expires_at,
        definitions=definitions,
        next_versions={name: stood.next_version for name, stood in basis.versions.items()},
        judge=judge,
        positions=basis.positions,
        symbols=owners,
        closes=basis.closes,
        atr=basis.atr,
        kill_switch=basis.kill_switch,
        safe_mode=basis.safe_mode,
    )


def _number(edit: StepEdit, *, whole: bool) -> float:
    try:
        return int(edit.value) if whole else float(edit.value)
    except ValueError as error:
        wanted = "a whole number" if whole else "a number"
        raise ConfigError(f"steps.{edit.number}.{edit.field}={edit.value!r}: {wanted} is wanted") from error


def _truth(edit: StepEdit) -> bool:
    if edit.value not in ("true", "false"):
        raise ConfigError(f"steps.{edit.number}.checkpoint={edit.value!r}: true or false is wanted")
    return edit.value == "true"
