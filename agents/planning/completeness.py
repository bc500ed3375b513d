"""Do the calls answer the question, as far as rules can say? What is missing is named in a few words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.planning.question_reading import Reading, parts_of
from schemas.evidence_plan import EvidenceCall
from schemas.settings.planner import OWN
from services.ports import EvidenceQuestion

MOST_FOLLOWED = 3
HOW_IT_DOES = frozenset({"trades", "gate", "overview"})


def missing(question: EvidenceQuestion, calls: Sequence[EvidenceCall]) -> tuple[str, ...]:
    """What the calls leave open; nothing where they are enough.

    A call failed and no later one of its tool answered; price or regime without a look at the market; a
    playbook's trades or proof without episodes or gate; ids that came back and are what was asked for.
    """
    parts, made = parts_of(question), {call.method for call in calls}
    found = [f"{call.id} {call.client}.{call.method} failed" for call in _list_failed(calls)]
    if not made & {"market_snapshot", "decisions"} and any(map(_asks_market, parts)):
        found.append("no look at the market")
    if not made & {"episodes", "gate_status", "decisions"} and any(map(_asks_playbook, parts)):
        found.append("no episodes and no gate of the playbook")
    found += [f"{name} {value} not followed" for name, value in to_follow(parts, calls)]
    return tuple(found)


def _list_failed(calls: Sequence[EvidenceCall]) -> list[EvidenceCall]:
    answered = {(call.client, call.method): at for at, call in enumerate(calls) if not call.reply.is_error}
    return [
        call
        for at, call in enumerate(calls)
        if call.reply.is_error and answered.get((call.client, call.method), -1) < at
    ]


def _asks_market(part: Reading) -> bool:
    """Whether it asks for a price or a regime, not for trades in a regime."""
    return part.kind == "market"


def _asks_playbook(part: Reading) -> bool:
    """Whether it asks how a playbook does, not what it is or whether a plan passes."""
    return bool(part.playbooks) and part.kind in HOW_IT_DOES


def to_follow(parts: Iterable[Reading], calls: Sequence[EvidenceCall]) -> list[tuple[str, str]]:
    """Ids that came back and that the question needs, as (`fill_id` or `report_id`, id): at most 3."""
    followed = {(name, str(value)) for call in calls for name, value in call.params.items()}
    found: list[tuple[str, str]] = []
    for part in parts:
        if part.asks_why_of_fill and not _have(followed, "fill_id"):
            fills = _brought(calls, "episodes", "fill_id", 1 if part.is_one else MOST_FOLLOWED)
            found += fills or _open_of_a_day(calls)
        if part.kind == "report" and part.is_whole and not part.ids and not _have(followed, "report_id"):
            found += _brought(calls, "reports", "report_id", 1 if part.is_one else MOST_FOLLOWED)
    return list(dict.fromkeys(found))[:MOST_FOLLOWED]


def _have(followed: Iterable[tuple[str, str]], name: str) -> bool:
    return any(known == name for known, _ in followed)


def _open_of_a_day(calls: Sequence[EvidenceCall]) -> list[tuple[str, str]]:
    """Symbols whose position was opened on the day that was asked for, and is open."""
    return [
        ("fill_id", str(call.params["symbol"]))
        for call in calls
        if (call.client, call.method) == (OWN, "episodes")
        and call.params.get("symbol")
        and ((call.reply.content or {}).get("figures") or {}).get("open")
    ]


def _brought(calls: Sequence[EvidenceCall], method: str, name: str, most: int) -> list[tuple[str, str]]:
    documents = [call.reply.content or {} for call in calls if (call.client, call.method) == (OWN, method)]
    items: list[Mapping[str, Any]] = [item for document in documents for item in document.get(method, ())]
    return [(name, str(item[name])) for item in items if item.get(name)][:most]
