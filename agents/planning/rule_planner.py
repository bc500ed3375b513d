"""Plans evidence without a model: questions of known kinds become calls of our own tools, others a question.

A name, a moment or a kind of question that is not understood is asked back with confidence 0, for a wrong
tool answers something else than was asked. What a question orders changes nothing: only what it asks about
is read, and no call here changes anything.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from agents.planning.completeness import fills_to_follow, reports_to_follow
from agents.planning.question_reading import Reading, joined, named_before, read_question
from schemas.errors import nearest
from schemas.evidence_plan import EvidenceCall, EvidencePlan, Intent, PlannedCall
from schemas.settings.planner import OWN
from schemas.tool import ToolDefinition
from services.ports import EvidenceQuestion
from services.text.claims import sentences

SURE, GUESSED = 0.95, 0.85
CAN_ASK = (
    "I can look up the market of a symbol, trades and why a fill happened, what a playbook is and has "
    "proven, reports and verdicts, whether a plan would pass, and runs."
)
VAGUE_ANSWER = f"{CAN_ASK} Name one of them."
PART = re.compile(
    r"(?:,\s*(?:and|also|then)?|\band\b|\bthen\b|\balso\b|\bplus\b)\s+(?=(?:also\s+|then\s+)?(?:what|how|why|which|who|when|where|show|"
    r"list|tell|give|is|are|was|were|did|does|do|explain|would|should|has|have|can)\b)",
    re.IGNORECASE,
)
INTENTS: dict[str, Intent] = {
    "market_snapshot": "snapshot",
    "episodes": "episodes",
    "gate_status": "playbook",
    "playbooks": "playbook",
}
Calls = list[tuple[str, dict[str, Any]]]


class NotUnderstood(Exception):
    """A part of a question is not understood; the message is what is asked back."""


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
            return _followed(question, earlier)
        offered = {tool.name for tool in tools.get(OWN, ())}
        calls, intents, readings, asked = Calls(), list[Intent](), list[Reading](), list[str]()
        for reading in readings_of(question):
            try:
                intent, some = _calls(reading, question.context)
            except NotUnderstood as back:
                asked.append(str(back))
                continue
            if any(method not in offered for method, _ in some):
                asked.append(CAN_ASK)
                continue
            calls += [call for call in some if call not in calls]
            intents.append(intent)
            readings.append(reading)
        return _plan(calls, intents, readings, asked)


def readings_of(question: EvidenceQuestion) -> list[Reading]:
    """The parts of a question, each with what `it` means and what an earlier turn named."""
    found: list[Reading] = []
    for span in sentences(question.text, parts=True):
        for part in PART.split(span.text):
            reading = read_question(part, question.context)
            if found:
                reading = named_before(reading, found[-1])
            if not _is_idle(reading) or not part.strip(" ?.!,;"):
                found.append(reading)
    return found or [read_question(question.text, question.context)]


def _is_idle(reading: Reading) -> bool:
    return (
        reading.is_empty
        and not reading.unknown
        and not reading.unsure
        and not reading.earlier
        and not reading.is_span
    )


def _plan(calls: Calls, intents: list[Intent], readings: list[Reading], asked: list[str]) -> EvidencePlan:
    """The plan of all parts; what is not understood is asked back, whatever the other parts are."""
    if asked or not intents:
        words = " ".join(dict.fromkeys(asked)) or VAGUE_ANSWER
        return EvidencePlan(
            confidence=0.0, clarification=words, reasoning="not all of the question is understood"
        )
    several = len({method for method, _ in calls}) > 1 or len(intents) > 1
    intent: Intent = (
        intents[0] if len(set(intents)) == 1 and not (several and intents[0] != "context") else "chain"
    )
    if not calls:
        return EvidencePlan(
            confidence=SURE, clarification=VAGUE_ANSWER, reasoning="nothing is asked for", intent="ambiguous"
        )
    guessed = any(reading.is_guessed or reading.earlier for reading in readings)
    return EvidencePlan(
        confidence=GUESSED if guessed else SURE,
        tools=tuple(PlannedCall(client=OWN, method=method, params=params) for method, params in calls),
        reasoning=f"asked as {intent}: " + ", ".join(method for method, _ in calls),
        intent=intent,
    )


def _followed(question: EvidenceQuestion, earlier: Sequence[EvidenceCall]) -> EvidencePlan:
    """The calls that follow ids which earlier ones brought."""
    fills = [("explain_fill", {"fill_id": fill}) for fill in fills_to_follow(question, earlier)]
    reports = [("reports", {"report_id": report}) for report in reports_to_follow(question, earlier)]
    calls = tuple(
        PlannedCall(client=OWN, method=method, params=params) for method, params in [*fills, *reports]
    )
    return EvidencePlan(
        tools=calls, reasoning="ids that came back are followed" if calls else "nothing is left to follow"
    )


def _calls(reading: Reading, context: Mapping[str, Any]) -> tuple[Intent, Calls]:
    """What one part asks for.

    Raises:
        NotUnderstood: it names what the run does not have, or is of no kind that is known.
    """
    _demand_known(reading, context)
    reading, is_context = _with_context(reading, context)
    intent, calls = next(_kinds(reading, context), (None, []))
    if intent is None:
        raise NotUnderstood(CAN_ASK)
    return ("context" if is_context and calls else intent), calls


def _demand_known(reading: Reading, context: Mapping[str, Any]) -> None:
    if reading.unsure:
        raise NotUnderstood(f"Which playbook is meant: {joined(reading.unsure)}?")
    if reading.unknown:
        known = [*context.get("symbols", ()), *context.get("playbooks", ())]
        name = reading.unknown[0]
        raise NotUnderstood(f"I know no {name[:40]!r}: there are {joined(known)}.{nearest(name[:40], known)}")
    if reading.is_span:
        raise NotUnderstood(
            "Evidence is as of one moment, not of a span: name a day, such as 2004-06-30, or the last trades."
        )


def _with_context(reading: Reading, context: Mapping[str, Any]) -> tuple[Reading, bool]:
    """The reading with what `that symbol` or `it` means by earlier turns.

    Raises:
        NotUnderstood: no earlier turn names it, or several things may be meant.
    """
    recent = {kind: context.get(f"recent_{kind}") for kind in ("symbol", "playbook", "fill")}
    wanted = reading.earlier
    if wanted & {"fill", "trade"} and not reading.ids and recent["fill"]:
        return replace(reading, ids=(str(recent["fill"]),), topics=reading.topics | {"fill"}), True
    if "symbol" in wanted and not reading.symbols:
        return _named(reading, "symbols", "symbol", recent)
    if "playbook" in wanted and not reading.playbooks:
        return _named(reading, "playbooks", "playbook", recent)
    if "it" in wanted and not (reading.symbols or reading.playbooks or reading.ids):
        kind = _meant(reading, recent)
        return _named(reading, f"{kind}s", kind, recent)
    return reading, False


def _meant(reading: Reading, recent: Mapping[str, Any]) -> str:
    if reading.topics & {"definition", "gate"}:
        return "playbook"
    if "market" in reading.topics:
        return "symbol"
    known = [kind for kind in ("symbol", "playbook") if recent[kind]]
    if len(known) == 2:
        raise NotUnderstood(f"Does `it` mean {recent['symbol']} or {recent['playbook']}?")
    return known[0] if known else "symbol"


def _named(reading: Reading, field: str, kind: str, recent: Mapping[str, Any]) -> tuple[Reading, bool]:
    if not recent[kind]:
        raise NotUnderstood(f"No earlier question named a {kind}: which one is meant?")
    names: dict[str, Any] = {field: (str(recent[kind]),)}
    return replace(reading, **names), True


def _kinds(reading: Reading, context: Mapping[str, Any]) -> Iterator[tuple[Intent, Calls]]:
    """The kinds of question that a part may be, the most certain first."""
    topics = reading.topics
    if reading.ids:
        yield _by_id(reading)
    if "check" in topics and reading.direction:
        yield "playbook", _check(reading)
    if {"why", "against"} & topics and reading.playbooks:
        yield "chain", _case(reading)
    if "report" in topics:
        yield "playbook", [("reports", _with(at=reading.at, limit=1 if reading.is_one else reading.limit))]
    if "why" in topics and (reading.is_one or "fill" in topics):
        yield "fill", [("episodes", {**_filters(reading), "limit": 1})]
    about = _about(reading)
    if about:
        yield INTENTS[about[0][0]], about
    if "runs" in topics:
        yield "snapshot", [("list_runs", _with(limit=reading.limit))]
    if reading.symbols or reading.playbooks:
        yield "chain", _overview(reading)
    if reading.is_vague or "update" in topics:
        yield "ambiguous", []


def _by_id(reading: Reading) -> tuple[Intent, Calls]:
    if "report" in reading.topics:
        return "playbook", [("reports", _with(report_id=one, at=reading.at)) for one in reading.ids]
    if not reading.topics & {"fill", "why", "trades"} and not reading.earlier:
        raise NotUnderstood(f"Is {reading.ids[0]} the id of a fill or of a report?")
    return "fill", [("explain_fill", _with(fill_id=one, at=reading.at)) for one in reading.ids]


def _check(reading: Reading) -> Calls:
    if len(reading.symbols) != 1 or len(reading.playbooks) != 1:
        raise NotUnderstood("A plan has one symbol, one playbook and a direction: name all three.")
    plan = {"symbol": reading.symbols[0], "playbook_id": reading.playbooks[0], "direction": reading.direction}
    return [("check_plan", _with(**plan, at=reading.at))]


def _case(reading: Reading) -> Calls:
    """What speaks for and against playbooks: their trades, what they have proven, what became of them."""
    calls: Calls = []
    for name in reading.playbooks:
        cluster = [
            _with(playbook_id=name, regime=regime, at=reading.at) for regime in reading.regimes or (None,)
        ]
        calls += [("episodes", {**one, **_with(outcome=reading.outcome)}) for one in cluster]
        calls += [("gate_status", one) for one in cluster]
        calls.append(("playbooks", _with(playbook_id=name, at=reading.at)))
    return calls


def _about(reading: Reading) -> Calls:
    """One call for each topic that a part asks about, and each name."""
    topics, calls = reading.topics, Calls()
    books: Sequence[str | None] = reading.playbooks or (None,)
    regimes: Sequence[str | None] = reading.regimes or (None,)
    if "market" in topics and not (reading.regimes and topics & {"trades", "gate"}):
        names: Sequence[str | None] = reading.symbols or (None,)
        calls += [("market_snapshot", _with(symbol=symbol, at=reading.at)) for symbol in names]
    if topics & {"trades", "fill"} and not (topics & {"gate"} and not topics & {"trades"}):
        calls += [("episodes", one) for one in _all_filters(reading)]
    if "gate" in topics:
        calls += [
            ("gate_status", _with(playbook_id=book, regime=one, at=reading.at))
            for book, one in product(books, regimes)
        ]
    if "definition" in topics:
        calls += [("playbooks", _with(playbook_id=book, at=reading.at)) for book in books]
    return calls


def _all_filters(reading: Reading) -> list[dict[str, Any]]:
    names = product(reading.playbooks or (None,), reading.symbols or (None,), reading.regimes or (None,))
    limit = 1 if reading.is_one else reading.limit
    rest = _with(outcome=reading.outcome, at=reading.at, limit=limit)
    return [
        {**_with(playbook_id=book, symbol=symbol, regime=regime), **rest} for book, symbol, regime in names
    ]


def _filters(reading: Reading) -> dict[str, Any]:
    return _all_filters(reading)[0]


def _overview(reading: Reading) -> Calls:
    """All of a symbol or a playbook that is named and no more is said of it."""
    calls: Calls = []
    for symbol in reading.symbols:
        calls += [
            ("market_snapshot", _with(symbol=symbol, at=reading.at)),
            ("episodes", _with(symbol=symbol, at=reading.at)),
        ]
    return calls + (_case(reading) if reading.playbooks else [])


def _with(**params: Any) -> dict[str, Any]:
    """Arguments that are given."""
    return {name: value for name, value in params.items() if value is not None}
