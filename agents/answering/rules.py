"""The answer by rules: each reply of a tool as sentences in the order of an answer, held against it."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from agents.answering.borne_out import stands_in
from agents.answering.of_decisions import of_decisions
from agents.answering.of_fills import of_fill
from agents.answering.of_markets import of_plan, of_rule, of_runs, of_snapshots
from agents.answering.of_playbooks import of_playbooks
from agents.answering.of_trades import of_episodes, of_gate, of_reports
from agents.answering.statements import Part, Reply, Statement, quote_line
from schemas.evidence_plan import EvidenceCall
from schemas.fact_check import FactRow
from schemas.settings.planner import OWN

ASKED_FOR = frozenset({"episodes", "gate_status", "reports", "playbooks"})  # the fact catalogue answers these
TELLERS: dict[str, Callable[[Reply], Iterator[Statement]]] = {
    "list_runs": of_runs,
    "market_snapshot": of_snapshots,
    "playbooks": of_playbooks,
    "episodes": of_episodes,
    "decisions": of_decisions,
    "reports": of_reports,
    "gate_status": of_gate,
    "explain_fill": of_fill,
    "check_plan": of_plan,
    "backtest_rule": of_rule,
}


def rule_answer(calls: Sequence[EvidenceCall], newest: FactRow, question: str = "") -> tuple[Statement, ...]:
    """What the replies say, what first: no sentence twice, and none whose figures its reply does not have.

    Args:
        calls: in the order of the plans.
        newest: the last row of the run that was read.
        question: what it supposes is said to be false where the replies say so.
    """
    found, alone = dict[str, Statement](), len({call.method for call in calls}) == 1
    for call in calls:
        for statement in _tell_held(
            call, Reply(call.params, call.reply.content or {}, newest, alone, question)
        ):
            found.setdefault(statement.text, statement)
    return tuple(sorted(found.values(), key=lambda statement: statement.part))


def _tell_held(call: EvidenceCall, reply: Reply) -> Iterable[Statement]:
    told = _tell(call, reply)
    return (
        statement
        for statement in told
        if not statement.told or stands_in(statement.text, call.reply.text, call.params)
    )


def _tell(call: EvidenceCall, reply: Reply) -> Iterable[Statement]:
    content: dict[str, Any] | None = call.reply.content
    name = f"{call.client}.{call.method}"
    if content is None:
        text = f"{name} could not answer: {quote_line(call.reply.text)}."
        return [Statement(text, (reply.newest,), Part.PROOF, told=True)]
    if call.client == OWN and call.method in TELLERS:
        return TELLERS[call.method](reply)
    text = f"{name} answered {quote_line(json.dumps(content, ensure_ascii=False))}."
    return [Statement(text, (FactRow(seq=None, kind=name),), Part.AMOUNT, told=True)]
