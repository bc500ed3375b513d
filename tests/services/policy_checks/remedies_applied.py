"""A plan after it did what a finding's remedy asks: as a strategist would, one field at a time."""

from typing import Any

from schemas.reflection import PolicyLevelReflectionRequest, Remedy
from services.playbooks.rendering import number_text, render_rules
from services.policy_checks.plan_levels import read_levels
from tests.services.policy_checks.plans import changed

JUST_BEYOND = 1.0001  # a price written with its own digits may lie a rounding short of the bound


def remedied(request: PolicyLevelReflectionRequest, remedy: Remedy) -> PolicyLevelReflectionRequest:
    """The request with the remedy applied, and with what a field needs beside it."""
    if remedy.field == "risk_fraction":
        both = ("playbook.risk_fraction", "snapshot.risk.risk_fraction")
        return changed(request, dict.fromkeys(both, remedy.value))
    if remedy.field in DISTANCES:
        return _with(request, DISTANCES[remedy.field](request, float(remedy.value)))
    return _with(request, {remedy.field: remedy.value} | _beside(request, remedy))


def _with(request: PolicyLevelReflectionRequest, fields: dict[str, Any]) -> PolicyLevelReflectionRequest:
    return changed(request, {"proposal": changed(request.proposal, fields)})


def _beside(request: PolicyLevelReflectionRequest, remedy: Remedy) -> dict[str, Any]:
    """An order of another kind has another price; a refinement of another kind another rule."""
    rules = render_rules(request.playbook, request.proposal.direction)
    if remedy.field == "entry_kind":
        return {"entry": rules.entry}
    return {"refinement": rules.refinement} if remedy.field == "refinement_kind" else {}


def _stop_at(request: PolicyLevelReflectionRequest, distance: float) -> dict[str, Any]:
    return {"stop": _price(request, -distance * JUST_BEYOND)}


def _target_at(request: PolicyLevelReflectionRequest, distance: float) -> dict[str, Any]:
    return {"target": _price(request, distance / JUST_BEYOND)}


def _target_worth(request: PolicyLevelReflectionRequest, minimum: float) -> dict[str, Any]:
    """Without a scale-out, a target that pays the minimum after the costs of both sides."""
    levels = read_levels(request)
    assert levels.entry is not None
    assert levels.risk is not None
    costs = 2 * levels.entry * request.invariants.cost_bps_per_side / 10_000
    needed = minimum * (levels.risk + costs) + costs
    return {"target": _price(request, needed * JUST_BEYOND), "scale_out_r": None, "scale_out_share": None}


def _price(request: PolicyLevelReflectionRequest, distance: float) -> str:
    entry = read_levels(request).entry
    assert entry is not None
    return number_text(entry + (distance if request.proposal.direction == "long" else -distance))


DISTANCES = {"stop_distance": _stop_at, "target_distance": _target_at, "reward_to_risk": _target_worth}
