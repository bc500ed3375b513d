"""What a plan may ask for at most, whoever made it: horizon, activation window, conviction.

The reflection sends a plan beyond them back. Where it is switched off nothing does, so the policy loop brings
the plan down to them, whatever provider it came from, and records each change as an event. A plan of the
rules strategist lies within them by construction.
"""

from dataclasses import dataclass

from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.regime import RegimeView
from schemas.snapshot import PolicySnapshot
from services.playbooks.expectations import expectation_in


@dataclass(frozen=True)
class ProposalClamp:
    """One field of a proposal that asked for more than is allowed."""

    field: str
    requested: float | int
    allowed: float | int


def clamp_proposal(
    proposal: PolicyProposal, snapshot: PolicySnapshot, playbook: PlaybookDefinition, tolerance: float
) -> tuple[PolicyProposal, tuple[ProposalClamp, ...]]:
    """The proposal within its bounds, and what had to be changed; the proposal itself when nothing had.

    Args:
        proposal: of any strategist.
        snapshot: with the expectation and the regime that bound the conviction.
        playbook: that the proposal names.
        tolerance: conviction above the hit rate that the reflection accepts.
    """
    bounds: dict[str, float | int] = {
        "horizon_bars": playbook.horizon_bars,
        "activation_window_bars": max(playbook.activation_window_bars, int(proposal.activation is not None)),
        "conviction": highest_conviction(snapshot, playbook, tolerance),
    }
    clamps = tuple(
        ProposalClamp(field, getattr(proposal, field), allowed)
        for field, allowed in bounds.items()
        if getattr(proposal, field) > allowed
    )
    if not clamps:
        return proposal, ()
    return PolicyProposal(
        **{**proposal.payload(), **{clamp.field: clamp.allowed for clamp in clamps}}
    ), clamps


def highest_conviction(snapshot: PolicySnapshot, playbook: PlaybookDefinition, tolerance: float) -> float:
    """What the reflection accepts, or what the rules believe in this regime if that is more."""
    hit_rate = expectation_in(snapshot, playbook).hit_rate
    accepted = min(1.0, hit_rate + tolerance)
    return max(accepted, rules_conviction(hit_rate, snapshot.regime))


def rules_conviction(hit_rate: float, regime: RegimeView | None) -> float:
    """What the rules believe: the known hit rate, moved by how strong the setting is, in [0, 1].

    A strong trend and volume raise it and high volatility lowers it, by at most 0.3 either way; whether
    that much is warranted is for the reflection to say. An unknown regime moves nothing.
    """
    if regime is None:
        return round(hit_rate, 4)
    trend, volatility, _, volume, _ = regime.fingerprint
    strength = (trend + volume + (1.0 - volatility)) / 3.0
    return round(min(1.0, max(0.0, hit_rate + 0.6 * (strength - 0.5))), 4)
