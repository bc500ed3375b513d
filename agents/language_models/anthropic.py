"""Claude over the Messages API: how it is asked, and which message, whole or streamed, is its reply.

A block is text or asks for a call of a tool; others (the model's thinking) are passed over, and anything else
is no reply.
"""

import json
import time
from typing import Any, ClassVar

from agents.language_models.tool_forms import tool_forms
from agents.language_models.wire_model import (
    Message,
    Request,
    TakenParameters,
    WireModel,
    demand_kind,
    read_usage,
)
from schemas.canonical import canonical_json
from schemas.tool import ToolUse
from services.model_calls.record import Usage

COMPLETE = ("end_turn", "stop_sequence")
USES_TOOLS = "tool_use"
# Bytes, four to a token: no published model keeps a prefix of fewer than 1,024 tokens, some none below 4,096.
SHORTEST_CACHED = 4 * 1_024
FIVE_MINUTES_S, HOUR_S = 300.0, 3_600.0  # how long a prefix is kept; the hour is dearer to write
KIND_OF_STOP = {"refusal": "refusal", "max_tokens": "cut", "model_context_window_exceeded": "cut"}


def read_message(document: Any) -> Message:
    """All text blocks in order, and how it ended."""
    demand_kind(document["type"], "message")
    demand_kind(document["role"], "assistant")
    stop, content = document["stop_reason"], document["content"]
    uses = [block for block in content if block["type"] == USES_TOOLS]
    complete = stop in COMPLETE or (stop == USES_TOOLS and bool(uses))
    return Message(
        model=document["model"],
        text="".join(block["text"] for block in content if block["type"] == "text"),
        stop=str(stop),
        fault=None if complete else KIND_OF_STOP.get(stop, "malformed"),
        uses=tuple(
            ToolUse(name=block["name"], arguments=canonical_json(block["input"] or {})) for block in uses
        ),
    )


def count_message(document: Any) -> tuple[Usage, int | None]:
    """The tokens of a message, and those of its thoughts."""
    usage = document["usage"]
    hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
    counted = read_usage(
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cache_write_tokens=max(0, (usage.get("cache_creation_input_tokens") or 0) - hour),
        cache_read_tokens=usage.get("cache_read_input_tokens") or 0,
        cache_hour_tokens=hour,
    )
    return counted, (usage.get("output_tokens_details") or {}).get("thinking_tokens")


class EventFold:
    """Folds the events of one streamed message."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._stopped = False

    def add(self, event: Any) -> None:
        """Take the next event; those of no kind that is read are passed over."""
        match event["type"]:
            case "message_start":
                self._message = dict(event["message"])
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                block, delta = self._blocks[event["index"]], event["delta"]
                if delta["type"] == "text_delta":
                    block["text"] += delta["text"]
                elif delta["type"] == "input_json_delta":
                    index = event["index"]
                    self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
            case "message_delta":
                self._message["stop_reason"] = event["delta"]["stop_reason"]
                payload = event.get("usage") or {}
                counted = {name: count for name, count in payload.items() if count is not None}
                self._message["usage"] = (self._message.get("usage") or {}) | counted
            case "message_stop":
                self._stopped = True

    def document(self) -> Any:
        """The whole message; raises ValueError where the stream ended before it did."""
        if not self._stopped:
            raise ValueError("the stream ended before its message did")
        for index, text in self._inputs.items():
            self._blocks[index]["input"] = json.loads(text or "{}")
        return self._message | {"content": [self._blocks[index] for index in sorted(self._blocks)]}


class AnthropicModel(WireModel):
    """One model of the Messages API; long instructions are marked for the provider's cache.

    They are kept for five minutes from a question on, and for an hour where the one before it was further off
    than that, and no more than an hour: a live run asks with its heartbeat, a backtest at once.
    """

    package = "anthropic"
    bounds = ("max_tokens",)
    fold = EventFold
    read, count = staticmethod(read_message), staticmethod(count_message)
    clock: ClassVar[Any] = staticmethod(time.monotonic)
    _sent_s: float | None = None

    def _connect(self, sdk: Any, **options: Any) -> Any:
        return sdk.AsyncAnthropic(**options)

    async def _send(self, client: Any, request: Request, taken: TakenParameters, **options: Any) -> Any:
        further: dict[str, Any] = {} if self._stall_ms is None else {"stream": True}
        config: dict[str, Any] = {}
        if taken.effort and self._effort == "none":
            further["thinking"] = {"type": "disabled"}
        elif taken.effort and self._effort in self._row.efforts:
            config["effort"] = self._row.efforts[self._effort]
        if request.tools:
            further["tools"] = [
                {"name": form.name, "description": form.description, "input_schema": form.schema}
                | ({"strict": True} if form.strict else {})
                for form in tool_forms(request.tools, nulls=False)
            ]
        elif self._format is not None and taken.form:
            config["format"] = {"type": "json_schema", "schema": self._format.schema}
        return await client.messages.with_raw_response.create(
            model=self._model,
            system=[{"type": "text", "text": request.system, **self._mark(request.system)}],
            messages=[{"role": "user", "content": request.prompt}],
            **({"output_config": config} if config else {}),
            **self._bound(request, taken),
            **further,
            **options,
        )

    def _mark(self, system: str) -> dict[str, Any]:
        """The mark for the cache, where the part is long enough for the cache of any published model."""
        now, before = self.clock(), self._sent_s
        self._sent_s = now
        hour = before is not None and FIVE_MINUTES_S < now - before <= HOUR_S
        if len(system.encode()) < SHORTEST_CACHED:
            return {}
        return {"cache_control": {"type": "ephemeral"} | ({"ttl": "1h"} if hour else {})}


MODEL = AnthropicModel
