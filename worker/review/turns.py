"""What earlier turns of a conversation were about, for the question that comes next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.store.conversations import ConversationTurn

RECENT = {"recent_symbol": "symbol", "recent_playbook": "playbook_id", "recent_fill": "fill_id"}


def recent(turns: Sequence[ConversationTurn]) -> dict[str, str]:
    """The symbol, the playbook and the fill that were asked for last, where any was."""
    found: dict[str, str] = {}
    for arguments in _arguments(turns):
        for name, argument in RECENT.items():
            value = arguments.get(argument)
            if name not in found and isinstance(value, str):
                found[name] = value
    return found


def _arguments(turns: Sequence[ConversationTurn]) -> Iterator[Mapping[str, Any]]:
    """Arguments of the calls, the newest first."""
    for turn in reversed(turns):
        yield from (call["arguments"] for call in reversed(turn.document["answer"]["tool_calls"]))


def told_turns(turns: Sequence[ConversationTurn]) -> tuple[tuple[str, str], ...]:
    """Question and answer of each turn, oldest first."""
    told = (turn.document["answer"] for turn in turns)
    return tuple((one["question"], one["answer"] or one["clarification"] or "") for one in told)
