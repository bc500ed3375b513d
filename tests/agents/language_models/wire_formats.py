"""What each provider's replies look like on the wire; servers, misbehaviour and runs are the same for all."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from agents.language_models.anthropic import AnthropicModel
from agents.language_models.openai import OpenAIModel
from agents.language_models.wire_model import WireModel
from tests.agents.language_models.wire_server import READ, Handler, answer, events, message, stream

Body = dict[str, Any]
STOPS = {"end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}


class WireFormat(NamedTuple):
    """One provider: its model, its reply as a body, as events, its errors, and how its questions are read."""

    model: type[WireModel]
    body: Callable[..., Body]
    streamed: Callable[..., Handler]
    error: Callable[[str, str], Body]
    system_of: Callable[[Body], str]
    prompt_of: Callable[[Body], str]
    form_of: Callable[[Body], Any]


def completion(
    text: str = "hello", *, stop: str = "end_turn", model: str = "claude-test", **changes: Any
) -> Body:
    """A whole chat completion; `stop` is named as Claude's API names it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": STOPS[stop]}
        ],
        "usage": {"prompt_tokens": READ, "completion_tokens": 7, "total_tokens": READ + 7},
    } | changes


def chunks(text: str = "hello", *, stop: str = "end_turn", model: str = "claude-test") -> list[Body]:
    """The chunks of one streamed completion."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas: list[Body] = [{"role": "assistant", "content": ""}, *({"content": part} for part in text)]
    lines = [base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    usage = {"prompt_tokens": READ, "completion_tokens": 7, "total_tokens": READ + 7}
    return [
        *lines,
        base | {"choices": [{"index": 0, "delta": {}, "finish_reason": STOPS[stop]}]},
        base | {"choices": [], "usage": usage},
    ]


def streamed_completion(text: str = "hello", **changes: Any) -> Handler:
    lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks(text, **changes)]
    return stream([b": a comment\n\n", *lines, b"data: [DONE]\n\n"])


def claude_body(text: str = "hello", *, stop: str = "end_turn", **changes: Any) -> Body:
    return message(text, stop_reason=stop, **changes)


FORMATS = {
    "anthropic": WireFormat(
        AnthropicModel,
        claude_body,
        lambda text="hello", stop="end_turn": stream(events(text, stop_reason=stop)),
        lambda name, reply: {"type": "error", "error": {"type": name, "message": reply}},
        lambda body: str(body["system"][0]["text"]),
        lambda body: str(body["messages"][0]["content"]),
        lambda body: body.get("output_config", {}).get("format", {}).get("schema"),
    ),
    "openai": WireFormat(
        OpenAIModel,
        completion,
        streamed_completion,
        lambda name, reply: {"error": {"message": reply, "type": name, "param": None, "code": None}},
        lambda body: str(body["messages"][0]["content"]),
        lambda body: str(body["messages"][1]["content"]),
        lambda body: body.get("response_format", {}).get("json_schema", {}).get("schema"),
    ),
}


def saying(wire: WireFormat, text: str, **changes: Any) -> Handler:
    """A server of this format that always says this."""
    return answer(wire.body(text, **changes))
