"""Who is asked about texts: one prompt, one closed reply and one call of the budget each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from schemas.deliberation import CallUsage, Critique, Deliberation
from services.deliberation.budget import Budget
from services.deliberation.refine import BUDGET_SPENT, CLAIM_REFUSED, Answer, Task
from services.model_calls.asking import NoReply, ask_at_once
from services.model_calls.language_model import LanguageModel, ModelReply
from services.model_calls.quoting import quoted_json
from services.model_calls.reply_text import MalformedReply

MALFORMED = "reply_malformed"
CALL_MS = 45_000.0  # of one call, whatever is left for the text


class Template(Protocol):
    """A prompt template."""

    @property
    def system(self) -> str:
        """The instructions."""
        ...

    def render(self, **values: str) -> str:
        """The request with its placeholders filled."""
        ...


@dataclass(frozen=True)
class TextModels:
    """Who is asked about texts, by prompt, and the prompts themselves."""

    models: Mapping[str, LanguageModel]
    prompts: Mapping[str, Template]

    def has(self, *names: str) -> bool:
        """Whether there is a model for each of these prompts."""
        return all(name in self.models for name in names)

    async def ask(self, name: str, max_tokens: int, budget: Budget, **values: str) -> ModelReply | NoReply:
        """One call, charged to the budget; none where no call is left."""
        return (await self.ask_at_once(name, max_tokens, budget, [values]))[0]

    async def ask_at_once(
        self, name: str, max_tokens: int, budget: Budget, requests: Sequence[Mapping[str, str]]
    ) -> list[ModelReply | NoReply]:
        """Replies to one prompt, asked for at once, in the order of its requests; within the calls left."""
        found: list[ModelReply | NoReply] = []
        while len(found) < len(requests) and (most := budget.calls_at_once):
            prompt, started = self.prompts[name], budget.elapsed_ms
            replies = await ask_at_once(
                self.models[name],
                system=prompt.system,
                prompts=[prompt.render(**values) for values in requests[len(found) : len(found) + most]],
                max_tokens=max_tokens,
                deadline_ms=min(CALL_MS, budget.left_for_texts_ms),
            )
            budget.note_asked(budget.elapsed_ms - started)
            for reply in replies:
                budget.charge(CallUsage(calls=1) if isinstance(reply, NoReply) else usage_of(reply))
            found += replies
        return [*found, *[NoReply(BUDGET_SPENT, "no call is left")] * (len(requests) - len(found))]


def read_as(reply: ModelReply | NoReply, read: Callable[[str], Answer]) -> Answer | NoReply:
    """What a reply says, or why it says nothing; `read` raises MalformedReply where it cannot."""
    if isinstance(reply, NoReply):
        return reply
    try:
        return read(reply.text)
    except MalformedReply as error:
        return NoReply(MALFORMED, error.plain)


def usage_of(reply: ModelReply) -> CallUsage:
    """What one reply cost."""
    return CallUsage(calls=1, input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)


def quote_parts(task: Task, text: str | None = None) -> dict[str, str]:
    """Question, material and text, where there is one, as every prompt has them."""
    payload = {"question": task.question, "material": task.material, "text": text}
    return {name: quoted_json(reply) for name, reply in payload.items() if reply is not None}


def describe_critique(critique: Critique) -> dict[str, Any]:
    """What a writer, or another critic, is told of a critique."""
    answer: dict[str, Any] = {
        "critic": critique.critic,
        "scores": dict(critique.scores),
        "overall": critique.overall,
        "explanation": critique.explanation,
        "issues": list(critique.issues),
        "suggestions": list(critique.suggestions),
        "missing_elements": list(critique.missing_elements),
        "refused_claims": [
            {"claim": found.said, "what_is_so": found.message}
            for found in critique.findings
            if found.code == CLAIM_REFUSED
        ],
        "faults": [found.message for found in critique.findings if found.code != CLAIM_REFUSED],
    }
    return {name: value for name, value in answer.items() if value not in (None, "", [], {})}


def with_comments_alone(done: Deliberation, keep: Callable[[str], str | None]) -> Deliberation:
    """The outcome with a critic's words on it left out where they are not kept, in its events too."""
    words: dict[object, str] = {}
    for critique in done.critiques:
        if critique.source == "model":
            lists = (critique.issues, critique.suggestions, critique.missing_elements)
            lines = (critique.explanation, *chain.from_iterable(lists))
            words |= {line: keep(line) or "" for line in lines if line}
    critiques = [_reword(critique, words) for critique in done.critiques]
    events = [
        event.model_copy(
            update={"fields": {name: _replace(value, words) for name, value in event.fields.items()}}
        )
        for event in done.events
    ]
    return done.model_copy(update={"critiques": tuple(critiques), "events": tuple(events)})


def _replace(value: object, words: Mapping[object, str]) -> object:
    return words.get(value, value) if isinstance(value, str) else value


def _reword(critique: Critique, words: Mapping[object, str]) -> Critique:
    if critique.source != "model":
        return critique
    lists = {name: getattr(critique, name) for name in ("issues", "suggestions", "missing_elements")}
    kept = {name: tuple(words[line] for line in lines if words.get(line)) for name, lines in lists.items()}
    return critique.model_copy(update={"explanation": words.get(critique.explanation, ""), **kept})
