"""Which calls of our own tools one part of a question asks for, and what is asked back where none fits.

Weak evidence is asked back, and so are two kinds that are as likely, and a filter that no tool takes: an
answer about something else or more than was asked is a wrong one.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from agents.planning.order_answers import SUPPOSED_ANSWER, order_answer, orders_within
from agents.planning.question_kinds import Kind
from agents.planning.question_reading import (
    LEAST_MARGIN,
    LEAST_SCORE,
    OF_IDS,
    OF_PLAYBOOKS,
    OF_SYMBOLS,
    Reading,
    parts_of,
)
from agents.planning.question_times import clock_of
from agents.planning.unmet_filters import unmet
from schemas.errors import nearest
from schemas.evidence_plan import Intent
from services.evidence.tool_arguments import MOST_ITEMS
from services.model_calls.quoting import visible
from services.ports import EvidenceQuestion

CAN_ASK = (
    "I can look up the market of a symbol, trades and why a fill happened, what a playbook is and has "
    "proven, reports and verdicts, whether a plan would pass, and runs. Name one of them."
)
ENGLISH = "Most of its words are not known, and only English is read."
RULE_ANSWER = (
    "That tries a rule, which is noted in the ledger of trials, and a question changes nothing: "
    "`thinktwice mcp` offers backtest_rule."
)
INTENTS: dict[Kind, Intent] = {
    "market": "snapshot",
    "runs": "snapshot",
    "trades": "episodes",
    "decisions": "episodes",
    "fill": "fill",
    "definition": "playbook",
    "gate": "playbook",
    "report": "playbook",
    "check": "playbook",
    "overview": "chain",
}
WHAT: dict[Kind, str] = {
    "market": "the market",
    "runs": "the runs of the store",
    "trades": "trades and what they made",
    "decisions": "why no trade was taken",
    "fill": "why a trade happened",
    "definition": "what playbooks are and how they changed",
    "gate": "what is proven",
    "report": "reports and verdicts",
    "check": "whether a plan would pass",
    "overview": "all that is known of it",
}
CLEAR_SCORE = 0.8
LONGEST_NAME = 40
SPAN_ANSWER = (
    "Evidence is as of one moment, not of a span: name a day, such as 2004-06-30, or the last trades."
)
SINCE_TAKERS: frozenset[Kind] = frozenset({"trades", "decisions", "fill"})
AS_OF_AN_END: frozenset[Kind] = frozenset({"market", "gate"})  # the answer names the day that it is of
NAMELESS: frozenset[Kind] = frozenset({"runs", "report", "check"})
DATED: frozenset[Kind] = frozenset({"runs", "definition"})  # their answers name the day of each change
Calls = list[tuple[str, dict[str, Any]]]


class NotUnderstood(Exception):
    """A part of a question is not understood; the message is what is asked back."""


class NameNotFound(NotUnderstood):
    """It names what the run does not have: a symbol, a playbook, or a time before it."""


def asked_calls(reading: Reading, context: Mapping[str, Any]) -> tuple[Intent, Calls]:
    """What one part asks for.

    Raises:
        NotUnderstood: it names what the run does not have, or is of no kind that is known.
    """
    _demand_known(reading, context)
    reading, is_context = _with_context(reading, context)
    reading = _clip_to_known(reading, context)
    _demand_sure(reading)
    calls = [call for kind in reading.kinds for call in _calls(reading, kind)]
    if reading.run is not None and reading.run != context.get("run_id"):
        calls = [
            (method, params | ({"run": reading.run} if method != "list_runs" else {}))
            for method, params in calls
        ]
    is_context |= "turn" in reading.earlier
    return ("context" if is_context else INTENTS[reading.kind]), calls


def _demand_known(part: Reading, context: Mapping[str, Any]) -> None:
    """Refuse names, times and filters that no tool takes.

    Raises:
        NotUnderstood: saying what would work.
    """
    known = [*context.get("symbols", ()), *context.get("playbooks", ())]
    if part.is_order or part.kind != "rule" and orders_within(part.text):
        raise NotUnderstood(order_answer(part.text, part.symbols))
    if part.is_supposed and part.kind != "rule" and not part.terms and part.kind != "check":
        raise NotUnderstood(SUPPOSED_ANSWER)
    if part.time.wrong:
        raise NameNotFound(part.time.wrong)
    if not part.has_far_limit and (found := unmet(part.text, part.kind)):
        instead = f" Without it: `{found.rest}`." if _is_understood(found.rest, context) else ""
        raise NotUnderstood(f"No tool takes “{found.words}”. {found.told}.{instead}")
    if part.names.unsure:
        raise NotUnderstood(f"Which playbook is meant: {', '.join(part.names.unsure)}?")
    if part.time.is_unclear:
        raise NotUnderstood(SPAN_ANSWER)
    if part.names.unknown:
        name = visible(part.names.unknown[0])[:LONGEST_NAME]
        close = nearest(name, known) or nearest(name.upper(), known)
        raise NameNotFound(f"I know no {name!r}: there are {', '.join(known)}.{close}")
    if part.has_far_limit:
        raise NotUnderstood(f"1 to {MOST_ITEMS} items are told at once: ask for as many, or for all.")
    if (part.kind in ("trades", "gate") or part.playbooks) and part.has_half_regime:
        raise NotUnderstood("Name a regime with both halves, trend and volatility, such as up/low.")
    if part.is_by_exit and part.kind == "trades" and part.rows.by is None:
        raise NotUnderstood("Trades are not chosen by how they ended: name a playbook, a symbol or a regime.")
    if part.asks_advice and part.kind == "outside":
        raise NotUnderstood(f"I tell what was, not what to do. {CAN_ASK}")
    known_words = part.cues + part.rows.known + len(part.symbols) + len(part.playbooks) + len(part.ids)
    if len(part.names.strange) > known_words:
        raise NotUnderstood(f"{ENGLISH} {CAN_ASK}")


def _is_understood(text: str, context: Mapping[str, Any]) -> bool:
    """Whether a question would be answered."""
    try:
        for part in parts_of(EvidenceQuestion(text, context)) if text else ():
            asked_calls(part, context)
    except NotUnderstood:
        return False
    return bool(text)


def _demand_sure(part: Reading) -> None:
    """Refuse a part that is of no kind, or of two.

    Raises:
        NotUnderstood: naming the kinds between which it lies.
    """
    if part.of_before is not None:
        return
    if part.ids and (part.says_little or not (part.classes & OF_IDS or part.score >= CLEAR_SCORE)):
        raise NotUnderstood(f"Is {part.ids[0]} the id of a fill or of a report?")
    if part.kind == "rule":
        raise NotUnderstood(RULE_ANSWER)
    if part.kind == "outside" or part.score < LEAST_SCORE:
        raise NotUnderstood(CAN_ASK)
    if len(part.kinds) == 1 and part.margin < LEAST_MARGIN and part.scores[1][1] in WHAT:
        (_, first), (_, second) = part.scores[:2]
        raise NotUnderstood(f"Is {WHAT[first]} meant, or {WHAT[second]}?")


def _clip_to_known(part: Reading, context: Mapping[str, Any]) -> Reading:
    """The part as of what is known, with a time that its tools take.

    Raises:
        NotUnderstood: it names a later time, or a span where there is none.
    """
    time, clock = part.time, clock_of(context)
    begins = context.get("known_from")
    if begins is not None and time.at is not None and time.at[:10] < begins[:10]:
        until = "" if clock is None else f" to {clock.date()}"
        raise NameNotFound(f"Nothing is known before the run, which is from {begins[:10]}{until}.")
    if clock is not None:
        known = clock.isoformat()
        if any(
            day is not None and day[:10] > known[:10]
            for day in (time.since, time.at if time.since is None else None)
        ):
            raise NotUnderstood(f"Nothing is known after {known}: name an earlier time.")
        if time.at is not None and time.at[:10] >= known[:10]:
            time = replace(time, at=None)
    if part.kind not in SINCE_TAKERS:
        if time.of_day is not None:
            return replace(part, time=replace(time, since=None, at=time.of_day))
        is_as_of_its_end = time.is_within and part.kind in AS_OF_AN_END
        if time.since is not None and not (time.is_day or is_as_of_its_end or part.kind in DATED):
            raise NotUnderstood(SPAN_ANSWER)
        time = replace(time, since=None)
    return replace(part, time=time)


def _with_context(reading: Reading, context: Mapping[str, Any]) -> tuple[Reading, bool]:
    """The reading with what `that symbol` or `it` means by earlier turns.

    Raises:
        NotUnderstood: no earlier turn names it, or several things may be meant.
    """
    recent = {kind: context.get(f"recent_{kind}") for kind in ("symbol", "playbook", "fill", "trade")}
    wanted = reading.earlier
    if "fill" in wanted and not reading.ids:
        if not recent["fill"]:
            raise NotUnderstood("No earlier question named a fill: which one is meant?")
        return replace(reading, ids=(str(recent["fill"]),)), True
    if "symbol" in wanted and not reading.symbols:
        return _read_names(reading, "symbol", recent), True
    if "playbook" in wanted and not reading.playbooks:
        return _read_names(reading, "playbook", recent), True
    is_open = not (reading.symbols or reading.playbooks or reading.ids or reading.is_one)
    is_open &= reading.kind not in NAMELESS
    if "it" in wanted and is_open and reading.kind == "fill" and recent["trade"]:
        return replace(reading, ids=(str(recent["trade"]),)), True
    if "it" in wanted and is_open:
        return _meant(reading, recent), True
    return reading, False


def _meant(reading: Reading, recent: Mapping[str, Any]) -> Reading:
    """The reading with the symbol or playbook that `it` means: the one of which that can be asked.

    Raises:
        NotUnderstood: no earlier turn names one, or both may be meant.
    """
    known = [kind for kind in ("symbol", "playbook") if recent[kind]]
    if len(known) < 2:
        return _read_names(reading, known[0] if known else "symbol", recent)
    symbol, book = _read_names(reading, "symbol", recent), _read_names(reading, "playbook", recent)
    if symbol.kind in OF_SYMBOLS and (symbol.score > book.score or book.kind not in OF_PLAYBOOKS):
        return symbol
    if book.kind in OF_PLAYBOOKS:
        return book
    raise NotUnderstood(f"Does `it` mean {recent['symbol']} or {recent['playbook']}?")


def _read_names(reading: Reading, kind: str, recent: Mapping[str, Any]) -> Reading:
    if not recent[kind]:
        raise NotUnderstood(f"No earlier question named a {kind}: which one is meant?")
    names = (str(recent[kind]),)
    if kind == "symbol":
        return reading.with_names(names, reading.playbooks)
    return reading.with_names(reading.symbols, names)


def _calls(part: Reading, kind: Kind) -> Calls:
    """The calls of one of its kinds."""
    at, books = part.time.at, part.playbooks or (None,)
    match kind:
        case "market":
            return [("market_snapshot", _with(symbol=name, at=at)) for name in part.symbols or (None,)]
        case "trades":
            return [("episodes", chosen) for chosen in _filters(part)]
        case "decisions":
            return _decisions(part)
        case "fill":
            return _fills(part)
        case "definition":
            return [("playbooks", _with(playbook_id=book, at=at)) for book in books]
        case "gate":
            cells = product(books, part.regimes or (None,))
            return [("gate_status", _with(playbook_id=book, regime=regime, at=at)) for book, regime in cells]
        case "report":
            return _reports(part)
        case "check":
            return _check(part)
        case "runs":
            return [("list_runs", _with(limit=part.limit))]
        case _:
            return _overview(part)


def _fills(part: Reading) -> Calls:
    """The fill with its id, or the trades among which it is.

    Raises:
        NotUnderstood: nothing says which.
    """
    if part.ids:
        return [("explain_fill", _with(fill_id=fill_id, at=part.time.at)) for fill_id in part.ids]
    filters = _filters(part)
    if not any(filters):
        raise NotUnderstood(
            "Which fill is meant: the last one, that of a symbol or playbook, or one by its id?"
        )
    return [("episodes", {**chosen, "limit": chosen.get("limit", 1)}) for chosen in filters]


def _reports(part: Reading) -> Calls:
    at = part.time.at
    found: Calls = [("reports", _with(report_id=report_id, at=at)) for report_id in part.ids]
    return found or [
        ("reports", _with(at=at, limit=part.limit or (1 if part.is_one and not part.rows.order else None)))
    ]


def _some(part: Reading) -> int | None:
    return part.limit or (1 if part.is_one else None)


def _check(part: Reading) -> Calls:
    if not (part.symbols and part.playbooks and part.direction):
        raise NotUnderstood("A plan has one symbol, one playbook and a direction: name all three.")
    return [
        (
            "check_plan",
            _with(symbol=symbol, playbook_id=book, direction=part.direction, **part.terms, at=part.time.at),
        )
        for symbol, book in product(part.symbols, part.playbooks)
    ]


def _overview(part: Reading) -> Calls:
    """All of a symbol, or what speaks for and against playbooks: trades, proof, and what became of them."""
    if part.symbols and not (part.playbooks and "why" in part.classes):
        looks: Calls = [("market_snapshot", _with(symbol=symbol, at=part.time.at)) for symbol in part.symbols]
        return looks + [("episodes", chosen) for chosen in _filters(part)]
    calls: Calls = []
    for name in part.playbooks:
        regimes = part.regimes or (None,)
        cluster = [_with(playbook_id=name, regime=regime, at=part.time.at) for regime in regimes]
        symbols = part.symbols or (None,)
        calls += [
            (
                "episodes",
                {**cell, **_with(symbol=symbol, outcome=part.outcome, direction=part.rows.direction)},
            )
            for cell, symbol in product(cluster, symbols)
        ]
        calls += [("gate_status", cell) for cell in cluster]
        calls.append(("playbooks", _with(playbook_id=name, at=part.time.at)))
    return calls


def _decisions(part: Reading) -> Calls:
    """What was decided of each name."""
    time, names = part.time, product(part.playbooks or (None,), part.symbols or (None,))
    return [
        ("decisions", _with(playbook_id=book, symbol=symbol, since=time.since, at=time.at))
        for book, symbol in names
    ]


def _filters(part: Reading) -> list[dict[str, Any]]:
    names = product(part.playbooks or (None,), part.symbols or (None,), part.regimes or (None,))
    rows, limit, time = part.rows, _some(part), part.time
    when = _with(day=time.since) if time.is_day else _with(since=time.since, at=time.at)
    rest = _with(outcome=part.outcome, direction=rows.direction) | when
    by = rows.by if part.kind == "trades" else None
    rest |= _with(by=by) if by else _with(order=rows.order, limit=limit)
    return [
        {**_with(playbook_id=book, symbol=symbol, regime=regime), **rest} for book, symbol, regime in names
    ]


def _with(**params: Any) -> dict[str, Any]:
    """Arguments that are given."""
    return {name: value for name, value in params.items() if value is not None}
