"""A planner that a model is, with the rules behind it: what the model does not answer, the rules plan."""

from collections.abc import Mapping, Sequence

from schemas.errors import ModelError
from schemas.evidence_plan import EvidenceCall, EvidencePlan
from schemas.tool import ToolDefinition
from services.ports import EvidencePlanner, EvidenceQuestion


class BackedPlanner:
    """Asks one planner, and another one where the first one's plan cannot be used.

    The plan says in `failure` why the first one's was not taken.
    """

    def __init__(self, first: EvidencePlanner, evidence_planner: EvidencePlanner) -> None:
        self._first, self._behind = first, evidence_planner

    async def plan(
        self,
        question: EvidenceQuestion,
        tools: Mapping[str, Sequence[ToolDefinition]],
        earlier: Sequence[EvidenceCall] = (),
    ) -> EvidencePlan:
        """The first one's plan, or the other one's with the reason."""
        try:
            plan = await self._first.plan(question, tools, earlier)
        except ModelError as error:
            plan = EvidencePlan(confidence=0.0, failure=str(error))
        if plan.failure is None:
            return plan
        later = await self._behind.plan(question, tools, earlier)
        return later.model_copy(update={"failure": plan.failure})
