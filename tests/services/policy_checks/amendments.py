"""Builders of amendments that pass, with the policy and the position that they are about."""

from typing import Any

from schemas.policy import FrozenPolicy, PolicyAmendment
from schemas.reflection import PolicyAmendmentRequest
from schemas.snapshot import PositionView
from schemas.vocabulary import AmendmentKind, Direction, PolicyState
from tests.services.policy_checks.plans import NOW, changed, playbook_named, right_request

HASH = "0" * 64

DAY = 86_400_000_000_000


def policy_of(direction: Direction = "long") -> FrozenPolicy:
    request = right_request(playbook_named("trend_pullback"), direction)
    assert request.snapshot.regime is not None
    return FrozenPolicy(
        symbol=request.snapshot.symbol,
        proposal=request.proposal,
        playbook_id=request.playbook.id,
        playbook_version=request.playbook.version,
        playbook_hash=request.playbook.content_hash,
        regime_key=request.snapshot.regime.labels.key,
        fingerprint=request.snapshot.regime.fingerprint,
        risk_fraction=0.005,
        frozen_at=NOW,
        snapshot_hash=HASH,
        proposal_hash=request.proposal.content_hash,
        reflection_hash=HASH,
        verdict_hash=HASH,
        prompt_hash=None,
        model="rules",
    )


def position_of(policy: FrozenPolicy) -> PositionView:
    """Entered at 97 (short: 103), 1.5 R ahead at a close of 100; its stop is 5 from the close."""
    sign = 1.0 if policy.proposal.direction == "long" else -1.0
    return PositionView(
        direction=policy.proposal.direction,
        quantity=10.0,
        entry_price=100.0 - 3.0 * sign,
        entry_label=NOW - 4 * DAY,
        stop=100.0 - 5.0 * sign,
        target=100.0 + 5.0 * sign,
        bars_held=3,
        r_now=1.5,
        mae_r=-0.2,
        mfe_r=1.6,
        playbook_id=policy.playbook_id,
        policy_id=policy.policy_id,
        thesis=policy.proposal.thesis,
    )


def amendment_request(
    kind: AmendmentKind,
    *,
    held: bool = False,
    direction: Direction = "long",
    stop: float | None = None,
    reason: str = "scripted",
    **changes: Any,
) -> PolicyAmendmentRequest:
    """A request that passes; `changes` go to it, a dot reaching into its parts (`__` stands for it)."""
    base, policy = right_request(playbook_named("trend_pullback"), direction), policy_of(direction)
    there: dict[str, Any] = {
        "active_policy_id": None,
        "position": position_of(policy),
        "state": PolicyState.POSITION_OPEN,
    }
    invariants = base.invariants
    if held:
        there["risk"] = changed(base.snapshot.risk, {"gross_exposure": 0.01})
        invariants = changed(invariants, {"gross_exposure": 0.01})
    snapshot = changed(base.snapshot, there if held else {"active_policy_id": policy.policy_id})
    request = PolicyAmendmentRequest(
        snapshot=snapshot,
        amendment=PolicyAmendment(
            kind=kind, symbol=snapshot.symbol, policy_id=policy.policy_id, stop=stop, reason=reason
        ),
        policy=policy,
        playbook=base.playbook,
        invariants=invariants,
    )
    return changed(request, {name.replace("__", "."): value for name, value in changes.items()})
