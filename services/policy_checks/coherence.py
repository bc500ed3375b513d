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

from schemas.playbook import PlaybookDefinition
from schemas.proposal import OWN, PolicyProposal
from schemas.reasons import PlanReason
from schemas.reflection import Finding, PolicyLevelReflectionRequest, Remedy
from schemas.vocabulary import CheckName, Severity
from services.playbooks.rendering import KIND_OF_ROLE, placeholders, render_text
from services.policy_checks.findings import is_far_target, major, own_rule, own_term
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
from services.policy_checks.plan_levels import PlanLevels, rule_text
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
        finding
        for critic in COHERENCE_CRITICS
        for finding in critic(request, levels)
        if finding.evidence != ("target",) or not is_far_target(request)
    )
    known = {(finding.code, finding.evidence) for finding in found}
    return found + tuple(seen for seen in lint_findings(lint) if (seen.code, seen.evidence) not in known)


def rule_is_invalid(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """Rules that do not parse, or yield the wrong kind of value."""
    return tuple(
        major("rule_invalid", reason, role, remedy=own_rule(request, role))
        for role, reason in levels.broken.items()
    )


def rule_is_constant(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """Conditions that no market can make true, or none can make false; no bars are needed to see it."""
    found = []
    for role, kind in KIND_OF_ROLE.items():
        text = rule_text(request.proposal, role)
        if kind == "boolean" and text is not None and role not in levels.broken and (code := _constant(text)):
            always = "can never be true" if code == "unreachable" else "is true whatever the market does"
            message = f"{role}: {text!r} {always}"
            found.append(major(code, message, role, remedy=own_rule(request, role)))
    return tuple(found)


def rules_differ_from_playbook(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """Rules that the playbook does not have, whatever value its parameters take on their grids."""
    taken = (
        f"; the name {request.playbook.id!r} is taken by a playbook: a plan with its own rules needs another"
    )
    return tuple(
        major(
            "rules_differ_from_playbook",
            found.message + taken * request.playbook.id.startswith(OWN),
            found.role,
            remedy=Remedy(field=found.role, op="equals", value=found.wanted) if found.wanted else None,
        )
        for found in differences(request.proposal, request.playbook, frozenset(levels.broken))
    )


def orders_differ_from_playbook(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """An entry, a refinement, a break-even or a scale-out of another kind or at another place."""
    found = []
    asked = request.proposal.terms()
    for name, wanted in request.playbook.terms().items():
        said = asked[name]
        if said == wanted:
            continue
        message = f"{name} is {said!r}, the playbook says {wanted!r}"
        remedy = own_term(request, name)
        found.append(major("orders_differ_from_playbook", message, name, remedy=remedy))
    return tuple(found)


def plan_outgrows_playbook(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """A horizon or an activation window longer than the playbook's, or none where the playbook waits."""
    found = []
    window = request.playbook.activation_window_bars
    if request.proposal.activation_window_bars == 0 < window:
        message = f"the setup orders at its close, the playbook waits {window} bars for an activation"
        remedy = Remedy(field="activation_window_bars", op="equals", value=window)
        found.append(major("orders_differ_from_playbook", message, "activation_window_bars", remedy=remedy))
    for field in ("horizon_bars", "activation_window_bars"):
        asked, bound = getattr(request.proposal, field), getattr(request.playbook, field)
        if asked > bound:
            remedy = Remedy(field=field, op="at_most", value=bound)
            code = f"{field.removesuffix('_bars')}_exceeds_playbook"
            found.append(major(code, f"{field} is {asked}, the playbook's is {bound}", remedy=remedy))
    return tuple(found)


def text_contradicts_direction(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """A text that orders to trade the other way; or its author says that it argues otherwise."""
    proposal = request.proposal
    direction, argues_for = proposal.direction, proposal.argues_for
    found = []
    for field in ("thesis", "rationale"):
        if against := orders_against(getattr(proposal, field), direction):
            quoted = ", ".join(repr(words) for words in against)
            message = f"the {field} of a {direction} plan says outright: {quoted}"
            found.append(major("text_contradicts_direction", message, field))
    if argues_for not in (None, direction):
        message = f"its author says that the text argues for {argues_for!r}; the plan is {direction!r}"
        found.append(major("text_contradicts_direction", message, "argues_for"))
    return tuple(found)


def rationale_misses_playbook(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
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
        return (major("rationale_misses_playbook", message, "because"),)
    return tuple(
        major("reason_not_so", _why_not(place, reason, proposal.direction), f"because[{place}]")
        for place, reason, reason_holds in judged
        if not reason_holds
    )


def _why_not(place: int, reason: PlanReason, direction: str) -> str:
    named = f"reason {place} names the {reason.kind} {reason.name!r}"
    if reason.kind == "rule":
        return f"{named}, which is not true at this close"
    return f"{named}, and no {direction} rule of the plan that uses it may be true at this close"


def playbook_is_not_eligible(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """A regime or a timeframe in which the playbook may not be proposed; no regime, where it asks for one."""
    playbook, snapshot = request.playbook, request.snapshot
    if playbook.timeframes and snapshot.timeframe not in playbook.timeframes:
        message = f"playbook {playbook.id!r} is for {list(playbook.timeframes)}, not {snapshot.timeframe!r}"
        return (major("timeframe_not_eligible", message),)
    labels = snapshot.labels
    if not playbook.eligibility[request.proposal.direction].allows(labels):
        if labels is None:
            return (major("regime_unknown", "the snapshot has no regime, so eligibility cannot be shown"),)
        message = (
            f"playbook {playbook.id!r} {request.proposal.direction} is not eligible in "
            f"{labels.trend}/{labels.volatility}/{labels.structure}"
        )
        return (major("playbook_not_eligible", message),)
    return ()


def lint_findings(lint: Sequence[LintFinding]) -> tuple[Finding, ...]:
    """What the rule linter saw, with its own codes.

    Raises:
        KeyError: the linter has a code that nobody here has weighed.
    """
    return tuple(
        Finding(
            check=CheckName.COHERENCE,
            code=seen.code,
            severity=LINT_SEVERITY[seen.code],
            message=f"{seen.role}: {seen.message}",
            evidence=(seen.role,),
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
def _constant(text: str) -> str | None:
    can_be = possible_of(parse(text).text)
    if not can_be.true:
        return "unreachable"
    return None if can_be.false else "tautology"


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
        text, template = rule_text(proposal, role), getattr(templates, role)
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
