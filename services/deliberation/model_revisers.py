"""Revisers that ask a model: a minimal correction, or the whole text again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from services.deliberation.budget import Budget
from services.deliberation.forms import (
    CORRECTION,
    IMPROVEMENT,
    ImprovementReply,
    read_corrected,
    read_text_reply,
)
from services.deliberation.policies import Round
from services.deliberation.refine import Draft, Task
from services.deliberation.text_models import Rewrites, TextModels, describe_critique, quote_parts, read_as
from services.model_calls.asking import NoReply
from services.model_calls.quoting import quoted_json


@dataclass(frozen=True)
class Corrector:
    """The minimal correction of a text whose faults were named."""

    models: TextModels
    max_tokens: int

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The corrected text, or why there is none."""
        newest = rounds[-1]
        faults = [
            describe_critique(critique) for critique in newest.critiques if critique.verdict != "accept"
        ]
        values = quote_parts(task, newest.candidate.text) | {"faults": quoted_json(faults)}
        reply = await self.models.ask(CORRECTION, self.max_tokens, budget, **values)
        return read_as(reply, lambda text: Draft(read_corrected(text)))


@dataclass(frozen=True)
class FirstDraft:
    """The first text, from the question and the material alone."""

    models: TextModels
    max_tokens: int

    async def generate(self, task: Task, budget: Budget) -> Draft | NoReply:
        """The text, or why there is none."""
        return await _write(self.models, self.max_tokens, task, "", [], budget)


@dataclass(frozen=True)
class Improver:
    """The text again, with every critique of the one before; what was thought is kept apart.

    A text that came with its critique is taken as it is, and nobody is asked for it.
    """

    models: TextModels
    max_tokens: int
    rewrites: Rewrites = field(default_factory=Rewrites)

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The improved text, or why there is none."""
        newest = rounds[-1]
        rewritten = self.rewrites.take(task, newest.candidate)
        if rewritten is not None:
            return rewritten
        critiques = [known for critique in newest.critiques if len(known := describe_critique(critique)) > 1]
        return await _write(self.models, self.max_tokens, task, newest.candidate.text, critiques, budget)


async def _write(
    models: TextModels,
    max_tokens: int,
    task: Task,
    text: str,
    critiques: list[dict[str, Any]],
    budget: Budget,
) -> Draft | NoReply:
    """One text from another and its critiques; what was thought is kept apart."""
    values = quote_parts(task, text) | {"critiques": quoted_json(critiques)}
    reply = await models.ask(IMPROVEMENT, max_tokens, budget, **values)
    said = read_as(reply, lambda text: read_text_reply(text, ImprovementReply))
    return said if isinstance(said, NoReply) else Draft(said.text.strip(), reasoning=said.reasoning)
