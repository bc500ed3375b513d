"""Plans evidence without a model: questions of known kinds become calls of our own tools, others a question.

A name, a moment or a kind of question that is not understood is asked back with confidence 0, for a wrong
tool answers something else than was asked. What a question orders changes nothing: only what it asks about
is read, and no call here changes anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agents.planning.asked_calls import CAN_ASK, Calls, NotUnderstood, asked_calls
from agents.planning.call_check import MOST_CALLS
from agents.planning.completeness import to_follow
from agents.planning.left_out import told_of_left_out
from agents.planning.question_reading import Reading, read_part, read_question
from schemas.evidence_plan import EvidenceCall, EvidencePlan, Intent, PlannedCall
from schemas.settings.planner import OWN
from schemas.tool import ToolDefinition
from services.ports import EvidenceQuestion

SURE, GUESSED = 0.95, 0.85
FOLLOWS_BY = {"fill_id": "explain_fill", "report_id": "reports"}


class RulePlanner:
    """Plans by rules."""

    async def plan(
        self,
        question: EvidenceQuestion,
        tools: Mapping[str, Sequence[ToolDefinition]],
        earlier: Sequence[EvidenceCall] = (),
    ) -> EvidencePlan:
        """Calls of our own tools; after `earlier` ones those that follow ids they brought."""
        read, left_out = read_question(question)
        parts = [_continued(part, question) for part in read]
        if earlier:
            return _followed(parts, earlier)
        offered = {tool.name for tool in tools.get(OWN, ())}
        calls, intents, asked = Calls(), list[Intent](), list[str]()
        for part in parts:
            try:
                intent, some = asked_calls(part, question.context)
                if any(method not in offered for method, _ in some):
                    raise NotUnderstood(CAN_ASK)
            except NotUnderstood as back:
                asked.append(str(back))
                continue
            calls += [call for call in some if call not in calls]
            intents.append(intent)
        if len(calls) > MOST_CALLS:
            asked.append(
                f"That takes {len(calls)} look-ups, and a plan has {MOST_CALLS}: ask in several questions."
            )
        if asked:
            words, why = " ".join(dict.fromkeys(asked)), "not all of the question is understood"
            return EvidencePlan(confidence=0.0, clarification=words, reasoning=why)
        return _plan(calls, intents, parts, told_of_left_out(parts, left_out))


def _continued(part: Reading, question: EvidenceQuestion) -> Reading:
    """A part like `and MSFT?` with the kind of what was asked before."""
    is_bare = part.says_little and (part.symbols or part.playbooks or part.regimes)
    if not (part.follows and is_bare and question.turns):
        return part
    before = read_part(question.turns[-1][0], question.context)
    if before.kind == "outside":
        return part
    filled = part.with_names(part.symbols or before.symbols, part.playbooks or before.playbooks)
    regimes, earlier = part.regimes or before.regimes, filled.earlier | {"turn"}
    rows, outcome = before.rows, before.outcome
    return replace(
        filled, of_before=before.kind, rows=rows, outcome=outcome, regimes=regimes, earlier=earlier
    )


def _plan(calls: Calls, intents: list[Intent], parts: Sequence[Reading], told: str | None) -> EvidencePlan:
    """The plan of all parts; `told` is what its answer leaves out."""
    several = len({method for method, _ in calls}) > 1 and intents[0] != "context"
    intent: Intent = "chain" if several or len(set(intents)) > 1 else intents[0]
    is_guessed = any(
        part.is_guessed or part.earlier or part.names.strange or part.is_doubtful for part in parts
    )
    return EvidencePlan(
        confidence=GUESSED if is_guessed else SURE,
        clarification=told,
        tools=tuple(PlannedCall(client=OWN, method=method, params=params) for method, params in calls),
        reasoning=f"asked as {intent}: {', '.join(method for method, _ in calls)}",
        intent=intent,
    )


def _followed(parts: Sequence[Reading], earlier: Sequence[EvidenceCall]) -> EvidencePlan:
    """The calls that follow ids which earlier ones brought."""
    calls = tuple(
        PlannedCall(client=OWN, method=FOLLOWS_BY[name], params={name: value})
        for name, value in to_follow(parts, earlier)
    )
    why = "ids that came back are followed" if calls else "nothing is left to follow"
    return EvidencePlan(tools=calls, reasoning=why)
