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
from worker.studies.faults.bank import PROPOSAL, BankFault, Place

CONTRACT = "plan_refused_by_its_contract"
Ending = Literal["stopped", "passed", "broken", "misfit"]


@dataclass(frozen=True)
class CheckedPlan:
    """A plan as it was reflected on, and the playbooks that were active then."""

    request: PolicyLevelReflectionRequest
    playbooks: PlaybookReader


@dataclass(frozen=True)
class Outcome:
    """How a plan ended.

    Attributes:
        ending: a `misfit` has no place for the fault; `broken` is a contract or a check that failed where
            neither was meant to.
        place: where it was stopped.
        codes: why it did not pass.
        words: of the contract that refused it.
    """

    ending: Ending
    place: Place | None = None
    codes: tuple[str, ...] = ()
    words: str = ""


def plant(
    fault: BankFault, plan: CheckedPlan
) -> tuple[PolicyLevelReflectionRequest | Outcome, tuple[str, ...]]:
    """The plan with one fault in it, everything else as it is; and the texts that were planted."""
    words = plan_words(plan.request)
    try:
        to_set, to_add, reply = (_fill(part, words) for part in (fault.set, fault.add, fault.reply))
    except KeyError as error:
        return Outcome("misfit", codes=(f"the plan has no {error.args[0]}",)), ()
    if fault.note:
        return Outcome("misfit", codes=(fault.note,)), ()
    texts = tuple(f"{name}: {value}" for name, value in {**to_set, **to_add, **reply}.items())
    proposal = plan.request.proposal
    if reply:
        if isinstance(_propose(plan, {}), ReplyFault):
            return Outcome("misfit", codes=("no reply proposes this plan as it is",)), ()
        said = _propose(plan, reply)
        if isinstance(said, ReplyFault):
            return _refuse(fault, str(said.kind), said.message), texts
        proposal = said
    values = plan.request.model_copy(update={PROPOSAL: proposal}).payload()
    for path, value in (to_set | to_add).items():
        *steps, name = path.split(".")
        try:
            inside: Any = values
            for step in steps:
                inside = inside[step]
            inside[name] = inside[name] + value if path in to_add else value
        except (KeyError, TypeError):
            return Outcome("broken", codes=(f"the request has no {path}",)), ()
    return _make(fault, values), texts


def _make(fault: BankFault, values: dict[str, Any]) -> PolicyLevelReflectionRequest | Outcome:
    try:
        PolicyProposal.model_validate(values[PROPOSAL])
    except ValidationError as error:
        return _refuse(fault, CONTRACT, first_problem(error))
    try:
        return PolicyLevelReflectionRequest.model_validate(values)
    except ValidationError as error:
        return Outcome("broken", codes=(first_problem(error),))


def _refuse(fault: BankFault, code: str, words: str) -> Outcome:
    """Stopped where a refusal is expected; elsewhere planting went wrong, and no check was asked."""
    if "reply" in fault.expected:
        return Outcome("stopped", "reply", (code,), words)
    return Outcome("broken", codes=(code,), words=words)


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
    said = answer_of(reply, request.snapshot, (base,), plan.playbooks, own_rules=True, tick=0.0)
    return said if isinstance(said, ReplyFault) else said.proposal or request.proposal


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
    if not isinstance(value, str):
        return value
    names = placeholders(value)
    if names and value == f"{{{names[0]}}}":
        return words[names[0]]
    for name in names:
        filled = words[name] if isinstance(words[name], str) else number_text(words[name])
        value = value.replace(f"{{{name}}}", filled)
    return value
