"""A model behind HTTP: one request, one deadline, every failure a typed `ModelError`.

Whose API it is, and in which form it is asked and answers, a subclass says: one module for each provider.

The SDKs retry nothing here and their timeouts are not trusted: they count per read, so a dripping reply
would never end. The total deadline is ours, and so is the reading of the reply: its size is bounded, a
compressed one is refused unread, no redirect is followed with the key, and the stop reason is looked at
before the text, so a refusal or a cut reply never passes for an answer. SDKs are imported at the first call,
because importing one takes seconds; their exceptions hold the request with its credentials and never leave
this module.
"""

import asyncio
import importlib
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from agents.language_models.key_mask import KeyMask
from agents.language_models.knowledge_cutoffs import answers_for
from agents.language_models.trusted_certificates import certificates
from schemas.errors import ConfigError, ModelError
from schemas.tool import ToolDefinition, Tools, ToolUse
from services.model_calls.language_model import ModelReply
from services.model_calls.record import RAW_CHARACTERS, Usage
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import quote_beginning
from services.model_calls.retry_after import Pause, pause_of
from trading_core.tick_guard import TickGuard

KIND_OF_STATUS = {
    408: "timeout",
    409: "conflict",
    429: "throttled",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
KIND_OF_EVENT = {
    "overloaded_error": "overloaded",
    "rate_limit_error": "throttled",
    "rate_limit_exceeded": "throttled",
    "timeout_error": "timeout",
    "api_error": "server",
    "server_error": "server",
}
NO_FORMAT = (400, 404, 415, 422, 501)  # how a server says that it does not take a schema of the reply
WITHOUT_FORMAT = "a server that takes no schema of the reply needs llm.structured_output = false"
WITHOUT_TOOLS = "a server whose models call no tools needs planner.native_tools = false"
LONGEST_REPLY = 1_000_000  # bytes; parsing more would take longer than a deadline may be passed by
LONGEST_COMPLAINT = 20_000  # bytes read of the body of an error
MOST_TOKENS = 100_000_000
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Request:
    """What is sent of a question."""

    system: str
    prompt: str
    max_tokens: int
    tools: tuple[ToolDefinition, ...] = ()


@dataclass(frozen=True)
class Message:
    """A whole reply, whatever API it came over. `fault` is the kind of failure that its stop reason is.

    `uses` are calls that the model asks for, of the tools that it was given.
    """

    model: str
    text: str
    stop: str
    fault: str | None
    usage: Usage
    uses: tuple[ToolUse, ...] = ()


class Fold(Protocol):
    """Folds the lines of one streamed reply."""

    def feed(self, line: bytes) -> bool:
        """Take one line; true when it brought the reply forward.

        Raises:
            StreamFailure: an error event.
            ValueError: the line is no event, or does not fit what came before.
        """
        ...

    def message(self) -> Message:
        """The whole reply.

        Raises:
            ValueError: the stream ended before it did, or it is no reply.
        """
        ...


class StreamFailure(ValueError):
    """The stream itself carries an error event; `type` is the API's name of it."""

    def __init__(self, error_type: str) -> None:
        super().__init__(error_type)
        self.type = error_type


class BadStatus(Exception):
    """Any status but success, with no more of its body than is worth keeping."""

    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.headers, self.body = status, headers, body


class WireModel(ABC):
    """One model of one API. `kind` in a `ModelError`'s context names the class of failure.

    Kinds: timeout, network, throttled, overloaded, conflict, server, rejected (request or key are wrong),
    refusal, cut (the reply is incomplete), malformed (the reply is no reply), wrong_model (another answered).
    The context also holds what was said (`raw`), what was counted (`usage`), the `status`, and how long to
    wait (`retry_after_ms`), where there is such a thing.
    """

    package: ClassVar[str]
    """Import name of the SDK."""
    takes_temperature: ClassVar[bool] = False
    """Whether a server of one's own is sent a temperature; hosted APIs refuse it, or know none."""
    calls_tools: ClassVar[bool] = False
    """Whether the API takes tools that a model may call."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        guard: TickGuard,
        base_url: str | None = None,
        stall_ms: float | None = None,
        thinking: bool = True,
        reply_format: ReplyFormat | None = None,
        accept: Sequence[str] = (),
        temperature: float | None = None,
    ) -> None:
        """Hold the settings; nothing is imported or opened before the first call.

        Args:
            model: model id as the API names it.
            api_key: credential; never logged, never part of an error or of what is stored of a reply.
            guard: refuses calls from inside the tick path.
            base_url: of the API; None leaves the SDK's default.
            stall_ms: the reply is streamed, and given up after a silence this long, pings not counted;
                None: it comes whole.
            thinking: False asks the model not to think first; its thoughts count towards the reply's bound.
            reply_format: form of the reply that the API is to hold the model to; None asks for none.
            accept: names of other models whose answer counts.
            temperature: of the reply, where the API takes one; None leaves it to the model.
        """
        self._model = model
        self._api_key = api_key
        self._mask = KeyMask(api_key)
        self._guard = guard
        self._base_url = base_url
        self._stall_ms = stall_ms
        self._thinking = thinking
        self._format = reply_format
        self._accept = tuple(accept)
        self._temperature = temperature
        self._client: Any = None

    @abstractmethod
    def _connect(self, sdk: Any, **options: Any) -> Any:
        """The SDK's client, made with `options` and the key."""

    @abstractmethod
    def _send(self, client: Any, request: Request) -> AbstractAsyncContextManager[Any]:
        """The request on its way; entered, the response."""

    @abstractmethod
    def _message(self, body: bytes) -> Message:
        """The reply that came whole.

        Raises:
            ValueError: it is none.
        """

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
            max_tokens: bound of the reply; a reply cut there is a failure.
            deadline_ms: for everything from here on, the connection included.
            tools: that the model may call; the reply then has no form.

        Raises:
            ModelError: the call failed in any way; `retryable` says whether the same call may succeed later.
            InvariantViolation: called from inside the tick path.
        """
        self._guard.forbid("llm_calls")
        start = time.perf_counter_ns()
        client = self._client or self.open()
        received = bytearray()
        request = Request(system, prompt, max_tokens, tuple(tools))
        message = await self._call(client, request, deadline_ms, received)
        if isinstance(message, ModelError):
            raise message
        reply = self._reply(message, request, received, (time.perf_counter_ns() - start) / NS_PER_MS)
        if isinstance(reply, ModelError):
            raise reply
        return reply

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
                f"llm.provider {self.package!r} needs the package {self.package!r}: install "
                f"thinktwice[{self.package}]"
            ) from error
        hooks = {"response": [_check_status]}
        http = sdk.DefaultAsyncHttpxClient(verify=certificates(), follow_redirects=False, event_hooks=hooks)
        self._client = self._connect(
            sdk, api_key=self._api_key, base_url=self._base_url, max_retries=0, http_client=http
        )
        return self._client

    async def _call(
        self, client: Any, request: Request, deadline_ms: float, received: bytearray
    ) -> Message | ModelError:
        """The message, or what went wrong as a value: raised here, it would drag the SDK's request along."""
        sdk = importlib.import_module(self.package)
        from httpx2 import HTTPError

        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                return await self._receive(client, request, received)
        except (TimeoutError, sdk.APITimeoutError) as error:
            reason = f"no whole reply within {deadline_ms:.0f} ms"
            return self._failure("timeout", reason, received, retryable=True, **_note_unsent(error))
        except BadStatus as error:
            return self._from_status(error, request)
        except (sdk.APIConnectionError, HTTPError) as error:
            if isinstance(error.__cause__, BadStatus):
                return self._from_status(error.__cause__, request)
            if isinstance(error.__cause__, Unusable):
                return self._describe_malformed(error.__cause__, received)
            reason = f"no connection: {type(error.__cause__ or error).__name__}"
            return self._failure("network", reason, received, retryable=True, **_note_unsent(error))
        except StreamFailure as error:
            kind = KIND_OF_EVENT.get(error.type, "rejected")
            reason = f"error event {self._mask(error.type)[:80]!r}"
            return self._failure(kind, reason, received, retryable=kind != "rejected")
        except (ValueError, RecursionError) as error:
            return self._describe_malformed(error, received)

    async def _receive(self, client: Any, request: Request, received: bytearray) -> Message:
        async with self._send(client, request) as response:
            declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
                raise Unusable("it is compressed, and a compressed reply has no bound")
            if declared != ("application/json" if self._stall_ms is None else "text/event-stream"):
                async for chunk in response.iter_bytes():
                    _gather(received, chunk, LONGEST_COMPLAINT)
                raise Unusable(f"its type is {quote_beginning(declared)}")
            if self._stall_ms is not None:
                return await self._read_events(response, received, self._stall_ms / 1_000)
            async for chunk in response.iter_bytes():
                _gather(received, chunk)
            return self._message(bytes(received))

    async def _read_events(self, response: Any, received: bytearray, stall_s: float) -> Message:
        """The streamed message; a silence longer than `stall_s` is a timeout."""
        fold, rest = self._fold(), b""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(stall_s) as silence:
            async for chunk in response.iter_bytes():
                _gather(received, chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                if any([fold.feed(line) for line in lines]):
                    silence.reschedule(loop.time() + stall_s)
        return fold.message()

    def _reply(
        self, message: Message, request: Request, received: bytearray, latency_ms: float
    ) -> ModelReply | ModelError:
        """The text of a complete message of the model that was asked."""
        usage = message.usage
        wrong = self._incomplete(message, request)
        if wrong is not None:
            kind, reason = wrong
            if kind == "malformed":
                reason = self._describe_received(reason, received)
            return self._failure(kind, reason, received, retryable=kind == "malformed", usage=usage)
        form = "" if self._format is None else json.dumps(self._format.schema)
        asked = (request.system, request.prompt, form, *(tool.canonical_text() for tool in request.tools))
        return ModelReply(
            text=message.text,
            model=message.model,
            latency_ms=latency_ms,
            **usage.model_dump(),
            uses=message.uses,
            mask=self._mask.of_reply(asked),
        )

    def _incomplete(self, message: Message, request: Request) -> tuple[str, str] | None:
        if not any(answers_for(message.model, name) for name in (self._model, *self._accept)):
            other = quote_beginning(self._mask(message.model), 80)
            return (
                "wrong_model",
                f"model {other} answered; llm.accept_models names others whose answer counts",
            )
        if message.uses and not request.tools:
            return "malformed", "it calls a tool where none was given"
        if message.fault is not None:
            return message.fault, f"stopped with {self._mask(message.stop)[:80]!r}: no complete answer"
        return None if message.uses or message.text.strip() else ("malformed", "it has no text")

    def _from_status(self, error: BadStatus, request: Request) -> ModelError:
        status = error.status
        kind = KIND_OF_STATUS.get(status, "server" if status >= 500 else "rejected")
        context: dict[str, Any] = {"status": status}
        reason = f"HTTP {status} {self._complaint(error.body)}".strip()
        if 300 <= status < 400:
            reason += "; a redirect is not followed with the key: set llm.base_url to where it leads"
        if status in NO_FORMAT and (request.tools or self._format is not None):
            reason += f"; {WITHOUT_TOOLS if request.tools else WITHOUT_FORMAT}"
        pause = _pause(error.headers)
        if pause is not None:
            context["retry_after_ms"] = pause.wait_s * 1_000
            reason += f"; {pause.told}" if pause.told else ""
        return self._failure(kind, reason, bytearray(error.body), retryable=kind != "rejected", **context)

    def _complaint(self, body: bytes) -> str:
        """What an error says of itself: its type, and its message as far as it is shown."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        error = document.get("error", document) if isinstance(document, dict) else None
        if isinstance(error, str):
            return quote_beginning(self._mask(error))
        if not isinstance(error, dict):
            return ""
        name, said = error.get("type") or error.get("code"), error.get("message")
        words = quote_beginning(self._mask(said)) if isinstance(said, str) and said else ""
        return f"{self._mask(str(name))[:80] if name else ''} {words}".strip()

    def _describe_malformed(self, error: BaseException, received: bytearray) -> ModelError:
        reason = str(error) if isinstance(error, Unusable) else type(error).__name__
        return self._failure("malformed", self._describe_received(reason, received), received, retryable=True)

    def _describe_received(self, reason: str, received: bytearray) -> str:
        """Why a reply is none, with its size and how it begins."""
        begun = self._mask(bytes(received[:RAW_CHARACTERS]).decode("utf-8", "backslashreplace"))
        return f"the reply is no message: {reason}; {len(received)} bytes, beginning {quote_beginning(begun)}"

    def _failure(
        self, kind: str, reason: str, received: bytearray, *, retryable: bool, **context: Any
    ) -> ModelError:
        # A gateway may echo the request; the key is masked before a reader sees what it said.
        raw = self._mask(bytes(received).decode("utf-8", "backslashreplace"))
        return ModelError(
            f"model {self._model!r}: {self._mask(reason)}",
            retryable=retryable,
            kind=kind,
            raw=raw[:RAW_CHARACTERS],
            **context,
        )


class Unusable(ValueError):
    """A reply that is none, in words of ours."""


async def _check_status(response: Any) -> None:
    """Refuse any status but success before an SDK reads its body, which may have no end, or follows it."""
    if response.status_code == 200:
        return
    body = bytearray()
    if response.headers.get("content-encoding", "identity").strip().lower() in ("", "identity"):
        async for chunk in response.aiter_raw():
            body += chunk[:LONGEST_COMPLAINT]
            if len(body) >= LONGEST_COMPLAINT:
                break
    if 200 <= response.status_code < 300:
        raise Unusable(f"its status is HTTP {response.status_code}")
    raise BadStatus(response.status_code, response.headers, bytes(body[:LONGEST_COMPLAINT]))


def part(event: dict[str, Any], name: str) -> dict[str, Any]:
    """The object of this name in an event.

    Raises:
        ValueError: there is none.
    """
    found = event.get(name)
    if not isinstance(found, dict):
        raise ValueError(f"an event has no {name!r}")
    return found


def _note_unsent(error: BaseException) -> dict[str, int]:
    """That no request was sent, where no connection was made: nothing of it can be billed then."""
    from httpx2 import ConnectError, ConnectTimeout

    unsent = isinstance(error.__cause__ or error, (ConnectError, ConnectTimeout))
    return {"requests": 0} if unsent else {}


def _gather(received: bytearray, chunk: bytes, most: int = LONGEST_REPLY) -> None:
    if len(received) + len(chunk) > most:
        received += chunk[: most - len(received)]
        raise Unusable(f"it has more than {most} bytes")
    received += chunk


def _pause(headers: Any) -> Pause | None:
    """How long the server asks to wait; without end where it names a date, which needs a clock to be read."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is not None:
            dated = Pause(math.inf if "GMT" in text else 0.0)  # below zero or no number: no wait
            return pause_of(headers, name=name, unit_s=unit_s) or dated
    return None
