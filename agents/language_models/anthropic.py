"""Claude behind the `LanguageModel` protocol: one request, one deadline, every failure a typed `ModelError`.

The SDK retries nothing and its timeouts are not trusted: they count per read, so a dripping reply would
never end. The total deadline is ours, and so is the reading of the reply: its size is bounded, its envelope
is checked here, and the stop reason is looked at before the text, so a refusal or a cut reply never passes
for an answer. The SDK is imported at the first call, because importing it takes seconds; its exceptions hold
the request with its credentials and never leave this module.
"""

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

from agents.language_models.wire_message import EventFold, StreamFailure, WireMessage
from schemas.errors import ModelError
from services.model_calls.record import RAW_CHARACTERS, Usage
from services.ports import ModelReply
from services.retry_after import Pause, pause_of
from trading_core.tick_guard import TickGuard

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic

COMPLETE = ("end_turn", "stop_sequence")
KIND_OF_STOP = {"refusal": "refusal", "max_tokens": "cut", "model_context_window_exceeded": "cut"}
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
    "timeout_error": "timeout",
    "api_error": "server",
}
LONGEST_REPLY = 1_000_000  # bytes; parsing more would take longer than a deadline may be passed by
NS_PER_MS = 1_000_000


class AnthropicModel:
    """One model of the Messages API. `kind` in a `ModelError`'s context names the class of failure.

    Kinds: timeout, network, throttled, overloaded, conflict, server, rejected (request or key are wrong),
    refusal, cut (the reply is incomplete), malformed (the reply is no reply), wrong_model (another answered).
    The context also holds what was said (`raw`), what was counted (`usage`) and how long to wait
    (`retry_after_ms`), where there is such a thing.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        guard: TickGuard,
        base_url: str | None = None,
        stall_ms: float | None = None,
        thinking: bool = True,
    ) -> None:
        """Hold the settings; nothing is imported or opened before the first call.

        Args:
            model: model id as the API names it.
            api_key: credential; never logged, never part of an error or a reply.
            guard: refuses calls from inside the tick path.
            base_url: of the API; None leaves the SDK's default.
            stall_ms: the reply is streamed, and given up after a silence this long, pings not counted;
                None: it comes whole.
            thinking: False asks the model not to think first; its thoughts count towards the reply's bound.
        """
        self._model = model
        self._api_key = api_key
        self._guard = guard
        self._base_url = base_url
        self._stall_ms = stall_ms
        self._thinking = thinking
        self._client: AsyncAnthropic | None = None

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The raw text of the reply.

        Args:
            system: instructions, marked for the provider's cache.
            prompt: the request.
            max_tokens: bound of the reply; a reply cut there is a failure.
            deadline_ms: for everything from here on, the connection included.

        Raises:
            ModelError: the call failed in any way; `retryable` says whether the same call may succeed later.
            InvariantViolation: called from inside the tick path.
        """
        self._guard.forbid("llm_calls")
        start = time.perf_counter_ns()
        client = self._client or self.open()
        received = bytearray()
        message = await self._call(client, system, prompt, max_tokens, deadline_ms, received)
        if isinstance(message, ModelError):
            raise message
        reply = self._reply(message, received, (time.perf_counter_ns() - start) / NS_PER_MS)
        if isinstance(reply, ModelError):
            raise reply
        return reply

    async def close(self) -> None:
        """Close the connections, if any were opened."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def open(self) -> "AsyncAnthropic":
        """Import the SDK and make the client now, so that the first call has its whole deadline to itself."""
        from anthropic import AsyncAnthropic

        self._client = AsyncAnthropic(api_key=self._api_key, base_url=self._base_url, max_retries=0)
        return self._client

    async def _call(
        self,
        client: "AsyncAnthropic",
        system: str,
        prompt: str,
        max_tokens: int,
        deadline_ms: float,
        received: bytearray,
    ) -> WireMessage | ModelError:
        """The message, or what went wrong as a value: raised here, it would drag the SDK's request along."""
        from anthropic import APIConnectionError, APIStatusError, APITimeoutError
        from httpx2 import DecodingError, HTTPError

        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                return await self._receive(client, system, prompt, max_tokens, received)
        except (TimeoutError, APITimeoutError) as error:
            reason = f"no whole reply within {deadline_ms:.0f} ms"
            return self._failure("timeout", reason, received, retryable=True, **_sent(error))
        except APIStatusError as error:
            return self._from_status(error)
        except DecodingError:
            return self._failure("malformed", "the reply cannot be decompressed", received, retryable=True)
        except (APIConnectionError, HTTPError) as error:
            reason = f"no connection: {type(error.__cause__ or error).__name__}"
            return self._failure("network", reason, received, retryable=True, **_sent(error))
        except StreamFailure as error:
            kind = KIND_OF_EVENT.get(error.type, "rejected")
            return self._failure(kind, str(error), received, retryable=kind != "rejected")
        except (ValueError, RecursionError) as error:
            reason = f"the reply is no message: {type(error).__name__}"
            return self._failure("malformed", reason, received, retryable=True)

    async def _receive(
        self, client: "AsyncAnthropic", system: str, prompt: str, max_tokens: int, received: bytearray
    ) -> WireMessage:
        further: dict[str, Any] = {} if self._stall_ms is None else {"stream": True}
        if not self._thinking:
            further["thinking"] = {"type": "disabled"}
        async with client.messages.with_streaming_response.create(
            model=self._model,
            max_tokens=max_tokens,
            system=[{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            messages=[{"role": "user", "content": prompt}],
            extra_headers={"accept-encoding": "identity"},  # a compressed reply has no bound
            **further,
        ) as response:
            declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if declared != ("application/json" if self._stall_ms is None else "text/event-stream"):
                raise ValueError(f"a reply of type {declared!r}")
            if self._stall_ms is not None:
                return await _read_events(response, received, self._stall_ms / 1_000)
            async for chunk in response.iter_bytes():
                _gather(received, chunk)
            return WireMessage.model_validate_json(bytes(received))

    def _reply(self, message: WireMessage, received: bytearray, latency_ms: float) -> ModelReply | ModelError:
        """The text of a complete message of the model that was asked."""
        usage = Usage(
            input_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
            cache_write_tokens=message.usage.cache_creation_input_tokens or 0,
            cache_read_tokens=message.usage.cache_read_input_tokens or 0,
        )
        wrong = self._incomplete(message)
        if wrong is not None:
            kind, reason = wrong
            return self._failure(kind, reason, received, retryable=kind == "malformed", usage=usage)
        return ModelReply(
            text=message.text.replace(self._api_key, "***"),
            model=message.model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            latency_ms=latency_ms,
            cache_write_tokens=usage.cache_write_tokens,
            cache_read_tokens=usage.cache_read_tokens,
        )

    def _incomplete(self, message: WireMessage) -> tuple[str, str] | None:
        if not message.model.startswith(self._model):
            return "wrong_model", f"model {message.model[:80]!r} answered"
        if message.stop_reason not in COMPLETE:
            kind = KIND_OF_STOP.get(str(message.stop_reason), "malformed")
            return kind, f"stopped with {str(message.stop_reason)[:80]!r}: no complete answer"
        return None if message.text.strip() else ("malformed", "answered without text")

    def _from_status(self, error: "APIStatusError") -> ModelError:
        status = error.status_code
        kind = KIND_OF_STATUS.get(status, "server" if status >= 500 else "rejected")
        context: dict[str, Any] = {"status": status, "request_id": error.request_id}
        reason = f"HTTP {status} {str(error.type or '')[:80]}".strip()
        pause = _pause(error.response.headers)
        if pause is not None:
            context["retry_after_ms"] = pause.wait_s * 1_000
            reason += f"; {pause.told}" if pause.told else ""
        body = bytearray(error.response.content)
        return self._failure(kind, reason, body, retryable=kind != "rejected", **context)

    def _failure(
        self, kind: str, reason: str, received: bytearray, *, retryable: bool, **context: Any
    ) -> ModelError:
        # A gateway may echo the request; the key is masked before anybody sees what it said.
        raw = bytes(received).decode("utf-8", "backslashreplace").replace(self._api_key, "***")
        reason = reason.replace(self._api_key, "***")
        return ModelError(
            f"model {self._model!r}: {reason}",
            retryable=retryable,
            kind=kind,
            raw=raw[:RAW_CHARACTERS],
            **context,
        )


def _sent(error: Exception) -> dict[str, int]:
    """That no request was sent, where no connection was made: nothing of it can be billed then."""
    from httpx2 import ConnectError, ConnectTimeout

    unsent = isinstance(error.__cause__ or error, (ConnectError, ConnectTimeout))
    return {"requests": 0} if unsent else {}


async def _read_events(response: Any, received: bytearray, stall_s: float) -> WireMessage:
    """The streamed message; a silence longer than `stall_s` is a timeout."""
    fold, rest = EventFold(), b""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(stall_s) as silence:
        async for chunk in response.iter_bytes():
            _gather(received, chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            if any([fold.feed(line) for line in lines]):
                silence.reschedule(loop.time() + stall_s)
    return fold.message()


def _gather(received: bytearray, chunk: bytes) -> None:
    if len(received) + len(chunk) > LONGEST_REPLY:
        raise ValueError(f"a reply of more than {LONGEST_REPLY} bytes")
    received += chunk


def _pause(headers: Any) -> Pause | None:
    """How long the server asks to wait; without end where it names a date, which needs a clock to be read."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is not None:
            dated = Pause(math.inf if "GMT" in text else 0.0)  # below zero or no number: no wait
            return pause_of(headers, name=name, unit_s=unit_s) or dated
    return None
