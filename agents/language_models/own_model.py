"""A model of the caller's own, as a run asks one: all it does is a reply or a failure that is recorded.

A plain function is asked in a thread of its own, so that one that hangs loses its deadline and not the run;
an `async` one is awaited beside the run, and has to await whatever it waits for.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any, Protocol

from schemas.errors import ModelError
from services.model_calls.language_model import ModelReply

FAILED, MALFORMED = "server", "malformed"  # both count against it


class Model(Protocol):
    """Answers prompts; `complete` may be a plain function or an `async` one."""

    def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float
    ) -> str | ModelReply | Awaitable[str | ModelReply]:
        """The reply as text, or with the tokens that it took; text alone counts none."""
        ...


class OwnModel:
    """A `LanguageModel` around an object of the caller's; `name` stands in the record of its calls."""

    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self.name = name

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The reply of the object.

        Raises:
            ModelError: it raised, or gave no text.
        """
        request: dict[str, Any] = {
            "system": system,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "deadline_ms": deadline_ms,
        }
        try:
            if inspect.iscoroutinefunction(self._model.complete):
                given: Any = await self._model.complete(**request)
            else:
                given = await _in_a_thread(self._model.complete, request)
        except (ModelError, TimeoutError):
            raise
        except Exception as error:
            text = f"model {self.name!r} raised {type(error).__name__}: {error}"
            raise ModelError(text, kind=FAILED) from error
        if isinstance(given, str):
            return ModelReply(given, self.name, input_tokens=0, output_tokens=0, latency_ms=0.0)
        if not isinstance(given, ModelReply):
            text = f"model {self.name!r} gave {type(given).__name__!r}: it returns text, or a ModelReply"
            raise ModelError(text, kind=MALFORMED)
        return given


async def _in_a_thread(complete: Any, request: dict[str, Any]) -> Any:
    """What a plain function returns, or raises; its thread ends with it, and keeps no process alive."""
    answered: Future[Any] = Future()
    answered.set_running_or_notify_cancel()  # a thread goes on, whoever waits for it no more

    def run() -> None:
        try:
            answered.set_result(complete(**request))
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
            answered.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    threading.Thread(target=run, name="thinktwice-model", daemon=True).start()
    given = await asyncio.wrap_future(answered)
    return await given if inspect.isawaitable(given) else given
