"""May a policy that is there be amended like this? Stop moves, keeps and stand-downs, by rules alone.

Invariants first; a broken one ends it. A stop may only move closer to the market, and not so close that costs
take it. A keep without a position needs everything that let the policy in. What an open position needs is its
exits: keeping them is always allowed, as is a stand-down, which lowers exposure; findings then say what is
odd. No model is asked: an amendment opens and loosens nothing, and the time budget belongs to proposals.
"""

from collections.abc import Callable

from schemas.reflection import Finding, PolicyAmendmentRequest, PolicyLevelReflectionRequest
from schemas.vocabulary import AmendmentKind, CheckName, Severity
from services.policy_checks.findings import Findings, blocker, finding, major, run_critics
from services.policy_checks.invariants import check_invariants, snapshot_is_stale

AmendmentCritic = Callable[[PolicyAmendmentRequest], Findings]
AMENDMENT_CHECKS = (CheckName.INVARIANT, CheckName.COHERENCE)
# Of the guardrails of an entry, those that say something about a policy whose position is open.
ABOUT_POSITIONS = frozenset({"kill_switch", "trading_halted", "playbook_disabled", "stale_snapshot"})


def check_amendment(request: PolicyAmendmentRequest) -> tuple[tuple[Finding, ...], tuple[CheckName, ...]]:
    """Findings on an amendment, and the checks that ran: nothing beyond the invariants once one is broken."""
    kind, held = request.amendment.kind, request.snapshot.position is not None
    broken = run_critics(INVARIANTS[kind], request)
    if kind is AmendmentKind.KEEP:
        broken += _guardrails(request)
    if kind is AmendmentKind.STAND_DOWN or (kind is AmendmentKind.KEEP and held):
        broken = tuple(found.model_copy(update={"severity": Severity.MINOR}) for found in broken)
    if any(found.severity is Severity.BLOCKER for found in broken):
        return broken, (CheckName.INVARIANT,)
    return broken + run_critics(COHERENCE[kind], request), AMENDMENT_CHECKS


def policy_is_another_one(request: PolicyAmendmentRequest) -> Findings:
    """An amendment of something else than the policy in force or of the open position."""
    named, managed = request.amendment.policy_id, request.snapshot.managed_policy_id
    known = None if request.policy is None else request.policy.policy_id
    if named is None or not named == managed == known:
        message = f"it names policy {named!r}, in force is {managed!r}, known {known!r}"
        yield blocker("policy_mismatch", message)


def symbol_is_another_one(request: PolicyAmendmentRequest) -> Findings:
    """An amendment for another symbol than the snapshot's."""
    named, seen = request.amendment.symbol, request.snapshot.symbol
    if named != seen:
        yield blocker("amendment_symbol_mismatch", f"it is about {named!r}, the snapshot about {seen!r}")


def position_is_missing(request: PolicyAmendmentRequest) -> Findings:
    """A stop move without a position."""
    if request.snapshot.position is None:
        yield blocker("no_position", "there is no position whose stop could be moved")


def stop_is_no_price(request: PolicyAmendmentRequest) -> Findings:
    """A level at which nothing can trade."""
    stop = request.amendment.stop
    if stop is None or stop <= 0:
        yield blocker("stop_not_a_price", f"the stop {stop!r} is no price")


def stop_loosens(request: PolicyAmendmentRequest) -> Findings:
    """A stop that does not move closer to the market than the present one."""
    position, stop = request.snapshot.position, request.amendment.stop
    if position is None or stop is None:
        return
    if (stop - position.stop) * _sign(position.direction) <= 0:
        side = position.direction
        yield blocker("stop_loosens", f"the stop {stop!r} of a {side} is not tighter than {position.stop!r}")


def stop_is_beyond_price(request: PolicyAmendmentRequest) -> Findings:
    """A stop at or beyond the close: it would be an exit, not a stop."""
    room = _room(request)
    if room is not None and room <= 0:
        close = request.snapshot.close
        yield major(
            "stop_beyond_price", f"the stop {request.amendment.stop!r} is not behind the close {close!r}"
        )


def stop_is_within_costs(request: PolicyAmendmentRequest) -> Findings:
    """A stop nearer to the close than the quoted spread and the cost of one side: noise would take it."""
    room, close = _room(request), request.snapshot.close
    least = (request.invariants.spread_bps + request.invariants.cost_bps_per_side) * 1e-4 * close
    if room is not None and 0 < room < least:
        yield major(
            "stop_within_costs",
            f"the stop {request.amendment.stop!r} is {room!r} from the close {close!r}, "
            f"spread and costs of one side are {least!r}",
        )


def reason_is_missing(request: PolicyAmendmentRequest) -> Findings:
    """No word on why: of a keep or a stand-down that is odd, and harmless."""
    if not request.amendment.reason.strip():
        harmless = request.amendment.kind is not AmendmentKind.TIGHTEN
        severity = Severity.MINOR if harmless else Severity.MAJOR
        yield finding(CheckName.COHERENCE, severity, "reason_missing", "it does not say why")


def playbook_is_replaced(request: PolicyAmendmentRequest) -> Findings:
    """A policy whose playbook version is not the active one any more."""
    policy, playbook = request.policy, request.playbook
    if policy is not None and (playbook is None or playbook.content_hash != policy.playbook_hash):
        version = "none" if playbook is None else str(playbook.version)
        own = f"version {policy.playbook_version} of {policy.playbook_id!r}"
        yield blocker("playbook_replaced", f"the policy is of {own}, active is {version}")


def eligibility_is_lost(request: PolicyAmendmentRequest) -> Findings:
    """A policy whose playbook the present regime does not allow in its direction."""
    policy, playbook, labels = request.policy, request.playbook, request.snapshot.labels
    if policy is None or playbook is None:
        return
    direction = policy.proposal.direction
    eligible = playbook.eligibility.get(direction)
    if eligible is None or not eligible.allows(labels):
        where = "an unknown regime" if labels is None else repr(labels.key)
        yield blocker("eligibility_lost", f"{playbook.id!r} is not eligible {direction} in {where}")


POLICY = (policy_is_another_one, symbol_is_another_one)
INVARIANTS: dict[AmendmentKind, tuple[AmendmentCritic, ...]] = {
    AmendmentKind.TIGHTEN: (
        position_is_missing,
        *POLICY,
        snapshot_is_stale,
        stop_is_no_price,
        stop_loosens,
    ),
    AmendmentKind.KEEP: (*POLICY, playbook_is_replaced, eligibility_is_lost),
    AmendmentKind.STAND_DOWN: POLICY,
}
COHERENCE: dict[AmendmentKind, tuple[AmendmentCritic, ...]] = {
    AmendmentKind.TIGHTEN: (stop_is_beyond_price, stop_is_within_costs, reason_is_missing),
    AmendmentKind.KEEP: (reason_is_missing,),
    AmendmentKind.STAND_DOWN: (reason_is_missing,),
}


def _guardrails(request: PolicyAmendmentRequest) -> tuple[Finding, ...]:
    """The invariants of a proposal on the present snapshot, for the proposal that the policy was."""
    if request.policy is None or request.playbook is None:
        return ()
    found = check_invariants(
        PolicyLevelReflectionRequest.trust(
            snapshot=request.snapshot,
            proposal=request.policy.proposal,
            playbook=request.playbook,
            state=request.snapshot.state,
            invariants=request.invariants,
        )
    )
    held = request.snapshot.position is not None
    return tuple(seen for seen in found if not held or seen.code in ABOUT_POSITIONS)


def _room(request: PolicyAmendmentRequest) -> float | None:
    """Distance from the new stop to the close, positive behind it; None without a position or a level."""
    position, stop = request.snapshot.position, request.amendment.stop
    if position is None or stop is None:
        return None
    return (request.snapshot.close - stop) * _sign(position.direction)


def _sign(direction: str) -> float:
    return 1.0 if direction == "long" else -1.0
