"""Do conviction, horizon, stop and target fit what trades of this playbook look like?

Expectations come with the snapshot, point in time; a request without one for this version is measured
against the playbook's own design. Each finding carries the value that would satisfy it, so a strategist
can tighten. What rests on a prior alone is a note: the snapshot says that no trade has shown it yet.
"""

from functools import partial
from math import ceil, floor

from schemas.reflection import Finding, PolicyLevelReflectionRequest, Remedy
from schemas.settings import ReflectionSettings
from schemas.snapshot import ExpectationSummary
from schemas.vocabulary import CheckName, Severity
from services.playbooks.expectations import expectation_in
from services.policy_checks.findings import finding, has_far_target
from services.policy_checks.plan_levels import PlanLevels

major = partial(finding, CheckName.EXPECTATION, Severity.MAJOR)
LEVELS = {"entry", "stop", "target"}
LONGEST_HORIZON_P90 = 2.0  # a horizon of more than two P90 holds waits for what has never come
FARTHEST_TARGET_MFE = 3.0  # a target of more than three median best excursions is out of reach


def check_expectation(
    request: PolicyLevelReflectionRequest, levels: PlanLevels, settings: ReflectionSettings
) -> tuple[Finding, ...]:
    """Every mismatch between the plan and its playbook's expectation, in a fixed order.

    A conviction is a claim of the plan's author, so it needs trades that show it and is never a note. Of a
    plan with its own rules the rest is one: nobody promised what its trades look like. So is what an
    unchanged base says where nobody wrote an expectation: its trades were made by that very rule.
    """
    expected = expectation_of(request)
    plan, playbook = request.proposal, request.playbook
    is_own = not playbook.content_hash
    is_note = is_own or (rests_on_prior(expected) and expected in request.snapshot.expectations)
    is_promised = playbook.expectation.source == "design"
    changed = {*levels.differs} | ({"horizon_bars"} if plan.horizon_bars != playbook.horizon_bars else set())
    sure = conviction_is_over_confident(request, expected, settings.conviction_tolerance)
    found = (
        (horizon_is_too_long(request, expected), {"horizon_bars"}),
        (horizon_is_too_short(request, expected), {"horizon_bars"}),
        (stop_is_inside_winners_mae(levels, expected), {"entry", "stop"}),
        (None if has_far_target(request) else target_is_beyond_mfe(levels, expected), LEVELS),
    )
    eased = (
        seen.model_copy(update={"severity": Severity.MINOR})
        if is_note or not (is_promised or changed & names)
        else seen
        for seen, names in found
        if seen is not None
    )
    return (*([] if sure is None else [sure]), *eased)


def rests_on_prior(expected: ExpectationSummary) -> bool:
    """Whether no trade says so: none is measured, or fewer than weigh as much as a prior nobody wrote."""
    prior = expected.prior
    if prior.source == "measured":
        return False
    return expected.n < (1 if prior.is_written else prior.weight_trades)


def expectation_of(request: PolicyLevelReflectionRequest) -> ExpectationSummary:
    """What the snapshot of a request says of its playbook; see `expectation_in`."""
    return expectation_in(request.snapshot, request.playbook)


def conviction_is_over_confident(
    request: PolicyLevelReflectionRequest, expected: ExpectationSummary, tolerance: float
) -> Finding | None:
    """Conviction above the hit rate by more than the tolerance."""
    conviction, limit = request.proposal.conviction, min(1.0, expected.hit_rate + tolerance)
    if conviction <= limit:
        return None
    message = (
        f"conviction {conviction!r} against a hit rate of {expected.hit_rate:.3f} over {expected.n} trades"
    )
    return major("over_confident", message, remedy=Remedy(field="conviction", op="at_most", value=limit))


def horizon_is_too_long(
    request: PolicyLevelReflectionRequest, expected: ExpectationSummary
) -> Finding | None:
    """A horizon far beyond the hold of nine trades in ten."""
    horizon, limit = (
        request.proposal.horizon_bars,
        max(1, floor(LONGEST_HORIZON_P90 * expected.hold_p90_bars)),
    )
    if horizon <= limit:
        return None
    message = f"a horizon of {horizon} bars against a P90 hold of {expected.hold_p90_bars:.1f}"
    return major("horizon_too_long", message, remedy=Remedy(field="horizon_bars", op="at_most", value=limit))


def horizon_is_too_short(
    request: PolicyLevelReflectionRequest, expected: ExpectationSummary
) -> Finding | None:
    """A horizon that ends before the median trade does."""
    horizon, limit = request.proposal.horizon_bars, ceil(expected.hold_p50_bars)
    if horizon >= limit:
        return None
    message = f"a horizon of {horizon} bars against a P50 hold of {expected.hold_p50_bars:.1f}"
    return major(
        "horizon_too_short", message, remedy=Remedy(field="horizon_bars", op="at_least", value=limit)
    )


def stop_is_inside_winners_mae(levels: PlanLevels, expected: ExpectationSummary) -> Finding | None:
    """A stop nearer than the excursion that one winner in five survived, measured in the playbook's own R."""
    if levels.risk is None or levels.playbook_risk is None:
        return None
    survived = -expected.winner_mae_p80_r * levels.playbook_risk
    if levels.risk > survived:
        return None
    message = f"the stop is {levels.risk:.6g} away, winners went {survived:.6g} against their entry (P80)"
    return major(
        "stop_inside_winner_mae", message, remedy=Remedy(field="stop_distance", op="at_least", value=survived)
    )


def target_is_beyond_mfe(levels: PlanLevels, expected: ExpectationSummary) -> Finding | None:
    """A target far beyond the median best excursion, measured in the playbook's own R."""
    if levels.lie_ahead("entry", "stop", "target"):
        return _reach_beyond_mfe(levels.reach, FARTHEST_TARGET_MFE * expected.mfe_p50_r)
    if levels.reward is None or levels.playbook_risk is None:
        return None
    reachable = FARTHEST_TARGET_MFE * expected.mfe_p50_r * levels.playbook_risk
    if levels.reward <= reachable:
        return None
    message = (
        f"the target is {levels.reward:.6g} away, "
        f"{FARTHEST_TARGET_MFE:g} median best excursions are {reachable:.6g}"
    )
    return major(
        "target_beyond_mfe", message, remedy=Remedy(field="target_distance", op="at_most", value=reachable)
    )


def _reach_beyond_mfe(reach: float | None, reachable: float) -> Finding | None:
    """Of levels that lie ahead: in R, which is the same at every close; the plan has nothing to change."""
    if reach is None or reach <= reachable:
        return None
    message = (
        f"the target is {reach:.2f}R away, {FARTHEST_TARGET_MFE:g} median best excursions are {reachable:.2f}"
    )
    return major("target_beyond_mfe", message)
