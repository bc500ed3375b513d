"""Phase 1: a change plan from facts by value. Nothing here can change anything.

Each action passes the action contract against the versions in force and the steps before it; what it refuses
is listed with its code. A plan of which no step is left is a refusal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from schemas.errors import nearest
from schemas.judge import JudgeAction
from schemas.plan import (
    ChangePlan,
    FieldChange,
    FolderAction,
    MadeVersion,
    PlanBasis,
    PlanStep,
    PositionHeld,
    Proposed,
    RefusedStep,
    RollbackAction,
    Trigger,
    VersionInForce,
)
from schemas.playbook import Eligibility, PlaybookDefinition
from schemas.settings import JudgeSettings
from services.playbooks.measures import alter, with_parameter
from services.playbooks.version_diff import changes
from services.slow_loop.action_contract import ContractState, check_action, lowers_exposure

NO_UNDO = "A policy that is out of force is not frozen again: the next evaluation makes another."


def _sentences(
    action: JudgeAction | RollbackAction, before: PlaybookDefinition | None
) -> tuple[str, str, str]:
    """Precondition, effect and undo of an action on a playbook as it stands before it."""
    if before is None:
        effect = "Retires every frozen policy: each symbol is evaluated anew."
        return "No evaluation is out.", effect, NO_UNDO
    name, number = before.id, before.version
    undo = f"`thinktwice plans rollback PLAN` returns {name} to version {number}."
    if isinstance(action, JudgeAction) and action.kind == "open_experiment":
        undo = "The experiment ends with its life and never becomes active by itself."
    return f"{name} version {number} is in force.", _effect(action, before), undo


def _effect(action: JudgeAction | RollbackAction, before: PlaybookDefinition) -> str:
    name = before.id
    if isinstance(action, RollbackAction):
        return f"Returns {name} to an earlier version, {(action.version_hash or 'the last other one')[:12]}."
    if action.kind == "set_eligibility":
        side = f" {action.direction}" if action.direction else ""
        does = "Trades" if action.eligible else "Bans"
        return f"{does} {name}{side} in {action.regime}{' again' if action.eligible else ''}."
    if action.kind == "set_risk_fraction":
        return f"Risks {action.value:.4%} of equity a trade of {name} instead of {before.risk_fraction:.4%}."
    parameter = before.parameters.get(action.parameter or "")
    was = "" if parameter is None else f" instead of {parameter.value:g}"
    if action.kind == "open_experiment":
        return f"Tries {action.parameter} {action.value:g} of {name} on paper{was}."
    return f"Trades {name} with {action.parameter} {action.value:g}{was}."


EMPTY_PLAN = "empty_plan"
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class PlanFacts:
    """What phase 1 sees, by value; times in ns, prices by symbol.

    Attributes:
        at: close of the bar as of which the plan is made.
        expires_at: until when it waits.
        definitions: versions in force by playbook id.
        next_versions: the number that a new version of each gets.
        earlier: what a rollback returns each playbook to, where there is something.
        positions: open ones.
        symbols: in which each playbook holds a position or the latest policy.
        closes, atr: last close and mean true range of 14 bars.
        kill_switch, safe_mode: whether the operator's switch is on; whether entries are blocked.
        judge: bounds of the action contract.
        open_experiments: in shadow.
        longest: characters of all steps at most.
    """

    at: int
    expires_at: int
    definitions: Mapping[str, PlaybookDefinition]
    next_versions: Mapping[str, int]
    judge: JudgeSettings
    earlier: Mapping[str, PlaybookDefinition] = field(default_factory=dict)
    positions: tuple[PositionHeld, ...] = ()
    symbols: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    closes: Mapping[str, float] = field(default_factory=dict)
    atr: Mapping[str, float] = field(default_factory=dict)
    kill_switch: bool = False
    safe_mode: bool = False
    open_experiments: int = 0
    longest: int = 8_192 * CHARACTERS_A_TOKEN


@dataclass(frozen=True)
class EmptyPlan:
    """Nothing is left to do: every action was refused, or there was none."""

    refused: tuple[RefusedStep, ...] = ()


@dataclass(frozen=True)
class _Draft:
    """Steps so far, and the playbooks as they leave them."""

    definitions: Mapping[str, PlaybookDefinition]
    numbers: Mapping[str, int]
    steps: tuple[PlanStep, ...] = ()
    accepted: tuple[JudgeAction, ...] = ()
    refused: tuple[RefusedStep, ...] = ()


def draft(
    proposed: Sequence[Proposed],
    facts: PlanFacts,
    trigger: Trigger,
    *,
    understanding: str,
    folder: str | None = None,
    report_id: str | None = None,
    verdict_id: str | None = None,
    revises: ChangePlan | None = None,
) -> ChangePlan | EmptyPlan:
    """The plan of some actions, in order, on the state that the facts tell.

    `understanding` says in a sentence what is asked; `folder`, of a run that is over, where the playbooks
    that result are written; `revises` is the revision before it, where it is one.
    """
    drafted = _Draft(facts.definitions, facts.next_versions)
    for item in proposed:
        drafted = _with_step(drafted, item, facts)
    if not drafted.steps:
        return EmptyPlan(drafted.refused)
    steps = drafted.steps
    if folder is not None:
        steps = (*steps, _folder_step(folder, len(steps) + 1))
    names = {getattr(step.action, "playbook_id", None) for step in steps}
    return ChangePlan(
        revision=1 if revises is None else revises.revision + 1,
        first=None if revises is None else revises.plan_id,
        trigger=trigger,
        understanding=understanding[:1_000],
        approach=_approach(steps),
        steps=steps,
        risks=_risks(steps, proposed),
        expected_outcome=_outcome(steps),
        basis=_basis(facts, names, proposed),
        made_at=facts.at if revises is None else revises.made_at,
        expires_at=facts.expires_at,
        refused=drafted.refused,
        report_id=report_id,
        verdict_id=verdict_id,
    )


def _with_step(drafted: _Draft, item: Proposed, facts: PlanFacts) -> _Draft:
    action = item.action
    if isinstance(action, RollbackAction):
        return _with_rollback(drafted, action, item, facts)
    state = ContractState(drafted.definitions, facts.judge, facts.open_experiments, drafted.accepted)
    refusal = None if item.after is not None else check_action(action, state)
    if refusal is not None:
        return _refuse(drafted, action, refusal.code, refusal.reason)
    before = None if action.kind == "replan" else drafted.definitions.get(action.playbook_id or "")
    after = item.after
    if after is None and before is not None:
        after = apply_action(before, action, drafted.numbers[before.id], facts.at)
    lowers = lowers_exposure(action, drafted.definitions)
    step = _step(len(drafted.steps) + 1, item, before, after, lowers)
    if sum(len(made.canonical_text()) for made in (*drafted.steps, step)) > facts.longest:
        limit = f"a plan has {facts.longest} characters of steps at most"
        return _refuse(drafted, action, "plan_too_long", limit)
    return _behind(drafted, step, after, (*drafted.accepted, action))


def _refuse(drafted: _Draft, action: JudgeAction | RollbackAction, code: str, reason: str) -> _Draft:
    return replace(drafted, refused=(*drafted.refused, RefusedStep(action=action, code=code, reason=reason)))


def _with_rollback(drafted: _Draft, action: RollbackAction, item: Proposed, facts: PlanFacts) -> _Draft:
    if action.playbook_id not in drafted.definitions:
        known = nearest(action.playbook_id, drafted.definitions)
        return _refuse(
            drafted, action, "unknown_playbook", f"no playbook {action.playbook_id!r} is in force.{known}"
        )
    after = item.after or facts.earlier.get(action.playbook_id)
    if after is None:
        why = f"{action.playbook_id} has no earlier version that traded differently"
        return _refuse(drafted, action, "nothing_earlier", why)
    before = drafted.definitions[action.playbook_id]
    aimed = replace(item, action=RollbackAction(**(action.payload() | {"version_hash": after.content_hash})))
    step = _step(len(drafted.steps) + 1, aimed, before, after, False)
    return _behind(drafted, step, after, drafted.accepted)


def _step(
    number: int,
    item: Proposed,
    before: PlaybookDefinition | None,
    after: PlaybookDefinition | None,
    lowers: bool,
) -> PlanStep:
    precondition, effect, undo = _sentences(item.action, before)
    made: tuple[MadeVersion, ...] = ()
    if before is not None and after is not None and after.content_hash != before.content_hash:
        differs = tuple(FieldChange.model_validate(change.payload()) for change in changes(before, after))
        made = (
            MadeVersion(
                playbook_id=after.id,
                version=after.version,
                version_hash=after.content_hash,
                definition=after,
                changes=differs,
            ),
        )
    return PlanStep(
        number=number,
        action=item.action,
        candidate=item.candidate,
        precondition=precondition,
        effect=effect,
        undo=undo,
        makes=made,
        lowers_exposure=lowers,
        checkpoint=item.checkpoint,
    )


def _behind(
    drafted: _Draft, step: PlanStep, after: PlaybookDefinition | None, accepted: tuple[JudgeAction, ...]
) -> _Draft:
    definitions, numbers = dict(drafted.definitions), dict(drafted.numbers)
    if after is not None and step.makes:
        definitions[after.id] = after
        numbers[after.id] = max(numbers[after.id], after.version + 1)
    return replace(
        drafted,
        definitions=definitions,
        numbers=numbers,
        steps=(*drafted.steps, step),
        accepted=() if step.checkpoint else accepted,  # what follows is decided anew
    )


def _folder_step(folder: str, number: int) -> PlanStep:
    return PlanStep(
        number=number,
        action=FolderAction(folder=folder, reason="the run is over: its playbooks become files"),
        precondition=f"{folder} is free, or holds what was written there before.",
        effect=f"Writes the playbooks that result to {folder}.",
        undo=f"`thinktwice plans rollback PLAN` writes the playbooks of before to {folder}.",
    )


def _basis(facts: PlanFacts, names: set[str | None], proposed: Sequence[Proposed]) -> PlanBasis:
    concerned = sorted(name for name in facts.definitions if name in names)
    symbols = sorted({symbol for name in concerned for symbol in facts.symbols.get(name, ())})
    return PlanBasis(
        at=facts.at,
        versions={
            name: VersionInForce(
                definition=facts.definitions[name],
                version_hash=facts.definitions[name].content_hash,
                next_version=facts.next_versions[name],
            )
            for name in concerned
        },
        positions=tuple(held for held in facts.positions if held.playbook_id in concerned),
        closes={symbol: facts.closes[symbol] for symbol in symbols},
        atr={symbol: facts.atr[symbol] for symbol in symbols},
        kill_switch=facts.kill_switch,
        safe_mode=facts.safe_mode,
        evidence={
            item.candidate: dict(item.evidence) for item in proposed if item.candidate and item.evidence
        },
    )


def _approach(steps: Sequence[PlanStep]) -> str:
    asks = [step.number for step in steps if step.checkpoint]
    again = f" It asks again behind step {', '.join(map(str, asks))}." if asks else ""
    count = "one step" if len(steps) == 1 else f"{len(steps)} steps"
    return (
        f"{count} between two bars; what they make comes into force together, and a step that fails "
        f"undoes those before it.{again}"
    )


def _risks(steps: Sequence[PlanStep], proposed: Sequence[Proposed]) -> tuple[str, ...]:
    proven = {item.candidate for item in proposed if item.candidate and item.evidence}
    unproven = [
        step.number
        for step in steps
        if isinstance(step.action, JudgeAction)
        and step.action.kind != "replan"
        and not step.lowers_exposure
        and step.candidate not in proven
    ]
    risks = []
    if any(not step.lowers_exposure and step.makes for step in steps):
        risks.append("It adds exposure or moves rules: losses of the playbooks that it changes may grow.")
    if unproven:
        numbers = ", ".join(map(str, unproven))
        risks.append(f"No trade on paper has proven step {numbers}: a person's word carries it.")
    if any(step.action.kind == "replan" for step in steps):
        risks.append("Every frozen policy goes out of force, and each symbol is evaluated anew.")
    return tuple(risks)


def _outcome(steps: Sequence[PlanStep]) -> str:
    made = [f"{made.playbook_id} version {made.version}" for step in steps for made in step.makes]
    text = f"In force: {', '.join(made)}." if made else "No version of a playbook changes."
    return text[:1_000]


def apply_action(
    definition: PlaybookDefinition, action: JudgeAction, number: int, known_at: int
) -> PlaybookDefinition:
    """The definition in force after an action, with its version number and the time it is known at, ns.

    An approved action acts as it says: a value or a risk is in force at once, on a person's word or on the
    evidence of its candidate. A trial in shadow needs no plan, except an experiment that a person asks for.
    A replan or an experiment changes none: the definition comes back as it is.
    """
    if action.kind in ("replan", "open_experiment"):
        return definition
    if action.kind == "set_risk_fraction":
        after = alter(definition, risk_fraction=action.value)
    elif action.kind == "set_eligibility":
        eligibility = {
            side: rules if action.direction not in (None, side) else _with_cell(rules, action)
            for side, rules in definition.eligibility.items()
        }
        after = alter(definition, eligibility=eligibility)
    else:
        after = with_parameter(definition, str(action.parameter), float(action.value or 0.0))
    return alter(after, version=number, known_at=known_at)


def _with_cell(rules: Eligibility, action: JudgeAction) -> Eligibility:
    """Only a cell that these rules declare is taken out of them, or let in again."""
    trend, _, volatility = str(action.regime).partition("/")
    if trend not in rules.trend or volatility not in rules.volatility:
        return rules
    banned = (
        set(rules.banned) - {str(action.regime)} if action.eligible else {*rules.banned, str(action.regime)}
    )
    return alter(rules, banned=tuple(sorted(banned)))
