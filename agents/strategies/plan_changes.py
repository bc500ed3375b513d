"""A model's reply made an answer: the diff applied to its base, or a stop that is really tighter.

The contract of a proposal has the last word on every value, and a reply that breaks anything is a typed
fault: it is never applied in part. Nothing here can loosen a stop, open a position or choose a size. Pure
functions; whether the plan is any good is for the reflection to say.

The plans from which a model may start: it picks one by its id and says what it would change.

An id is the start of the plan's own content hash, so the same plan has the same id in every run. Only
playbooks that the regime and the envelope allow are offered. Pure functions of the snapshot, the revision
and what was frozen before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from agents.strategies.rule_strategist import RuleStrategist
from agents.strategies.strategist_reply import (
    Change,
    FaultKind,
    HoldReply,
    ParameterChange,
    ProposeReply,
    Reply,
    ReplyFault,
    RuleChange,
    TightenReply,
)
from schemas.background import DecisionBackground
from schemas.errors import nearest
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from services.model_calls.reply_text import SHOWN, first_problem
from services.playbooks.rendering import render_rules
from services.policy_checks.plan_levels import describe_levels
from services.policy_checks.reasons import describe_reasons, reason_names, unknown_reasons, with_reasons
from services.ports import PlaybookReader, Revision
from trading_core.kernel.execution import on_tick

Origin = Literal["refused", "in_force", "playbook"]
FrozenPlan = Callable[[str], PolicyProposal | None]
ID_DIGITS = 16


@dataclass(frozen=True)
class PlanBase:
    """One plan to start from, and where it comes from."""

    proposal: PolicyProposal
    origin: Origin

    @property
    def id(self) -> str:
        """First digits of the plan's content hash."""
        return self.proposal.content_hash[:ID_DIGITS]

    def to_prompt(self, snapshot: PolicySnapshot) -> dict[str, Any]:
        """The base as the prompt carries it, without the words that code gave its reasons."""
        plan = {name: value for name, value in self.proposal.payload().items() if name != "rationale"}
        comes_to = describe_levels(self.proposal, snapshot)
        return {"id": self.id, "origin": self.origin, "plan": plan, "comes_to": comes_to}


def plan_bases(
    rules: RuleStrategist, snapshot: PolicySnapshot, revision: Revision | None, frozen: FrozenPlan
) -> tuple[PlanBase, ...]:
    """Bases on offer, each plan once: the refused one, the one in force, then playbooks by rank.

    None at all while a position is open or the regime is unknown.

    Args:
        rules: ranks the playbooks that regime and envelope allow.
        snapshot: what is known.
        revision: with the plan that was refused.
        frozen: the plan of a policy frozen earlier in the run, by policy id.
    """
    if snapshot.position is not None or snapshot.regime is None:
        return ()
    ranked = rules.rank(snapshot)
    eligible = {(base.playbook.id, base.direction) for base in ranked}
    found: list[PlanBase] = []
    if revision is not None:
        found.append(PlanBase(revision.proposal, "refused"))
    in_force = None if snapshot.active_policy_id is None else frozen(snapshot.active_policy_id)
    if in_force is not None and (in_force.playbook_id, in_force.direction) in eligible:
        found.append(PlanBase(in_force, "in_force"))
    found += [PlanBase(base.proposal, "playbook") for base in ranked]
    first: dict[str, PlanBase] = {}
    for base in found:
        first.setdefault(base.id, base)
    return tuple(first.values())


def answer_of(
    reply: Reply,
    snapshot: PolicySnapshot,
    bases: Sequence[PlanBase],
    playbooks: PlaybookReader,
    *,
    own_rules: bool,
    tick: float,
    background: DecisionBackground | None = None,
) -> StrategistAnswer | ReplyFault:
    """What a reply comes to.

    Args:
        reply: as read.
        snapshot: what it answers.
        bases: plans that were on offer.
        playbooks: of the bases.
        own_rules: whether rules in the model's own words may be tried; only where a reflection reads them.
        tick: grid of stops; 0: none.
        background: what was shown beside the snapshot, for reasons that name it.
    """
    if isinstance(reply, ProposeReply):
        plan = _read_proposal(reply, snapshot, bases, playbooks, own_rules)
        if isinstance(plan, ReplyFault):
            return plan
        fault = _unknown_reason(reply, snapshot, background, plan)
        if fault is not None:
            return fault
        plan = with_reasons(plan, snapshot, reply.because, background)
        reason = f"the model proposes {plan.playbook_id} {plan.direction}"
        return StrategistAnswer(kind=PlanKind.PROPOSE, reason=reason, proposal=plan)
    fault = _unknown_reason(reply, snapshot, background)
    if fault is not None:
        return fault
    text = "; ".join(describe_reasons(reply.because, snapshot, background)) or "no reason is given"
    if isinstance(reply, TightenReply):
        return _read_tightening(reply, snapshot, tick, text)
    if isinstance(reply, HoldReply):
        if snapshot.position is None:
            return ReplyFault(FaultKind.NO_POSITION, "there is no position to hold: propose or abstain")
        return StrategistAnswer(kind=PlanKind.HOLD, reason=f"the model holds: {text}")
    return StrategistAnswer(kind=PlanKind.ABSTAIN, reason=f"the model abstains: {text}")


def _unknown_reason(
    reply: Reply,
    snapshot: PolicySnapshot,
    background: DecisionBackground | None,
    plan: PolicyProposal | None = None,
) -> ReplyFault | None:
    """A reason whose name there is not, with those that there are."""
    names = reason_names(snapshot, background, plan)
    unknown = unknown_reasons(reply.because, names)
    if not unknown:
        return None
    kind, name = unknown[0].kind, unknown[0].name
    known = names[kind]
    message = f"no {kind} {name[:SHOWN]!r} is shown, only {list(known)}.{nearest(name, known)}"
    return ReplyFault(FaultKind.UNKNOWN_REASON, message)


def changed_plan(
    base: PolicyProposal, changes: Sequence[Change], playbook: PlaybookDefinition
) -> PolicyProposal | ReplyFault:
    """The base with all changes applied; without one it is the base itself.

    A change of a parameter renders the playbook's rules anew, with every parameter that no change names at
    the playbook's value; changes of single rules come after it.
    """
    keys = [_key(change) for change in changes]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        return ReplyFault(FaultKind.REPEATED_CHANGE, f"{twice[:SHOWN]!r} is changed more than once")
    parameters = [change for change in changes if isinstance(change, ParameterChange)]
    fault = _off_grid(parameters, playbook)
    if fault is not None:
        return fault
    updates: dict[str, Any] = {}
    if parameters:
        overrides = {change.name: change.value for change in parameters}
        updates |= render_rules(playbook, base.direction, overrides).payload()
    updates |= {change.field: change.value for change in changes if not isinstance(change, ParameterChange)}
    if not updates:
        return base
    try:
        return PolicyProposal(**{**base.payload(), **updates})
    except ValidationError as error:
        return ReplyFault(FaultKind.CHANGE_REFUSED, first_problem(error))


def _read_proposal(
    reply: ProposeReply,
    snapshot: PolicySnapshot,
    bases: Sequence[PlanBase],
    playbooks: PlaybookReader,
    own_rules: bool,
) -> PolicyProposal | ReplyFault:
    if snapshot.position is not None:
        return ReplyFault(FaultKind.POSITION_OPEN, "a position is open: hold, tighten or abstain")
    base = next((offered for offered in bases if offered.id == reply.base), None)
    if base is None:
        known = [offered.id for offered in bases]
        message = f"no base {reply.base[:SHOWN]!r} is on offer, only {known}.{nearest(reply.base, known)}"
        return ReplyFault(FaultKind.UNKNOWN_BASE, message)
    if not own_rules and any(isinstance(change, RuleChange) for change in reply.changes):
        message = "no reflection is there to read a rule: change parameters instead"
        return ReplyFault(FaultKind.CHANGE_REFUSED, message)
    playbook = playbooks.get(base.proposal.playbook_id).definition
    plan = changed_plan(base.proposal, reply.changes, playbook)
    if isinstance(plan, ReplyFault):
        return plan
    return plan.model_copy(update={"argues_for": reply.argues_for})


def _read_tightening(
    reply: TightenReply, snapshot: PolicySnapshot, tick: float, text: str
) -> StrategistAnswer | ReplyFault:
    position = snapshot.position
    if position is None:
        return ReplyFault(FaultKind.NO_POSITION, "there is no position whose stop could be tightened")
    sign = 1.0 if position.direction == "long" else -1.0
    level = float(on_tick(reply.stop, tick))
    if (level - position.stop) * sign <= 0 or (snapshot.close - level) * sign <= 0:
        message = f"stop {level!r} does not lie between stop {position.stop!r} and close {snapshot.close!r}"
        return ReplyFault(FaultKind.STOP_NOT_TIGHTER, message)
    reason = f"the model tightens: {text}"
    return StrategistAnswer(kind=PlanKind.TIGHTEN, reason=reason, tighter_stop=level)


def _off_grid(changes: Sequence[ParameterChange], playbook: PlaybookDefinition) -> ReplyFault | None:
    for change in changes:
        parameter = playbook.parameters.get(change.name)
        if parameter is None:
            known = sorted(playbook.parameters)
            message = f"{playbook.id!r} has no parameter {change.name[:SHOWN]!r}, only {known}"
            return ReplyFault(FaultKind.CHANGE_REFUSED, message)
        if change.value not in parameter.grid:
            message = f"{change.name} {change.value!r} is not on its grid {list(parameter.grid)}"
            return ReplyFault(FaultKind.CHANGE_REFUSED, message)
    return None


def _key(change: Change) -> str:
    return f"parameter {change.name}" if isinstance(change, ParameterChange) else change.field
