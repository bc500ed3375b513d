"""Why nothing may come of an answer that took longer than its bar: what it speaks of has changed since."""

from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from schemas.regime import RegimeView
from schemas.vocabulary import AmendmentKind
from services.policy_loop.evaluation import ApprovedPlan, Conclusion, JudgedAmendment
from services.ports import PlaybookReader


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
    eligible = playbooks.get(plan.playbook_id).definition.eligibility[plan.direction]
    if present is not None and eligible.allows(present.labels):
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


def why_out_of_date(
    concluded: Conclusion, present: FrozenPolicy | None, stop: float, close: float
) -> str | None:
    """Why an amendment has nothing to amend any more: its policy went, or its stop was overtaken."""
    if not isinstance(concluded.approved, JudgedAmendment):
        return None
    amendment, found = concluded.approved.amendment, None if present is None else present.policy_id
    if found != amendment.policy_id and amendment.kind is not AmendmentKind.STAND_DOWN:
        return f"the policy was {amendment.policy_id} and is {found or 'none'}"
    if amendment.stop is None or min(stop, close) < amendment.stop < max(stop, close):
        return None
    return f"the stop {amendment.stop!r} does not lie between stop {stop!r} and close {close!r} any more"
