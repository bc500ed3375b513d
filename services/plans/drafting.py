"""Phase 1: a change plan from facts by value. Nothing here can change anything.

Each action passes the action contract against the versions in force and the steps before it; what it refuses
is listed with its code. A plan of which no step is left is a refusal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.judge import JudgeAction
from schemas.plan import (
    ChangePlan,
    FieldChange,
    FolderAction,
    MadeVersion,
    PlanBasis,
    PlanStep,
    PositionHeld,
    RefusedStep,
    RollbackAction,
    Trigger,
    VersionInForce,
)
from schemas.playbook import PlaybookDefinition
from schemas.settings import JudgeSettings
from services.plans.effects import changed
from services.plans.wording import Words, folder_words, words_of
from services.playbooks.version_diff import changes
from services.slow_loop.action_contract import ContractState, check_action, lowers_exposure

EMPTY_PLAN = "empty_plan"
CHARACTERS_A_TOKEN = 4


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
        return _refused(drafted, action, refusal.code, refusal.reason)
    before = None if action.kind == "replan" else drafted.definitions.get(action.playbook_id or "")
    after = item.after
    if after is None and before is not None:
        after = changed(before, action, drafted.numbers[before.id], facts.at)
    lowers = lowers_exposure(action, drafted.definitions)
    step = _step(len(drafted.steps) + 1, item, words_of(action, before), (before, after), lowers)
    if sum(len(made.canonical_text()) for made in (*drafted.steps, step)) > facts.longest:
        limit = f"a plan has {facts.longest} characters of steps at most"
        return _refused(drafted, action, "plan_too_long", limit)
    return _behind(drafted, step, after, (*drafted.accepted, action))


def _refused(drafted: _Draft, action: JudgeAction | RollbackAction, code: str, reason: str) -> _Draft:
    return replace(drafted, refused=(*drafted.refused, RefusedStep(action=action, code=code, reason=reason)))


def _with_rollback(drafted: _Draft, action: RollbackAction, item: Proposed, facts: PlanFacts) -> _Draft:
    after = item.after or facts.earlier.get(action.playbook_id)
    if after is None:
        why = f"{action.playbook_id} has no earlier version that traded differently"
        return _refused(drafted, action, "nothing_earlier", why)
    before = drafted.definitions[action.playbook_id]
    aimed = RollbackAction(**(action.payload() | {"version_hash": after.content_hash}))
    step = _step(
        len(drafted.steps) + 1, replace(item, action=aimed), words_of(aimed, before), (before, after), False
    )
    return _behind(drafted, step, after, drafted.accepted)


def _step(
    number: int,
    item: Proposed,
    words: Words,
    moved: tuple[PlaybookDefinition | None, PlaybookDefinition | None],
    lowers: bool,
) -> PlanStep:
    before, after = moved
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
        precondition=words.precondition,
        effect=words.effect,
        undo=words.undo,
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
    words = folder_words(folder)
    action = FolderAction(folder=folder, reason="the run is over: its playbooks become files")
    return PlanStep(
        number=number,
        action=action,
        precondition=words.precondition,
        effect=words.effect,
        undo=words.undo,
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
    told = f"In force: {', '.join(made)}." if made else "No version of a playbook changes."
    return told[:1_000]
