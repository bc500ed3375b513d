"""Do the calls answer the question, as far as rules can say? What is missing is named in a few words."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.planning.question_reading import Reading, read_question
from schemas.evidence_plan import EvidenceCall
from schemas.settings.planner import OWN
from services.ports import EvidenceQuestion

MOST_FOLLOWED = 3
DEFINES = frozenset({"definition", "check", "report"})


def missing(question: EvidenceQuestion, calls: Sequence[EvidenceCall]) -> tuple[str, ...]:
    """What the calls leave open; nothing where they are enough.

    A call failed and no later one of its tool answered; price or regime without a look at the market; a
    playbook's trades or proof without episodes or gate; ids that came back and are what was asked for.
    """
    reading = read_question(question.text, question.context)
    made = {call.method for call in calls}
    found = [f"{call.id} {call.client}.{call.method} failed" for call in _failed(calls)]
    if _asks_market(reading) and "market_snapshot" not in made:
        found.append("no look at the market")
    if _asks_playbook(reading) and not made & {"episodes", "gate_status"}:
        found.append("no episodes and no gate of the playbook")
    found += [f"fill {fill} not followed" for fill in _fills(reading, calls)]
    found += [f"report {report} not followed" for report in _reports(reading, calls)]
    return tuple(found)


def _failed(calls: Sequence[EvidenceCall]) -> list[EvidenceCall]:
    answered = {
        (call.client, call.method): place for place, call in enumerate(calls) if not call.reply.is_error
    }
    return [
        call
        for place, call in enumerate(calls)
        if call.reply.is_error and answered.get((call.client, call.method), -1) < place
    ]


def _asks_market(reading: Reading) -> bool:
    """Whether it asks for a price or a regime, not for trades in a regime."""
    return "market" in reading.topics and not reading.topics & {"trades", "gate", "against"}


def _asks_playbook(reading: Reading) -> bool:
    """Whether it asks how a playbook does, not what it is or whether a plan passes."""
    return bool(reading.playbooks) and not reading.topics & DEFINES and not reading.ids


def fills_to_follow(question: EvidenceQuestion, calls: Sequence[EvidenceCall]) -> list[str]:
    """Ids of fills that came back and that the question asks the reasons of."""
    return _fills(read_question(question.text, question.context), calls)


def reports_to_follow(question: EvidenceQuestion, calls: Sequence[EvidenceCall]) -> list[str]:
    """Ids of reports that came back and that the question asks for in full."""
    return _reports(read_question(question.text, question.context), calls)


def _fills(reading: Reading, calls: Sequence[EvidenceCall]) -> list[str]:
    asks = "why" in reading.topics and (reading.is_one or "fill" in reading.topics) and not reading.ids
    if not asks or any(call.method == "explain_fill" for call in calls):
        return []
    return _ids(calls, "episodes", "fill_id")


def _reports(reading: Reading, calls: Sequence[EvidenceCall]) -> list[str]:
    asks = "report" in reading.topics and reading.is_whole and not reading.ids
    if not asks or any(call.params.get("report_id") for call in calls):
        return []
    return _ids(calls, "reports", "report_id")


def _ids(calls: Sequence[EvidenceCall], method: str, field: str) -> list[str]:
    documents = [call.reply.content or {} for call in calls if (call.client, call.method) == (OWN, method)]
    items: list[Mapping[str, Any]] = [item for document in documents for item in document.get(method, ())]
    return [str(item[field]) for item in items if item.get(field)][:MOST_FOLLOWED]
