"""One evaluation of the policy loop on its way from the boundary to what comes of it: plain data.

It begins with a snapshot, is concluded beside the bars, and is carried out at the bar at which its answer is
there. What may be carried out holds its evidence, so that freeze can demand it.
"""

from dataclasses import dataclass, field

from schemas.background import DecisionBackground
from schemas.invocation import ReflectionInvocationMeta
from schemas.reflection import PolicyLevelReflectionResult
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import EvaluationOutcome, InvocationOutcome
from services.policy_loop.freeze import ApprovedPlan, JudgedAmendment
from services.policy_loop.records import PolicyJournal, Reflection
from services.policy_loop.staleness import AccountState
from services.ports import RevisionBudget
from trading_core.trigger_engine import Boundary


@dataclass(frozen=True)
class Conclusion:
    """What an evaluation comes to; nothing of it is done yet.

    Attributes:
        outcome, reason: how it will have ended.
        approved: what is to be carried out with its evidence; None: nothing, or a symbol without a policy
            that stands down.
    """

    outcome: EvaluationOutcome
    reason: str
    approved: ApprovedPlan | JudgedAmendment | None = None


@dataclass
class Evaluation:
    """One evaluation on its way.

    Attributes:
        boundary, record, budget, event_id: fixed when it begins.
        asked, snapshot: what it looked at; None when that failed.
        background: what a model strategist is shown beside it; None: rules decide, or nothing can be chosen.
        conclusion: what is to be done; None until it was thought about, or after a failure.
        error: the failure that it came to instead.
        invocations: how each reflection went, in order; there is at least one at the end.
        latency_ms: time spent thinking; telemetry.
    """

    boundary: Boundary
    record: PolicyJournal
    budget: RevisionBudget
    event_id: str
    requested: AccountState | None = None
    snapshot: PolicySnapshot | None = None
    background: DecisionBackground | None = None
    conclusion: Conclusion | None = None
    error: Exception | None = None
    invocations: list[ReflectionInvocationMeta] = field(default_factory=list)
    rounds: int = 0
    latency_ms: float = 0.0

    def note_reflection(self, reflection: Reflection) -> None:
        """A reflection took place, or its record says why none did."""
        met = reflection.meta if isinstance(reflection, PolicyLevelReflectionResult) else reflection
        self.invocations.append(met)

    def not_invoked(self, outcome: InvocationOutcome, reason: str) -> None:
        """No reflection took place, by a skip or a failure."""
        source = "none" if self.snapshot is None else self.snapshot.leading_event
        self.invocations.append(
            ReflectionInvocationMeta.trust(
                cadence="policy_loop", source=source, outcome=outcome, skip_reason=reason
            )
        )
