"""The message of the Messages API as we accept it, whole or streamed; anything else is a `ValueError`.

Content blocks that are not text (the model's thinking) are passed over. Pure functions over bytes.
"""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_TOKENS = 100_000_000


class WireBlock(BaseModel):
    """One content block; only text has one."""

    model_config = ConfigDict(strict=True)

    type: str
    text: str = ""


class WireUsage(BaseModel):
    """Tokens; the cache counts are absent or null without a cache."""

    model_config = ConfigDict(strict=True)

    input_tokens: int = Field(ge=0, le=MOST_TOKENS)
    output_tokens: int = Field(ge=0, le=MOST_TOKENS)
    cache_creation_input_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    cache_read_input_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)


class WireMessage(BaseModel):
    """The envelope of a reply. Fields that we do not read may come and go."""

    model_config = ConfigDict(strict=True)

    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[WireBlock]
    stop_reason: str | None
    usage: WireUsage

    @property
    def text(self) -> str:
        """All text blocks in order."""
        return "".join(block.text for block in self.content if block.type == "text")


class StreamFailure(ValueError):
    """The stream itself carries an error event; `type` is the API's name of it."""

    def __init__(self, error_type: str) -> None:
        super().__init__(f"error event {error_type!r}")
        self.type = error_type


class EventFold:
    """Folds the events of one streamed message; lines come in as they arrive."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._stopped = False

    def feed(self, line: bytes) -> bool:
        """Take one line; true when it brought the message forward (pings and blank lines do not).

        Raises:
            StreamFailure: an error event.
            ValueError: the line is no event, or does not fit what came before.
        """
        if not line.startswith(b"data:"):
            return False
        event = json.loads(line[5:])
        if not isinstance(event, dict):
            raise ValueError("an event is not an object")
        kind = event.get("type")
        if kind == "ping":
            return False
        if kind == "error":
            raise StreamFailure(str(_part(event, "error").get("type", "")))
        self._apply(str(kind), event)
        return True

    def message(self) -> WireMessage:
        """The whole message.

        Raises:
            ValueError: the stream ended before it did, or it is no message.
        """
        if self._message is None or not self._stopped:
            raise ValueError("the stream ended before its message did")
        content = [self._blocks[index] for index in sorted(self._blocks)]
        return WireMessage.model_validate(self._message | {"content": content})

    def _apply(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "message_start":
            self._message = dict(_part(event, "message"))
        elif kind == "content_block_start":
            self._blocks[_index(event)] = dict(_part(event, "content_block"))
        elif kind == "content_block_delta":
            delta = _part(event, "delta")
            if delta.get("type") == "text_delta":
                block = self._blocks.get(_index(event))
                if block is None:
                    raise ValueError("text for a block that was not started")
                block["text"] = str(block.get("text", "")) + str(delta.get("text", ""))
        elif kind == "message_delta":
            self._close(event)
        elif kind == "message_stop":
            self._stopped = True

    def _close(self, event: dict[str, Any]) -> None:
        if self._message is None:
            raise ValueError("a delta of a message that was not started")
        self._message["stop_reason"] = _part(event, "delta").get("stop_reason")
        usage = event.get("usage")
        if isinstance(usage, dict):
            begun = self._message.get("usage")
            counted = {name: count for name, count in usage.items() if count is not None}
            self._message["usage"] = (begun if isinstance(begun, dict) else {}) | counted


def _part(event: dict[str, Any], name: str) -> dict[str, Any]:
    part = event.get(name)
    if not isinstance(part, dict):
        raise ValueError(f"an event has no {name!r}")
    return part


def _index(event: dict[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise ValueError("a block has no index")
    return index
