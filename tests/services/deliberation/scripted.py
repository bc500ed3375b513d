"""A model that answers by prompt, and critics and writers made of lists: fakes of the core's tests."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prompts import load_prompt
from schemas.deliberation import (
    Author,
    CallUsage,
    Critique,
    CritiqueSource,
    CritiqueVerdict,
    TextCandidate,
    TextFinding,
)
from schemas.errors import ModelError
from schemas.vocabulary import Severity
from services.deliberation.budget import Budget
from services.deliberation.forms import CONTRACTS
from services.deliberation.policies import Round
from services.deliberation.refine import Draft, Task
from services.deliberation.text_models import TextModels
from services.model_calls.asking import NoReply
from services.model_calls.language_model import ModelReply

HANGS = "hangs"
NEVER_S = 3_600.0
ONE_CALL = CallUsage(calls=1, input_tokens=10, output_tokens=5)
Reply = str | ModelError | Mapping[str, Any] | Callable[[str], str]


@dataclass
class ScriptedModel:
    """Answers each prompt with its replies, the last one again and again, and keeps what it was asked.

    A reply is a text, a document, an error, `HANGS`, or a function of the request.
    """

    replies: Mapping[str, Sequence[Reply]]
    requested: list[tuple[str, str]] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        name = next(known for known in CONTRACTS if load_prompt(known).system == system)
        place = sum(1 for before, _ in self.requested if before == name)
        self.requested.append((name, prompt))
        self.deadlines.append(deadline_ms)
        given = self.replies[name]
        reply = given[min(place, len(given) - 1)]
        if reply == HANGS:
            await asyncio.sleep(NEVER_S)
        if isinstance(reply, ModelError):
            raise reply
        if callable(reply):
            reply = reply(prompt)
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return ModelReply(text, "scripted", len(prompt), len(text), 1.0)

    def count(self, name: str) -> int:
        """How often a prompt came."""
        return sum(1 for known, _ in self.requested if known == name)

    def requests(self, name: str) -> list[str]:
        """What was asked with a prompt."""
        return [prompt for known, prompt in self.requested if known == name]


@dataclass
class AllAtOnce:
    """Lets a model answer only once so many questions stand before it."""

    model: ScriptedModel
    most: int
    waiting: int = 0
    there: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.waiting += 1
        if self.waiting == self.most:
            self.there.set()
        await self.there.wait()
        return await self.model.complete(
            system=system, prompt=prompt, max_tokens=max_tokens, deadline_ms=deadline_ms
        )


def texts(**replies: Any) -> tuple[TextModels, ScriptedModel]:
    """Models for the prompts named without their `text_`, all of them one fake."""
    listed = {
        f"text_{name}": shown if isinstance(shown, list) else [shown] for name, shown in replies.items()
    }
    model = ScriptedModel(listed)
    return TextModels(dict.fromkeys(listed, model), {name: load_prompt(name) for name in listed}), model


def failing(kind: str = "server") -> ModelError:
    """A model that fails in one way."""
    return ModelError(f"the model failed: {kind}", kind=kind)


def critique(assessment: str, confidence: float = 0.9, explanation: str = "why") -> dict[str, Any]:
    """The closed reply of the pass."""
    return {"assessment": assessment, "confidence": confidence, "explanation": explanation}


def scored(*percents: float, issues: Sequence[str] = ()) -> dict[str, Any]:
    """The closed reply of the quality critic: four scores, or one for all four."""
    names = ("completeness", "accuracy", "actionability", "confidence")
    values = percents if len(percents) > 1 else percents * 4
    lists: dict[str, Any] = {"issues": list(issues), "suggestions": [], "missing_elements": []}
    return {**dict(zip(names, values, strict=True)), **lists}


def section(*claims: dict[str, Any], topic: str = "window", comment: str | None = None) -> dict[str, Any]:
    """One section of claims."""
    return {"topic": topic, "claims": list(claims), "comment": comment}


def improved(*sections: dict[str, Any], reasoning: str = "thought") -> dict[str, Any]:
    """The closed reply of whoever improves."""
    return {"reasoning": reasoning, "sections": list(sections)}


def chunk(*claims: dict[str, Any], reasoning: str = "thought", comment: str | None = None) -> dict[str, Any]:
    """The closed reply of whoever writes one section."""
    return {"reasoning": reasoning, "claims": list(claims), "comment": comment}


def reviewed(score: float, quoted: str = "said", *improvements: str) -> dict[str, Any]:
    """The closed reply of a review."""
    return {"score": score, "critique": quoted, "improvements": list(improvements)}


def rewritten(scores: Mapping[str, Any], *sections: dict[str, Any]) -> dict[str, Any]:
    """The closed reply of a critic that also writes the text again; without sections it is good enough."""
    return {**scores, "reasoning": "thought" if sections else "", "sections": list(sections)}


def found(
    code: str = "fault", severity: Severity = Severity.MAJOR, quoted: str = "", dimension: str = "accuracy"
) -> TextFinding:
    """A finding."""
    return TextFinding(code=code, severity=severity, dimension=dimension, message=code, said=quoted)


def view(
    verdict: CritiqueVerdict = "accept",
    *,
    source: CritiqueSource = "model",
    scores: Mapping[str, float] | None = None,
    overall: float | None = None,
    confidence: float = 1.0,
    findings: Sequence[TextFinding] = (),
    candidate: int = 0,
    name: str = "",
) -> Critique:
    """A critique."""
    return Critique(
        critic=name or source, source=source, candidate=candidate, verdict=verdict,
        scores=dict(scores or {}), overall=overall, confidence=confidence, findings=tuple(findings),
    )  # fmt: skip


@dataclass
class ListedCritic:
    """Says what it is given, one thing a candidate, the last again and again; a model's word costs a call."""

    quoted: Sequence[Critique | NoReply | ModelError | str]
    source: CritiqueSource = "rule"
    name: str = "listed"
    heard: list[str] = field(default_factory=list)

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        reply = self.quoted[min(candidate.number, len(self.quoted) - 1)]
        self.heard.append(candidate.text)
        if self.source == "model":
            budget.charge(ONE_CALL)
        if reply == HANGS:
            await asyncio.sleep(NEVER_S)
        if isinstance(reply, ModelError):
            raise reply
        assert not isinstance(reply, str)
        if isinstance(reply, NoReply):
            return reply
        return reply.model_copy(update={"candidate": candidate.number, "source": self.source})


@dataclass
class ListedWriter:
    """Writes the texts it is given, one after the other; each costs a call where it is a model."""

    written: Sequence[str | NoReply | ModelError]
    author: Author = "model"
    place: int = 0

    async def generate(self, task: Task, budget: Budget) -> Draft | NoReply:
        return await self._next(budget)

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        return await self._next(budget)

    async def _next(self, budget: Budget) -> Draft | NoReply:
        if self.author == "model":
            if not budget.allows_call:
                return NoReply("budget", "no call is left")
            budget.charge(ONE_CALL)
        reply = self.written[min(self.place, len(self.written) - 1)]
        self.place += 1
        if reply == HANGS:
            await asyncio.sleep(NEVER_S)
        if isinstance(reply, ModelError):
            raise reply
        return reply if isinstance(reply, NoReply) else Draft(reply, self.author)


class Ticks:
    """A timer in ns that only goes on when it is told to, or by a step at every look."""

    def __init__(self, step_ms: float = 0.0) -> None:
        self.now, self.step = 0, int(step_ms * 1e6)

    def __call__(self) -> int:
        self.now += self.step
        return self.now
