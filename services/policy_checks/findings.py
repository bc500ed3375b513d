"""What the checks share: running critics in order, and turning findings into a status and readable lists.

What would satisfy a finding about a rule or a term: the playbook's own one, where it is another one.

A plan that already says what its playbook says gets no remedy, because the same again would be found again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from schemas.errors import RuleError, ThinktwiceError
from schemas.reflection import Finding, PolicyLevelReflectionRequest, Remedy
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.playbooks.rendering import render_rules
from trading_core.rules.grammar import parse

R = TypeVar("R")
Findings = Iterator[Finding]

OP_WORDS = {"at_most": "at most", "at_least": "at least", "equals": "exactly"}


def finding(
    check: CheckName,
    severity: Severity,
    code: str,
    message: str,
    *evidence: str,
    remedy: Remedy | None = None,
) -> Finding:
    """A finding of a check; `remedy` is what would satisfy it."""
    return Finding.trust(
        check=check, code=code, severity=severity, message=message, evidence=evidence, remedy=remedy
    )


blocker = partial(finding, CheckName.INVARIANT, Severity.BLOCKER)
major = partial(finding, CheckName.COHERENCE, Severity.MAJOR)
# Of a plan that can be held to nothing, so that no check runs on it.
unusable = partial(finding, CheckName.INVARIANT, Severity.MAJOR, "plan_unusable")


def run_critics(critics: Sequence[Callable[[R], Findings]], request: R) -> tuple[Finding, ...]:
    """What the critics find, in their order."""
    return tuple(found for critic in critics for found in critic(request))


def own_findings(critics: Sequence[Callable[[R], Any]], request: R) -> tuple[Finding, ...]:
    """What critics of the caller's own found, in their order, each finding marked as theirs.

    Raises:
        TypeError: one gave something else than findings.
        RuntimeError: one raised; names it.
    """
    found: list[Finding] = []
    for critic in critics:
        for finding in _ask_critic(critic, request):
            if not isinstance(finding, Finding):
                raise TypeError(f"critic {critic!r} gave {finding!r}: it returns findings, or None")
            found.append(finding.model_copy(update={"check": CheckName.OWN}))
    return tuple(found)


def _ask_critic(critic: Callable[[R], Any], request: R) -> tuple[Any, ...]:
    try:
        given: Any = critic(request)
        if given is None:
            return ()
        alone = isinstance(given, Finding) or not isinstance(given, Iterable)
        return (given,) if alone else tuple(given)
    except ThinktwiceError:
        raise
    except Exception as error:
        raise RuntimeError(f"critic {critic!r} raised {type(error).__name__}: {error}") from error


def status_of(findings: Iterable[Finding]) -> ReflectionStatus:
    """Any blocker blocks, any major finding asks for a revision, anything less passes."""
    severities = {found.severity for found in findings}
    if Severity.BLOCKER in severities:
        return ReflectionStatus.BLOCK
    return ReflectionStatus.REVISE if Severity.MAJOR in severities else ReflectionStatus.PASS


def readable(findings: Iterable[Finding], check: CheckName) -> tuple[str, ...]:
    """`code: message` of one check's findings, in order."""
    return tuple(f"{found.code}: {found.message}" for found in findings if found.check is check)


def requested_revisions(findings: Iterable[Finding]) -> tuple[str, ...]:
    """One line for each finding that keeps the plan from passing, with the value that would satisfy it."""
    return tuple(
        f"{found.code}: {_wish(found.remedy) if found.remedy else found.message}"
        for found in findings
        if found.severity in (Severity.MAJOR, Severity.BLOCKER)
    )


def _wish(remedy: Remedy) -> str:
    return f"set {remedy.field} to {OP_WORDS[remedy.op]} {remedy.value!r}"


def has_far_target(request: PolicyLevelReflectionRequest) -> bool:
    """Whether the plan's playbook has no target of its own, so that nothing about it can be wrong."""
    rules = request.playbook.rules.get(request.proposal.direction)
    return rules is not None and rules.has_far_target


def is_far_target(request: PolicyLevelReflectionRequest) -> bool:
    """Whether the plan's target is the one that stands for none: what is wrong with it is so of its stop."""
    proposal = request.proposal
    return has_far_target(request) and proposal.target == request.playbook.rules[proposal.direction].target


def own_rule(request: PolicyLevelReflectionRequest, role: str) -> Remedy | None:
    """Set the rule of a role to the playbook's; None where it has none, or the plan says it already."""
    proposal, playbook = request.proposal, request.playbook
    if proposal.direction not in playbook.rules:
        return None
    wanted = getattr(render_rules(playbook, proposal.direction), role)
    if wanted is None or _says_the_same(getattr(proposal, role), wanted):
        return None
    return Remedy(field=role, op="equals", value=wanted)


def own_rule_that(
    request: PolicyLevelReflectionRequest,
    roles: tuple[str, ...],
    satisfies: Callable[[PolicyLevelReflectionRequest], bool],
) -> Remedy | None:
    """The first role whose own rule satisfies on this snapshot, tried with the rest of the plan as it is."""
    for role in roles:
        remedy = own_rule(request, role)
        if remedy is None:
            continue
        proposal = request.proposal.model_copy(update={role: remedy.value})
        if satisfies(request.model_copy(update={"proposal": proposal})):
            return remedy
    return None


def own_term(request: PolicyLevelReflectionRequest, name: str) -> Remedy | None:
    """Set a term of the orders to the playbook's; None where it has none or several, or the plan says it."""
    wanted = request.playbook.terms()[name]
    if wanted is None or isinstance(wanted, tuple) or wanted == getattr(request.proposal, name):
        return None
    return Remedy(field=name, op="equals", value=wanted)


def own_entry(request: PolicyLevelReflectionRequest) -> Remedy | None:
    """Enter where the playbook does: its kind of order first, then its price."""
    return own_term(request, "entry_kind") or own_rule(request, "entry")


def _says_the_same(text: str | None, wanted: str) -> bool:
    if text is None or text == wanted:
        return text == wanted
    try:
        return parse(text).text == parse(wanted).text
    except RuleError:
        return False
