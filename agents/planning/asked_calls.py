"""Which calls of our own tools one part of a question asks for, and what is asked back where none fits.

A filter that no tool takes is asked back, too: an answer about more than was asked is a wrong one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from agents.planning.question_reading import Reading
from schemas.canonical import ns_to_datetime
from schemas.errors import nearest
from schemas.evidence_plan import Intent
from services.model_calls.quoting import visible

CAN_ASK = (
    "I can look up the market of a symbol, trades and why a fill happened, what a playbook is and has "
    "proven, reports and verdicts, whether a plan would pass, and runs."
)
INTENTS: dict[str, Intent] = {
    "market_snapshot": "snapshot",
    "episodes": "episodes",
    "gate_status": "playbook",
    "playbooks": "playbook",
}
LONGEST_NAME = 40
SPAN_ANSWER = (
    "Evidence is as of one moment, not of a span: name a day, such as 2004-06-30, or the last trades."
)
SINCE_TAKERS = frozenset({"episodes", "decisions", "explain_fill"})
Calls = list[tuple[str, dict[str, Any]]]


class NotUnderstood(Exception):
    """A part of a question is not understood; the message is what is asked back."""


def asked_calls(reading: Reading, context: Mapping[str, Any]) -> tuple[Intent, Calls]:
    """What one part asks for.

    Raises:
        NotUnderstood: it names what the run does not have, or is of no kind that is known.
    """
    _demand_known(reading, context)
    reading, is_context = _with_context(_known_by_then(reading, context), context)
    intent, calls = next(_kinds(reading), (None, []))
    if intent is None:
        raise NotUnderstood(CAN_ASK)
    if reading.since is not None and any(method not in SINCE_TAKERS for method, _ in calls):
        raise NotUnderstood(SPAN_ANSWER)
    return ("context" if calls and (is_context or "turn" in reading.earlier) else intent), calls


def _demand_known(part: Reading, context: Mapping[str, Any]) -> None:
    """Refuse names, times and filters that no tool takes.

    Raises:
        NotUnderstood: saying what would work.
    """
    known = [*context.get("symbols", ()), *context.get("playbooks", ())]
    if part.is_order:
        raise NotUnderstood(f"I read and change nothing. {CAN_ASK}")
    if part.names.unsure:
        raise NotUnderstood(f"Which playbook is meant: {', '.join(part.names.unsure)}?")
    if part.names.unknown:
        name = visible(part.names.unknown[0])[:LONGEST_NAME]
        close = nearest(name, known) or nearest(name.upper(), known)
        raise NotUnderstood(f"I know no {name!r}: there are {', '.join(known)}.{close}")
    if part.is_span:
        raise NotUnderstood(SPAN_ANSWER)
    if (part.topics & {"trades", "gate"} or part.playbooks) and part.has_half_regime:
        raise NotUnderstood("Name a regime with both halves, trend and volatility, such as up/low.")
    if part.is_by_exit and "trades" in part.topics and "why" not in part.topics:
        raise NotUnderstood("Trades are not chosen by how they ended: name a playbook, a symbol or a regime.")
    if part.asks_advice and not part.playbooks:
        raise NotUnderstood(f"I tell what was, not what to do. {CAN_ASK}")
    if len(part.names.strange) > part.cues + part.rows.known + len(part.symbols) + len(part.playbooks) + len(
        part.ids
    ):
        raise NotUnderstood(CAN_ASK)


def _known_by_then(part: Reading, context: Mapping[str, Any]) -> Reading:
    """The part as of what is known, where it names the last day of that.

    Raises:
        NotUnderstood: it names a later time.
    """
    known_at = context.get("known_at")
    if known_at is None:
        return part
    known = ns_to_datetime(known_at).isoformat() if isinstance(known_at, int) else str(known_at)
    if part.rows.today and part.since is None and part.at is None:
        day = datetime.fromisoformat(known) - timedelta(microseconds=1)  # midnight ends a day
        is_of_trades = "trades" in part.topics or part.rows.not_traded
        return replace(part, since=str(day.date())) if is_of_trades else part
    if part.since is not None and part.since > known[:10]:
        raise NotUnderstood(f"Nothing is known after {known}: name an earlier time.")
    if part.at is None:
        return part
    if part.at[:10] < known[:10]:
        return part
    if part.at[:10] > known[:10]:
        raise NotUnderstood(f"Nothing is known after {known}: name an earlier time.")
    return replace(part, at=None)


def _with_context(reading: Reading, context: Mapping[str, Any]) -> tuple[Reading, bool]:
    """The reading with what `that symbol` or `it` means by earlier turns.

    Raises:
        NotUnderstood: no earlier turn names it, or several things may be meant.
    """
    recent = {kind: context.get(f"recent_{kind}") for kind in ("symbol", "playbook", "fill")}
    wanted = reading.earlier
    if "fill" in wanted and not reading.ids:
        if not recent["fill"]:
            raise NotUnderstood("No earlier question named a fill: which one is meant?")
        return replace(reading, ids=(str(recent["fill"]),), topics=reading.topics | {"fill"}), True
    if "symbol" in wanted and not reading.symbols:
        return _named(reading, "symbol", recent)
    if "playbook" in wanted and not reading.playbooks:
        return _named(reading, "playbook", recent)
    if "it" in wanted and not (reading.symbols or reading.playbooks or reading.ids):
        return _named(reading, _meant(reading, recent), recent)
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


def _named(reading: Reading, kind: str, recent: Mapping[str, Any]) -> tuple[Reading, bool]:
    if not recent[kind]:
        raise NotUnderstood(f"No earlier question named a {kind}: which one is meant?")
    names = (str(recent[kind]),)
    if kind == "symbol":
        return reading.with_names(names, reading.playbooks), True
    return reading.with_names(reading.symbols, names), True


def _kinds(reading: Reading) -> Iterator[tuple[Intent, Calls]]:
    """The kinds of question that a part may be, the most certain first."""
    topics = reading.topics
    if reading.ids:
        yield _by_id(reading)
    if reading.asks_of_plan:
        yield "playbook", _check(reading)
    if reading.asks_why_of_fill and not reading.rows.not_traded:
        yield "fill", [("episodes", {**one, "limit": 1}) for one in _filters(reading)]
    rows = reading.rows
    if rows.not_traded or rows.policies:
        yield "episodes", _decisions(reading)
    if rows.asks_of_a_playbook:
        books = reading.playbooks or (None,)
        yield "playbook", [("playbooks", _with(playbook_id=book, at=reading.at)) for book in books]
    if rows.asks_of_trades and rows.by is not None:
        yield "episodes", [("episodes", one) for one in _filters(reading)]
    if {"why", "against"} & topics and reading.playbooks and rows.order is None:
        yield "chain", _case(reading)
    if "report" in topics:
        found = [("reports", _with(at=reading.at, limit=1 if reading.is_one else reading.limit))]
        changed = reading.playbooks if "definition" in topics else ()
        yield "playbook", found + [("playbooks", _with(playbook_id=book, at=reading.at)) for book in changed]
    if reading.asks_of_all_playbooks:
        ranked = ["gate_status"] if topics & {"ranked", "trades", "gate"} else []
        yield "playbook", [(method, _with(at=reading.at)) for method in ["playbooks", *ranked]]
    about = _about(reading)
    if about:
        yield INTENTS[about[0][0]], about
    if "runs" in topics:
        yield "snapshot", [("list_runs", _with(limit=reading.limit))]
    if (reading.symbols or reading.playbooks) and not reading.names.strange:
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
    if not reading.names_a_plan:
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
    if "trades" in topics or topics & {"fill", "gate"} == {"fill"}:
        calls += [("episodes", one) for one in _filters(reading)]
    if "gate" in topics:
        calls += [
            ("gate_status", _with(playbook_id=book, regime=one, at=reading.at))
            for book, one in product(books, regimes)
        ]
    if "definition" in topics:
        calls += [("playbooks", _with(playbook_id=book, at=reading.at)) for book in books]
    return calls


def _decisions(reading: Reading) -> Calls:
    """What was decided of each name; of one day where a day is named."""
    since = reading.since or (reading.at and reading.at[:10])
    return [
        ("decisions", _with(playbook_id=book, symbol=symbol, since=since, at=reading.at))
        for book, symbol in product(reading.playbooks or (None,), reading.symbols or (None,))
    ]


def _filters(reading: Reading) -> list[dict[str, Any]]:
    names = product(reading.playbooks or (None,), reading.symbols or (None,), reading.regimes or (None,))
    rows, limit = reading.rows, reading.limit or (1 if reading.is_one else None)
    rest = _with(outcome=reading.outcome, direction=rows.direction, since=reading.since, at=reading.at)
    rest |= _with(by=rows.by) if rows.asks_of_trades and rows.by else _with(order=rows.order, limit=limit)
    return [
        {**_with(playbook_id=book, symbol=symbol, regime=regime), **rest} for book, symbol, regime in names
    ]


def _overview(reading: Reading) -> Calls:
    """All of a symbol or a playbook that is named and no more is said of it."""
    if not reading.symbols:
        return _case(reading)
    looks = [("market_snapshot", _with(symbol=symbol, at=reading.at)) for symbol in reading.symbols]
    return looks + [("episodes", one) for one in _filters(reading)]


def _with(**params: Any) -> dict[str, Any]:
    """Arguments that are given."""
    return {name: value for name, value in params.items() if value is not None}
