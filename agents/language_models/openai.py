"""Chat completions: how OpenAI, and servers that speak the same API, are asked, and which reply is read."""

from typing import Any

from agents.language_models.tool_forms import tool_forms
from agents.language_models.wire_model import (
    Message,
    Request,
    TakenParameters,
    WireModel,
    demand_kind,
    read_usage,
)
from schemas.settings.providers import BOUNDS
from schemas.tool import ToolUse
from services.model_calls.record import Usage

COMPLETE, USES_TOOLS = "stop", "tool_calls"
KIND_OF_STOP = {"length": "cut", "content_filter": "refusal"}


def text_of(content: Any) -> str:
    """The text of a content, which may come in parts; those of thoughts are passed over."""
    if not isinstance(content, list):
        return content or ""
    return "".join(part["text"] for part in content if part["type"] == "text")


def read_completion(document: Any) -> Message:
    """The text of the one reply and how it ended; a refusal has a field of its own."""
    demand_kind(document["object"], "chat.completion")
    (choice,) = document["choices"]
    stop, answer = choice["finish_reason"], choice.get("message") or {"role": "assistant"}
    demand_kind(answer.get("role") or "assistant", "assistant")
    calls = [call["function"] for call in answer.get("tool_calls") or ()]
    complete = stop == COMPLETE or (stop == USES_TOOLS and bool(calls))
    fault = None if complete else KIND_OF_STOP.get(stop, "malformed")
    return Message(
        model=document["model"],
        text=text_of(answer.get("content")),
        stop="refusal" if answer.get("refusal") else str(stop),
        fault="refusal" if answer.get("refusal") else fault,
        uses=tuple(ToolUse(name=call["name"], arguments=call["arguments"]) for call in calls),
    )


def count_completion(document: Any) -> tuple[Usage, int | None]:
    """The tokens of a completion, and those of its thoughts.

    Tokens from the cache are among those of the prompt. Some servers count thoughts among the tokens of the
    completion, some in the total alone.
    """
    usage = document["usage"]
    read, written = usage["prompt_tokens"], usage["completion_tokens"]
    uncounted = max(0, (usage.get("total_tokens") or 0) - read - written)
    cached = min(read, (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
    shown = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    counted = read_usage(
        input_tokens=read - cached, output_tokens=written + uncounted, cache_read_tokens=cached
    )
    return counted, uncounted or (None if shown is None else min(shown, written))


class ChunkFold:
    """Folds the chunks of one streamed completion."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {"object": "chat.completion"}
        self._quoted: dict[str, Any] = {"role": "assistant", "content": "", "refusal": ""}
        self._uses: dict[int, dict[str, str]] = {}
        self._stop: Any = None
        self._error: Any = None

    def add(self, chunk: Any) -> None:
        """Take the next chunk; the last one has the usage and no choice."""
        self._head |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        for choice in chunk["choices"]:
            if choice.get("index", 0) != 0:
                raise ValueError("a chunk of a reply that was not asked for")
            if choice.get("error"):
                self._error = choice["error"]
                return
            delta = choice["delta"]
            for name in ("content", "refusal"):
                self._quoted[name] += text_of(delta.get(name))
            for call in delta.get("tool_calls") or ():  # the name comes first, the arguments bit by bit
                use = self._uses.setdefault(call["index"], {"name": "", "arguments": ""})
                for name in use:
                    use[name] += call["function"].get(name) or ""
            self._stop = choice.get("finish_reason") or self._stop

    def document(self) -> Any:
        """The whole reply."""
        calls = [{"function": self._uses[index]} for index in sorted(self._uses)]
        choice = {"message": self._quoted | {"tool_calls": calls}, "finish_reason": self._stop}
        return self._head | {"choices": [choice | ({"error": self._error} if self._error else {})]}


class OpenAIModel(WireModel):
    """One model of a chat endpoint."""

    package = "openai"
    bounds = BOUNDS
    fold = ChunkFold
    read, count = staticmethod(read_completion), staticmethod(count_completion)

    def _connect(self, sdk: Any, **options: Any) -> Any:
        return sdk.AsyncOpenAI(**options)

    async def _send(self, client: Any, request: Request, taken: TakenParameters, **options: Any) -> Any:
        further: dict[str, Any] = {}
        if self._stall_ms is not None:
            further |= {"stream": True, "stream_options": {"include_usage": True}}
        if taken.effort and self._effort in self._row.efforts:
            further["reasoning_effort"] = self._row.efforts[self._effort]
        if taken.temperature and self._temperature is not None:
            further["temperature"] = self._temperature
        if request.tools:
            further["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": form.name,
                        "description": form.description,
                        "parameters": form.schema,
                        "strict": form.strict,
                    },
                }
                for form in tool_forms(request.tools, nulls=True)
            ]
        elif self._format is not None and taken.form:
            closed = {"name": self._format.name, "schema": self._format.schema, "strict": True}
            further["response_format"] = {"type": "json_schema", "json_schema": closed}
        return await client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=[
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ],
            **self._bound(request, taken),
            **further,
            **options,
        )


MODEL = OpenAIModel
