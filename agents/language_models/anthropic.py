"""Claude behind the `LanguageModel` protocol: one request, one deadline, every failure a typed `ModelError`.

The SDK retries nothing and its timeouts are not trusted: they count per read, so a dripping reply would
never end. The total deadline is ours. The stop reason is looked at before the text, so a refusal or a
cut reply never passes for an answer. The SDK is imported at the first call, because importing it takes
seconds; its exceptions hold the request with its credentials and never leave this module.
"""

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from schemas.errors import ModelError
from services.ports import ModelReply
from trading_core.tick_guard import TickGuard

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.types import Message

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
NS_PER_MS = 1_000_000


class AnthropicModel:
    """One model of the Messages API. `kind` in a `ModelError`'s context names the class of failure.

    Kinds: timeout, network, throttled, overloaded, conflict, server, rejected (request or key are wrong),
    refusal, cut (the reply is incomplete), malformed (the reply is no reply).
    """

    def __init__(self, model: str, *, api_key: str, guard: TickGuard, base_url: str | None = None) -> None:
        """Hold the settings; nothing is imported or opened before the first call.

        Args:
            model: model id as the API names it.
            api_key: credential; never logged, never part of an error.
            guard: refuses calls from inside the tick path.
            base_url: of the API; None leaves the SDK's default.
        """
        self._model = model
        self._api_key = api_key
        self._guard = guard
        self._base_url = base_url
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
        outcome = await self._call(client, system, prompt, max_tokens, deadline_ms)
        if isinstance(outcome, ModelError):
            raise outcome
        return _reply(outcome, (time.perf_counter_ns() - start) / NS_PER_MS)

    async def close(self) -> None:
        """Close the connections, if any were opened."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def open(self) -> "AsyncAnthropic":
        """Import the SDK and make the client now, so that the first call has its whole deadline to itself."""
        from anthropic import AsyncAnthropic

        self._client = AsyncAnthropic(
            api_key=self._api_key, base_url=self._base_url, max_retries=0, _strict_response_validation=True
        )
        return self._client

    async def _call(
        self, client: "AsyncAnthropic", system: str, prompt: str, max_tokens: int, deadline_ms: float
    ) -> "Message | ModelError":
        """The message, or what went wrong as a value: raised here, it would drag the SDK's request along."""
        from anthropic import APIConnectionError, APIResponseValidationError, APIStatusError, APITimeoutError

        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                return await client.messages.create(
                    model=self._model,
                    max_tokens=max_tokens,
                    system=[{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
                    messages=[{"role": "user", "content": prompt}],
                )
        except (TimeoutError, APITimeoutError):
            return self._failure("timeout", f"no reply within {deadline_ms:.0f} ms", retryable=True)
        except APIConnectionError as error:
            return self._failure(
                "network", f"no connection: {type(error.__cause__).__name__}", retryable=True
            )
        except APIStatusError as error:
            return self._from_status(error)
        except (APIResponseValidationError, json.JSONDecodeError) as error:
            return self._failure(
                "malformed", f"the reply is no message: {type(error).__name__}", retryable=True
            )

    def _from_status(self, error: "APIStatusError") -> ModelError:
        status = error.status_code
        kind = KIND_OF_STATUS.get(status, "server" if status >= 500 else "rejected")
        context = {"status": status, "request_id": error.request_id}
        return self._failure(
            kind, f"HTTP {status} {error.type or ''}".strip(), retryable=kind != "rejected", **context
        )

    def _failure(self, kind: str, reason: str, *, retryable: bool, **context: Any) -> ModelError:
        return ModelError(f"model {self._model!r}: {reason}", retryable=retryable, kind=kind, **context)


def _reply(message: "Message", latency_ms: float) -> ModelReply:
    """Text of a complete message.

    Raises:
        ModelError: the message was refused, cut, stopped for something else, or holds no text.
    """
    if message.stop_reason not in COMPLETE:
        kind = KIND_OF_STOP.get(str(message.stop_reason), "malformed")
        raise ModelError(
            f"model {message.model!r} stopped with {message.stop_reason!r}: no complete answer",
            retryable=kind == "malformed",
            kind=kind,
        )
    text = "".join(block.text for block in message.content if block.type == "text")
    if not text.strip():
        raise ModelError(f"model {message.model!r} answered without text", retryable=True, kind="malformed")
    return ModelReply(
        text=text,
        model=message.model,
        input_tokens=message.usage.input_tokens,
        output_tokens=message.usage.output_tokens,
        latency_ms=latency_ms,
    )
