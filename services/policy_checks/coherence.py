"""Does the plan hang together? Text against direction, rules against playbook, levels against each other.

Every finding here is major at most: an incoherent plan may be resubmitted, a broken guardrail may not.
Each critic is one question; levels are read once and shared.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from schemas.reflection import Finding, PolicyLevelReflectionRequest, Remedy
from schemas.vocabulary import CheckName, Severity
from services.playbooks.rendering import KIND_OF_ROLE
from services.policy_checks.direction_words import read_direction, terms_stated
from services.policy_checks.plan_levels import PlanLevels, read_invalidation, rule_text
from services.policy_checks.playbook_rules import differences
from trading_core.rules import LintFinding, parse
from trading_core.rules.bounds import possible

BASIS_POINTS = 10_000
LINT_SEVERITY = {
    "unknown_feature": Severity.MAJOR,
    "tautology": Severity.MAJOR,
    "unreachable": Severity.MAJOR,
    "never_fired": Severity.MINOR,
}
BEFORE_TARGET = {"scale_out_r": "scale_out_beyond_target", "break_even_r": "break_even_beyond_target"}

LevelCritic = Callable[[PolicyLevelReflectionRequest, PlanLevels], tuple[Finding, ...]]


def check_coherence(
    request: PolicyLevelReflectionRequest, levels: PlanLevels, lint: Sequence[LintFinding] = ()
) -> tuple[Finding, ...]:
    """Every incoherence of the plan, in a fixed order; `lint` holds what the linter saw on past bars."""
    found = tuple(finding for critic in COHERENCE_CRITICS for finding in critic(request, levels))
    known = {(finding.code, finding.evidence) for finding in found}
    return found + tuple(seen for seen in lint_findings(lint) if (seen.code, seen.evidence) not in known)


def rule_is_invalid(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """Rules that do not parse, or yield the wrong kind of value."""
    return tuple(_major("rule_invalid", reason, role) for role, reason in levels.broken.items())


def rule_is_constant(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """Conditions that no market can make true, or none can make false; no bars are needed to see it."""
    found = []
    for role, kind in KIND_OF_ROLE.items():
        text = rule_text(request.proposal, role)
        if kind == "boolean" and text is not None and role not in levels.broken and (code := _constant(text)):
            always = "can never be true" if code == "unreachable" else "is true whatever the market does"
            found.append(_major(code, f"{role}: {text!r} {always}", role))
    return tuple(found)


def rules_differ_from_playbook(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """Rules that the playbook does not have, whatever value its parameters take on their grids."""
    lines = differences(request.proposal, request.playbook, frozenset(levels.broken))
    return tuple(_major("rules_differ_from_playbook", line) for line in lines)


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
        remedy = None if wanted is None else Remedy(field=name, op="equals", value=wanted)
        message = f"{name} is {said!r}, the playbook says {wanted!r}"
        found.append(_major("orders_differ_from_playbook", message, name, remedy=remedy))
    return tuple(found)


def plan_outgrows_playbook(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """A horizon or an activation window longer than the playbook's."""
    found = []
    for field in ("horizon_bars", "activation_window_bars"):
        asked, bound = getattr(request.proposal, field), getattr(request.playbook, field)
        if asked > bound:
            remedy = Remedy(field=field, op="at_most", value=bound)
            code = f"{field.removesuffix('_bars')}_exceeds_playbook"
            found.append(_major(code, f"{field} is {asked}, the playbook's is {bound}", remedy=remedy))
    return tuple(found)


def text_contradicts_direction(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """A thesis or a rationale that argues more against the direction than for it."""
    direction, terms = request.proposal.direction, request.playbook.rationale_terms
    own = terms.get(direction, ())
    other = tuple(term for side, words in sorted(terms.items()) if side != direction for term in words)
    found = []
    for field in ("thesis", "rationale"):
        reading = read_direction(getattr(request.proposal, field), direction, own, other)
        if reading.contradicts:
            message = f"the {field} of a {direction} plan argues against it: {', '.join(reading.opposing)}"
            found.append(_major("text_contradicts_direction", message, field))
    return tuple(found)


def rationale_misses_playbook(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """A text that names none of the playbook's own terms for the direction: it argues for something else."""
    proposal = request.proposal
    terms = request.playbook.rationale_terms.get(proposal.direction, ())
    if not terms or terms_stated(f"{proposal.thesis}\n{proposal.rationale}", terms):
        return ()
    message = f"neither thesis nor rationale says any of {list(terms)} for playbook {request.playbook.id!r}"
    return (_major("rationale_misses_playbook", message),)


def playbook_is_not_eligible(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """A regime or a timeframe in which the playbook may not be proposed, or no regime at all."""
    playbook, snapshot = request.playbook, request.snapshot
    if playbook.timeframes and snapshot.timeframe not in playbook.timeframes:
        message = f"playbook {playbook.id!r} is for {list(playbook.timeframes)}, not {snapshot.timeframe!r}"
        return (_major("timeframe_not_eligible", message),)
    if snapshot.regime is None:
        return (_major("regime_unknown", "the snapshot has no regime, so eligibility cannot be shown"),)
    labels = snapshot.regime.labels
    if not playbook.eligibility[request.proposal.direction].allows(labels):
        message = (
            f"playbook {playbook.id!r} {request.proposal.direction} is not eligible in "
            f"{labels.trend}/{labels.volatility}/{labels.structure}"
        )
        return (_major("playbook_not_eligible", message),)
    return ()


def level_is_unknown(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """An entry, stop or target whose features the snapshot does not know."""
    return tuple(
        _unknown(role, getattr(request.proposal, role))
        for role in ("entry", "stop", "target")
        if getattr(levels, role) is None and role not in levels.broken
    )


def level_is_on_wrong_side(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """A stop not on the losing side of the entry, a target not on the winning side, a price below zero.

    Where the entry is a market order, it lies at the close.
    """
    if levels.entry is None:
        return ()
    sign = 1.0 if request.proposal.direction == "long" else -1.0
    direction, entry = request.proposal.direction, levels.entry
    name = "close" if request.proposal.entry is None else "entry"
    found = []
    for role, level, side in (("stop", levels.stop, -sign), ("target", levels.target, sign)):
        if level is None:
            continue
        if side * (level - entry) <= 0:
            where = "above" if side > 0 else "below"
            message = f"the {role} {level!r} of a {direction} plan must lie {where} the {name} {entry!r}"
            found.append(_major(f"{role}_on_wrong_side", message, role))
        elif level <= 0:
            found.append(_major("level_not_a_price", f"the {role} {level!r} is no price", role))
    return tuple(found)


def entry_is_on_wrong_side(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """A limit entry that the market has passed, or a stop entry that it has; a price below zero."""
    proposal, entry, close = request.proposal, levels.entry, levels.close
    if entry is None or proposal.entry_kind == "market":
        return ()
    if entry <= 0:
        return (_major("level_not_a_price", f"the entry {entry!r} is no price", "entry"),)
    beyond = (entry - close) * (1.0 if proposal.direction == "long" else -1.0)
    if beyond > 0 if proposal.entry_kind == "stop" else beyond <= 0:
        return ()
    higher = (proposal.entry_kind == "stop") == (proposal.direction == "long")
    where = "above" if higher else "below"
    message = (
        f"the {proposal.entry_kind} entry {entry!r} of a {proposal.direction} plan must lie {where} "
        f"the close {close!r}"
    )
    return (_major("entry_on_wrong_side", message, "entry"),)


def management_is_out_of_reach(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """A scale-out or a break-even at or beyond the target, where the position is closed already."""
    if levels.risk is None or levels.reward is None or _sides_are_wrong(request, levels):
        return ()
    reach = levels.reward / levels.risk
    found = []
    for name, code in BEFORE_TARGET.items():
        advance = getattr(request.proposal, name)
        if advance is not None and advance >= reach:
            message = f"{name} is {advance!r}, but the target is {reach:.3f}R away"
            found.append(_major(code, message, name))
    return tuple(found)


def invalidation_is_misplaced(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """An invalidation that is unknown, true already, or fires with the plan, after the stop, or never."""
    reach = read_invalidation(request, levels)
    if reach is None:
        return ()
    text = request.proposal.invalidation
    if reach.now is None:
        return (_unknown("invalidation", text),)
    if reach.now:
        return (_major("invalidation_already_true", f"the invalidation {text!r} is true at this close"),)
    if reach.before_stop or _sides_are_wrong(request, levels):
        return ()
    if reach.with_plan:
        message = (
            f"the invalidation {text!r} fires as price moves in the plan's direction, and never against it"
        )
        return (_major("invalidation_contradicts_direction", message),)
    if reach.beyond_stop:
        message = f"the stop is always hit before the invalidation {text!r}"
        return (_major("invalidation_beyond_stop", message),)
    if reach.price_alone:
        return (_major("invalidation_never_fires", f"no price makes the invalidation {text!r} true"),)
    return ()


def reward_is_too_small(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """Reward to risk after the costs of both sides, below the minimum.

    The reward is what reaching every level pays: a share that is scaled out earns only its own level.
    """
    if (
        levels.entry is None
        or levels.risk is None
        or levels.reward is None
        or _sides_are_wrong(request, levels)
    ):
        return ()
    costs = 2 * levels.entry * request.invariants.cost_bps_per_side / BASIS_POINTS
    reward, minimum = _earned(request, levels.risk, levels.reward), request.invariants.min_reward_to_risk
    ratio = (reward - costs) / (levels.risk + costs)
    if ratio >= minimum:
        return ()
    message = f"reward to risk after costs is {ratio:.3f}, the minimum is {minimum!r}"
    remedy = Remedy(field="reward_to_risk", op="at_least", value=minimum)
    return (_major("reward_to_risk_too_low", message, remedy=remedy),)


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
    reward_is_too_small,
)


@lru_cache(maxsize=1024)
def _constant(text: str) -> str | None:
    can_be = possible(parse(text).tree)
    if not can_be.true:
        return "unreachable"
    return None if can_be.false else "tautology"


def _earned(request: PolicyLevelReflectionRequest, risk: float, reward: float) -> float:
    at, share = request.proposal.scale_out_r, request.proposal.scale_out_share
    if at is None or share is None:
        return reward
    return share * min(at * risk, reward) + (1.0 - share) * reward


def _sides_are_wrong(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> bool:
    return bool(level_is_on_wrong_side(request, levels))


def _unknown(role: str, text: str) -> Finding:
    return _major("level_unknown", f"the {role} {text!r} is unknown on this snapshot", role)


def _major(code: str, message: str, *evidence: str, remedy: Remedy | None = None) -> Finding:
    return Finding(
        check=CheckName.COHERENCE,
        code=code,
        severity=Severity.MAJOR,
        message=message,
        evidence=evidence,
        remedy=remedy,
    )
