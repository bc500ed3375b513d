"""A tool that answers questions about runs: its definition, which can be pinned, and one reply."""

import json
from collections.abc import Sequence
from typing import Any

from schemas.contract import Contract, FrozenMap


class ToolDefinition(Contract):
    """Name, words and schemas of a tool; `content_hash` is what a pin holds on to.

    `reads_only` is what its server says of it; None: nothing.
    """

    name: str
    description: str
    input_schema: FrozenMap[str, Any]
    output_schema: FrozenMap[str, Any] | None = None
    reads_only: bool | None = True


Tools = Sequence[ToolDefinition]


class ToolUse(Contract):
    """A call of a tool as a model asks for it by its provider's own means; `arguments` are JSON, unread."""

    name: str
    arguments: str


class ToolReply(Contract):
    """What one call brought: a JSON document as text, or one sentence that says what would work."""

    text: str
    is_error: bool = False

    @property
    def content(self) -> dict[str, Any] | None:
        """The document; None where the call failed."""
        return None if self.is_error else dict(json.loads(self.text))
