"""What earlier turns of a conversation were about, for the question that comes next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.settings.planner import OWN
from schemas.tool import ToolReply
from services.store.conversations import ConversationTurn

RECENT = {"recent_symbol": "symbol", "recent_playbook": "playbook_id", "recent_fill": "fill_id"}


def recent(turns: Sequence[ConversationTurn]) -> dict[str, str]:
    """The symbol, the playbook and the fill that were told last, where any was.

    `recent_trade` is the fill of the one trade that the newest turn told of.
    """
    found: dict[str, str] = {}
    for number, turn in enumerate(reversed(turns)):
        for named in _named_in(turn):
            if number == 0 and "fill_id" in named:
                found.setdefault("recent_trade", named["fill_id"])
            for name, argument in RECENT.items():
                value = named.get(argument)
                if name not in found and isinstance(value, str):
                    found[name] = value
    return found


def _named_in(turn: ConversationTurn) -> Iterator[Mapping[str, Any]]:
    """What the calls of a turn name, the newest first: their arguments, and the fill of a single trade."""
    for call in reversed(turn.document["answer"]["tool_calls"]):
        result = turn.document.get("results", {}).get(call["id"])
        content = {} if result is None or call["client"] != OWN else ToolReply(**result).content or {}
        trades: list[dict[str, Any]] = content.get("episodes") or []
        fill = trades[0].get("fill_id") if len(trades) == 1 else None
        yield {**call["arguments"], **({"fill_id": fill} if fill else {})}


def told_turns(turns: Sequence[ConversationTurn]) -> tuple[tuple[str, str], ...]:
    """Question and answer of each turn, oldest first."""
    told = (turn.document["answer"] for turn in turns)
    return tuple((one["question"], one["answer"] or one["clarification"] or "") for one in told)
