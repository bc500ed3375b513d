"""The calls behind a recommendation, by rules: trades of its cluster, its gate, versions of its playbook.

A judge needs ids and figures, not pages, so whoever plans for it is held to a few items a call.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.evidence_plan import EvidenceCall, EvidencePlan, PlannedCall
from schemas.settings.planner import OWN
from schemas.tool import ToolDefinition
from services.ports import EvidencePlanner, EvidenceQuestion

MOST_ITEMS = 5
ABOUT = {
    "trades": ("playbook_id", "regime"),
    "gate": ("playbook_id", "regime"),
    "playbooks": ("playbook_id",),
}


class ClusterPlanner:
    """Plans for a question whose context names the recommendation, and plans once."""

    async def plan(
        self,
        question: EvidenceQuestion,
        tools: Mapping[str, Sequence[ToolDefinition]],
        earlier: Sequence[EvidenceCall] = (),
    ) -> EvidencePlan:
        """The cluster's trades, its gate and its playbook's versions."""
        if earlier:
            return EvidencePlan(reasoning="What the cluster has was read.", intent="playbook")
        calls = (_call(method, names, question.context) for method, names in ABOUT.items())
        return EvidencePlan(
            tools=tuple(calls),
            reasoning="A recommendation rests on the trades of its cluster, its gate and its versions.",
            intent="playbook",
        )


class PagePlanner:
    """Another planner, held to a few items a call of our own tools."""

    def __init__(self, planner: EvidencePlanner, most: int = MOST_ITEMS) -> None:
        self._planner, self._most = planner, most

    async def plan(
        self,
        question: EvidenceQuestion,
        tools: Mapping[str, Sequence[ToolDefinition]],
        earlier: Sequence[EvidenceCall] = (),
    ) -> EvidencePlan:
        """Its plan with smaller pages."""
        plan = await self._planner.plan(question, tools, earlier)
        return plan.model_copy(update={"tools": tuple(self._brief(call) for call in plan.tools)})

    def _brief(self, call: PlannedCall) -> PlannedCall:
        request = call.params.get("limit", self._most)
        if call.client != OWN or not isinstance(request, int):
            return call
        return call.model_copy(update={"params": {**call.params, "limit": min(request, self._most)}})


def _call(method: str, names: Sequence[str], about: Mapping[str, Any]) -> PlannedCall:
    params = {name: about[name] for name in names if about[name] is not None}
    return PlannedCall(client=OWN, method=method, params=params)
