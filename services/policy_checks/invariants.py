"""Does the plan conflict with a deterministic guardrail? What it breaks blocks, before any dearer work.

The guardrails come in the request's `InvariantContext`; an empty list of allowed symbols or playbooks
allows all of them. Which part of a plan is missing is asked here too: a plan without a stop is no plan.
"""

from schemas.reflection import Finding, PolicyAmendmentRequest, PolicyLevelReflectionRequest, Remedy
from schemas.vocabulary import CheckName, PolicyState, Severity
from services.policy_checks.findings import Critic, own_rule, run_critics
from services.text.dates import days_in

SHORTEST_CITED_REASON = 4
IN_POSITION = (PolicyState.POSITION_OPEN, PolicyState.HOLD_LOCK)


def check_invariants(request: PolicyLevelReflectionRequest) -> tuple[Finding, ...]:
    """Every guardrail the request breaks, as blockers, in a fixed order; a risk that is clamped is a note."""
    return run_critics(INVARIANT_CRITICS, request)


def kill_switch_is_on(request: PolicyLevelReflectionRequest) -> Finding | None:
    """The operator's kill switch."""
    if request.invariants.kill_switch:
        return _blocker("kill_switch", "the kill switch is on; only the operator releases it")
    return None


def trading_is_halted(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A halt of the risk envelope."""
    if request.invariants.halted:
        return _blocker("trading_halted", "the risk envelope has halted entries")
    return None


def symbol_is_not_allowed(request: PolicyLevelReflectionRequest) -> Finding | None:
    """Symbols outside the allowed list."""
    allowed, symbol = request.invariants.allowed_symbols, request.snapshot.symbol
    if allowed and symbol not in allowed:
        return _blocker("symbol_not_allowed", f"symbol {symbol!r} is not among {list(allowed)}")
    return None


def direction_is_not_allowed(request: PolicyLevelReflectionRequest) -> Finding | None:
    """Directions the account may not take."""
    allowed, direction = request.invariants.allowed_directions, request.proposal.direction
    if direction not in allowed:
        return _blocker("direction_not_allowed", f"direction {direction!r} is not among {list(allowed)}")
    return None


def playbook_is_not_allowed(request: PolicyLevelReflectionRequest) -> Finding | None:
    """Playbooks outside the allowed list."""
    allowed, playbook_id = request.invariants.allowed_playbooks, request.proposal.playbook_id
    if request.invariants.allows_own_plans and not request.playbook.content_hash:
        return None
    if allowed and playbook_id not in allowed:
        return _blocker("playbook_not_allowed", f"playbook {playbook_id!r} is not among {list(allowed)}")
    return None


def playbook_is_another_one(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A request whose playbook is not the one the proposal names."""
    named, given = request.proposal.playbook_id, request.playbook.id
    if named != given:
        return _blocker(
            "playbook_mismatch",
            f"the proposal names playbook {named!r}, the request holds {given!r}",
            Remedy(field="playbook_id", op="equals", value=given),
        )
    return None


def playbook_is_disabled(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A playbook that its file or the judge switched off."""
    if not request.playbook.enabled:
        return _blocker("playbook_disabled", f"playbook {request.playbook.id!r} is disabled")
    return None


def playbook_is_from_the_future(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A playbook version that was not known at the decision bar."""
    known_at, now = request.playbook.known_at, request.snapshot.known_at
    if known_at is not None and known_at > now:
        return _blocker(
            "playbook_from_the_future",
            f"the playbook version is known at {known_at} ns, the snapshot at {now} ns",
        )
    return None


def direction_is_not_in_playbook(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A direction for which the playbook has no rules."""
    if request.proposal.direction not in request.playbook.rules:
        return _blocker(
            "direction_not_in_playbook",
            f"playbook {request.playbook.id!r} has no rules for {request.proposal.direction!r}, "
            f"only for {sorted(request.playbook.rules)}",
        )
    return None


def entry_while_in_position(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A new entry while a position is managed: keep and tighten are the only answers there."""
    if request.state in IN_POSITION:
        return _blocker(
            "entry_while_in_position",
            f"a new entry in {request.state.value}; a position can only be kept or tightened",
        )
    return None


def risk_fraction_is_over_cap(request: PolicyLevelReflectionRequest) -> Finding | None:
    """Risk per trade of the playbook above the cap: a note, because the engine clamps each order."""
    cap, asked = request.invariants.max_risk_fraction, request.playbook.risk_fraction
    if asked > cap:
        return Finding(
            check=CheckName.INVARIANT,
            code="risk_fraction_over_cap",
            severity=Severity.MINOR,
            message=f"risk fraction {asked!r} of the playbook is over the cap {cap!r}: orders are clamped",
            remedy=Remedy(field="risk_fraction", op="at_most", value=cap),
        )
    return None


def exposure_cap_is_reached(request: PolicyLevelReflectionRequest) -> Finding | None:
    """Gross exposure at or above the cap: there is no room for another position."""
    cap, exposure = request.invariants.max_gross_exposure, request.invariants.gross_exposure
    if exposure >= cap:
        return _blocker(
            "exposure_cap_reached",
            f"gross exposure {exposure!r} of equity leaves no room under the cap {cap!r}",
        )
    return None


def no_learn_zone_is_active(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A decision bar that touches a declared no-learn zone."""
    snapshot = request.snapshot
    for zone in request.invariants.no_learn_zones:
        if zone.touches(snapshot.symbol, snapshot.opened_at, snapshot.ts_event):
            return _blocker(
                "no_learn_zone_active", f"the decision bar lies in the no-learn zone {zone.reason!r}"
            )
    return None


def no_learn_zone_is_cited(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A text that argues with a day of a no-learn zone, or with its reason."""
    text = f"{request.proposal.thesis}\n{request.proposal.rationale}"
    words, symbol = _words(text), request.snapshot.symbol
    for zone in request.invariants.no_learn_zones:
        reason = _words(zone.reason)
        if zone.symbol in (None, symbol) and len(reason) >= SHORTEST_CITED_REASON and reason in words:
            return _blocker("no_learn_zone_cited", f"the text argues with the no-learn zone {zone.reason!r}")
        for day, start, end in days_in(text):
            if zone.touches(symbol, start, end):
                return _blocker("no_learn_zone_cited", f"{day} lies in the no-learn zone {zone.reason!r}")
    return None


def _words(text: str) -> str:
    """A text as it reads: one blank between words, one case."""
    return " ".join(text.split()).casefold()


def snapshot_is_stale(request: PolicyLevelReflectionRequest | PolicyAmendmentRequest) -> Finding | None:
    """A snapshot older than the allowed number of bars."""
    age, limit = request.snapshot.staleness_bars, request.invariants.max_staleness_bars
    if age > limit:
        return _blocker("stale_snapshot", f"the symbol's last bar is {age} bars old, the limit is {limit}")
    return None


def horizon_is_over_bound(request: PolicyLevelReflectionRequest) -> Finding | None:
    """A horizon longer than any policy may have."""
    horizon, bound = request.proposal.horizon_bars, request.invariants.max_horizon_bars
    if horizon > bound:
        return _blocker(
            "horizon_over_bound",
            f"a horizon of {horizon} bars is over the bound {bound}",
            Remedy(field="horizon_bars", op="at_most", value=bound),
        )
    return None


def activation_window_is_over_bound(request: PolicyLevelReflectionRequest) -> Finding | None:
    """An activation window longer than any policy may have."""
    window, bound = request.proposal.activation_window_bars, request.invariants.max_activation_window_bars
    if window > bound:
        return _blocker(
            "activation_window_over_bound",
            f"an activation window of {window} bars is over the bound {bound}",
            Remedy(field="activation_window_bars", op="at_most", value=bound),
        )
    return None


def entry_is_missing(request: PolicyLevelReflectionRequest) -> Finding | None:
    """No setup rule, or an activation or entry price that is there but blank: nothing could ever enter."""
    blank = [role for role in ("setup", "activation", "entry") if _is_blank(request, role)]
    if not blank:
        return None
    message = "the plan has no rule that enters: setup, activation or entry is blank"
    return _blocker("missing_entry", message, own_rule(request, blank[0]) if len(blank) == 1 else None)


def stop_is_missing(request: PolicyLevelReflectionRequest) -> Finding | None:
    """No stop."""
    return _missing(request, "stop", "missing_stop", "the plan has no stop")


def target_is_missing(request: PolicyLevelReflectionRequest) -> Finding | None:
    """No target."""
    return _missing(request, "target", "missing_target", "the plan has no target")


def invalidation_is_missing(request: PolicyLevelReflectionRequest) -> Finding | None:
    """No invalidation."""
    return _missing(
        request, "invalidation", "missing_invalidation", "the plan does not say what would prove it wrong"
    )


INVARIANT_CRITICS: tuple[Critic, ...] = (
    kill_switch_is_on,
    trading_is_halted,
    symbol_is_not_allowed,
    direction_is_not_allowed,
    playbook_is_not_allowed,
    playbook_is_another_one,
    playbook_is_disabled,
    playbook_is_from_the_future,
    direction_is_not_in_playbook,
    entry_while_in_position,
    risk_fraction_is_over_cap,
    exposure_cap_is_reached,
    no_learn_zone_is_active,
    no_learn_zone_is_cited,
    snapshot_is_stale,
    horizon_is_over_bound,
    activation_window_is_over_bound,
    entry_is_missing,
    stop_is_missing,
    target_is_missing,
    invalidation_is_missing,
)


def _blocker(code: str, message: str, remedy: Remedy | None = None) -> Finding:
    return Finding(
        check=CheckName.INVARIANT, code=code, severity=Severity.BLOCKER, message=message, remedy=remedy
    )


def _is_blank(request: PolicyLevelReflectionRequest, role: str) -> bool:
    text = getattr(request.proposal, role)
    return text is not None and not text.strip()


def _missing(request: PolicyLevelReflectionRequest, role: str, code: str, message: str) -> Finding | None:
    if not _is_blank(request, role):
        return None
    return _blocker(code, message, own_rule(request, role))
