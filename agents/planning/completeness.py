"""Do the calls answer the question, as far as rules can say? What is missing is named in a few words."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.planning.matcher import NotUnderstood, QuestionCalls, match_question, signs_of
from schemas.evidence_plan import EvidenceCall
from schemas.settings.planner import OWN
from services.ports import EvidenceQuestion

OF_A_PLAYBOOK = frozenset({"trades", "gate"})
BRINGS = {"fill_id": "trades", "report_id": "reports"}


def missing(question: EvidenceQuestion, calls: Sequence[EvidenceCall]) -> tuple[str, ...]:
    """What the calls leave open; nothing where they are enough.

    A call failed and no later one of its tool answered; price or regime without a look at the market; a
    playbook's trades or proof without trades or gate; ids that came back and are what was asked for.
    """
    made, signs = {call.method for call in calls}, signs_of(question)
    found = [f"{call.id} {call.client}.{call.method} failed" for call in _list_failed(calls)]
    if "market" in signs and not made & {"market", "decisions"}:
        found.append("no look at the market")
    named = any(name in question.text for name in question.context.get("playbooks", ()))
    if named and signs & OF_A_PLAYBOOK and not made & {*OF_A_PLAYBOOK, "decisions"}:
        found.append("no trades and no gate of the playbook")
    return (*found, *(f"{name} {value} not followed" for name, value in to_follow(question, calls)))


def _list_failed(calls: Sequence[EvidenceCall]) -> list[EvidenceCall]:
    answered = {(call.client, call.method): at for at, call in enumerate(calls) if not call.reply.is_error}
    return [
        call
        for at, call in enumerate(calls)
        if call.reply.is_error and answered.get((call.client, call.method), -1) < at
    ]


def to_follow(question: EvidenceQuestion, calls: Sequence[EvidenceCall]) -> list[tuple[str, str]]:
    """The id that came back and that the question needs, as (`fill_id` or `report_id`, id)."""
    name = _match_or_nothing(question).follows
    if name is None or any(name in call.params for call in calls):
        return []
    method = BRINGS[name]
    documents = [call.reply.content or {} for call in calls if (call.client, call.method) == (OWN, method)]
    items: list[Mapping[str, Any]] = [item for document in documents for item in document.get(method, ())]
    return [(name, str(item[name])) for item in items if item.get(name)][:1]


def _match_or_nothing(question: EvidenceQuestion) -> QuestionCalls:
    try:
        return match_question(question)
    except NotUnderstood:
        return QuestionCalls("ambiguous", [])
