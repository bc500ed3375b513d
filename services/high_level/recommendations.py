"""From graded clusters to recommendations: the narrowest remedy first.

A recommendation carries the numbers' grade, never more than the cluster's strongest action, and is evidence
for the judge.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings, JudgeSettings
from schemas.slow_reflection import ClusterFinding, Recommendation, SecondOpinion
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.high_level.gate import STRENGTH
from services.high_level.grid import MATERIAL_R, Winner, neighbour_value
from services.high_level.leanings import (
    gaining,
    loses_once_pooled,
    losing,
    may,
    supported_loss,
)
from services.high_level.measured_rates import OPINION_TEXT
from services.playbooks.action_effects import MAX_RISK_FRACTION, MAX_RISK_RAISE, MINIMUM_RISK_FRACTION
from services.playbooks.measures import eligible_cells

RISK_STEP = 0.5  # a loss halves the risk, a gain doubles it
EVIDENCE_SHOWN = 10
PROMOTION_MINIMUM = JudgeSettings().promotion_minimum_trades

HOLD = RecommendedAction.HOLD
ADJUST = RecommendedAction.POLICY_ADJUST
RESEARCH = RecommendedAction.RESEARCH_EXPERIMENT


@dataclass(frozen=True)
class Context:
    """What recommendations are made from.

    Attributes:
        findings: every cluster of the report.
        definitions: active versions by playbook id.
        winners: best grid value of playbooks that were searched; None where no value was materially better.
        alarmed: playbooks with a decay alarm.
        structural_allowed: False between two structural slots.
        shadow_trials: what open trials, banned cells, risk cuts and refuted candidates have shown, as the
            request has it.
        promotion_minimum: trades that a banned cell has to show before its ban is lifted, and a risk cut
            before the next one.
        regime_minimum: trades that a ban of a cell needs.
        risk_limit: the account's risk per trade: a playbook's own above it would change nothing.
    """

    findings: tuple[ClusterFinding, ...]
    definitions: Mapping[str, PlaybookDefinition]
    winners: Mapping[str, Winner | None]
    alarmed: frozenset[str]
    structural_allowed: bool
    shadow_trials: tuple[Mapping[str, Any], ...] = ()
    risk_limit: float = MAX_RISK_FRACTION
    promotion_minimum: int = PROMOTION_MINIMUM
    regime_minimum: int = GateSettings().regime_minimum

    def trials(self, kind: str) -> list[Mapping[str, Any]]:
        """The trials of one kind, in order."""
        return [trial for trial in self.shadow_trials if trial.get("kind") == kind]


def cells_to_ban(
    findings: Sequence[ClusterFinding], definitions: Mapping[str, PlaybookDefinition]
) -> tuple[ClusterFinding, ...]:
    """Losing regime cells that are open and whose grade allows a change."""
    return tuple(
        item
        for item in findings
        if _is_cell(item) and losing(item) and may(item, ADJUST) and _is_open(item, definitions)
    )


def _is_open(finding: ClusterFinding, definitions: Mapping[str, PlaybookDefinition]) -> bool:
    """Whether the cell is traded: what is banned already keeps its evidence and needs no other ban."""
    definition = definitions.get(finding.playbook_id)
    return definition is not None and finding.regime in eligible_cells(definition)


def playbooks_to_adjust(
    findings: Sequence[ClusterFinding], definitions: Mapping[str, PlaybookDefinition]
) -> tuple[ClusterFinding, ...]:
    """Losing playbooks whose grade allows a change and none of whose open cells explains the loss.

    Rules of a strategist's own are not ours to change.
    """
    changeable = definitions.keys() - {item.playbook_id for item in cells_to_ban(findings, definitions)}
    return tuple(
        item
        for item in findings
        if _is_playbook(item) and losing(item) and may(item, ADJUST) and item.playbook_id in changeable
    )


def recommend(context: Context) -> tuple[Recommendation, ...]:
    """Recommendations, strongest first, then by playbook and regime; at least one, if only `hold`."""
    made = [_ban(item) for item in cells_to_ban(context.findings, context.definitions)]
    for item in playbooks_to_adjust(context.findings, context.definitions):
        made += _adjust(item, context)
    made += _recommend_supported(context, {item.playbook_id for item in made})
    made += _proven_experiments(context, made)
    made += _lifts(context) + _raises(context, {item.playbook_id for item in made}) + _replans(context)
    if not context.structural_allowed:
        made = [_not_this_week(item) for item in made]
    touched = {item.playbook_id for item in made if not item.supported}
    for item in context.findings:
        if _is_playbook(item) and item.playbook_id not in touched:
            made.append(_watch(item, context))
    if not made:
        least = EvidenceGrade.INSUFFICIENT_SAMPLE
        reason = "no resolved trade of a playbook version in force: nothing to learn from yet"
        made.append(Recommendation(action=HOLD, playbook_id=None, grade=least, confidence=0.0, reason=reason))
    return tuple(sorted(made, key=_order))


def strongest(recommendations: Sequence[Recommendation]) -> RecommendedAction:
    """The strongest action recommended."""
    return max((item.action for item in recommendations), key=STRENGTH.__getitem__)


def _is_playbook(finding: ClusterFinding) -> bool:
    return finding.regime is None


def _is_cell(finding: ClusterFinding) -> bool:
    return finding.regime is not None and finding.timeframe is None


def _order(item: Recommendation) -> tuple[int, str, str]:
    return -STRENGTH[item.action], item.playbook_id or "", item.regime or ""


def confidence(finding: ClusterFinding) -> float:
    """1 - 1 / E, at least 0.

    The level at which the claim alone holds at every look, before the family is paid.
    """
    if not finding.e_value:
        return 0.0
    return round(max(0.0, 1.0 - 1.0 / finding.e_value), 6)


def _recommend(
    finding: ClusterFinding, action: RecommendedAction, change: dict[str, object], reason: str
) -> Recommendation:
    return Recommendation(
        action=action,
        playbook_id=finding.playbook_id,
        regime=finding.regime,
        change=change,
        grade=finding.grade,
        confidence=confidence(finding),
        reason=reason,
        evidence_refs=finding.evidence[:EVIDENCE_SHOWN],
    )


def _numbers(finding: ClusterFinding) -> str:
    mean = "unknown" if finding.mean_r is None else f"{finding.mean_r:+.2f}R"
    return f"{mean} on {finding.n} trades in {finding.blocks} blocks; {finding.reason}"


def _ban(finding: ClusterFinding) -> Recommendation:
    change: dict[str, object] = {"kind": "set_eligibility", "regime": finding.regime, "eligible": False}
    reason = f"{finding.playbook_id} loses in {finding.regime}: {_numbers(finding)}"
    return _recommend(finding, ADJUST, change, reason)


def _adjust(finding: ClusterFinding, context: Context) -> list[Recommendation]:
    """What a losing playbook gets: less risk at once, and a candidate where the grid holds a better value."""
    definition = context.definitions[finding.playbook_id]
    winner = context.winners.get(finding.playbook_id)
    made = [_less_risk(finding, definition, context)]
    if winner is not None and (definition.id, winner.parameter, winner.value) not in _find_refuted(context):
        made.append(_candidate(finding, winner, context))
    return made


def _candidate(finding: ClusterFinding, winner: Winner, context: Context) -> Recommendation:
    definition = context.definitions[finding.playbook_id]
    role = definition.parameters[winner.parameter].role
    change = {"kind": f"set_{role}", "parameter": winner.parameter, "value": winner.value}
    reason = (
        f"{finding.playbook_id} loses: {_numbers(finding)}; "
        f"candidate {winner.parameter} {winner.value:g} made "
        f"{winner.mean_r:+.2f}R on {winner.n} trades against {winner.current_mean_r:+.2f}R"
    )
    for trial in context.trials("candidate"):
        if _tries(trial) == (definition.id, winner.parameter, winner.value):
            return _recommend(finding, HOLD, {}, f"{reason}; {_on_trial(trial)}")
    return _recommend(finding, ADJUST, change, reason)


def _recommend_supported(context: Context, touched: Set[str | None]) -> list[Recommendation]:
    """Less exposure where the second opinion claims a loss that the gate has not proven.

    A ban of the cells that lose once all are pooled, which is renewed or lifted as any ban; else less risk.
    """
    made = []
    for item in filter(_is_playbook, context.findings):
        definition = context.definitions.get(item.playbook_id)
        opinion = supported_loss(context.findings, item.playbook_id)
        if opinion is None or definition is None or item.playbook_id in touched:
            continue
        cells = [
            cell
            for cell in context.findings
            if cell.playbook_id == item.playbook_id
            and _is_open(cell, context.definitions)
            and loses_once_pooled(cell, context.regime_minimum)
        ]
        found = [_ban(cell) for cell in cells] or [_less_risk(item, definition, context)]
        made += [_by_opinion(item, opinion) for item in found if item.action is ADJUST]
    return made


def _by_opinion(item: Recommendation, opinion: SecondOpinion) -> Recommendation:
    reason = (
        f"second opinion, look {opinion.look} of {opinion.looks}: t {opinion.t:.2f} beyond "
        f"{opinion.bound:.2f} ({OPINION_TEXT}); {item.reason}"
    )
    return item.model_copy(update={"supported": True, "reason": reason})


def _find_refuted(context: Context) -> set[tuple[Any, ...]]:
    return {_tries(trial) for trial in context.trials("refuted")}


def _tries(trial: Mapping[str, Any]) -> tuple[Any, ...]:
    return trial["playbook_id"], trial.get("parameter"), trial.get("value")


def _less_risk(finding: ClusterFinding, definition: PlaybookDefinition, context: Context) -> Recommendation:
    lower = round(definition.risk_fraction * RISK_STEP, 6)
    if lower < MINIMUM_RISK_FRACTION:
        reason = f"{finding.playbook_id} loses and its risk is at the floor"
        return _recommend(finding, HOLD, {}, f"{reason}: {_numbers(finding)}")
    reason = f"{finding.playbook_id} loses: {_numbers(finding)}"
    for cut in context.trials("risk_cut"):
        if cut["playbook_id"] == finding.playbook_id and _waits(cut, context):
            shown = f"{cut['n']} of {context.promotion_minimum} trades since it was cut to {cut['value']:g}"
            mean = "" if cut["mean_r"] is None else f", {cut['mean_r']:+.2f}R"
            return _recommend(finding, HOLD, {}, f"{reason}; its risk waits: {shown}{mean}")
    return _recommend(finding, ADJUST, {"kind": "set_risk_fraction", "value": lower}, reason)


def _waits(cut: Mapping[str, Any], context: Context) -> bool:
    """Whether the trades since a risk cut are too few, or do not lose, so that the next cut is not due."""
    if cut["n"] < context.promotion_minimum or cut["mean_r"] is None:
        return True
    return bool(max(cut["mean_r"], cut["mean_raw_r"]) >= cut["reference_r"])


def _lifts(context: Context) -> list[Recommendation]:
    """The end of each ban whose paper trades have reached what a promotion needs."""
    return [
        _on_paper(
            trial,
            {"kind": "set_eligibility", "regime": trial["regime"], "eligible": True},
            f"{trial['playbook_id']} gains in {trial['regime']} since it was banned there",
        )
        for trial in context.trials("banned_cell")
        if gain_is_proven(trial, context.promotion_minimum)
    ]


def gain_is_proven(trial: Mapping[str, Any], minimum: int) -> bool:
    """Whether `minimum` paper trades of a trial show a gain at the level that it began with."""
    needed, shown, mean = (trial.get(name) for name in ("e_needed", "e_value", "mean_r"))
    if needed is None or shown is None or mean is None:
        return False
    lowest = min(mean, trial.get("mean_raw_r", mean))
    return bool(trial["n"] >= minimum and shown >= needed and lowest > trial["reference_r"])


def _proven_experiments(context: Context, made: Sequence[Recommendation]) -> list[Recommendation]:
    """A candidate for each experiment that gains while its playbook does not.

    The account may never prove the loss: a playbook that is vetoed or stopped trades little.
    """
    refuted = _find_refuted(context)
    tried = {(item.playbook_id, item.change.get("parameter")) for item in made}
    tried |= {(trial["playbook_id"], trial.get("parameter")) for trial in context.trials("candidate")}
    return [
        _from_experiment(trial, context.definitions[trial["playbook_id"]])
        for trial in context.trials("experiment")
        if experiment_is_better(trial, context.findings, context.promotion_minimum)
        and (trial["playbook_id"], trial["parameter"]) not in tried
        and (trial["playbook_id"], trial["parameter"], trial["value"]) not in refuted
    ]


def experiment_is_better(trial: Mapping[str, Any], findings: Sequence[ClusterFinding], minimum: int) -> bool:
    """Whether an experiment's gain is proven, and 0.1R above a playbook that does not lean to gaining.

    Of such a playbook the account has resolved the minimum of trades.
    """
    if trial.get("kind") != "experiment" or trial.get("parameter") is None:
        return False
    for item in findings:
        if _is_playbook(item) and item.playbook_id == trial["playbook_id"] and item.mean_r is not None:
            enough = item.grade is not EvidenceGrade.INSUFFICIENT_SAMPLE and gain_is_proven(trial, minimum)
            return enough and not gaining(item) and trial["mean_r"] >= item.mean_r + MATERIAL_R
    return False


def _from_experiment(trial: Mapping[str, Any], definition: PlaybookDefinition) -> Recommendation:
    playbook_id, parameter, value = trial["playbook_id"], trial["parameter"], trial["value"]
    return _on_paper(
        trial,
        {"kind": f"set_{definition.parameters[parameter].role}", "parameter": parameter, "value": value},
        f"{playbook_id} gains with {parameter} {value:g}, tried as an experiment",
    )


def _on_paper(trial: Mapping[str, Any], change: dict[str, object], what: str) -> Recommendation:
    # Its evidence are paper trades, which no cluster of the report holds.
    return Recommendation(
        action=ADJUST,
        playbook_id=trial["playbook_id"],
        regime=trial["regime"],
        change=change,
        grade=EvidenceGrade.SIGNIFICANT,
        confidence=round(1.0 - 1.0 / trial["e_value"], 6),
        reason=(
            f"{what}: {trial['mean_r']:+.2f}R on {trial['n']} paper trades in {trial['blocks']} blocks, "
            f"E {trial['e_value']:.4g} reaches {trial['e_needed']:.4g}"
        ),
    )


def _raises(context: Context, touched: set[str | None]) -> list[Recommendation]:
    """More risk for a playbook that gains significantly as a whole and of which nothing else is wrong.

    While a candidate of it is on trial it waits: that may be this very raise, and its promotion would end it.
    """
    on_trial = {trial["playbook_id"] for trial in context.trials("candidate")}
    made = []
    for item in context.findings:
        proven = _is_playbook(item) and gaining(item) and item.grade is EvidenceGrade.SIGNIFICANT
        definition = context.definitions.get(item.playbook_id)
        if not proven or definition is None or not may(item, ADJUST):
            continue
        if item.playbook_id in (touched | context.alarmed | on_trial):
            continue
        higher = min(definition.risk_fraction * MAX_RISK_RAISE, MAX_RISK_FRACTION, context.risk_limit)
        if round(higher, 6) > definition.risk_fraction:
            change: dict[str, object] = {"kind": "set_risk_fraction", "value": round(higher, 6)}
            reason = f"{item.playbook_id} gains: {_numbers(item)}"
            made.append(_recommend(item, ADJUST, change, reason))
    return made


def _replans(context: Context) -> list[Recommendation]:
    """Replan when the whole live set loses significantly, or where a decay alarm meets a significant loss.

    A loss that one regime cell explains is answered by its ban, not by a replan.
    """
    traded = [item for item in context.findings if _is_playbook(item) and item.n]
    proven = [
        item
        for item in traded
        if losing(item) and item.grade is EvidenceGrade.SIGNIFICANT and may(item, RecommendedAction.REPLAN)
    ]
    if proven and len(proven) == len(traded):
        worst = max(proven, key=lambda item: (item.e_value or 0.0, item.playbook_id))
        reason = (
            f"every playbook that trades loses significantly; worst {worst.playbook_id}: {_numbers(worst)}"
        )
        return [_recommend(worst, RecommendedAction.REPLAN, {"kind": "replan"}, reason)]
    unexplained = playbooks_to_adjust(context.findings, context.definitions)
    return [
        _recommend(
            item,
            RecommendedAction.REPLAN,
            {"kind": "replan"},
            f"a decay alarm coincides with a significant loss of {item.playbook_id}: {_numbers(item)}",
        )
        for item in proven
        if item.playbook_id in context.alarmed and item in unexplained
    ]


def _not_this_week(item: Recommendation) -> Recommendation:
    reason = f"structural changes wait for their interval; would have been {item.action}: {item.reason}"
    return item.model_copy(update={"action": HOLD, "change": {}, "reason": reason})


def _watch(finding: ClusterFinding, context: Context) -> Recommendation:
    """Monitoring, or an experiment where a loss is suggested and the gate allows research."""
    if finding.grade is EvidenceGrade.INSUFFICIENT_SAMPLE:
        reason = f"{finding.playbook_id}: {_numbers(finding)}; {_detectable(finding)}"
        return _recommend(finding, HOLD, {}, reason)
    definition = context.definitions.get(finding.playbook_id)
    mean = finding.reference_r if finding.mean_r is None else finding.mean_r
    loses = losing(finding) and mean <= finding.reference_r - MATERIAL_R
    if definition is not None and loses and may(finding, RESEARCH):
        running = [trial for trial in context.trials("experiment") if trial["playbook_id"] == definition.id]
        if running:
            reason = f"{finding.playbook_id} may lose: {_numbers(finding)}; {_on_trial(running[0])}"
            return _recommend(finding, HOLD, {}, reason)
        step = neighbour_value(definition, _find_refuted(context))
        if step is not None:
            change = {"kind": "open_experiment", "parameter": step[0], "value": step[1]}
            reason = f"{finding.playbook_id} may lose: {_numbers(finding)}; {_detectable(finding)}"
            return _recommend(finding, RESEARCH, change, reason)
    word = "gains" if finding.grade is EvidenceGrade.SIGNIFICANT else "shows nothing proven"
    if definition is None and losing(finding) and may(finding, ADJUST):
        word = "loses, and its rules are its strategist's own: change them there"
    return _recommend(finding, HOLD, {}, f"{finding.playbook_id} {word}: {_numbers(finding)}")


def _on_trial(trial: Mapping[str, Any]) -> str:
    """An experiment that runs already: it is not asked for again."""
    tried = "" if trial.get("parameter") is None else f" {trial['parameter']} {trial['value']:g}"
    mean = "" if trial["mean_r"] is None else f", {trial['mean_r']:+.2f}R"
    return f"on trial already:{tried}, {trial['n']} paper trades{mean}"


def _detectable(finding: ClusterFinding) -> str:
    if finding.smallest_detectable_r is None:
        return "no deviation inside the winsor bounds could have been detected yet"
    return f"the smallest detectable deviation is {finding.smallest_detectable_r:.2f}R"
