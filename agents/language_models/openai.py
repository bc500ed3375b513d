"""Chat completions: how OpenAI, and servers that speak the same API, are asked, and which reply is accepted.

Ollama, vLLM, OpenRouter and the like name their address in `llm.base_url`. They know `max_tokens`; OpenAI's
own newer models know only `max_completion_tokens`, so what is sent goes by whether an address is given.
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
from schemas.tool import ToolUse
from services.model_calls.record import Usage

COMPLETE, USES_TOOLS = "stop", "tool_calls"
KIND_OF_STOP = {"length": "cut", "content_filter": "refusal"}
DONE = b"[DONE]"


class WireDetails(BaseModel):
    """Tokens of the prompt that came from the server's cache."""

    model_config = ConfigDict(strict=True)

    cached_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)


class WireUsage(BaseModel):
    """Tokens; those from the cache are among those of the prompt."""

    model_config = ConfigDict(strict=True)

    prompt_tokens: int = Field(ge=0, le=MOST_TOKENS)
    completion_tokens: int = Field(ge=0, le=MOST_TOKENS)
    prompt_tokens_details: WireDetails | None = None

    @property
    def usage(self) -> Usage:
        """As it is paid for."""
        details = self.prompt_tokens_details
        cached = min(self.prompt_tokens, (details.cached_tokens or 0) if details is not None else 0)
        return Usage(
            input_tokens=self.prompt_tokens - cached,
            output_tokens=self.completion_tokens,
            cache_read_tokens=cached,
        )


class WireUse(BaseModel):
    """A tool that the model wants called, with what it gives it as JSON."""

    model_config = ConfigDict(strict=True)

    name: str
    arguments: str


class WireToolCall(BaseModel):
    """One call of a tool."""

    model_config = ConfigDict(strict=True)

    function: WireUse


class WireText(BaseModel):
    """What the model said, which tools it wants called, or why it would not."""

    model_config = ConfigDict(strict=True)

    role: Literal["assistant"]
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[WireToolCall] | None = None


class WireChoice(BaseModel):
    """One of the replies; one is asked for."""

    model_config = ConfigDict(strict=True)

    message: WireText
    finish_reason: str | None


class WireCompletion(BaseModel):
    """The envelope of a reply. Fields that we do not read may come and go."""

    model_config = ConfigDict(strict=True)

    object: Literal["chat.completion"]
    model: str
    choices: list[WireChoice] = Field(min_length=1, max_length=1)
    usage: WireUsage

    @property
    def message(self) -> Message:
        """The text and how it ended; a refusal has a field of its own."""
        choice = self.choices[0]
        stop, said = str(choice.finish_reason), choice.message
        uses = tuple(
            ToolUse(name=call.function.name, arguments=call.function.arguments)
            for call in said.tool_calls or ()
        )
        complete = stop == COMPLETE or (stop == USES_TOOLS and bool(uses))
        fault = None if complete else KIND_OF_STOP.get(stop, "malformed")
        return Message(
            model=self.model,
            text=said.content or "",
            stop="refusal" if said.refusal else stop,
            fault="refusal" if said.refusal else fault,
            usage=self.usage.usage,
            uses=uses,
        )


class ChunkFold:
    """Folds the chunks of one streamed completion; lines come in as they arrive."""

    def __init__(self) -> None:
        self._model: Any = None
        self._usage: Any = None
        self._said: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
        self._uses: dict[int, dict[str, str]] = {}
        self._stop: Any = None
        self._done = False

    def feed(self, line: bytes) -> bool:
        """Take one line; true when it brought the reply forward (comments and blank lines do not)."""
        if not line.startswith(b"data:"):
            return False
        data = line[5:].strip()
        if data == DONE:
            self._done = True
            return True
        chunk = json.loads(data)
        if not isinstance(chunk, dict):
            raise ValueError("a chunk is not an object")
        if "error" in chunk:
            told = chunk["error"]
            raise StreamFailure(str(told.get("type") or told.get("code") if isinstance(told, dict) else told))
        self._apply(chunk)
        return True

    def message(self) -> Message:
        """The whole reply."""
        if not self._done:
            raise ValueError("the stream ended before its reply did")
        calls = [{"function": self._uses[index]} for index in sorted(self._uses)]
        whole = {
            "object": "chat.completion",
            "model": self._model,
            "choices": [{"message": self._said | {"tool_calls": calls}, "finish_reason": self._stop}],
            "usage": self._usage,
        }
        return WireCompletion.model_validate(whole).message

    def _apply(self, chunk: dict[str, Any]) -> None:
        self._model = chunk.get("model", self._model)
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            raise ValueError("a chunk has no choices")
        for choice in choices:
            if not isinstance(choice, dict) or choice.get("index", 0) != 0:
                raise ValueError("a chunk of a reply that was not asked for")
            delta = part(choice, "delta")
            for name in ("content", "refusal"):
                if delta.get(name) is not None:
                    self._said[name] = (self._said[name] or "") + str(delta[name])
            self._add_calls(delta.get("tool_calls") or [])
            self._stop = choice.get("finish_reason") or self._stop

    def _add_calls(self, given: list[dict[str, Any]]) -> None:
        """More of the calls; the name comes with the first part of each, its arguments bit by bit."""
        for delta in given:
            use = self._uses.setdefault(int(delta["index"]), {"name": "", "arguments": ""})
            for name, bit in part(delta, "function").items():
                if name in use and bit is not None:
                    use[name] += str(bit)


class OpenAIModel(WireModel):
    """One model of a chat endpoint."""

    package = "openai"
    takes_temperature = True
    calls_tools = True

    def _connect(self, sdk: Any, **options: Any) -> Any:
        return sdk.AsyncOpenAI(**options)

    def _send(self, client: Any, request: Request) -> AbstractAsyncContextManager[Any]:
        bound = "max_completion_tokens" if self._base_url is None else "max_tokens"
        further: dict[str, Any] = {bound: request.max_tokens}
        if self._stall_ms is not None:
            further |= {"stream": True, "stream_options": {"include_usage": True}}
        if not self._thinking:
            further["reasoning_effort"] = "none"
        if self._temperature is not None:
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
        elif self._format is not None:
            closed = {"name": self._format.name, "schema": self._format.schema, "strict": True}
            further["response_format"] = {"type": "json_schema", "json_schema": closed}
        sent: AbstractAsyncContextManager[Any] = client.chat.completions.with_streaming_response.create(
            model=self._model,
            messages=[
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ],
            extra_headers={"accept-encoding": "identity"},  # a compressed reply has no bound
            **further,
        )
        return sent

    def _message(self, body: bytes) -> Message:
        return WireCompletion.model_validate_json(body).message

    def _fold(self) -> Fold:
        return ChunkFold()


MODEL = OpenAIModel
