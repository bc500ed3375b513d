"""Does the plan conflict with a deterministic guardrail? What it breaks blocks, before any dearer work.

The guardrails come in the request's `InvariantContext`; an empty list of allowed symbols or playbooks
allows all of them. Which part of a plan is missing is asked here too: a plan without a stop is no plan.
"""

from schemas.reflection import Finding, PolicyAmendmentRequest, PolicyLevelReflectionRequest, Remedy
from schemas.vocabulary import CheckName, PolicyState, Severity
from services.policy_checks.findings import Findings, blocker, finding, own_rule, run_critics
from services.text.dates import days_in

SHORTEST_CITED_REASON = 4
IN_POSITION = (PolicyState.POSITION_OPEN, PolicyState.HOLD_LOCK)
WAYS_OUT = {
    "stop": ("missing_stop", "the plan has no stop"),
    "target": ("missing_target", "the plan has no target"),
    "invalidation": ("missing_invalidation", "the plan does not say what would prove it wrong"),
}


def check_invariants(request: PolicyLevelReflectionRequest) -> tuple[Finding, ...]:
    """Every guardrail the request breaks, as blockers, in a fixed order; a risk that is clamped is a note."""
    return run_critics(INVARIANT_CRITICS, request)


def kill_switch_is_on(request: PolicyLevelReflectionRequest) -> Findings:
    """The operator's kill switch."""
    if request.invariants.kill_switch:
        yield blocker("kill_switch", "the kill switch is on; only the operator releases it")


def trading_is_halted(request: PolicyLevelReflectionRequest) -> Findings:
    """A halt of the risk envelope."""
    if request.invariants.halted:
        yield blocker("trading_halted", "the risk envelope has halted entries")


def symbol_is_not_allowed(request: PolicyLevelReflectionRequest) -> Findings:
    """Symbols outside the allowed list."""
    allowed, symbol = request.invariants.allowed_symbols, request.snapshot.symbol
    if allowed and symbol not in allowed:
        yield blocker("symbol_not_allowed", f"symbol {symbol!r} is not among {list(allowed)}")


def direction_is_not_allowed(request: PolicyLevelReflectionRequest) -> Findings:
    """Directions the account may not take."""
    allowed, direction = request.invariants.allowed_directions, request.proposal.direction
    if direction not in allowed:
        yield blocker("direction_not_allowed", f"direction {direction!r} is not among {list(allowed)}")


def playbook_is_not_allowed(request: PolicyLevelReflectionRequest) -> Findings:
    """Playbooks outside the allowed list."""
    allowed, playbook_id = request.invariants.allowed_playbooks, request.proposal.playbook_id
    is_own = request.invariants.allows_own_plans and not request.playbook.content_hash
    if allowed and playbook_id not in allowed and not is_own:
        yield blocker("playbook_not_allowed", f"playbook {playbook_id!r} is not among {list(allowed)}")


def playbook_is_another_one(request: PolicyLevelReflectionRequest) -> Findings:
    """A request whose playbook is not the one the proposal names."""
    named, given = request.proposal.playbook_id, request.playbook.id
    if named != given:
        yield blocker(
            "playbook_mismatch",
            f"the proposal names playbook {named!r}, the request holds {given!r}",
            remedy=Remedy(field="playbook_id", op="equals", value=given),
        )


def playbook_is_disabled(request: PolicyLevelReflectionRequest) -> Findings:
    """A playbook that its file or the judge switched off."""
    if not request.playbook.enabled:
        yield blocker("playbook_disabled", f"playbook {request.playbook.id!r} is disabled")


def playbook_is_from_the_future(request: PolicyLevelReflectionRequest) -> Findings:
    """A playbook version that was not known at the decision bar."""
    known_at, now = request.playbook.known_at, request.snapshot.known_at
    if known_at is not None and known_at > now:
        yield blocker(
            "playbook_from_the_future",
            f"the playbook version is known at {known_at} ns, the snapshot at {now} ns",
        )


def direction_is_not_in_playbook(request: PolicyLevelReflectionRequest) -> Findings:
    """A direction for which the playbook has no rules."""
    if request.proposal.direction not in request.playbook.rules:
        yield blocker(
            "direction_not_in_playbook",
            f"playbook {request.playbook.id!r} has no rules for {request.proposal.direction!r}, "
            f"only for {sorted(request.playbook.rules)}",
        )


def entry_while_in_position(request: PolicyLevelReflectionRequest) -> Findings:
    """A new entry while a position is managed: keep and tighten are the only answers there."""
    if request.state in IN_POSITION:
        yield blocker(
            "entry_while_in_position",
            f"a new entry in {request.state.value}; a position can only be kept or tightened",
        )


def risk_fraction_is_over_cap(request: PolicyLevelReflectionRequest) -> Findings:
    """Risk per trade of the playbook above the cap: a note, because the engine clamps each order."""
    cap, question = request.invariants.max_risk_fraction, request.playbook.risk_fraction
    if question > cap:
        message = f"risk fraction {question!r} of the playbook is over the cap {cap!r}: orders are clamped"
        remedy = Remedy(field="risk_fraction", op="at_most", value=cap)
        yield finding(CheckName.INVARIANT, Severity.MINOR, "risk_fraction_over_cap", message, remedy=remedy)


def exposure_cap_is_reached(request: PolicyLevelReflectionRequest) -> Findings:
    """Gross exposure at or above the cap: there is no room for another position."""
    cap, exposure = request.invariants.max_gross_exposure, request.invariants.gross_exposure
    if exposure >= cap:
        yield blocker(
            "exposure_cap_reached",
            f"gross exposure {exposure!r} of equity leaves no room under the cap {cap!r}",
        )


def no_learn_zone_is_active(request: PolicyLevelReflectionRequest) -> Findings:
    """A decision bar that touches a declared no-learn zone."""
    snapshot = request.snapshot
    for zone in request.invariants.no_learn_zones:
        if zone.touches(snapshot.symbol, snapshot.opened_at, snapshot.ts_event):
            yield blocker(
                "no_learn_zone_active", f"the decision bar lies in the no-learn zone {zone.reason!r}"
            )
            return


def no_learn_zone_is_cited(request: PolicyLevelReflectionRequest) -> Findings:
    """A text that argues with a day of a no-learn zone, or with its reason."""
    zones, symbol = request.invariants.no_learn_zones, request.snapshot.symbol
    if not zones:
        return
    text = f"{request.proposal.thesis}\n{request.proposal.rationale}"
    words = _words(text)
    for zone in zones:
        reason = _words(zone.reason)
        if zone.symbol in (None, symbol) and len(reason) >= SHORTEST_CITED_REASON and reason in words:
            yield blocker("no_learn_zone_cited", f"the text argues with the no-learn zone {zone.reason!r}")
            return
        for day, start, end in days_in(text):
            if zone.touches(symbol, start, end):
                yield blocker("no_learn_zone_cited", f"{day} lies in the no-learn zone {zone.reason!r}")
                return


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()


def snapshot_is_stale(request: PolicyLevelReflectionRequest | PolicyAmendmentRequest) -> Findings:
    """A snapshot older than the allowed number of bars."""
    age, limit = request.snapshot.staleness_bars, request.invariants.max_staleness_bars
    if age > limit:
        yield blocker("stale_snapshot", f"the symbol's last bar is {age} bars old, the limit is {limit}")


def horizon_is_over_bound(request: PolicyLevelReflectionRequest) -> Findings:
    """A horizon longer than any policy may have."""
    horizon, bound = request.proposal.horizon_bars, request.invariants.max_horizon_bars
    if horizon > bound:
        yield blocker(
            "horizon_over_bound",
            f"a horizon of {horizon} bars is over the bound {bound}",
            remedy=Remedy(field="horizon_bars", op="at_most", value=bound),
        )


def activation_window_is_over_bound(request: PolicyLevelReflectionRequest) -> Findings:
    """An activation window longer than any policy may have."""
    window, bound = request.proposal.activation_window_bars, request.invariants.max_activation_window_bars
    if window > bound:
        yield blocker(
            "activation_window_over_bound",
            f"an activation window of {window} bars is over the bound {bound}",
            remedy=Remedy(field="activation_window_bars", op="at_most", value=bound),
        )


def entry_is_missing(request: PolicyLevelReflectionRequest) -> Findings:
    """No setup rule, or an activation or entry price that is there but blank: nothing could ever enter."""
    blank = [role for role in ("setup", "activation", "entry") if _is_blank(request, role)]
    if blank:
        message = "the plan has no rule that enters: setup, activation or entry is blank"
        remedy = own_rule(request, blank[0]) if len(blank) == 1 else None
        yield blocker("missing_entry", message, remedy=remedy)


def way_out_is_missing(request: PolicyLevelReflectionRequest) -> Findings:
    """No stop, no target, or nothing that would prove the plan wrong."""
    for role, (code, message) in WAYS_OUT.items():
        if _is_blank(request, role):
            yield blocker(code, message, remedy=own_rule(request, role))


INVARIANT_CRITICS = (
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
    way_out_is_missing,
)


def _is_blank(request: PolicyLevelReflectionRequest, role: str) -> bool:
    text = getattr(request.proposal, role)
    return text is not None and not text.strip()
