"""What the checks share: running critics in order, and turning findings into a status and readable lists."""

from collections.abc import Callable, Iterable, Sequence

from schemas.reflection import Finding, PolicyLevelReflectionRequest, Remedy
from schemas.vocabulary import CheckName, ReflectionStatus, Severity

Critic = Callable[[PolicyLevelReflectionRequest], Finding | None]

OP_WORDS = {"at_most": "at most", "at_least": "at least", "equals": "exactly"}


def run_critics(critics: Sequence[Critic], request: PolicyLevelReflectionRequest) -> tuple[Finding, ...]:
    """Findings of the critics that had something to say, in the order of the critics."""
    return tuple(found for critic in critics if (found := critic(request)) is not None)


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
