"""Phase 2, step by step on the lifecycle: each step makes exactly the version that was approved, or fails."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.canonical import content_id
from schemas.errors import ConfigError, InvariantViolation
from schemas.judge import JudgeAction
from schemas.plan import ChangePlan, FolderAction, PlanStep, RollbackAction
from schemas.playbook import PlaybookVersion
from schemas.settings import JudgeSettings
from schemas.vocabulary import VersionState
from services.playbooks.lifecycle import PlaybookLifecycle
from services.slow_loop.action_contract import ContractState, check_action
from services.slow_loop.promotion_levels import TrialKey


@dataclass(frozen=True)
class ExecutedStep:
    """A step with the versions that moved; `key` is the ledger of the candidate that it has spent."""

    step: PlanStep
    versions: tuple[PlaybookVersion, ...]
    key: TrialKey | None = None


class StepFailed(Exception):
    """A step that the present state does not allow, with the reason and the steps before it."""

    def __init__(self, step: PlanStep, reason: str, before: Sequence[ExecutedStep]) -> None:
        super().__init__(reason)
        self.step = step
        self.before = tuple(before)


@dataclass(eq=False)
class PlanExecutor:
    """Carries out the steps of plans on the versions of one run.

    `key_of` names the ledger of a candidate by its version hash.
    """

    lifecycle: PlaybookLifecycle
    key_of: Callable[[str], TrialKey | None]
    judge: JudgeSettings
    timeframe: str

    def carry_out(
        self, plan: ChangePlan, steps: Sequence[PlanStep], proven: Mapping[str, Any], at: int
    ) -> tuple[ExecutedStep, ...]:
        """Carry out some steps of a plan, all or none.

        Raises:
            StepFailed: one of them cannot be; then every version stands as before.
        """
        mark, done = self.lifecycle.mark(), list[ExecutedStep]()
        for step in steps:
            try:
                key = None if step.candidate is None else self.key_of(step.candidate)
                versions = self._one_step(plan, step, proven, at)
                self._demand_approved(step, versions)
            except (ConfigError, InvariantViolation) as error:
                self.lifecycle.return_to(mark)
                raise StepFailed(step, str(error), done) from error
            done.append(ExecutedStep(step, versions, key))
        return tuple(done)

    def roll_back(
        self, made: Sequence[tuple[str, str, str]], reason: str, at: int
    ) -> tuple[PlaybookVersion, ...]:
        """Return playbooks to their versions of before, the last first; all or none.

        Args:
            made: (playbook, version before, version after) in the order in which they were made.
            reason: of the transitions.
            at: the time, ns.

        Raises:
            ConfigError: a playbook has moved on since, or has no way back.
        """
        mark, done = self.lifecycle.mark(), list[PlaybookVersion]()
        try:
            for playbook_id, before, after in reversed(made):
                present = self.lifecycle.active(playbook_id)
                if present.content_hash != after:
                    raise ConfigError(
                        f"{playbook_id} version {present.version} is in force: it has moved on since the plan"
                    )
                done += self.lifecycle.rollback(playbook_id, at, reason, to=before)
        except (ConfigError, InvariantViolation):
            self.lifecycle.return_to(mark)
            raise
        return tuple(done)

    def _one_step(
        self, plan: ChangePlan, step: PlanStep, proven: Mapping[str, Any], at: int
    ) -> tuple[PlaybookVersion, ...]:
        action, known_at, why = step.action, plan.made_at, step.candidate
        if isinstance(action, FolderAction):
            raise ConfigError("a run that trades writes no folder: its playbooks change in it")
        if isinstance(action, RollbackAction):
            return self.lifecycle.rollback(
                action.playbook_id, at, action.reason, to=action.version_hash, known_at=known_at
            )
        if why is not None and "|" in why:
            version_hash, _, cell = why.partition("|")
            name, ledger, origin = str(action.playbook_id), (version_hash, cell), _origin(plan, step)
            if plan.report_id is None:  # the measure's own origin stays
                origin = {}
            return self.lifecycle.end_measures(name, ledger, proven[why], origin, at, known_at)
        if why is not None:
            return self.lifecycle.promote(why, proven[why], at, known_at)
        self._demand_contract(action)
        if action.kind == "replan":
            return ()
        if action.kind == "open_experiment":
            return self._experiment(plan, action, at)
        approved = step.makes[0].definition
        return self.lifecycle.enact(action, approved, _origin(plan, step), {}, at, self.timeframe)

    def _experiment(self, plan: ChangePlan, action: JudgeAction, at: int) -> tuple[PlaybookVersion, ...]:
        refused = len(self.lifecycle.refused)
        begun = self.lifecycle.apply(
            [action],
            report_id=plan.report_id,
            verdict_id=plan.verdict_id,
            at=at,
            timeframe=self.timeframe,
        )
        if not begun and len(self.lifecycle.refused) == refused:
            raise ConfigError(f"{action.kind}: already_decided, this report has opened it before")
        if len(self.lifecycle.refused) > refused:
            last = self.lifecycle.refused[-1]
            raise ConfigError(f"{action.kind}: {last.code}, {last.reason}")
        return begun

    def _demand_contract(self, action: JudgeAction) -> None:
        """What a person's word carries keeps the contract still; what is proven kept it when it began."""
        definitions = self.lifecycle.definitions()
        running = sum(trial.kind == "experiment" for trial in self.lifecycle.shadows())
        refusal = check_action(action, ContractState(definitions, self.judge, running))
        if refusal is not None:
            raise ConfigError(f"{action.kind}: {refusal.code}, {refusal.reason}")

    @staticmethod
    def _demand_approved(step: PlanStep, versions: Sequence[PlaybookVersion]) -> None:
        entered = [
            version.definition.content_hash for version in versions if version.state is VersionState.ACTIVE
        ]
        approved = [made.version_hash for made in step.makes]
        if entered != approved:
            found, wanted = (
                ", ".join(key[:12] for key in hashes) or "none" for hashes in (entered, approved)
            )
            raise ConfigError(f"it would make version {found}, approved was {wanted}")


def _origin(plan: ChangePlan, step: PlanStep) -> dict[str, str | None]:
    action_id = content_id({"plan": plan.content_hash, "step": step.number})
    return {"report_id": plan.report_id, "verdict_id": plan.verdict_id, "action_id": action_id}
