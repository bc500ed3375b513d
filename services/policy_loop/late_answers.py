"""Why nothing may come of an answer that took longer than its bar: what it speaks of has changed since."""

from collections.abc import Callable
from dataclasses import dataclass

from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from schemas.regime import RegimeView
from schemas.settings import PolicyLoopSettings
from schemas.vocabulary import AmendmentKind
from services.playbooks.own_plans import playbook_of
from services.policy_loop.evaluation import Conclusion, Evaluation
from services.policy_loop.freeze import ApprovedPlan, JudgedAmendment
from services.policy_loop.snapshot_builder import SnapshotBuilder
from services.policy_loop.staleness import why_stale
from services.ports import PlaybookReader
from trading_core.trigger_engine import TriggerEngine

PolicyOf = Callable[[int], FrozenPolicy | None]  # by the index of a symbol


@dataclass(frozen=True)
class LateAnswers:
    """Holds an answer against the present: the account, the policies in force and the last bar."""

    engine: TriggerEngine
    builder: SnapshotBuilder
    playbooks: PlaybookReader
    settings: Callable[[], PolicyLoopSettings]

    def why_dropped(self, evaluation: Evaluation, in_force: PolicyOf, opened_by: PolicyOf) -> str | None:
        """Why nothing may come of an answer any more; a feed that waits for its answers has no reason.

        A failure is no answer: what follows it depends on the present, not on what was asked.
        """
        if evaluation.requested is None or evaluation.conclusion is None:
            return None
        s, concluded = evaluation.boundary.s, evaluation.conclusion
        now = self.builder.account_state(s)
        stale = why_stale(evaluation.requested, now, self.settings().max_answer_bars)
        if stale is None and now.row != evaluation.requested.row:
            regime = self.builder.regime(self.builder.last_row(s), s)
            stale = why_not_eligible(concluded, in_force(s), opened_by(s), regime, self.playbooks)
        return stale or self.why_out_of_date(s, concluded, opened_by(s) or in_force(s))

    def why_out_of_date(self, s: int, concluded: Conclusion, present: FrozenPolicy | None) -> str | None:
        """Why an amendment has nothing to amend any more: its policy went, or its stop was overtaken.

        None for a plan.
        """
        if not isinstance(concluded.approved, JudgedAmendment):
            return None
        amendment, found = concluded.approved.amendment, None if present is None else present.policy_id
        if found != amendment.policy_id and amendment.kind is not AmendmentKind.STAND_DOWN:
            return f"the policy was {amendment.policy_id} and is {found or 'none'}"
        stop, close = (float(self.engine.state[s][name]) for name in ("stop", "last_close"))
        if amendment.stop is None or min(stop, close) < amendment.stop < max(stop, close):
            return None
        return f"the stop {amendment.stop!r} does not lie between stop {stop!r} and close {close!r} any more"


def why_not_eligible(
    concluded: Conclusion,
    in_force: FrozenPolicy | None,
    opened_by: FrozenPolicy | None,
    present: RegimeView | None,
    playbooks: PlaybookReader,
) -> str | None:
    """Why a plan or a kept policy without a position does not fit the regime of the present bar."""
    plan = _entering(concluded, in_force, opened_by)
    if plan is None:
        return None
    eligible = playbook_of(plan, playbooks).eligibility[plan.direction]
    if eligible.allows(None if present is None else present.labels):
        return None
    shown = "unknown" if present is None else f"{present.labels.key}/{present.labels.structure}"
    return f"playbook {plan.playbook_id!r} {plan.direction} is not eligible in {shown} any more"


def _entering(
    concluded: Conclusion, in_force: FrozenPolicy | None, opened_by: FrozenPolicy | None
) -> PolicyProposal | None:
    """The plan that may still enter because of an answer."""
    approved = concluded.approved
    if isinstance(approved, ApprovedPlan):
        return approved.round.answer.proposal
    if opened_by is None and approved is not None and approved.amendment.kind is AmendmentKind.KEEP:
        return None if in_force is None else in_force.proposal
    return None
