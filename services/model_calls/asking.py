"""How every part of a run asks a model: one deadline, and a failure that has a word of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

from schemas.errors import ModelError
from schemas.tool import Tools
from services.model_calls.language_model import GIVEN_UP, TIMEOUT, LanguageModel, ModelReply

GRACE_MS = 20.0


@dataclass(frozen=True)
class NoReply:
    """Why a model did not answer: the kind of its failure, and what it said."""

    kind: str
    detail: str


def tool_arguments(tools: Tools) -> dict[str, Any]:
    """How a model is given tools: one that is asked without any need not take them."""
    return {"tools": tuple(tools)} if tools else {}


class PendingCall(Protocol):
    """A question that may be asked, its price kept back until it is answered or given up."""

    @property
    def waits(self) -> bool:
        """Whether its reply has to be waited for."""
        ...

    async def reply(self, deadline_ms: float) -> ModelReply:
        """The reply; raises what the model does."""
        ...

    def release(self) -> None:
        """Keep nothing back any more."""
        ...


@runtime_checkable
class CallAdmission(Protocol):
    """A model that says whether a call may be made before it is."""

    def admit(self, *, system: str, prompt: str, max_tokens: int) -> PendingCall:
        """A question that may be asked; raises `ModelError` where it may not."""
        ...


async def ask(
    model: LanguageModel,
    *,
    system: str,
    prompt: str,
    max_tokens: int,
    deadline_ms: float,
    tools: Tools = (),
) -> ModelReply | NoReply:
    """The model's reply within a deadline, or why there is none; `tools` are those that it may call."""
    request = tool_arguments(tools) | {"system": system, "prompt": prompt, "max_tokens": max_tokens}
    return await _within(partial(model.complete, deadline_ms=deadline_ms, **request), deadline_ms)


async def ask_at_once(
    model: LanguageModel, *, system: str, prompts: Sequence[str], max_tokens: int, deadline_ms: float
) -> list[ModelReply | NoReply]:
    """Replies to several questions asked at the same time, in the order of the questions.

    Each is admitted before any is answered, so what may be asked does not hang on how fast a reply is. What
    is played back is not waited for: nothing is suspended, and no deadline can end it.
    """
    if not isinstance(model, CallAdmission):
        plain = [
            ask(model, system=system, prompt=prompt, max_tokens=max_tokens, deadline_ms=deadline_ms)
            for prompt in prompts
        ]
        return await _all(plain)
    admitted = [_admit(model, system, prompt, max_tokens) for prompt in prompts]
    calls = [call for call in admitted if not isinstance(call, NoReply)]
    try:
        replies = [partial(call.reply, deadline_ms) for call in calls]
        if any(call.waits for call in calls):
            shown = await _all([_within(reply, deadline_ms) for reply in replies])
        else:
            shown = [await _within(reply, deadline_ms) for reply in replies]
    finally:
        for call in calls:
            call.release()
    answers = iter(shown)
    return [call if isinstance(call, NoReply) else next(answers) for call in admitted]


def _admit(model: CallAdmission, system: str, prompt: str, max_tokens: int) -> PendingCall | NoReply:
    try:
        return model.admit(system=system, prompt=prompt, max_tokens=max_tokens)
    except ModelError as error:
        return _failure(error, "")


async def _all(questions: Sequence[Awaitable[ModelReply | NoReply]]) -> list[ModelReply | NoReply]:
    """Every answer; an error comes when all are over, the first one in order."""
    if len(questions) == 1:
        return [await questions[0]]
    answers = await asyncio.gather(*questions, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return cast("list[ModelReply | NoReply]", answers)


async def _within(reply: Callable[[], Awaitable[ModelReply]], deadline_ms: float) -> ModelReply | NoReply:
    late = f"no answer within {deadline_ms:g} ms"
    try:
        # The model keeps its deadline and says how it failed; this one is for a model that does not.
        async with asyncio.timeout((deadline_ms + GRACE_MS) / 1_000):
            return await reply()
    except TimeoutError:
        return NoReply(TIMEOUT, late)
    except ModelError as error:
        return _failure(error, late)


def _failure(error: ModelError, late: str) -> NoReply:
    text, kind = str(error), str(error.context.get("kind", "error"))
    # A call that was given up here is recorded so: played back, it ends with the same words.
    return NoReply(kind, late if kind == TIMEOUT and text.endswith(GIVEN_UP) else text)
