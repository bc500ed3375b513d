"""Is it different here, and is it below zero here? What memory says of the place where a plan would trade.

The nearest cases are balanced by quota, so their share of losers says nothing; the estimates stand on every
case. One that answers both questions with yes asks for a revision, and never blocks.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from schemas.reflection import Finding, LocalEstimate, MemoryCase, MemorySummary, PolicyLevelReflectionRequest
from schemas.vocabulary import CheckName, Severity
from services.policy_checks.expectation import expectation_of
from services.policy_checks.findings import finding

info = partial(finding, CheckName.MEMORY, Severity.INFO)
RECURRENCE = 2
LOWERED = 0.5  # of the hit rate: the most conviction that a plan may have where memory contradicts it


def check_memory(request: PolicyLevelReflectionRequest, memory: MemorySummary | None) -> tuple[Finding, ...]:
    """Findings over one retrieved summary; None means that nothing was retrieved."""
    if memory is None:
        return (info("memory_insufficient", "nothing was retrieved for this plan"),)
    late = memory_is_from_the_future(request, memory)
    if late:
        return late
    unread = memory_is_degraded(memory)
    if unread:
        return unread
    return memory_speaks(request, memory) + failure_pattern_recurs(memory)


def memory_is_from_the_future(
    request: PolicyLevelReflectionRequest, memory: MemorySummary
) -> tuple[Finding, ...]:
    """Cases known only after the decision bar."""
    now = request.snapshot.known_at
    late = tuple(case.episode_id for case in _cases(memory) if case.known_at > now)
    if not late and memory.known_at <= now:
        return ()
    message = f"memory as of {memory.known_at} ns with {len(late)} case(s) later than the snapshot's {now} ns"
    return (finding(CheckName.MEMORY, Severity.BLOCKER, "memory_from_the_future", message, *late),)


def memory_is_degraded(memory: MemorySummary) -> tuple[Finding, ...]:
    """Base rates only, because the retrieval gave up: the plan was not compared with its like."""
    if memory.degraded is None:
        return ()
    known = memory.base_rates.population
    return (info("memory_degraded", f"{memory.degraded}: none of {known} known cases was compared"),)


def memory_speaks(request: PolicyLevelReflectionRequest, memory: MemorySummary) -> tuple[Finding, ...]:
    """The estimates as a note, or as a contradiction where one answers both questions with yes."""
    if not memory.estimates:
        return ()  # put together by hand, as for `check`: nothing was estimated
    if not any(estimate.n for estimate in memory.estimates):
        return (info("memory_insufficient", "no resolved trade is known that says what is earned here"),)
    shown = "; ".join(map(describe, memory.estimates))
    most = LOWERED * expectation_of(request).hit_rate
    if request.proposal.conviction <= most or not any(estimate.contradicts for estimate in memory.estimates):
        return (info("memory_estimate", shown),)
    message = f"{shown}: offer another playbook, or lower the conviction to {most:.3f} or less"
    ids = (case.episode_id for case in memory.losers)
    return (finding(CheckName.MEMORY, Severity.MAJOR, "memory_contradicts", message, *ids),)


def describe(estimate: LocalEstimate) -> str:
    """An estimate in words: mean, band, cases, both probabilities, and what it could not see yet."""
    whose = "own cases" if estimate.basis == "own" else "cases of all rules, as residuals"
    unseen = "" if estimate.unseen_r is None else f", unseen below {estimate.unseen_r:.2f}R"
    return (
        f"{estimate.mean_r:+.2f}R here ({estimate.lower_r:+.2f} to {estimate.upper_r:+.2f}) by {estimate.n} "
        f"{whose}, less than elsewhere {estimate.departs:.2f}, below zero {estimate.below_zero:.2f}{unseen}"
    )


def failure_pattern_recurs(memory: MemorySummary) -> tuple[Finding, ...]:
    """A failure mode that the nearest failures share; a hint that contradicts nothing by itself."""
    modes = Counter(case.failure_mode for case in memory.failures if case.failure_mode is not None)
    return tuple(
        finding(
            CheckName.MEMORY,
            Severity.MINOR,
            "failure_pattern_recurs",
            f"{count} of the nearest failures are {mode}",
            *(case.episode_id for case in memory.failures if case.failure_mode == mode),
        )
        for mode, count in sorted(modes.items())
        if count >= RECURRENCE
    )


def needs_for_the_slow_loop(
    findings: Sequence[Finding], request: PolicyLevelReflectionRequest
) -> tuple[str, ...]:
    """What a contradicted plan asks of the next high-level reflection; it may not analyse episodes here."""
    if not any(found.code == "memory_contradicts" for found in findings):
        return ()
    modes = [found.message for found in findings if found.code == "failure_pattern_recurs"]
    regime = request.snapshot.regime
    where = f" in {regime.labels.key}" if regime else ""
    return (
        f"memory contradicts {request.playbook.id} {request.proposal.direction}{where}"
        f"{': ' + '; '.join(modes) if modes else ''}; review its eligibility there",
    )


def _cases(memory: MemorySummary) -> tuple[MemoryCase, ...]:
    return memory.winners + memory.losers + memory.failures
