"""A model's reply made an answer: the diff applied to its base, or a stop that is really tighter.

The contract of a proposal has the last word on every value, and a reply that breaks anything is a typed
fault: it is never applied in part. Nothing here can loosen a stop, open a position or choose a size. Pure
functions; whether the plan is any good is for the reflection to say.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from agents.strategies.plan_bases import PlanBase
from agents.strategies.strategist_reply import (
    Change,
    FaultKind,
    HoldReply,
    ParameterChange,
    ProposeReply,
    Reply,
    ReplyFault,
    RuleChange,
    TextChange,
    TightenReply,
)
from schemas.errors import nearest
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal, StrategistAnswer
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import PlanKind
from services.model_calls.reply_text import SHOWN, first_problem
from services.playbooks.rendering import render_rules
from services.ports import PlaybookReader
from trading_core.kernel.execution import on_tick


def answer_of(
    reply: Reply,
    snapshot: PolicySnapshot,
    bases: Sequence[PlanBase],
    playbooks: PlaybookReader,
    *,
    own_rules: bool,
    tick: float,
) -> StrategistAnswer | ReplyFault:
    """What a reply comes to.

    Args:
        reply: as read.
        snapshot: what it answers.
        bases: plans that were on offer.
        playbooks: of the bases.
        own_rules: whether rules in the model's own words may be tried; only where a reflection reads them.
        tick: grid of stops; 0: none.
    """
    if isinstance(reply, ProposeReply):
        return _proposed(reply, snapshot, bases, playbooks, own_rules)
    if isinstance(reply, TightenReply):
        return _tightened(reply, snapshot, tick)
    if isinstance(reply, HoldReply):
        if snapshot.position is None:
            return ReplyFault(FaultKind.NO_POSITION, "there is no position to hold: propose or abstain")
        return StrategistAnswer(kind=PlanKind.HOLD, reason=reply.reason)
    return StrategistAnswer(kind=PlanKind.ABSTAIN, reason=reply.reason)


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


def _proposed(
    reply: ProposeReply,
    snapshot: PolicySnapshot,
    bases: Sequence[PlanBase],
    playbooks: PlaybookReader,
    own_rules: bool,
) -> StrategistAnswer | ReplyFault:
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
    retold = any(isinstance(change, TextChange) for change in reply.changes)
    if reply.argues_for is not None or retold:
        plan = plan.model_copy(update={"argues_for": reply.argues_for})
    return StrategistAnswer(kind=PlanKind.PROPOSE, reason=reply.reason, proposal=plan)


def _tightened(reply: TightenReply, snapshot: PolicySnapshot, tick: float) -> StrategistAnswer | ReplyFault:
    position = snapshot.position
    if position is None:
        return ReplyFault(FaultKind.NO_POSITION, "there is no position whose stop could be tightened")
    sign = 1.0 if position.direction == "long" else -1.0
    level = float(on_tick(reply.stop, tick))
    if (level - position.stop) * sign <= 0 or (snapshot.close - level) * sign <= 0:
        message = f"stop {level!r} does not lie between stop {position.stop!r} and close {snapshot.close!r}"
        return ReplyFault(FaultKind.STOP_NOT_TIGHTER, message)
    return StrategistAnswer(kind=PlanKind.TIGHTEN, reason=reply.reason, tighter_stop=level)


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
