"""Do the cases most like this one contradict the plan?

The retrieved bundle is balanced by quota, so its raw share of losers says nothing. Sorted by distance,
the union of its buckets is complete up to the farthest case of the nearest full bucket, and to just before
the first case that was left out because its day had its share; within that radius the share is that of the
whole population, and one bad day gives no more than half a quota of losers to it. It counts only together
with a base rate that is adverse too, measured against the hit rate the playbook expects: a playbook that
wins one trade in three is not contradicted by two losers in three.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, log

from schemas.reflection import Finding, MemoryCase, MemorySummary, PolicyLevelReflectionRequest
from schemas.settings import ReflectionSettings
from schemas.vocabulary import CheckName, Severity
from services.policy_checks.findings import finding

info = partial(finding, CheckName.MEMORY, Severity.INFO)
MATERIAL_SHARE = 0.10  # losers above what the playbook expects, in share
CHANCE = 0.01  # how rarely as many losers may come by chance alone
FARTHEST_LIKE = 0.5  # two random fingerprints lie 0.9 apart on average; farther than this is another setting
SMALLEST_NEIGHBOURHOOD = 3
RECURRENCE = 2


@dataclass(frozen=True)
class Neighbourhood:
    """Every winner and loser within the radius up to which retrieval is complete, nearest first."""

    cases: tuple[MemoryCase, ...]
    losers: frozenset[str]

    @property
    def loss_share(self) -> float:
        """Share of losers, 0 when empty."""
        return sum(case.episode_id in self.losers for case in self.cases) / max(1, len(self.cases))

    @property
    def mean_r(self) -> float:
        """Mean R of the cases, 0 when empty."""
        return sum(case.r for case in self.cases) / max(1, len(self.cases))


def check_memory(
    request: PolicyLevelReflectionRequest, memory: MemorySummary | None, settings: ReflectionSettings
) -> tuple[Finding, ...]:
    """Findings over one retrieved summary; None means that nothing was retrieved."""
    if memory is None:
        return (info("memory_insufficient", "nothing was retrieved for this plan"),)
    late = memory_is_from_the_future(request, memory)
    if late:
        return late
    unread = memory_is_degraded(memory)
    if unread:
        return unread
    short = memory_is_insufficient(memory, settings.minimum_cases)
    if short:
        return short
    return memory_contradicts(request, memory, settings) + failure_pattern_recurs(memory)


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


def memory_is_insufficient(memory: MemorySummary, minimum_cases: int) -> tuple[Finding, ...]:
    """Fewer resolved winners and losers than a contradiction needs."""
    resolved = memory.base_rates.winners + memory.base_rates.losers
    if resolved >= minimum_cases:
        return ()
    message = f"{resolved} winners and losers are known, {minimum_cases} are needed"
    return (info("memory_insufficient", message, *memory.insufficient),)


def memory_contradicts(
    request: PolicyLevelReflectionRequest, memory: MemorySummary, settings: ReflectionSettings
) -> tuple[Finding, ...]:
    """Near cases that lost, in a population that loses more than the playbook expects."""
    near, rates = neighbourhood(memory), memory.base_rates
    resolved, expected = rates.winners + rates.losers, 1.0 - request.playbook.expectation.hit_rate
    adverse = min(1.0, expected + MATERIAL_SHARE)
    base_share = rates.losers / resolved
    if (
        len(near.cases) < SMALLEST_NEIGHBOURHOOD
        or near.loss_share < max(settings.contradiction_share, adverse)
        or near.mean_r >= 0
        or base_share < adverse
        or not is_beyond_chance(base_share, resolved, expected)
    ):
        return ()
    message = (
        f"{near.loss_share:.2f} of the {len(near.cases)} nearest cases lost ({near.mean_r:+.2f}R on average) "
        f"and {base_share:.2f} of all {resolved}; the playbook expects {expected:.2f}"
    )
    ids = tuple(case.episode_id for case in near.cases)
    return (finding(CheckName.MEMORY, Severity.MAJOR, "memory_contradicts", message, *ids),)


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


def neighbourhood(memory: MemorySummary) -> Neighbourhood:
    """The cases that are alike, within the radius up to which both buckets hold everything there is."""
    buckets = ((memory.winners, memory.base_rates.winners), (memory.losers, memory.base_rates.losers))
    cut = [max(case.distance for case in cases) for cases, total in buckets if cases and len(cases) < total]
    radius = min([*cut, FARTHEST_LIKE])
    missing_from = inf if memory.passed_over_at is None else memory.passed_over_at
    cases = [case for cases, _ in buckets for case in cases]
    near = [case for case in cases if case.distance <= radius and case.distance < missing_from]
    near.sort(key=lambda case: (case.distance, case.episode_id))
    return Neighbourhood(tuple(near), frozenset(case.episode_id for case in memory.losers))


def is_beyond_chance(share: float, n: int, expected: float) -> bool:
    """Whether a share above `expected` in n cases is too high for chance.

    Chernoff's bound on the binomial tail, exp(-n KL(share || expected)): closed, conservative, and exact when
    all lost. Without it six losers in a row would silence a playbook for good, because a plan that is never
    traded never earns another case.
    """
    if not 0.0 < expected < 1.0 or share <= expected:
        return False
    divergence = sum(p * log(p / q) for p, q in ((share, expected), (1.0 - share, 1.0 - expected)) if p > 0)
    return n * divergence >= -log(CHANCE)


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
