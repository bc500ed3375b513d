"""Do entry, stop, target and invalidation fit each other? Sides, order, reach, and reward for the risk.

Levels are read once (`plan_levels`) and shared.
"""

from collections.abc import Callable

from schemas.reflection import Finding, PolicyLevelReflectionRequest, Remedy
from services.policy_checks.findings import (
    Findings,
    has_far_target,
    major,
    own_entry,
    own_rule_that,
    own_term,
)
from services.policy_checks.plan_levels import (
    PlanLevels,
    always_misplaced,
    can_arm,
    read_invalidation,
    read_levels,
)
from trading_core.rules.grammar import parse

BASIS_POINTS = 10_000
BEFORE_TARGET = {"scale_out_r": "scale_out_beyond_target", "break_even_r": "break_even_beyond_target"}

SIDED = ("stop", "target")  # of the entry, see `entry_is_on_wrong_side` for that itself

LevelCritic = Callable[[PolicyLevelReflectionRequest, PlanLevels], Findings]


def level_is_unknown(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """An entry, stop or target whose features the snapshot does not know.

    A playbook's own that reads bars before is judged by the engine, at the close that orders.
    """
    for role in ("entry", "stop", "target"):
        if getattr(levels, role) is not None or role in levels.broken:
            continue
        if role in levels.differs or not parse(getattr(request.proposal, role)).tree.shift:
            yield _unknown(request, role)


def level_is_on_wrong_side(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """A stop not on the losing side of the entry, a target not on the winning side, a price below zero.

    Where the entry is a market order, it lies at the close. Of a plan whose setup is not true yet, levels
    are judged that lie wrong at every close; the engine judges them at the one that orders.
    """
    for code, role, message in _misplaced_levels(request, levels):
        yield major(code, message, role, remedy=_side_remedy(request, code, role))


def entry_is_on_wrong_side(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """A limit entry that the market has passed, or a stop entry that it has; a price below zero."""
    proposal, entry, close = request.proposal, levels.entry, levels.close
    if levels.waits or entry is None or proposal.entry_kind == "market":
        return
    if entry <= 0:
        message = f"the entry {entry!r} is no price"
        yield major("level_not_a_price", message, "entry", remedy=own_entry(request))
        return
    beyond = (entry - close) * (1.0 if proposal.direction == "long" else -1.0)
    if beyond >= 0 if proposal.entry_kind == "stop" else beyond <= 0:
        return
    higher = (proposal.entry_kind == "stop") == (proposal.direction == "long")
    where = "above" if higher else "below"
    message = (
        f"the {proposal.entry_kind} entry {entry!r} of a {proposal.direction} plan must lie {where} "
        f"the close {close!r}"
    )
    yield major("entry_on_wrong_side", message, "entry", remedy=own_entry(request))


def management_is_out_of_reach(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """A scale-out or a break-even at or beyond the target, where the position is closed already."""
    reach = _reach(request, levels)
    if reach is None:
        return
    scaled = request.proposal.scale_outs[-1:]
    farthest = {
        "scale_out_r": scaled[0][0] if scaled else None,
        "break_even_r": request.proposal.break_even_r,
    }
    for name, advance in farthest.items():
        if advance is not None and advance >= reach:
            message = f"{name} is {advance!r}, but the target is {reach:.3f}R away"
            yield major(BEFORE_TARGET[name], message, name, remedy=own_term(request, name))


def invalidation_is_misplaced(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """An invalidation that is unknown, true already, or fires with the plan, after the stop, or never."""
    found = _misplaced_invalidation(request, levels)
    if found is None:
        return
    code, message = found
    evidence = ("invalidation",) if code == "level_unknown" else ()

    def is_settled(other: PolicyLevelReflectionRequest) -> bool:
        return _misplaced_invalidation(other, read_levels(other)) is None

    remedy = own_rule_that(request, ("invalidation", "stop"), is_settled)
    yield major(code, message, *evidence, remedy=remedy)


def reward_to_risk_too_low(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> Findings:
    """Reward to risk after the costs of both sides, below the minimum.

    The reward is what reaching every level pays: a share that is scaled out earns only its own level.
    """
    found, minimum = _reward_to_risk(request, levels), request.invariants.min_reward_to_risk
    if found is not None and found < minimum:
        message = f"reward to risk after costs is {found:.3f}, the minimum is {minimum!r}"
        remedy = Remedy(field="reward_to_risk", op="at_least", value=minimum)
        yield major("reward_to_risk_too_low", message, remedy=remedy)


def _reach(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> float | None:
    """Reward over risk at this close; of levels that lie ahead what it is at every close."""
    if levels.lie_ahead("entry", "stop", "target", *BEFORE_TARGET):
        return levels.reach
    if levels.risk is None or levels.reward is None or _misplaced_now(request, levels):
        return None
    return levels.reward / levels.risk


def _reward_to_risk(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> float | None:
    """After costs at this close; of levels that lie ahead what it is at every close, before costs."""
    if levels.lie_ahead("entry", "stop", "target", "scale_out_r", "scale_out_share"):
        return levels.reach and _reward_after_scaling(request, 1.0, levels.reach)
    if (
        levels.entry is None
        or levels.risk is None
        or levels.reward is None
        or _misplaced_now(request, levels)
    ):
        return None
    costs = 2 * levels.entry * request.invariants.cost_bps_per_side / BASIS_POINTS
    reward = _reward_after_scaling(request, levels.risk, levels.reward)
    return (reward - costs) / (levels.risk + costs)


def _reward_after_scaling(request: PolicyLevelReflectionRequest, risk: float, reward: float) -> float:
    scaled, rest = 0.0, 1.0
    for at, share in request.proposal.scale_outs:
        scaled, rest = scaled + share * min(at * risk, reward), rest - share
    return scaled + rest * reward


def _misplaced_levels(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> list[tuple[str, str, str]]:
    """(code, role, message) of a stop and a target that lie on the wrong side, or below zero."""
    proposal = request.proposal
    if levels.waits and "entry" not in levels.broken:
        found = always_misplaced(proposal, proposal.direction, proposal.entry_kind, levels.broken)
        return [(code, role, f"the {role} {words}") for code, role, words in found if role in SIDED]
    return [] if levels.waits else _misplaced_now(request, levels)


def _misplaced_now(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> list[tuple[str, str, str]]:
    """As `_misplaced_levels`, of the levels at this close."""
    if levels.entry is None:
        return []
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
            found.append((f"{role}_on_wrong_side", role, message))
        elif level <= 0:
            found.append(("level_not_a_price", role, f"the {role} {level!r} is no price"))
    return found


def _side_remedy(request: PolicyLevelReflectionRequest, code: str, role: str) -> Remedy | None:
    """The playbook's own level; where that lies wrong too, it is the entry that is out of place."""

    def is_settled(other: PolicyLevelReflectionRequest) -> bool:
        return all(
            (code, role) != misplaced_level[:2]
            for misplaced_level in _misplaced_levels(other, read_levels(other))
        )

    return own_rule_that(request, (role,), is_settled) or own_entry(request)


def _misplaced_invalidation(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[str, str] | None:
    """Code and message of an invalidation that is unknown, true already, out of reach, or never fires."""
    text = request.proposal.invalidation
    readable = text is not None and levels.broken.keys().isdisjoint(("setup", "invalidation"))
    if levels.waits and readable and not can_arm(request.proposal.setup, str(text)):
        return "invalidation_already_true", f"the invalidation {text!r} is true whenever the setup is"
    reach = None if levels.lie_ahead("invalidation", "stop") else read_invalidation(request, levels)
    if reach is None:
        return None
    if reach.now is None and "invalidation" not in levels.differs and parse(str(text)).tree.shift:
        return None
    if reach.now is None:
        return "level_unknown", f"the invalidation {text!r} is unknown on this snapshot"
    if reach.now:
        found = "invalidation_already_true", f"the invalidation {text!r} is true at this close"
        return None if levels.waits else found
    if reach.before_stop or has_far_target(request) or _misplaced_now(request, levels):
        return None  # the only way out beside the stop may lie on either side
    if reach.with_plan:
        message = (
            f"the invalidation {text!r} fires as price moves in the plan's direction, and never against it"
        )
        return "invalidation_contradicts_direction", message
    if reach.beyond_stop:
        return "invalidation_beyond_stop", f"the stop is always hit before the invalidation {text!r}"
    if reach.price_alone:
        return "invalidation_never_fires", f"no price makes the invalidation {text!r} true"
    return None


def _unknown(request: PolicyLevelReflectionRequest, role: str) -> Finding:
    def is_settled(other: PolicyLevelReflectionRequest) -> bool:
        return getattr(read_levels(other), role) is not None

    text = getattr(request.proposal, role)
    message = f"the {role} {text!r} is unknown on this snapshot"
    if unread := sorted(parse(text).features - {"close", *request.snapshot.features}):
        message += f", which has no {', '.join(unread)}: name it in `reads` of the strategist"
    return major("level_unknown", message, role, remedy=own_rule_that(request, (role,), is_settled))
