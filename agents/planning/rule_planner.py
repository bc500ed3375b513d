"""Plans evidence without a model: questions of known kinds become calls of our own tools, others a question.

A name, a moment or a kind of question that is not understood is asked back with confidence 0, for a wrong
tool answers something else than was asked. What a question orders changes nothing: only what it asks about
is read, and no call here changes anything.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agents.planning.asked_calls import CAN_ASK, Calls, NameNotFound, NotUnderstood, asked_calls
from agents.planning.call_check import MOST_CALLS
from agents.planning.completeness import to_follow
from agents.planning.left_out import tell_left_out
from agents.planning.question_kinds import PLACES
from agents.planning.question_reading import LITTLE, Reading, read_question
from schemas.evidence_plan import EvidenceCall, EvidencePlan, Intent, PlannedCall
from schemas.settings.planner import OWN
from schemas.tool import ToolDefinition
from services.ports import EvidenceQuestion
from services.text.claim_words import words as words_of

SURE, GUESSED = 0.95, 0.85
NOT_UNDERSTOOD = "not all of the question is understood"
NOT_THERE = "the question names what the run does not have"
# Words of a part that only says which trades are meant.
OF_SOME = words_of(
    "only just that it long longs short shorts trade trades one ones side winners losers won lost winning"
    " losing best worst longest shortest of"
)
WHY_THAT = re.compile(
    r"\W*(?:(?:and|but|so) )?(?:why|how come|how so)(?: (?:that|this)(?: (?:one|trade))?| it| so)?\W*",
    re.IGNORECASE,
)
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
        parts = [_continue(part, question) for part in read]
        if earlier:
            return _follow(parts, earlier)
        offered = {tool.name for tool in tools.get(OWN, ())}
        calls, intents, asked, why = Calls(), list[Intent](), list[str](), NOT_UNDERSTOOD
        for part in parts:
            try:
                intent, some = asked_calls(part, question.context)
                if any(method not in offered for method, _ in some):
                    raise NotUnderstood(CAN_ASK)
            except NotUnderstood as back:
                asked.append(str(back))
                why = NOT_THERE if isinstance(back, NameNotFound) else why
                continue
            calls += [call for call in some if call not in calls]
            intents.append(intent)
        if len(calls) > MOST_CALLS:
            asked.append(
                f"That takes {len(calls)} look-ups, and a plan has {MOST_CALLS}: ask in several questions."
            )
        if asked:
            return EvidencePlan(confidence=0.0, clarification=" ".join(dict.fromkeys(asked)), reasoning=why)
        return _plan(calls, intents, parts, tell_left_out(parts, left_out))


def _continue(part: Reading, question: EvidenceQuestion) -> Reading:
    """A part like `and MSFT?` or `and shorts only` with what was asked before, and all that it named."""
    trade = question.context.get("recent_trade")
    if trade and WHY_THAT.fullmatch(part.text):
        return replace(part, of_before="fill", ids=(str(trade),))
    if not (part.follows and question.turns and _only_names(part)):
        return part
    before = _find_answered(question)
    if before is None or before.kind == "outside":
        return part
    filled = part.with_names(part.symbols or before.symbols, part.playbooks or before.playbooks)
    is_timeless = part.time.since is None and part.time.at is None
    return replace(
        filled,
        of_before=before.kind,
        rows=replace(
            before.rows,
            direction=part.rows.direction or before.rows.direction,
            order=part.rows.order or before.rows.order,
        ),
        outcome=part.outcome or before.outcome,
        regimes=part.regimes or before.regimes,
        time=before.time if is_timeless else part.time,
        earlier=filled.earlier | before.earlier | {"turn"},
    )


def _find_answered(question: EvidenceQuestion) -> Reading | None:
    """What the newest turn asked for that was not asked back; None where there is none."""
    for place in range(len(question.turns) - 1, -1, -1):
        earlier = replace(question, text=question.turns[place][0], turns=question.turns[:place])
        before = _continue(read_question(earlier)[0][-1], earlier)
        try:
            asked_calls(before, question.context)
        except NotUnderstood:
            continue
        return before
    return None


def _only_names(part: Reading) -> bool:
    """Whether it says whom or what else it asks about, and nothing of what is asked."""
    rows = part.rows
    named = part.symbols or part.playbooks or part.regimes or rows.direction or rows.order or part.outcome
    return bool(named or part.time.since or part.time.at) and set(part.words) <= PLACES | LITTLE | OF_SOME


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


def _follow(parts: Sequence[Reading], earlier: Sequence[EvidenceCall]) -> EvidencePlan:
    """The calls that follow ids which earlier ones brought."""
    calls = tuple(
        PlannedCall(client=OWN, method=FOLLOWS_BY[name], params={name: value})
        for name, value in to_follow(parts, earlier)
    )
    why = "ids that came back are followed" if calls else "nothing is left to follow"
    return EvidencePlan(tools=calls, reasoning=why)
