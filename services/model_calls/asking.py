"""How every part of a run asks a model: one deadline, and a failure that has a word of its own."""

import asyncio
from dataclasses import dataclass
from typing import cast

from schemas.errors import ModelError
from schemas.tool import ToolDefinition, Tools
from services.model_calls.language_model import LanguageModel, ModelReply, ToolCallingModel
from services.model_calls.record import GIVEN_UP, TIMEOUT

GRACE_MS = 20.0


@dataclass(frozen=True)
class NoReply:
    """Why a model did not answer: the kind of its failure, and what it said."""

    kind: str
    detail: str


@dataclass(frozen=True)
class ModelWithTools:
    """A model whose every question comes with the same tools."""

    model: ToolCallingModel
    tools: tuple[ToolDefinition, ...]

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The model's reply, with the calls that it asks for."""
        return await self.model.complete(
            system=system, prompt=prompt, max_tokens=max_tokens, deadline_ms=deadline_ms, tools=self.tools
        )


def with_tools(model: LanguageModel, tools: Tools) -> LanguageModel:
    """The model with tools that it may call; without any the model as it is.

    Whether a provider takes tools is known before a run; see `WireModel.calls_tools`.
    """
    return ModelWithTools(cast("ToolCallingModel", model), tuple(tools)) if tools else model


async def ask(
    model: LanguageModel, *, system: str, prompt: str, max_tokens: int, deadline_ms: float
) -> ModelReply | NoReply:
    """The model's reply within a deadline, or why there is none."""
    late = f"no answer within {deadline_ms:g} ms"
    try:
        # The model keeps its deadline and says how it failed; this one is for a model that does not.
        async with asyncio.timeout((deadline_ms + GRACE_MS) / 1_000):
            return await model.complete(
                system=system, prompt=prompt, max_tokens=max_tokens, deadline_ms=deadline_ms
            )
    except TimeoutError:
        return NoReply(TIMEOUT, late)
    except ModelError as error:
        said, kind = str(error), str(error.context.get("kind", "error"))
        # A call that was given up here is recorded so: played back, it ends with the same words.
        return NoReply(kind, late if kind == TIMEOUT and said.endswith(GIVEN_UP) else said)
