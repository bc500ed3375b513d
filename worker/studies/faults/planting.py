"""Plants a fault into a right plan: the request that the checks are asked, or how it ended before that.

A value that a closed contract refuses never reaches a check; a plan without the place is left alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from pydantic import ValidationError

from agents.strategies.plan_changes import PlanBase, answer_of
from agents.strategies.strategist_reply import ReplyFault, read_strategist_reply
from schemas.proposal import PolicyProposal
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.regime import RegimeLabels
from schemas.vocabulary import Structure, Trend, VolatilityBand
from services.model_calls.reply_text import first_problem
from services.playbooks.rendering import KIND_OF_ROLE, number_text, placeholders
from services.policy_checks.reasons import reasons_of_rules
from services.ports import PlaybookReader
from worker.studies.faults.bank import BankFault, Place
from worker.studies.study_models import OpenModels

CONTRACT = "plan_refused_by_its_contract"
Ending = Literal["stopped", "no_effect", "passed", "broken", "misfit"]


@dataclass(frozen=True)
class CheckedPlan:
    """A plan as it was reflected on, and the playbooks that were active then."""

    request: PolicyLevelReflectionRequest
    playbooks: PlaybookReader

    async def ask(self, opened: OpenModels | None) -> "CheckedPlan | None":
        """Itself; nobody has to be asked for it."""
        return self


@dataclass(frozen=True)
class Outcome:
    """How a plan ended, where it was stopped, and the codes of it.

    A `misfit` has no place for the fault; with `no_effect` the plan is the same to the byte; `broken` is a
    contract or a check that failed where neither was meant to.
    """

    ending: Ending
    codes: tuple[str, ...] = ()
    place: Place | None = None


def plant(fault: BankFault, plan: CheckedPlan) -> tuple[PolicyLevelReflectionRequest | Outcome, str]:
    """The plan with one fault in it, everything else as it is; and the words that were planted."""
    words = plan_words(plan.request)
    try:
        to_set, to_add, reply = (_fill(part, words) for part in (fault.set, fault.add, fault.reply))
    except KeyError as error:
        return Outcome("misfit", (f"the plan has no {error.args[0]}",)), ""
    if fault.note:
        return Outcome("misfit", (fault.note,)), ""
    text = "; ".join(f"{name}: {value}" for name, value in {**to_set, **to_add, **reply}.items())
    proposal = plan.request.proposal
    if reply:
        before, proposed = _propose(plan, {}), _propose(plan, reply)
        if isinstance(before, ReplyFault):
            return Outcome("misfit", ("no reply proposes this plan as it is",)), ""
        if isinstance(proposed, ReplyFault):
            return _refuse(fault, str(proposed.kind)), text
        if proposed.content_hash == before.content_hash and not (to_set or to_add):
            return Outcome("no_effect"), text
        proposal = proposed
    values = plan.request.model_copy(update={"proposal": proposal}).payload()
    for path, value in (to_set | to_add).items():
        *steps, name = path.split(".")
        try:
            inside: Any = values
            for step in steps:
                inside = inside[step]
            old = inside[name]
            inside[name] = old + value if path in to_add else value
        except (KeyError, TypeError):
            return Outcome("broken", (f"the request has no {path}",)), text
    return _make(fault, values), text


def _make(fault: BankFault, values: dict[str, Any]) -> PolicyLevelReflectionRequest | Outcome:
    try:
        PolicyProposal.model_validate(values["proposal"])
    except ValidationError:
        return _refuse(fault, CONTRACT)
    try:
        return PolicyLevelReflectionRequest.model_validate(values)
    except ValidationError as error:
        return Outcome("broken", (first_problem(error),))


def _refuse(fault: BankFault, code: str) -> Outcome:
    """Stopped where a refusal is expected; elsewhere planting went wrong, and no check was asked."""
    return Outcome("stopped", (code,), "reply") if "reply" in fault.expected else Outcome("broken", (code,))


def _propose(plan: CheckedPlan, fields: Mapping[str, Any]) -> PolicyProposal | ReplyFault:
    """The plan of a model that proposes it as it is, with these fields in its reply."""
    request = plan.request
    base = PlanBase(request.proposal, "playbook")
    because = [reason.payload() for reason in reasons_of_rules(request.proposal, request.snapshot)]
    right = {"because": because, "answer": "propose", "base": base.id, "changes": []}
    right["argues_for"] = request.proposal.direction
    reply = read_strategist_reply(json.dumps({**right, **fields}))
    if isinstance(reply, ReplyFault):
        return reply
    answer = answer_of(reply, request.snapshot, (base,), plan.playbooks, own_rules=True, tick=0.0)
    return answer if isinstance(answer, ReplyFault) else answer.proposal or request.proposal


def plan_words(request: PolicyLevelReflectionRequest) -> dict[str, Any]:
    """What a text of the bank may name: features and rules of the plan, and where it was made."""
    proposal, snapshot, playbook = request.proposal, request.snapshot, request.playbook
    eligible, is_long = playbook.eligibility[proposal.direction], proposal.direction == "long"
    foreign = (
        labels
        for trend, volatility, structure in product(Trend, VolatilityBand, Structure)
        if not eligible.allows(
            labels := RegimeLabels(trend=trend, volatility=volatility, structure=structure)
        )
    )
    words = {
        **snapshot.features,
        "entry": "close",
        **{role: text for role in KIND_OF_ROLE if (text := getattr(proposal, role)) is not None},
        "close": snapshot.close,
        "symbol": snapshot.symbol,
        "playbook": playbook.id,
        "parameter": next(iter(playbook.parameters), None),
        "rationale": proposal.rationale,
        "direction": proposal.direction,
        "other_direction": "short" if is_long else "long",
        "other_timeframe": "1d" if snapshot.timeframe == "1w" else "1w",
        "against": "<" if is_long else ">",
        "away": "-" if is_long else "+",
        "regime": None if snapshot.labels is None else snapshot.labels.key,
        "foreign_regime": next((labels.payload() for labels in foreign), None),
        "bar_label": snapshot.bar_label,
        "opened_at": snapshot.opened_at,
        "ts_event": snapshot.ts_event,
    }
    return {name: value for name, value in words.items() if value is not None}


def _fill(value: Any, words: Mapping[str, Any]) -> Any:
    """A value with the plan's own in place of names in braces; a KeyError where the plan has none."""
    if isinstance(value, Mapping):
        return {_fill(name, words): _fill(inside, words) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(inside, words) for inside in value]
    names = placeholders(value) if isinstance(value, str) else ()
    if names and value == f"{{{names[0]}}}":
        return words[names[0]]
    for name in names:
        filled = words[name] if isinstance(words[name], str) else number_text(words[name])
        value = value.replace(f"{{{name}}}", filled)
    return value
