"""What earlier calls brought, a line each, for whoever plans what is still missing."""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.evidence_plan import EvidenceCall
from services.model_calls.quoting import count_noun, visible

MOST_SUMMARIES = 5
MOST_NAMES = 3
LONGEST_ERROR = 50
LONGEST_NAME = 40
BESIDE = ("rows", "statements")
NAMED = (("symbol", "symbols"), ("playbook_id", "playbooks"))


def summaries(calls: Sequence[EvidenceCall]) -> tuple[str, ...]:
    """Lines of the last 5 calls, in their order: SUCCESS or ERROR, items, up to 3 symbols or playbooks."""
    return tuple(_summary(call) for call in calls[-MOST_SUMMARIES:])


def _summary(call: EvidenceCall) -> str:
    name = f"{call.id} {call.client}.{call.method}"
    document = call.reply.content
    if document is None:
        return f"{name}: ERROR ({visible(call.reply.text)[:LONGEST_ERROR]})"
    items = items_of(document)
    shown = [count_noun(len(items), "item")] if items is not None else []
    shown += [f"{nouns}: {', '.join(found)}" for field, nouns in NAMED if (found := _names(items, field))]
    return f"{name}: SUCCESS" + (f" ({'; '.join(shown)})" if shown else "")


def items_of(document: Mapping[str, Any]) -> list[Any] | None:
    """The list that an answer is about; None where it has none. `rows` are where it comes from."""
    lists = {
        name: value for name, value in document.items() if isinstance(value, list) and name not in BESIDE
    }
    return lists.get("items", next((found for found in lists.values() if found), [] if lists else None))


def _names(items: list[Any] | None, field: str) -> list[str]:
    """The first names of the items, each once; they are another's words, so they are cut and made visible."""
    found = [item.get(field) for item in items or () if isinstance(item, Mapping)]
    texts = [visible(name)[:LONGEST_NAME] for name in found if isinstance(name, str)]
    return list(dict.fromkeys(texts))[:MOST_NAMES]
