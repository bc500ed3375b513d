"""Where plans of a run come from: a verdict, a candidate, a measure, or an operator who wants to go back.

Each becomes typed actions with the evidence and the very version that would come into force.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.errors import InvariantViolation
from schemas.judge import JudgeAction
from schemas.plan import PlanStep, Proposed, RollbackAction
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.settings import Settings
from services.playbooks.action_effects import Lift, Limit
from services.playbooks.lifecycle import PlaybookLifecycle
from services.playbooks.measures import RISK, Measure
from services.playbooks.trials import OpenTrial
from services.slow_loop.promotion_levels import Key, TrialKey
from services.slow_loop.trial_evidence import Evidence


class OpenTrials(Protocol):
    """The trials of a run on paper: what they have proven, and that they hear what became of them."""

    @property
    def proven(self) -> Mapping[Key, Evidence]:
        """Measures that their own trades contradict, by ledger."""
        ...

    def proves(self) -> dict[str, Evidence]:
        """What is proven as of the last step: candidates by version hash, measures as `HASH|CELL`."""
        ...

    def key_of(self, version_hash: str) -> TrialKey | None:
        """Key of the ledger of a candidate in shadow; None where there is none any more."""
        ...

    def note_promotion(self, key: TrialKey, at: int) -> None:
        """Note that a candidate came into force."""
        ...

    def note_lift(self, changed: tuple[PlaybookVersion, ...], at: int) -> None:
        """Note measures that ended on their own evidence."""
        ...


@dataclass(eq=False)
class PlanSources:
    """What the slow loop of a run wants changed, as proposed steps."""

    settings: Settings
    lifecycle: PlaybookLifecycle
    trials: OpenTrials
    timeframe: str

    def is_plan(self, action: JudgeAction, now: int) -> bool:
        """Whether an action of a verdict is a plan: what adds exposure or retires policies, at once.

        What opens a trial in shadow asks nobody; what only lowers exposure acts, unless `lowering` says ask.
        """
        if action.kind == "replan":
            return True
        effect = self.lifecycle.effect(action, now, self.timeframe, self.trials.proven)
        asks = isinstance(effect, Limit) and self.settings.plans.lowering == "ask"
        return asks or isinstance(effect, Lift)

    def of_verdict(self, actions: Sequence[JudgeAction], now: int) -> list[Proposed]:
        """A verdict's actions; one that ends a measure names the ledger that proves it."""
        return [self._of_action(action, now) for action in actions]

    def of_candidate(self, version_hash: str, now: int) -> Proposed:
        """The promotion of a candidate on what its own trades have shown."""
        after = self.lifecycle.promotion(version_hash, now)
        action = _change_of(self.lifecycle.trial(version_hash), self.lifecycle.active(after.id))
        return Proposed(action, version_hash, self.trials.proves()[version_hash], after)

    def of_measures(self, now: int) -> list[tuple[str, Proposed]]:
        """The end of each measure whose life is over and that its own trades contradict, with its words."""
        proven, found = self.trials.proven, list[tuple[str, Proposed]]()
        for active, due in self.lifecycle.find_refuted(now, proven):
            ledger, name = due[0].ledger, active.definition.id
            after = self.lifecycle.without(name, ledger, now)
            action = _end_of(due, after, self.settings.judge.shadow_life_blocks)
            item = Proposed(action, "|".join(ledger), proven[ledger], after)
            found.append((f"{due[0].text} of {name}", item))
        return found

    def of_rollback(self, playbook_id: str, now: int) -> Proposed:
        """An earlier version of a playbook.

        Raises:
            ConfigError: there is no such playbook, or nothing different to return to.
        """
        after = self.lifecycle.earlier(playbook_id, now)
        action = RollbackAction(
            playbook_id=playbook_id, version_hash=after.content_hash, reason="rolled back"
        )
        return Proposed(action, after=after)

    def _of_action(self, action: JudgeAction, now: int) -> Proposed:
        effect = self.lifecycle.effect(action, now, self.timeframe, self.trials.proven)
        if not isinstance(effect, Lift):
            return Proposed(action)
        ledger = effect.measures[0].ledger
        after = self.lifecycle.without(str(action.playbook_id), ledger, now)
        return Proposed(action, "|".join(ledger), effect.evidence, after)


def _change_of(trial: OpenTrial, active: PlaybookDefinition) -> JudgeAction:
    baseline, reason = trial.baseline, "its own trades in shadow prove it"
    if trial.lifts and trial.lifts[0] != RISK:
        return _let_in([key[0] for key in trial.lifts], trial.lifts[0][1], baseline.id, reason)
    moved = [
        (name, parameter)
        for name, parameter in baseline.parameters.items()
        if parameter.value != active.parameters[name].value
    ]
    if not moved:
        return _risk(baseline.id, baseline.risk_fraction, reason)
    name, parameter = moved[0]
    role = "set_threshold" if parameter.role == "threshold" else "set_invalidation"
    values = {"kind": role, "playbook_id": baseline.id, "parameter": name, "value": parameter.value}
    return JudgeAction.model_validate(values | {"reason": reason})


def _end_of(due: Sequence[Measure], after: PlaybookDefinition, life_blocks: int) -> JudgeAction:
    reason = "its own trades contradict the measure, whose life is over"
    if due[0].key == RISK:
        return _risk(after.id, after.risk_fraction, reason)
    sides = [measure.key[0] for measure in due]
    return _let_in(sides, due[0].key[1], after.id, reason, life_blocks)


def _risk(playbook_id: str, value: float, reason: str) -> JudgeAction:
    return JudgeAction(kind="set_risk_fraction", playbook_id=playbook_id, value=value, reason=reason)


def _let_in(
    sides: Sequence[str], cell: str, playbook_id: str, reason: str, life_blocks: int = 1
) -> JudgeAction:
    return JudgeAction.model_validate(
        {
            "kind": "set_eligibility",
            "playbook_id": playbook_id,
            "regime": cell,
            "direction": sides[0] if len(sides) == 1 else None,
            "eligible": True,
            "life_blocks": life_blocks,
            "reason": reason,
        }
    )


def propose_again(step: PlanStep, proven: Mapping[str, Any]) -> Proposed:
    """A step behind a checkpoint, proposed on the state of now."""
    action = step.action
    if not isinstance(action, JudgeAction | RollbackAction):
        raise InvariantViolation(f"step {step.number} of a run that trades writes a folder")
    evidence = proven.get(step.candidate or "", {})
    return Proposed(action, step.candidate, evidence, checkpoint=step.checkpoint)
