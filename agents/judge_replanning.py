"""Judge replanning by rules: from a high-level report to typed actions, or to hold.

The report is evidence, never a command. The judge reads the numbers of the cluster behind each
recommendation, grades them again, and only then makes an action, which still has to keep the action contract.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.evidence_plan import RecommendationEvidence
from schemas.judge import JudgeAction, RefusedAction, ReplanVerdict
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings, JudgeSettings
from schemas.slow_reflection import ClusterFinding, HighLevelReflectionReport, Recommendation
from schemas.trials import NO_TRIALS, count_ledger
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.high_level.gate import STRENGTH, Evidence, decide, grade_of
from services.high_level.grading import minimum_of, select
from services.high_level.hypotheses import declared_hypotheses, hypothesis
from services.high_level.leanings import gaining, loses_once_pooled, losing, supported_loss
from services.high_level.recommendations import experiment_is_better, gain_is_proven
from services.slow_loop.action_contract import ContractState, check_action, lowers_exposure
from services.slow_loop.evidence_rows import ids_of
from services.statistics.multiplicity import Family, online_level, register_family
from services.statistics.second_opinion import final_bound, side_level

KINDS = {
    RecommendedAction.RESEARCH_EXPERIMENT: ("open_experiment",),
    RecommendedAction.POLICY_ADJUST: (
        "set_eligibility",
        "set_threshold",
        "set_invalidation",
        "set_risk_fraction",
    ),
    RecommendedAction.REPLAN: ("replan",),
}
MOST_READ = 40  # ids that evidence adds to a verdict
PARAMETER_KINDS = ("set_threshold", "set_invalidation")
CHANGE_FIELDS = frozenset({"kind", "regime", "direction", "eligible", "parameter", "value"})


def replan(
    report: HighLevelReflectionReport,
    definitions: Sequence[PlaybookDefinition],
    open_experiments: int,
    settings: JudgeSettings,
    gate: GateSettings,
) -> ReplanVerdict:
    """The verdict on one report; its decision is the strongest action that was accepted, else `hold`."""
    in_force = {item.id: item for item in definitions}
    accepted: list[JudgeAction] = []
    refused: list[RefusedAction] = []
    unreadable: list[str] = []
    evidence: list[str] = []
    for item in report.recommendations:
        if item.action is RecommendedAction.HOLD:
            continue
        action = _action(item, settings)
        if action is None:
            unreadable.append(f"{item.action} with change {item.change!r}")
            continue
        action = _with_exposure(action, in_force)
        refusal = _proof_refusal(action, item, report, in_force, gate, settings)
        state = ContractState(in_force, settings, open_experiments, tuple(accepted))
        refusal = refusal or check_action(action, state)
        if refusal is not None:
            refused.append(refusal)
            continue
        accepted.append(action)
        evidence += item.evidence_refs
    report_id = report.content_hash[:16]
    return ReplanVerdict(
        decision=decision_of(accepted),
        report_id=report_id,
        actions=tuple(accepted),
        refused=tuple(refused),
        reason=_reason(report, accepted, refused, unreadable),
        evidence_ids=tuple(dict.fromkeys([report_id, *evidence])),
        known_at=report.known_at,
    )


def with_evidence(verdict: ReplanVerdict, evidence: Sequence[RecommendationEvidence]) -> ReplanVerdict:
    """The verdict with the first ids that were read for it behind its own; nothing else of it changes."""
    read = dict.fromkeys(
        name
        for recommendation in evidence
        for call in recommendation.gathered.calls
        for name in ids_of(call.reply)
    )
    new = [name for name in read if name not in verdict.evidence_ids][:MOST_READ]
    return verdict.model_copy(update={"evidence_ids": (*verdict.evidence_ids, *new)}) if new else verdict


def _action(item: Recommendation, settings: JudgeSettings) -> JudgeAction | None:
    """The typed action of a recommendation; None when its change does not fit the action or is incomplete."""
    change: dict[str, Any] = dict(item.change)
    kind = change.get("kind")
    if kind not in KINDS.get(item.action, ()) or set(change) - CHANGE_FIELDS:
        return None
    needed = {"set_eligibility": ("regime", "eligible"), "set_risk_fraction": ("value",), "replan": ()}
    if any(change.get(name) is None for name in needed.get(str(kind), ("parameter", "value"))):
        return None
    if kind != "replan" and item.playbook_id is None:
        return None
    life = None
    if kind in ("set_eligibility", "open_experiment"):
        is_ban = kind == "set_eligibility" and not change["eligible"]
        life = settings.action_life_blocks if is_ban else settings.shadow_life_blocks
    return JudgeAction(**change, playbook_id=item.playbook_id, life_blocks=life, reason=item.reason)


def _with_exposure(action: JudgeAction, definitions: dict[str, PlaybookDefinition]) -> JudgeAction:
    """Mark a ban or a smaller risk as lowering exposure; a grid winner stays a candidate anyway."""
    lowers = action.kind in ("set_eligibility", "set_risk_fraction") and lowers_exposure(action, definitions)
    return JudgeAction(**(action.payload() | {"lowers_exposure": lowers}))


def _cluster_behind(item: Recommendation, report: HighLevelReflectionReport) -> ClusterFinding | None:
    for finding in report.clusters:
        if (finding.playbook_id, finding.regime, finding.timeframe) == (item.playbook_id, item.regime, None):
            return finding
    return None


def _proof_refusal(
    action: JudgeAction,
    item: Recommendation,
    report: HighLevelReflectionReport,
    definitions: dict[str, PlaybookDefinition],
    gate: GateSettings,
    settings: JudgeSettings,
) -> RefusedAction | None:
    """Refuse what neither a trial on paper nor the evidence of the report proves."""
    on_paper = _paper_trial(action, report, settings)
    if action.eligible or on_paper is not None:
        return _paper_refusal(action, item, on_paper, report, settings)
    return _evidence_refusal(action, item, report, definitions, gate, settings)


def _evidence_refusal(
    action: JudgeAction,
    item: Recommendation,
    report: HighLevelReflectionReport,
    definitions: dict[str, PlaybookDefinition],
    gate: GateSettings,
    settings: JudgeSettings,
) -> RefusedAction | None:
    """Grade the numbers again and refuse what they do not carry."""
    finding = _cluster_behind(item, report)
    if finding is None:
        return RefusedAction(action=action, code="no_cluster", reason="the report has no cluster behind this")
    if action.regime is not None and action.regime != finding.regime:
        reason = f"the evidence is about {finding.regime!r}, the change about {action.regime!r}"
        return RefusedAction(action=action, code="other_cluster", reason=reason)
    if item.supported:
        return _opinion_refusal(action, finding, report, definitions, gate)
    again = _grade_again(finding, report, definitions, gate)
    grade, strongest = grade_of(again), decide(again, gate).strongest_action
    if grade is not finding.grade or item.grade is not finding.grade:
        reason = f"the numbers say {grade}, the cluster {finding.grade}, the recommendation {item.grade}"
        return RefusedAction(action=action, code="grade_mismatch", reason=reason)
    if STRENGTH[item.action] > STRENGTH[strongest]:
        reason = f"{grade} allows {strongest} at most, not {item.action}"
        return RefusedAction(action=action, code="grade_too_weak", reason=reason)
    if action.kind == "set_risk_fraction" and not action.lowers_exposure:
        return _raise_refusal(action, finding, grade, settings)
    if not losing(finding):
        return RefusedAction(action=action, code="not_losing", reason="the cluster does not lose")
    if item.action is RecommendedAction.REPLAN and grade is not EvidenceGrade.SIGNIFICANT:
        return RefusedAction(action=action, code="grade_too_weak", reason="replan needs a significant loss")
    return None


def _opinion_refusal(
    action: JudgeAction,
    finding: ClusterFinding,
    report: HighLevelReflectionReport,
    definitions: dict[str, PlaybookDefinition],
    gate: GateSettings,
) -> RefusedAction | None:
    """Weigh a second opinion again: it may only lower exposure, and its bound is that of no fewer books."""
    opinion = supported_loss(report.clusters, action.playbook_id)
    if not action.lowers_exposure:
        return RefusedAction(action=action, code="raises_exposure", reason="a second opinion only lowers it")
    if opinion is None or opinion.looks != gate.looks or opinion.look > opinion.looks:
        reason = f"the report shows no loss by the second opinion in {gate.looks} looks"
        return RefusedAction(action=action, code="not_supported", reason=reason)
    least = final_bound(opinion.looks, side_level(len(definitions))) * (opinion.looks / opinion.look) ** 0.5
    if not -opinion.t >= opinion.bound >= least:
        reason = (
            f"t {opinion.t:.3f} against {opinion.bound:.3f}; look {opinion.look} needs {least:.3f} at least"
        )
        return RefusedAction(action=action, code="not_supported", reason=reason)
    if action.kind == "set_eligibility" and not loses_once_pooled(finding, gate.regime_minimum):
        reason = f"the band of {finding.regime!r} holds its reference, or its trades are too few"
        return RefusedAction(action=action, code="not_supported", reason=reason)
    return None


def _raise_refusal(
    action: JudgeAction, finding: ClusterFinding, grade: EvidenceGrade, settings: JudgeSettings
) -> RefusedAction | None:
    """More risk asks for what a promotion asks for, before its trial in shadow begins."""
    if not gaining(finding):
        return RefusedAction(action=action, code="not_gaining", reason="the cluster does not gain")
    if grade is not EvidenceGrade.SIGNIFICANT:
        return RefusedAction(
            action=action, code="grade_too_weak", reason="more risk needs a significant gain"
        )
    return _too_few(action, finding.n, settings)


def _too_few(action: JudgeAction, n: int, settings: JudgeSettings) -> RefusedAction | None:
    least = settings.promotion_minimum_trades
    if n >= least:
        return None
    return RefusedAction(action=action, code="too_few_trades", reason=f"{n} of {least} trades")


def _paper_trial(
    action: JudgeAction, report: HighLevelReflectionReport, settings: JudgeSettings
) -> Mapping[str, Any] | None:
    """The trial whose paper trades an action rests on: a banned cell, or a proven experiment."""
    for trial in report.shadow_trials:
        if trial.get("playbook_id") != action.playbook_id:
            continue
        if action.eligible and (trial.get("kind"), trial.get("regime")) == ("banned_cell", action.regime):
            return trial
        change = trial.get("kind"), trial.get("parameter"), trial.get("value")
        if action.kind in PARAMETER_KINDS and change == ("experiment", action.parameter, action.value):
            least = settings.promotion_minimum_trades
            return trial if experiment_is_better(trial, report.clusters, least) else None
    return None


def _paper_refusal(
    action: JudgeAction,
    item: Recommendation,
    trial: Mapping[str, Any] | None,
    report: HighLevelReflectionReport,
    settings: JudgeSettings,
) -> RefusedAction | None:
    """Weigh paper trades again: they never need less than those of the first trial to begin do."""
    if trial is None:
        return RefusedAction(
            action=action, code="no_ledger", reason="the report shows no ledger of this cell"
        )
    few = _too_few(action, trial["n"], settings)
    if few is not None:
        return few
    before = NO_TRIALS if trial["kind"] == "experiment" else count_ledger(report.ledger)
    first = 1.0 / online_level(settings.promotion_alpha, before.candidates + 1, before.promotions)
    if not gain_is_proven(trial, settings.promotion_minimum_trades) or trial["e_value"] < first:
        reason = f"E {trial.get('e_value')!r} and mean {trial.get('mean_r')!r} R do not prove it"
        return RefusedAction(action=action, code="not_proven", reason=reason)
    if item.grade is not EvidenceGrade.SIGNIFICANT:
        reason = f"proven on paper, and the recommendation says {item.grade}"
        return RefusedAction(action=action, code="grade_mismatch", reason=reason)
    return None


def _grade_again(
    finding: ClusterFinding,
    report: HighLevelReflectionReport,
    definitions: dict[str, PlaybookDefinition],
    gate: GateSettings,
) -> Evidence:
    """The gate's input from the printed numbers."""
    alpha = None
    if finding.family_size:
        family = _family(finding, report, definitions, gate)
        name = _name_hypothesis(finding, report)
        printed = {
            _name_hypothesis(item, report): item.e_value or 0.0
            for item in report.clusters
            if item.family_size
        }
        alpha = family.alpha(name, select(family, printed)) if name in family else None
    minimum = minimum_of(gate, definitions.get(finding.playbook_id))
    return Evidence(finding.n, finding.e_value or 0.0, alpha, minimum, finding.regime is not None)


def _family(
    finding: ClusterFinding,
    report: HighLevelReflectionReport,
    definitions: dict[str, PlaybookDefinition],
    gate: GateSettings,
) -> Family:
    """The family that the playbook files declare, with the judge's own q, and every value the report tried.

    A printed family that is larger counts in full, as trials of earlier reports; a smaller one does not: a
    report cannot make itself significant by naming fewer hypotheses.
    """
    frames = {item.timeframe for item in report.clusters if item.timeframe is not None}
    names = {
        *declared_hypotheses(definitions.values(), frames, {item.playbook_id for item in report.clusters}),
        *(trial.hypothesis for trial in report.grid_trials),
    }
    earlier = (f"grid||earlier|{number}" for number in range(finding.family_size - len(names)))
    before = count_ledger(report.ledger)
    return register_family(
        [*names, *earlier],
        gate.q,
        epochs=report.epochs,
        tried_before=before.configurations,
        hypotheses_before=before.hypotheses,
    )


def _name_hypothesis(finding: ClusterFinding, report: HighLevelReflectionReport) -> str:
    """Name of the hypothesis that a cluster tests; the only timeframe of a cell shares the cell's."""
    frames = {
        item.timeframe
        for item in report.clusters
        if (item.playbook_id, item.regime) == (finding.playbook_id, finding.regime) and item.timeframe
    }
    return hypothesis(finding.playbook_id, finding.regime, finding.timeframe if len(frames) > 1 else None)


def decision_of(actions: Sequence[JudgeAction]) -> RecommendedAction:
    """The strongest decision that some of these actions make; hold without any."""
    made = [action for action, kinds in KINDS.items() for item in actions if item.kind in kinds]
    return max(made, key=STRENGTH.__getitem__, default=RecommendedAction.HOLD)


def _reason(
    report: HighLevelReflectionReport,
    accepted: Sequence[JudgeAction],
    refused: Sequence[RefusedAction],
    unreadable: Sequence[str],
) -> str:
    parts = []
    if accepted:
        parts.append(
            "accepted " + ", ".join(f"{item.kind} {item.playbook_id or ''}".strip() for item in accepted)
        )
    if refused:
        parts.append("refused " + ", ".join(f"{item.action.kind} ({item.code})" for item in refused))
    if unreadable:
        parts.append("unreadable " + ", ".join(unreadable))
    if not parts and report.insufficient_sample:
        return "insufficient_sample: the report has monitoring findings only"
    return "; ".join(parts) or "nothing was recommended beyond hold"
