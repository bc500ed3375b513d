"""Revisers that ask a model: a minimal correction, or the whole text again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.claims import Section
from services.deliberation.budget import Budget
from services.deliberation.forms import (
    CORRECTION,
    IMPROVEMENT,
    CorrectionReply,
    ImprovementReply,
    read_text_reply,
)
from services.deliberation.model_critics import Rewrites
from services.deliberation.policies import Round
from services.deliberation.refine import ClaimWriter, Draft, Task, sections_of
from services.deliberation.text_models import (
    MALFORMED,
    TextModels,
    describe_critique,
    quote_parts,
    read_as,
)
from services.model_calls.asking import NoReply
from services.model_calls.quoting import quoted_json


@dataclass(frozen=True)
class Corrector:
    """The minimal correction of a text whose faults were named."""

    models: TextModels
    claims: ClaimWriter
    max_tokens: int

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The corrected text, or why there is none."""
        newest = rounds[-1]
        faults = [
            describe_critique(critique) for critique in newest.critiques if critique.verdict != "accept"
        ]
        values = _quote_text(task, newest) | {"faults": quoted_json(faults)}
        reply = await self.models.ask(CORRECTION, self.max_tokens, budget, **values)
        answer_given = read_as(reply, lambda text: read_text_reply(text, CorrectionReply))
        return (
            answer_given if isinstance(answer_given, NoReply) else _draft(self.claims, answer_given.sections)
        )


@dataclass(frozen=True)
class FirstDraft:
    """The first text, from the question and the material alone."""

    models: TextModels
    claims: ClaimWriter
    max_tokens: int

    async def generate(self, task: Task, budget: Budget) -> Draft | NoReply:
        """The text, or why there is none."""
        values = quote_parts(task, "") | {"sections": quoted_json([])}
        return await _write(self.models, self.claims, self.max_tokens, values, [], budget)


@dataclass(frozen=True)
class Improver:
    """The text again, with every critique of the one before; what was thought is kept apart.

    A text that came with its critique is taken as it is, and nobody is asked for it.
    """

    models: TextModels
    claims: ClaimWriter
    max_tokens: int
    rewrites: Rewrites = field(default_factory=Rewrites)

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The improved text, or why there is none."""
        newest = rounds[-1]
        rewritten = self.rewrites.take(task, newest.candidate)
        if rewritten is not None:
            return rewritten
        critiques = [known for critique in newest.critiques if len(known := describe_critique(critique)) > 1]
        values = _quote_text(task, newest)
        return await _write(self.models, self.claims, self.max_tokens, values, critiques, budget)


def _quote_text(task: Task, newest: Round) -> dict[str, str]:
    """The newest text as it reads, and the claims that it was rendered from."""
    sections = [section.payload() for section in sections_of(newest.candidate)]
    return quote_parts(task, newest.candidate.text) | {"sections": quoted_json(sections)}


async def _write(
    models: TextModels,
    claims: ClaimWriter,
    max_tokens: int,
    values: dict[str, str],
    critiques: list[dict[str, Any]],
    budget: Budget,
) -> Draft | NoReply:
    """One text from another and its critiques; what was thought is kept apart."""
    reply = await models.ask(IMPROVEMENT, max_tokens, budget, **values, critiques=quoted_json(critiques))
    answer_given = read_as(reply, lambda text: read_text_reply(text, ImprovementReply))
    return (
        answer_given
        if isinstance(answer_given, NoReply)
        else _draft(claims, answer_given.sections, answer_given.reasoning)
    )


def _draft(claims: ClaimWriter, sections: Sequence[Section], reasoning: str = "") -> Draft | NoReply:
    """The sections in words; a text that claims nothing is none."""
    if not any(section.claims for section in sections):
        return NoReply(MALFORMED, "the text claims nothing")
    return claims.draft(sections, reasoning=reasoning)
