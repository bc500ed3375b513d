"""Does the plan hang together? Reasons and direction, rules and playbook, levels against each other.

Every finding here is major at most: an incoherent plan may be resubmitted, a broken guardrail may not.
Each critic is one question; levels are read once and shared.

Are the plan's rules the playbook's rules? Only parameters may differ, and only along their grids.

Texts are compared in canonical form, so blanks and needless parentheses do not matter. A proposal that wants
other rules wants another playbook, which is the slow loop's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from schemas.order_terms import OrderTerms
from schemas.playbook import PlaybookDefinition
from schemas.proposal import OWN, PolicyProposal
from schemas.reasons import PlanReason
from schemas.reflection import Finding, PolicyLevelReflectionRequest, Remedy
from schemas.vocabulary import CheckName, Severity
from services.playbooks.rendering import KIND_OF_ROLE, placeholders, render_text
from services.policy_checks.findings import Findings, finding, is_far_target, major, own_rule, own_term
from services.policy_checks.geometry import (
    LevelCritic,
    entry_is_on_wrong_side,
    invalidation_is_misplaced,
    level_is_on_wrong_side,
    level_is_unknown,
    management_is_out_of_reach,
    reward_to_risk_too_low,
)
from services.policy_checks.orders import orders_against
from services.policy_checks.plan_levels import TEXTS, PlanLevels
from services.policy_checks.reasons import JUDGED, holds, reasons_of_rules
from trading_core.rules import LintFinding, parse
from trading_core.rules.bounds import possible_of

LINT_SEVERITY = {
    "unknown_feature": Severity.MAJOR,
    "tautology": Severity.MAJOR,
    "unreachable": Severity.MAJOR,
    "never_fired": Severity.MINOR,
    "always_fired": Severity.MINOR,
}
Grids = tuple[tuple[str, tuple[float, ...]], ...]
Values = tuple[tuple[str, float], ...]


def check_coherence(
    request: PolicyLevelReflectionRequest, levels: PlanLevels, lint: Sequence[LintFinding] = ()
) -> tuple[Finding, ...]:
    """Every incoherence of the plan, in a fixed order; `lint` holds what the linter saw on past bars."""
    found = tuple(
        seen
        for critic in COHERENCE_CRITICS
        for seen in critic(request, levels)
        if seen.evidence != ("target",) or not is_far_target(request)
    )
    known = {(seen.code, seen.evidence) for seen in found}
    return found + tuple(seen for seen in lint_findings(lint) if (seen.code, seen.evidence) not in known)


def rule_is_invalid(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """Rules that do not parse, or yield the wrong kind of value."""
    for role, reason in levels.broken.items():
        yield major("rule_invalid", reason, role, remedy=own_rule(request, role))


def rule_is_constant(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """Conditions that no market can make true, or none can make false; no bars are needed to see it."""
    for role, text, code in _constants(TEXTS(request.proposal), frozenset(levels.broken)):
        always = "can never be true" if code == "unreachable" else "is true whatever the market does"
        yield major(code, f"{role}: {text!r} {always}", role, remedy=own_rule(request, role))


def rules_differ_from_playbook(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """Rules that the playbook does not have, whatever value its parameters take on their grids."""
    if not levels.differs:
        return
    taken = (
        f"; the name {request.playbook.id!r} is taken by a playbook: a plan with its own rules needs another"
    )
    for found in differences(request.proposal, request.playbook, frozenset(levels.broken)):
        message = found.message + taken * request.playbook.id.startswith(OWN)
        remedy = Remedy(field=found.role, op="equals", value=found.wanted) if found.wanted else None
        yield major("rules_differ_from_playbook", message, found.role, remedy=remedy)


def orders_differ_from_playbook(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """An entry, a refinement, a break-even or a scale-out of another kind or at another place."""
    for name in OrderTerms.model_fields if levels.differs else ():
        if name in levels.differs:
            given, wanted = getattr(request.proposal, name), getattr(request.playbook, name)
            message = f"{name} is {given!r}, the playbook says {wanted!r}"
            yield major("orders_differ_from_playbook", message, name, remedy=own_term(request, name))


def plan_outgrows_playbook(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """A horizon or an activation window longer than the playbook's, or none where the playbook waits."""
    window = request.playbook.activation_window_bars
    if request.proposal.activation_window_bars == 0 < window:
        message = f"the setup orders at its close, the playbook waits {window} bars for an activation"
        remedy = Remedy(field="activation_window_bars", op="equals", value=window)
        yield major("orders_differ_from_playbook", message, "activation_window_bars", remedy=remedy)
    for field in ("horizon_bars", "activation_window_bars"):
        question, bound = getattr(request.proposal, field), getattr(request.playbook, field)
        if question > bound:
            remedy = Remedy(field=field, op="at_most", value=bound)
            code = f"{field.removesuffix('_bars')}_exceeds_playbook"
            yield major(code, f"{field} is {question}, the playbook's is {bound}", remedy=remedy)


def text_contradicts_direction(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """A text that orders to trade the other way; or its author says that it argues otherwise."""
    proposal = request.proposal
    direction, argues_for = proposal.direction, proposal.argues_for
    for field in ("thesis", "rationale"):
        if against := orders_against(getattr(proposal, field), direction):
            quoted = ", ".join(repr(words) for words in against)
            message = f"the {field} of a {direction} plan says outright: {quoted}"
            yield major("text_contradicts_direction", message, field)
    if argues_for not in (None, direction):
        message = f"its author says that the text argues for {argues_for!r}; the plan is {direction!r}"
        yield major("text_contradicts_direction", message, "argues_for")


def rationale_misses_playbook(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """Reasons none of which names a rule of the plan or a feature that its rules use, or that are not so.

    A plan without reasons says nothing that could miss; a strategist's has those of its rules at least.
    """
    proposal = request.proposal
    judged = [
        (place, reason, holds(reason, proposal, request.playbook, request.snapshot))
        for place, reason in enumerate(proposal.because)
        if reason.kind in JUDGED
    ]
    holding = any(reason_holds for _, _, reason_holds in judged)
    own = reasons_of_rules(proposal, request.snapshot) if proposal.because and not holding else ()
    if any(reason.kind in JUDGED for reason in own):
        message = (
            f"no reason names a rule of {request.playbook.id!r}, or a feature of one, that may be true now"
        )
        yield major("rationale_misses_playbook", message, "because")
        return
    for place, reason, reason_holds in judged:
        if not reason_holds:
            yield major("reason_not_so", _why_not(place, reason, proposal.direction), f"because[{place}]")


def _why_not(place: int, reason: PlanReason, direction: str) -> str:
    named = f"reason {place} names the {reason.kind} {reason.name!r}"
    if reason.kind == "rule":
        return f"{named}, which is not true at this close"
    return f"{named}, and no {direction} rule of the plan that uses it may be true at this close"


def playbook_is_not_eligible(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """A regime or a timeframe in which the playbook may not be proposed; no regime, where it asks for one."""
    playbook, snapshot = request.playbook, request.snapshot
    if playbook.timeframes and snapshot.timeframe not in playbook.timeframes:
        message = f"playbook {playbook.id!r} is for {list(playbook.timeframes)}, not {snapshot.timeframe!r}"
        yield major("timeframe_not_eligible", message)
        return
    labels, direction = snapshot.labels, request.proposal.direction
    if playbook.eligibility[direction].allows(labels):
        return
    if labels is None:
        yield major("regime_unknown", "the snapshot has no regime, so eligibility cannot be shown")
    else:
        regime = f"{labels.trend}/{labels.volatility}/{labels.structure}"
        message = f"playbook {playbook.id!r} {direction} is not eligible in {regime}"
        yield major("playbook_not_eligible", message)


def lint_findings(lint: Sequence[LintFinding]) -> tuple[Finding, ...]:
    """What the rule linter saw, with its own codes.

    Raises:
        KeyError: the linter has a code that nobody here has weighed.
    """
    return tuple(
        finding(
            CheckName.COHERENCE,
            LINT_SEVERITY[seen.code],
            seen.code,
            f"{seen.role}: {seen.message}",
            seen.role,
        )
        for seen in lint
    )


COHERENCE_CRITICS: tuple[LevelCritic, ...] = (
    rule_is_invalid,
    rule_is_constant,
    rules_differ_from_playbook,
    orders_differ_from_playbook,
    plan_outgrows_playbook,
    text_contradicts_direction,
    rationale_misses_playbook,
    playbook_is_not_eligible,
    level_is_unknown,
    entry_is_on_wrong_side,
    level_is_on_wrong_side,
    management_is_out_of_reach,
    invalidation_is_misplaced,
    reward_to_risk_too_low,
)


@lru_cache(maxsize=4096)
def _constants(texts: tuple[str | None, ...], broken: frozenset[str]) -> tuple[tuple[str, str, str], ...]:
    """Role, text and code of each condition that is a constant."""
    rules = [(role, text) for role, text in zip(KIND_OF_ROLE, texts, strict=True) if role not in broken]
    conditions = [(role, text) for role, text in rules if text and KIND_OF_ROLE[role] == "boolean"]
    found = ((role, text, possible_of(parse(text).text)) for role, text in conditions)
    return tuple(
        (role, text, "tautology" if can_be.true else "unreachable")
        for role, text, can_be in found
        if not (can_be.true and can_be.false)
    )


@dataclass(frozen=True)
class Difference:
    """One rule of a plan that the playbook does not have; `wanted` is its text there, None if it has none."""

    role: str
    message: str
    wanted: str | None


def differences(
    proposal: PolicyProposal, playbook: PlaybookDefinition, skip: frozenset[str] = frozenset()
) -> tuple[Difference, ...]:
    """What sets the plan's rules apart from the playbook's; `skip` names broken roles.

    What is wanted keeps the parameter values that the plan's other rules have chosen.
    """
    templates = playbook.rules[proposal.direction]
    chosen: dict[str, tuple[float, str]] = {}
    found: list[tuple[str, str]] = []
    for role in KIND_OF_ROLE:
        text, template = getattr(proposal, role), getattr(templates, role)
        if role in skip or (text is None and template is None):
            continue
        values = None if text is None or template is None else _values_behind(text, template, playbook)
        if values is None:
            found.append((role, f"{role} is {text!r}, the playbook says {template!r}"))
            continue
        for name, value in values:
            first_value, first_role = chosen.setdefault(name, (value, role))
            if first_value != value:
                message = f"parameter {name!r} is {first_value!r} in {first_role} and {value!r} in {role}"
                found.append((role, message))
    if not found:
        return ()
    values_of_all = {name: parameter.value for name, parameter in playbook.parameters.items()}
    values_of_all |= {name: value for name, (value, _) in chosen.items()}
    return tuple(
        Difference(role, message, wanted and render_text(wanted, values_of_all))
        for role, message in found
        for wanted in (getattr(templates, role),)
    )


@lru_cache(maxsize=4096)
def _values_behind(text: str, template: str, playbook: PlaybookDefinition) -> Values | None:
    """Parameter values with which the template says `text`; the playbook's own values are tried first."""
    names = dict.fromkeys(placeholders(template))
    own = tuple((name, playbook.parameters[name].value) for name in names)
    if _says(template, own, parse(text).text):
        return own
    return _search(
        parse(text).text, template, tuple((name, playbook.parameters[name].grid) for name in names)
    )


@lru_cache(maxsize=1024)
def _search(canonical: str, template: str, grids: Grids) -> Values | None:
    for combination in product(*(grid for _, grid in grids)):
        values = tuple((name, value) for (name, _), value in zip(grids, combination, strict=True))
        if _says(template, values, canonical):
            return values
    return None


@lru_cache(maxsize=4096)
def _says(template: str, values: Values, canonical: str) -> bool:
    return parse(render_text(template, dict(values))).text == canonical
