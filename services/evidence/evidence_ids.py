"""The ids that the result of a tool names: what a reader can look up, each once, in its order."""

from collections.abc import Iterator
from typing import Any

from schemas.tool import ToolReply

OF_LISTS = {
    "episodes": ("episode_id",),
    "versions": ("version_hash",),
    "reports": ("report_id",),
    "steps": ("id",),
}
OF_RESULT = ("report_id", "fill_id")


def ids_of(reply: ToolReply) -> tuple[str, ...]:
    """Ids of episodes, versions, reports and fills; none where the call failed."""
    return tuple(dict.fromkeys(_ids(reply.content or {})))


def _ids(content: dict[str, Any]) -> Iterator[str]:
    for name in OF_RESULT:
        if content.get(name) is not None:
            yield str(content[name])
    for name, fields in OF_LISTS.items():
        for item in content.get(name, ()):
            yield from (str(item[field]) for field in fields if item.get(field) is not None)
