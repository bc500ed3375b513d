"""Plans evidence without a model: questions of known kinds become calls of our own tools.

What is not understood is asked back with confidence 0: a wrong tool answers something else.
"""

from collections.abc import Mapping, Sequence

from agents.planning.call_check import MOST_CALLS
from agents.planning.completeness import to_follow
from agents.planning.matcher import NotUnderstood, match_question
from schemas.evidence_plan import EvidenceCall, EvidencePlan, PlannedCall
from schemas.settings.planner import OWN
from schemas.tool import ToolDefinition
from services.ports import EvidenceQuestion

SURE, GUESSED = 0.95, 0.85
NOT_UNDERSTOOD = "not all of the question is understood"
NOT_THERE = "the question names what the run does not have"
FOLLOWS_BY = {"fill_id": "why", "report_id": "reports"}


class RulePlanner:
    """Plans by rules."""

    async def plan(
        self,
        question: EvidenceQuestion,
        tools: Mapping[str, Sequence[ToolDefinition]],
        earlier: Sequence[EvidenceCall] = (),
    ) -> EvidencePlan:
        """Calls of our own tools; after `earlier` ones those that follow ids they brought."""
        if earlier:
            return _follow(question, earlier)
        offered = {tool.name for tool in tools.get(OWN, ())}
        try:
            matched = match_question(question)
            if not {method for method, _ in matched.calls} <= offered:
                raise NotUnderstood("The tool that would answer this is not offered here.")
        except NotUnderstood as back:
            why = NOT_THERE if back.names_nothing else NOT_UNDERSTOOD
            return EvidencePlan(confidence=0.0, clarification=str(back), reasoning=why, intent="ambiguous")
        if len(matched.calls) > MOST_CALLS:
            count = len(matched.calls)
            text = f"That takes {count} calls, and a plan has {MOST_CALLS}: ask in several questions."
            return EvidencePlan(confidence=0.0, clarification=text, reasoning=NOT_UNDERSTOOD)
        return EvidencePlan(
            confidence=GUESSED if matched.guessed else SURE,
            tools=tuple(PlannedCall(client=OWN, method=name, params=given) for name, given in matched.calls),
            reasoning=f"asked as {matched.intent}: {', '.join(name for name, _ in matched.calls)}",
            intent=matched.intent,
        )


def _follow(question: EvidenceQuestion, earlier: Sequence[EvidenceCall]) -> EvidencePlan:
    """The calls that follow ids which earlier ones brought."""
    calls = tuple(
        PlannedCall(client=OWN, method=FOLLOWS_BY[name], params={name: value})
        for name, value in to_follow(question, earlier)
    )
    why = "ids that came back are followed" if calls else "nothing is left to follow"
    return EvidencePlan(tools=calls, reasoning=why)
