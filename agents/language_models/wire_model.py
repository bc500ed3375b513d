"""A model behind an SDK: one question, one deadline, every failure a typed `ModelError`.

The SDK carries the wire and retries nothing; how a question is put and which message is its reply, a module
for each API says. The total deadline is ours, since an SDK counts its own per read and a dripping reply would
never end. The stop reason is read before the text, so a refusal or a cut reply never passes for an answer.
What a server refuses of the parameters is left out from then on. SDKs are imported at the first call, because
importing one takes seconds; their exceptions hold the request with its credentials and never leave here.
"""

import asyncio
import importlib
import inspect
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from agents.language_models.key_mask import KeyMask
from schemas.errors import ConfigError, ModelError
from schemas.model_table import answers_for
from schemas.settings.providers import PROVIDERS, Provider
from schemas.tool import ToolDefinition, Tools, ToolUse
from services.model_calls.language_model import ModelReply
from services.model_calls.quoting import visible
from services.model_calls.record import RAW_CHARACTERS, Usage
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import quote_beginning
from services.model_calls.retry_after import Pause, pause_of
from trading_core.tick_guard import TickGuard

KIND_OF_STATUS = {
    408: "timeout", 409: "conflict", 429: "throttled", 503: "overloaded", 504: "timeout", 529: "overloaded",
}  # fmt: skip
KIND_OF_EVENT = {
    "overloaded_error": "overloaded", "rate_limit_error": "throttled", "rate_limit_exceeded": "throttled",
    "timeout_error": "timeout", "api_error": "server", "server_error": "server",
}  # fmt: skip
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
# By what a complaint names a parameter; one about the effort may name the field that also holds the form.
NAMED_BY = {
    "bound": ("max_tokens", "max_completion_tokens"),
    "temperature": ("temperature",),
    "effort": ("reasoning", "effort", "think"),
    "form": ("response_format", "output_config", "json_schema", "schema"),
    "tools": ("tool",),
}
HINTS = {
    "form": "a server that takes no schema of the reply needs llm.structured_output = false",
    "tools": "a server whose models call no tools needs planner.native_tools = false",
}
TEACHING = (400, 422)  # how a server says that it does not take a parameter
MOST_TOKENS = 100_000_000
BYTES_OF_TOKEN = 4  # of an answer, at least, where its server does not count thoughts apart
MOST_BYTES_OF_TOKEN = 6  # of a question: no tokenizer takes more of JSON and English at once
SHORTEST_CONTEXT = 256  # tokens; a server that counted fewer did not count what it read
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Request:
    """What is sent of a question; `max_tokens` bound its answer, thoughts aside."""

    system: str
    prompt: str
    max_tokens: int
    tools: tuple[ToolDefinition, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the question in words."""
        return len(self.system.encode()) + len(self.prompt.encode())


@dataclass(frozen=True)
class Message:
    """A whole reply, whatever API it came over. `fault` is the kind of failure that its stop reason is.

    `uses` are calls that the model asks for, of the tools that it was given; `thoughts` the tokens of its
    output that are no answer, where they are counted.
    """

    model: str
    text: str
    stop: str
    fault: str | None
    usage: Usage
    uses: tuple[ToolUse, ...] = ()
    thoughts: int | None = None

    @property
    def answer_tokens(self) -> int:
        """Tokens of the answer; from below where thoughts are not counted apart."""
        written = self.usage.output_tokens
        if self.thoughts is not None:
            return written - self.thoughts
        return min(written, len(self.text.encode()) // BYTES_OF_TOKEN)


@dataclass(frozen=True)
class TakenParameters:
    """What a server takes of the parameters, as far as its refusals have shown.

    Attributes:
        bounds: names of the bound of a reply, and whether it holds room for thoughts; the first is sent.
        temperature, effort: whether they are sent.
    """

    bounds: tuple[tuple[str, bool], ...]
    temperature: bool = True
    effort: bool = True

    def without(self, refused: AbstractSet[str]) -> "TakenParameters":
        """The same without what was refused; another name of the bound, and in the end no room."""
        tried = "bound" in refused and len(self.bounds) > 1
        return TakenParameters(
            self.bounds[tried:],
            self.temperature and "temperature" not in refused,
            self.effort and "effort" not in refused,
        )


class UnusableReply(ValueError):
    """A reply that is none, in words of ours."""


class Fold(Protocol):
    """Folds the events of one streamed reply; whatever does not fit raises one of `UNREADABLE`."""

    def add(self, event: Any) -> None:
        """Take the next event."""
        ...

    def message(self) -> Message:
        """The whole reply."""
        ...


@dataclass
class Attempt:
    """A question on its way: what came in last, and how many requests a refused parameter cost."""

    received: bytearray = field(default_factory=bytearray)
    refused: int = 0
    temperature_sent: bool | None = None


class WireModel(ABC):
    """One model of one API. `kind` in a `ModelError`'s context names the class of failure.

    Kinds: timeout, network, throttled, overloaded, conflict, server, rejected (request or key are wrong),
    refusal, cut (question or reply are incomplete), malformed (the reply is no reply), wrong_model (another
    answered). The context also holds what was said (`raw`), what was counted (`usage`), the `status`, and how
    long to wait (`retry_after_ms`), where there is such a thing.
    """

    package: ClassVar[str]
    """Import name of the SDK, and of the row that holds where none is given."""
    bounds: ClassVar[tuple[str, ...]]
    """What its servers call the bound of a reply."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        guard: TickGuard,
        row: Provider | None = None,
        base_url: str | None = None,
        stall_ms: float | None = None,
        effort: str = "low",
        thought_tokens: int = 0,
        reply_format: ReplyFormat | None = None,
        accept: Sequence[str] = (),
        temperature: float | None = None,
        learned: dict[tuple[str | None, str], TakenParameters] | None = None,
    ) -> None:
        """Hold the settings; nothing is imported or opened before the first call.

        Args:
            model: model id as the API names it.
            api_key: credential; never logged, never part of an error or of what is stored of a reply.
            guard: refuses calls from inside the tick path.
            row: of the provider; None: that of the API's maker.
            base_url: of the API; None: that of the row.
            stall_ms: the reply is streamed, and given up after a silence this long, pings not counted;
                None: it comes whole.
            effort: how much the model thinks first; `none`: not at all.
            thought_tokens: room for its thoughts, on top of the bound of an answer.
            reply_format: form of the reply that the API is to hold the model to; None asks for none.
            accept: names of other models whose answer counts.
            temperature: of the reply, where the API takes one; None leaves it to the model.
            learned: what servers take, by address and model; shared by the models of a run.
        """
        self._model, self._api_key, self._mask = model, api_key, KeyMask(api_key)
        self._guard = guard
        self._row = row or PROVIDERS[self.package]
        self._base_url = base_url or self._row.address
        self._stall_ms = stall_ms
        self._effort = effort
        self._room = 0 if effort == "none" else thought_tokens
        self._format = reply_format
        self._accept = tuple(accept)
        self._temperature = temperature
        self._learned = {} if learned is None else learned
        self._client: Any = None

    @abstractmethod
    def _connect(self, sdk: Any, **options: Any) -> Any:
        """The SDK's client, made with `options` and the key."""

    @abstractmethod
    async def _send(self, client: Any, request: Request, taken: TakenParameters, **options: Any) -> Any:
        """The SDK's raw response."""

    @abstractmethod
    def _message(self, body: bytes) -> Message:
        """The reply that came whole; raises ValueError where it is none."""

    @abstractmethod
    def _fold(self) -> Fold:
        """What reads one streamed reply."""

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """The raw text of the reply, and the calls that it asks for.

        Args:
            system: instructions, the same from call to call.
            prompt: the request.
            max_tokens: bound of the answer; a reply cut there is a failure.
            deadline_ms: for everything from here on, the connection included.
            tools: that the model may call; the reply then has no form.

        Raises:
            ModelError: the call failed in any way; `retryable` says whether the same call may succeed later.
            InvariantViolation: called from inside the tick path.
        """
        self._guard.forbid("llm_calls")
        start = time.perf_counter_ns()
        client = self._client or self.open()
        request, attempt = Request(system, prompt, max_tokens, tuple(tools)), Attempt()
        message = await self._call(client, request, deadline_ms, attempt)
        if isinstance(message, Message):
            message = self._incomplete(message, request, attempt) or message
        if isinstance(message, ModelError):
            raise message
        form = "" if self._format is None else json.dumps(self._format.schema)
        asked = (system, prompt, form, *(tool.canonical_text() for tool in tools))
        return ModelReply(
            text=message.text,
            model=message.model,
            latency_ms=(time.perf_counter_ns() - start) / NS_PER_MS,
            **message.usage.model_dump(),
            requests=1 + attempt.refused,
            uses=message.uses,
            temperature_sent=attempt.temperature_sent,
            mask=self._mask.of_reply(asked),
        )

    async def close(self) -> None:
        """Close the connections, if any were opened."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def open(self) -> Any:
        """Import the SDK and make the client now, so that the first call has its whole deadline to itself.

        Raises:
            ConfigError: the SDK is not installed.
        """
        try:
            sdk = importlib.import_module(self.package)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"model {self._model!r} is asked with the package {self.package!r}: install "
                f"thinktwice[{self.package}]"
            ) from error
        from agents.language_models.http_client import http_client

        self._client = self._connect(
            sdk, api_key=self._api_key, base_url=self._base_url, max_retries=0, http_client=http_client(sdk)
        )
        return self._client

    @property
    def _taken(self) -> TakenParameters:
        """What the server takes, as far as it is known."""
        names = dict.fromkeys((self._row.bound, *self.bounds))
        rooms = (True, False) if self._room else (False,)
        bounds = tuple((name, room) for room in rooms for name in names)
        first = TakenParameters(bounds, "temperature" not in self._row.refuses)
        return self._learned.get((self._base_url, self._model), first)

    def _bound(self, request: Request, taken: TakenParameters) -> dict[str, int]:
        (name, room), *_ = taken.bounds
        return {name: request.max_tokens + (self._room if room else 0)}

    async def _call(
        self, client: Any, request: Request, deadline_ms: float, attempt: Attempt
    ) -> Message | ModelError:
        """The message, or what went wrong as a value: raised here, it would drag the SDK's request along."""
        sdk = importlib.import_module(self.package)
        from httpx2 import HTTPError

        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                while True:
                    taken = self._taken
                    attempt.temperature_sent = None if self._temperature is None else taken.temperature
                    try:
                        return await self._receive(client, request, taken, attempt, deadline_ms / 1_000)
                    except sdk.APIStatusError as error:
                        if not self._learn(error, taken):
                            raise
                        attempt.refused += 1
        except (TimeoutError, sdk.APITimeoutError) as error:
            reason = f"no whole reply within {deadline_ms:.0f} ms"
            return self._failure("timeout", reason, attempt, retryable=True, **_note_unsent(error))
        except (sdk.APIConnectionError, HTTPError) as error:
            reason = f"no connection: {type(error.__cause__ or error).__name__}"
            return self._failure("network", reason, attempt, retryable=True, **_note_unsent(error))
        except sdk.APIError as error:
            return self._from_error(error, request, attempt)
        except UNREADABLE as error:
            told = str(error) if isinstance(error, UnusableReply) else type(error).__name__
            return self._describe_malformed(told, attempt)

    async def _receive(
        self, client: Any, request: Request, taken: TakenParameters, attempt: Attempt, timeout_s: float
    ) -> Message:
        from agents.language_models.http_client import RECEIVED

        attempt.received.clear()
        RECEIVED.set(attempt.received)
        headers = {"accept-encoding": "identity"}  # a compressed reply has no bound
        raw = await self._send(client, request, taken, timeout=timeout_s, extra_headers=headers)
        declared = raw.headers.get("content-type", "").partition(";")[0].strip().lower()
        if declared != ("application/json" if self._stall_ms is None else "text/event-stream"):
            await raw.http_response.aread()
            raise UnusableReply(f"its type is {quote_beginning(declared)}")
        if self._stall_ms is None:
            return self._message(bytes(attempt.received))
        return await self._read_events(raw.parse(), self._stall_ms / 1_000)

    async def _read_events(self, parsed: Any, stall_s: float) -> Message:
        """The streamed message; a silence longer than `stall_s` is a timeout."""
        stream = await parsed if inspect.isawaitable(parsed) else parsed
        fold, loop = self._fold(), asyncio.get_running_loop()
        async with stream, asyncio.timeout(stall_s) as silence:
            async for event in stream:
                fold.add(event.to_dict())
                silence.reschedule(loop.time() + stall_s)
        return fold.message()

    def _learn(self, error: Any, taken: TakenParameters) -> bool:
        """Take in what was refused of these parameters; whether others may be sent now."""
        if error.status_code not in TEACHING:
            return False
        if self._taken == taken:
            known = taken.without(_refused(error.body))
            if known == taken:
                return False
            self._learned[self._base_url, self._model] = known
        return True

    def _incomplete(self, message: Message, request: Request, attempt: Attempt) -> ModelError | None:
        """What keeps a message from being the answer of the model that was asked."""
        usage = message.usage
        read = usage.total - usage.output_tokens
        kind, reason = "cut", ""
        if not any(answers_for(message.model, name) for name in (self._model, *self._accept)):
            other = quote_beginning(self._mask(message.model), 80)
            kind = "wrong_model"
            reason = f"model {other} answered; llm.accept_models names others whose answer counts"
        elif message.uses and not request.tools:
            return self._describe_malformed("it calls a tool where none was given", attempt, usage=usage)
        elif SHORTEST_CONTEXT <= read < request.size / MOST_BYTES_OF_TOKEN:
            told = f"it read {read} tokens of {request.size} bytes"
            reason = f"the server cut the question: raise its context ({told})"
        elif message.fault is not None:
            kind = message.fault
            reason = f"stopped with {self._mask(message.stop)[:80]!r}: no complete answer"
        elif message.answer_tokens > request.max_tokens:
            reason = f"its answer has {message.answer_tokens} tokens, and {request.max_tokens} at most may be"
        elif not message.uses and not message.text.strip():
            return self._describe_malformed("it has no text", attempt, usage=usage)
        if not reason:
            return None
        if kind == "malformed":
            return self._describe_malformed(reason, attempt, usage=usage)
        return self._failure(kind, reason, attempt, retryable=False, usage=usage)

    def _from_error(self, error: Any, request: Request, attempt: Attempt) -> ModelError:
        """What an SDK raised of an answer: a status, or an error event within a stream."""
        status = getattr(error, "status_code", 200)
        name, words = _complaint(error.body)
        if status == 200:
            kind = KIND_OF_EVENT.get(name or words, "rejected")
            reason = f"error event {self._mask(name or words)[:80]!r}"
            return self._failure(kind, reason, attempt, retryable=kind != "rejected")
        kind = KIND_OF_STATUS.get(status, "server" if status >= 500 else "rejected")
        quoted = quote_beginning(self._mask(words)) if words else ""
        context: dict[str, Any] = {"status": status}
        reason = " ".join(part for part in (f"HTTP {status}", visible(self._mask(name))[:80], quoted) if part)
        if 300 <= status < 400:
            reason += "; a redirect is not followed with the key: set llm.base_url to where it leads"
        sent = {"tools": bool(request.tools), "form": not request.tools and self._format is not None}
        about = _refused(error.body) if kind == "rejected" else set()
        reason += "".join(f"; {hint}" for part, hint in HINTS.items() if sent[part] and part in about)
        pause = _pause(error.response.headers)
        if pause is not None:
            context["retry_after_ms"] = pause.wait_s * 1_000
            reason += f"; {pause.told}" if pause.told else ""
        return self._failure(kind, reason, attempt, retryable=kind != "rejected", **context)

    def _describe_malformed(self, reason: str, attempt: Attempt, **context: Any) -> ModelError:
        """Why a reply is none, with its size and how it begins."""
        begun = self._mask(bytes(attempt.received[:RAW_CHARACTERS]).decode("utf-8", "backslashreplace"))
        told = f"{reason}; {len(attempt.received)} bytes, beginning {quote_beginning(begun)}"
        return self._failure(
            "malformed", f"the reply is no message: {told}", attempt, retryable=True, **context
        )

    def _failure(
        self, kind: str, reason: str, attempt: Attempt, *, retryable: bool, **context: Any
    ) -> ModelError:
        # A gateway may echo the request; the key is masked before a reader sees what it said.
        raw = self._mask(bytes(attempt.received).decode("utf-8", "backslashreplace"))
        if attempt.refused:
            context["requests"] = context.get("requests", 1) + attempt.refused
        return ModelError(
            f"model {self._model!r}: {self._mask(reason)}",
            retryable=retryable,
            kind=kind,
            raw=raw[:RAW_CHARACTERS],
            temperature_sent=attempt.temperature_sent,
            **context,
        )


def _complaint(body: Any) -> tuple[str, str]:
    """What an error says of itself: its type, and its message."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return "", error if isinstance(error, str) else ""
    name, words = error.get("type") or error.get("code"), error.get("message")
    return str(name or ""), words if isinstance(words, str) else ""


def _refused(body: Any) -> set[str]:
    """The parameters that a complaint is about: the one that it names apart, or those within its words."""
    error = body.get("error", body) if isinstance(body, dict) else body
    param = error.get("param") if isinstance(error, dict) else None
    words = param if isinstance(param, str) and param else _complaint(body)[1] or json.dumps(body)
    found = {part for part, names in NAMED_BY.items() if any(name in words for name in names)}
    return found - {"form"} if "effort" in found else found


def _note_unsent(error: BaseException) -> dict[str, int]:
    """That no request was sent, where no connection was made: nothing of it can be billed then."""
    from httpx2 import ConnectError, ConnectTimeout

    unsent = isinstance(error.__cause__ or error, (ConnectError, ConnectTimeout))
    return {"requests": 0} if unsent else {}


def _pause(headers: Mapping[str, str]) -> Pause | None:
    """How long the server asks to wait; without end where it names a date, which needs a clock to be read."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is not None:
            dated = Pause(math.inf if "GMT" in text else 0.0)  # below zero or no number: no wait
            return pause_of(headers, name=name, unit_s=unit_s) or dated
    return None
