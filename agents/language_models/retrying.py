"""Another try for failures that pass, inside the one deadline of the call.

Only a request that was turned away is sent again: a timeout has used the deadline up, and a reply that is
none was billed already. A `retry-after` that fits is honoured; one that does not ends the call at once,
because waiting for the deadline would only cost time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace

from agents.language_models.paced import RequestRate
from schemas.errors import ModelError
from schemas.tool import Tools
from services.model_calls.asking import tool_arguments
from services.model_calls.language_model import LanguageModel, ModelReply
from services.model_calls.record import UNTOLD

THROTTLED = "throttled"
PASSING = frozenset({"network", THROTTLED, "overloaded", "conflict", "server"})
LEAST_PAUSE_MS = 1_000.0  # before a server is asked again that throttles and does not say for how long
NS_PER_MS = 1_000_000


class RetryingModel:
    """At most `attempts` requests.

    `requests` of the reply, or of the error's context, counts them, and `lost` those before the last that may
    have been worked on.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        attempts: int,
        first_wait_ms: float,
        rate: RequestRate | None = None,
        timer: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Hold the model and its patience.

        Args:
            model: sends one request for each call.
            attempts: requests in all.
            first_wait_ms: before the second request, doubled before each further one.
            rate: gives each request its turn; None: at once.
            timer: monotonic ns.
            sleep: waits seconds.
        """
        self._model = model
        self._attempts = attempts
        self._first_wait_ms = first_wait_ms
        self._rate = rate
        self._timer = timer
        self._sleep = sleep

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """The first reply that comes.

        Raises:
            ModelError: the failure that ended it. It is not `retryable` where every try was throttled in the
                same words and without a pause to wait for, as those are whose quota is spent.
        """
        start, attempts, sent, lost, shown = self._timer(), 0, 0, 0, set[str]()
        while True:
            left_ms = deadline_ms - self._since(start)
            attempts += 1
            try:
                async with self._rate.turn(left_ms) if self._rate else nullcontext(left_ms) as within_ms:
                    reply = await self._model.complete(
                        system=system, prompt=prompt, max_tokens=max_tokens, deadline_ms=within_ms,
                        **tool_arguments(tools),
                    )  # fmt: skip
                requests = sent + reply.requests
                return replace(
                    reply, requests=requests, lost=lost + reply.lost, latency_ms=self._since(start)
                )
            except ModelError as error:
                failure = error
            tried = failure.context.get("requests", 1)  # one that found no connection sent nothing
            sent += tried
            failure.context |= {"requests": sent} | ({"lost": lost} if lost else {})
            lost += tried if failure.context.get("kind") in UNTOLD else 0
            shown.add(str(failure))
            wait_ms = self._wait_ms(failure, attempts)
            if wait_ms is None or self._since(start) + wait_ms >= deadline_ms:
                failure.retryable &= not (_names_no_pause(failure) and len(shown) == 1)
                raise failure
            await self._sleep(wait_ms / 1_000)

    async def close(self) -> None:
        """Close the model's connections, if it holds any."""
        close = getattr(self._model, "close", None)
        if close is not None:
            await close()

    def _wait_ms(self, failure: ModelError, attempts: int) -> float | None:
        """How long to wait before the next request; None: there is none."""
        if attempts >= self._attempts or failure.context.get("kind") not in PASSING:
            return None
        own: float = self._first_wait_ms * 2.0 ** (attempts - 1)
        request: float = failure.context.get("retry_after_ms", 0.0)
        return max(own, request, LEAST_PAUSE_MS if _names_no_pause(failure) else 0.0)

    def _since(self, start: int) -> float:
        return (self._timer() - start) / NS_PER_MS


def _names_no_pause(failure: ModelError) -> bool:
    """Whether a server throttles and does not say for how long."""
    return failure.context.get("kind") == THROTTLED and not failure.context.get("retry_after_ms")
