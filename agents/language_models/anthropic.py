"""Claude over the Messages API: how it is asked, and which message, whole or streamed, is its reply.

A block is text or asks for a call of a tool; others (the model's thinking) are passed over, and anything else
is a `ValueError`.
"""

import json
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.language_models.tool_forms import tool_forms
from agents.language_models.wire_model import (
    MOST_TOKENS,
    Fold,
    Message,
    Request,
    StreamFailure,
    WireModel,
    part,
)
from schemas.canonical import canonical_json
from schemas.tool import ToolUse
from services.model_calls.record import Usage

COMPLETE = ("end_turn", "stop_sequence")
USES_TOOLS = "tool_use"
# Bytes, four to a token: no published model keeps a prefix of fewer than 1,024 tokens, some none below 4,096.
SHORTEST_CACHED = 4 * 1_024
KIND_OF_STOP = {"refusal": "refusal", "max_tokens": "cut", "model_context_window_exceeded": "cut"}


class WireBlock(BaseModel):
    """One content block: text has a text, a call of a tool its name and what it is given."""

    model_config = ConfigDict(strict=True)

    type: str
    text: str = ""
    name: str = ""
    input: Any = None


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
    def message(self) -> Message:
        """All text blocks in order, and how it ended."""
        stop, usage = str(self.stop_reason), self.usage
        uses = [block for block in self.content if block.type == USES_TOOLS]
        complete = stop in COMPLETE or (stop == USES_TOOLS and bool(uses))
        return Message(
            model=self.model,
            text="".join(block.text for block in self.content if block.type == "text"),
            stop=stop,
            fault=None if complete else KIND_OF_STOP.get(stop, "malformed"),
            usage=Usage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_write_tokens=usage.cache_creation_input_tokens or 0,
                cache_read_tokens=usage.cache_read_input_tokens or 0,
            ),
            uses=tuple(
                ToolUse(name=block.name, arguments=canonical_json(block.input or {})) for block in uses
            ),
        )


PARTIAL = "partial_json"
GROWING = {"text_delta": "text", "input_json_delta": PARTIAL}


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
            raise StreamFailure(str(part(event, "error").get("type", "")))
        self._apply(str(kind), event)
        return True

    def message(self) -> Message:
        """The whole message.

        Raises:
            ValueError: the stream ended before it did, or it is no message.
        """
        if self._message is None or not self._stopped:
            raise ValueError("the stream ended before its message did")
        content = [_whole(self._blocks[index]) for index in sorted(self._blocks)]
        return WireMessage.model_validate(self._message | {"content": content}).message

    def _apply(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "message_start":
            self._message = dict(part(event, "message"))
        elif kind == "content_block_start":
            self._blocks[_index(event)] = dict(part(event, "content_block"))
        elif kind == "content_block_delta":
            self._append(event)
        elif kind == "message_delta":
            self._close(event)
        elif kind == "message_stop":
            self._stopped = True

    def _append(self, event: dict[str, Any]) -> None:
        """More of the text of a block, or of the JSON that a tool is given."""
        delta = part(event, "delta")
        kept = GROWING.get(str(delta.get("type")))
        if kept is None:
            return
        block = self._blocks.get(_index(event))
        if block is None:
            raise ValueError("a part of a block that was not started")
        block[kept] = str(block.get(kept, "")) + str(delta.get(kept, ""))

    def _close(self, event: dict[str, Any]) -> None:
        if self._message is None:
            raise ValueError("a delta of a message that was not started")
        self._message["stop_reason"] = part(event, "delta").get("stop_reason")
        usage = event.get("usage")
        if isinstance(usage, dict):
            begun = self._message.get("usage")
            counted = {name: count for name, count in usage.items() if count is not None}
            self._message["usage"] = (begun if isinstance(begun, dict) else {}) | counted


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """A streamed block as it comes whole."""
    given = block.get(PARTIAL)
    return block if not given else block | {"input": json.loads(given)}


def _index(event: dict[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise ValueError("a block has no index")
    return index


class AnthropicModel(WireModel):
    """One model of the Messages API; long instructions are marked for the provider's cache."""

    package = "anthropic"
    calls_tools = True

    def _connect(self, sdk: Any, **options: Any) -> Any:
        return sdk.AsyncAnthropic(**options)

    def _send(self, client: Any, request: Request) -> AbstractAsyncContextManager[Any]:
        further: dict[str, Any] = {} if self._stall_ms is None else {"stream": True}
        if not self._thinking:
            further["thinking"] = {"type": "disabled"}
        if request.tools:
            further["tools"] = [
                {"name": form.name, "description": form.description, "input_schema": form.schema}
                | ({"strict": True} if form.strict else {})
                for form in tool_forms(request.tools, nulls=False)
            ]
        elif self._format is not None:
            further["output_config"] = {"format": {"type": "json_schema", "schema": self._format.schema}}
        sent: AbstractAsyncContextManager[Any] = client.messages.with_streaming_response.create(
            model=self._model,
            max_tokens=request.max_tokens,
            system=[{"type": "text", "text": request.system, **_mark(request.system)}],
            messages=[{"role": "user", "content": request.prompt}],
            extra_headers={"accept-encoding": "identity"},  # a compressed reply has no bound
            **further,
        )
        return sent

    def _message(self, body: bytes) -> Message:
        return WireMessage.model_validate_json(body).message

    def _fold(self) -> Fold:
        return EventFold()


def _mark(system: str) -> dict[str, Any]:
    """The mark for the cache, where the part is long enough for the cache of any published model."""
    return {"cache_control": {"type": "ephemeral"}} if len(system.encode()) >= SHORTEST_CACHED else {}


MODEL = AnthropicModel
