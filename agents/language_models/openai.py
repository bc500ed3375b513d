"""Chat completions: how OpenAI, and servers that speak the same API, are asked, and which reply is read."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.language_models.tool_forms import tool_forms
from agents.language_models.wire_model import MOST_TOKENS, Fold, Message, Request, TakenParameters, WireModel
from schemas.settings.providers import BOUNDS
from schemas.tool import ToolUse
from services.model_calls.record import Usage

COMPLETE, USES_TOOLS = "stop", "tool_calls"
KIND_OF_STOP = {"length": "cut", "content_filter": "refusal"}


class WireDetails(BaseModel):
    """Tokens of the prompt that came from the server's cache, or of the output that are thoughts."""

    model_config = ConfigDict(strict=True)

    cached_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    reasoning_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)


class WireUsage(BaseModel):
    """Tokens; those from the cache are among those of the prompt.

    Some servers count thoughts among those of the completion, some in the total alone.
    """

    model_config = ConfigDict(strict=True)

    prompt_tokens: int = Field(ge=0, le=MOST_TOKENS)
    completion_tokens: int = Field(ge=0, le=MOST_TOKENS)
    total_tokens: int = Field(default=0, ge=0, le=2 * MOST_TOKENS)
    prompt_tokens_details: WireDetails | None = None
    completion_tokens_details: WireDetails | None = None

    @property
    def usage(self) -> Usage:
        """As it is paid for."""
        details = self.prompt_tokens_details
        cached = min(self.prompt_tokens, (details.cached_tokens or 0) if details is not None else 0)
        return Usage(
            input_tokens=self.prompt_tokens - cached,
            output_tokens=self.completion_tokens + self.uncounted,
            cache_read_tokens=cached,
        )

    @property
    def uncounted(self) -> int:
        """Tokens of the output that are in the total alone."""
        return max(0, self.total_tokens - self.prompt_tokens - self.completion_tokens)

    @property
    def thoughts(self) -> int | None:
        """Tokens of the output that are no answer; None where nothing counts them."""
        details = self.completion_tokens_details
        told = details.reasoning_tokens if details is not None else None
        return self.uncounted or (None if told is None else min(told, self.completion_tokens))


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
            thoughts=self.usage.thoughts,
        )


class ChunkFold:
    """Folds the chunks of one streamed completion."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._said: dict[str, Any] = {"role": "assistant", "content": "", "refusal": ""}
        self._uses: dict[int, dict[str, str]] = {}
        self._stop: Any = None

    def add(self, chunk: Any) -> None:
        """Take the next chunk; the last one has the usage and no choice."""
        self._head |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        for choice in chunk["choices"]:
            if choice.get("index", 0) != 0:
                raise ValueError("a chunk of a reply that was not asked for")
            delta = choice["delta"]
            for name in ("content", "refusal"):
                self._said[name] += delta.get(name) or ""
            for call in delta.get("tool_calls") or ():  # the name comes first, the arguments bit by bit
                use = self._uses.setdefault(call["index"], {"name": "", "arguments": ""})
                for name in use:
                    use[name] += call["function"].get(name) or ""
            self._stop = choice.get("finish_reason") or self._stop

    def message(self) -> Message:
        """The whole reply; raises ValueError where it is none."""
        calls = [{"function": self._uses[index]} for index in sorted(self._uses)]
        choice = {"message": self._said | {"tool_calls": calls}, "finish_reason": self._stop}
        whole = {"object": "chat.completion", "choices": [choice], **self._head}
        return WireCompletion.model_validate(whole).message


class OpenAIModel(WireModel):
    """One model of a chat endpoint."""

    package = "openai"
    bounds = BOUNDS

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
        elif self._format is not None:
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

    def _message(self, body: bytes) -> Message:
        return WireCompletion.model_validate_json(body).message

    def _fold(self) -> Fold:
        return ChunkFold()


MODEL = OpenAIModel
