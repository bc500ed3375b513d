"""The gate: how much a finding has shown, and the strongest action that much may lead to.

The runbook's rule (20 resolved trades in the cluster, or a significant deviation) is the outer gate in every
mode. `graded` lets a bare count lead to research only, `significance_only` to nothing, `runbook_or` to an
adjustment. The judge asks the same function again with the numbers printed in the report.
"""

from dataclasses import dataclass

from schemas.settings import GateSettings
from schemas.slow_reflection import SUGGESTIVE_E
from schemas.vocabulary import EvidenceGrade, RecommendedAction

ROUNDING = 1e-9

STRENGTH = {action: position for position, action in enumerate(RecommendedAction)}

_STRONGEST = {
    "runbook_or": {
        EvidenceGrade.COUNT_ONLY: RecommendedAction.POLICY_ADJUST,
        EvidenceGrade.SUGGESTIVE: RecommendedAction.POLICY_ADJUST,
    },
    "graded": {
        EvidenceGrade.COUNT_ONLY: RecommendedAction.RESEARCH_EXPERIMENT,
        EvidenceGrade.SUGGESTIVE: RecommendedAction.RESEARCH_EXPERIMENT,
    },
    "significance_only": {},
}


@dataclass(frozen=True)
class Evidence:
    """What the gate looks at.

    Attributes:
        n: resolved trades in the cluster.
        e_value: for the claim that both means support; 1 without one.
        alpha: level at which e-BH tests the claim, given how many it selects; None when it is not registered.
        minimum: trades below which a count says nothing.
        regime_cell: whether the cluster is a regime cell, which needs `gate.regime_minimum` as well.
    """

    n: int
    e_value: float
    alpha: float | None
    minimum: int
    regime_cell: bool = False


@dataclass(frozen=True)
class GateDecision:
    """Grade, bound on the action, and the reason as `code: text`."""

    grade: EvidenceGrade
    strongest_action: RecommendedAction
    reason: str


def weaker(first: RecommendedAction, second: RecommendedAction) -> RecommendedAction:
    """The weaker of two actions."""
    return first if STRENGTH[first] <= STRENGTH[second] else second


def grade_of(evidence: Evidence) -> EvidenceGrade:
    """`significant` when selected by e-BH, whatever the count; then the count, then E >= 10 as `suggestive`.

    E >= 1/alpha is being selected, because alpha holds the number that e-BH selects.
    """
    if evidence.alpha is not None and evidence.e_value * evidence.alpha >= 1.0 - ROUNDING:
        return EvidenceGrade.SIGNIFICANT
    if evidence.n < evidence.minimum:
        return EvidenceGrade.INSUFFICIENT_SAMPLE
    if evidence.alpha is not None and evidence.e_value >= SUGGESTIVE_E:
        return EvidenceGrade.SUGGESTIVE
    return EvidenceGrade.COUNT_ONLY


def decide(evidence: Evidence, settings: GateSettings) -> GateDecision:
    """Grade one cluster and bound what may follow from it."""
    grade = grade_of(evidence)
    if grade is EvidenceGrade.SIGNIFICANT:
        strongest = RecommendedAction.POLICY_ADJUST if evidence.regime_cell else RecommendedAction.REPLAN
    else:
        strongest = _STRONGEST[settings.mode].get(grade, RecommendedAction.HOLD)
    if evidence.regime_cell and evidence.n < settings.regime_minimum:
        capped = weaker(strongest, RecommendedAction.RESEARCH_EXPERIMENT)
        if capped is not strongest:
            text = f"{evidence.n} of {settings.regime_minimum} trades that a change of eligibility needs"
            return GateDecision(grade, capped, f"regime_below_minimum: {text}")
    return GateDecision(grade, strongest, _reason(grade, evidence))


def _reason(grade: EvidenceGrade, evidence: Evidence) -> str:
    if grade is EvidenceGrade.SIGNIFICANT and evidence.alpha is not None:
        return f"selected_in_family: E {evidence.e_value:.4g} reaches {1.0 / evidence.alpha:.4g}"
    if grade is EvidenceGrade.INSUFFICIENT_SAMPLE:
        return f"insufficient_sample: {evidence.n} of {evidence.minimum} resolved trades"
    if evidence.alpha is None:
        return f"not_registered: {evidence.n} trades outside the tested family are only counted"
    if grade is EvidenceGrade.SUGGESTIVE:
        limit = f"{1.0 / evidence.alpha:.4g}"
        return f"suggestive_evidence: E {evidence.e_value:.4g} is at least {SUGGESTIVE_E:g}, below {limit}"
    return f"reference_not_excluded: {evidence.n} trades, E {evidence.e_value:.4g} below {SUGGESTIVE_E:g}"
