"""One call of a language model as it is recorded: what was asked, by a key, and how it ended, raw.

The record is made before anybody validates the reply, and what the caller gets is read from the record, so a
replay hands out exactly what the first run saw. Failures and timeouts are outcomes like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

from pydantic import Field

from schemas.canonical import content_hash
from schemas.contract import Contract
from schemas.errors import ModelError
from schemas.tool import ToolDefinition, Tools, ToolUse
from services.model_calls.language_model import GIVEN_UP, TIMEOUT, ModelReply
from services.model_calls.reply_format import ReplyFormat

REPLY = "reply"
# The budget of the reflection was spent before the model was asked.
LATE = "budget_spent"
# The request may have been worked on although no count came back.
UNTOLD = frozenset({"timeout", "network", "malformed", "cut", "refusal", "wrong_model"})
RAW_CHARACTERS = 20_000
MOST_TOKENS = 100_000_000  # of one call; a count beyond is none


class Purse(IntEnum):
    """What a call is paid from; a lower purse leaves to the higher ones what these may need."""

    TEXT = 0
    """It writes or weighs a text."""
    EVENT = 1
    """It answers in a policy event: the second reader, or a strategist."""
    EVIDENCE = 2
    """It plans what is read for a decision on a report."""
    DECISION = 3
    """It decides on a report."""


@dataclass(frozen=True)
class Caller:
    """Who asks whom: fixed for a run.

    Attributes:
        provider: of the model.
        model: id as the provider names it.
        prompt: name of the template under `prompts/`.
        prompt_hash: content hash of that template.
        effort: how much the model thinks before it answers; None: as it likes.
        thought_tokens: room for its thoughts, on top of the bound of an answer.
        form: of the reply, where the model is held to one.
        reads: whether a reply's text can be used; None: any can.
        temperature: asked for; None: the model's own.
        purse: from which its calls are paid.
    """

    provider: str
    model: str
    prompt: str
    prompt_hash: str
    effort: str | None = None
    form: ReplyFormat | None = None
    reads: Callable[[str], bool] | None = field(default=None, compare=False)
    temperature: float | None = None
    purse: Purse = field(default=Purse.DECISION, compare=False)
    thought_tokens: int = 0

    @property
    def parameters(self) -> dict[str, Any]:
        """What else it is asked with, apart from the bound of the reply; empty for the provider's own."""
        form = None if self.form is None else self.form.hash
        payload = {
            "effort": self.effort,
            "thought_tokens": self.thought_tokens or None,
            "reply_format": form,
            "temperature": self.temperature,
        }
        return {name: value for name, value in payload.items() if value is not None}


@dataclass(frozen=True)
class Question:
    """One call to be made.

    `repeat` counts from 1 how often the same was asked in this run; `first` is the first of the run. `tools`
    are those that the model may call by its provider's own means.
    """

    caller: Caller
    system: str
    prompt: str
    max_tokens: int
    repeat: int
    first: bool = False
    tools: tuple[ToolDefinition, ...] = ()

    @property
    def key(self) -> str:
        """SHA-256 over provider, model, prompt template, parameters and the whole input."""
        return question_key(self.caller, self.system, self.prompt, self.max_tokens, self.tools)

    @property
    def size(self) -> int:
        """Bytes of the input."""
        shown = (self.system, self.prompt, *(tool.canonical_text() for tool in self.tools))
        return sum(len(text.encode()) for text in shown)


def question_key(caller: Caller, system: str, prompt: str, max_tokens: int, tools: Tools = ()) -> str:
    """The key of a question, however often it is asked; tools have a part in it where there are any."""
    payload = {"tools": [tool.content_hash for tool in tools]} if tools else {}
    return content_hash(
        {
            "provider": caller.provider,
            "model": caller.model,
            "prompt_hash": caller.prompt_hash,
            "parameters": {"max_tokens": max_tokens, **caller.parameters},
            "input_hash": content_hash({"system": system, "prompt": prompt, **payload}),
        }
    )


class Usage(Contract):
    """Tokens as the provider counted them."""

    input_tokens: int = Field(ge=0, le=MOST_TOKENS)
    output_tokens: int = Field(ge=0, le=MOST_TOKENS)
    cache_write_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    cache_read_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    cache_hour_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)

    @property
    def total(self) -> int:
        """All tokens."""
        cached = self.cache_write_tokens + self.cache_read_tokens + self.cache_hour_tokens
        return self.input_tokens + self.output_tokens + cached


class RecordedCall(Contract):
    """How one call ended. `outcome` is `reply` or the kind of the failure; `text` is the raw reply."""

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})

    key: str
    repeat: int = Field(ge=1)
    provider: str
    model: str
    prompt: str
    prompt_hash: str
    max_tokens: int
    effort: str | None = None
    thought_tokens: int = 0
    outcome: str
    text: str = ""
    uses: tuple[ToolUse, ...] = ()
    answered_by: str | None = None
    message: str | None = None
    retryable: bool = False
    requests: int = Field(default=1, ge=0, description="sent over the wire")
    usage: Usage | None = None
    lost: int = Field(default=0, ge=0, description="requests that may be billed, uncounted, beside a failure")
    status: int | None = Field(default=None, description="of HTTP, of a failure that has one")
    temperature: float | None = None
    temperature_sent: bool | None = Field(
        default=None, description="false where the API takes no temperature: the one above is not mapped"
    )
    latency_ms: float = Field(default=0.0, ge=0)

    @property
    def replied(self) -> bool:
        """Whether there is a reply to hand out."""
        return self.outcome == REPLY

    def result(self) -> ModelReply:
        """What the caller gets.

        Raises:
            ModelError: the call failed; message, kind and `retryable` are the recorded ones.
        """
        if not self.replied or self.usage is None:
            raise ModelError(
                self.message or self.outcome,
                retryable=self.retryable,
                kind=self.outcome,
                key=self.key,
                status=self.status,
            )
        return ModelReply(
            text=self.text,
            model=self.answered_by or self.model,
            latency_ms=self.latency_ms,
            **self.usage.model_dump(),
            requests=self.requests,
            lost=self.lost,
            uses=self.uses,
            temperature_sent=self.temperature_sent,
        )


def _record_of(question: Question, latency_ms: float, **outcome: Any) -> RecordedCall:
    caller = question.caller
    return RecordedCall(
        key=question.key,
        repeat=question.repeat,
        provider=caller.provider,
        model=caller.model,
        prompt=caller.prompt,
        prompt_hash=caller.prompt_hash,
        max_tokens=question.max_tokens,
        effort=caller.effort,
        thought_tokens=caller.thought_tokens,
        temperature=caller.temperature,
        latency_ms=latency_ms,
        **outcome,
    )


def record_reply(question: Question, reply: ModelReply, latency_ms: float) -> RecordedCall:
    """The record of a reply, whole but for the key, if its texts repeat that."""
    usage = Usage(**{name: getattr(reply, name) for name in Usage.model_fields})
    return _record_of(
        question,
        latency_ms,
        outcome=REPLY,
        text=storable(reply.mask(reply.text)),
        uses=tuple(ToolUse(name=it.name, arguments=storable(reply.mask(it.arguments))) for it in reply.uses),
        answered_by=reply.model,
        requests=reply.requests,
        lost=reply.lost,
        temperature_sent=reply.temperature_sent,
        usage=usage,
    )


def record_failure(question: Question, error: ModelError, latency_ms: float) -> RecordedCall:
    """The record of a failure, with whatever the model did say."""
    context = error.context
    return _record_of(
        question,
        latency_ms,
        outcome=context.get("kind", "error"),
        text=storable(context.get("raw", ""))[:RAW_CHARACTERS],
        message=storable(str(error)),
        retryable=error.retryable,
        requests=context.get("requests", 1),
        lost=context.get("lost", 0),
        status=context.get("status"),
        temperature_sent=context.get("temperature_sent"),
        usage=context.get("usage"),
    )


def record_silence(question: Question, latency_ms: float, *, requested: bool) -> RecordedCall:
    """The record of a call that the clock ended: waited for in vain, or `requested` too late to be made."""
    if requested:
        message = f"model {question.caller.model!r}: {GIVEN_UP}"
        return _record_of(question, latency_ms, outcome=TIMEOUT, message=message, retryable=True)
    return record_refusal(question, LATE, f"model {question.caller.model!r}: no time was left to ask it")


def record_refusal(question: Question, outcome: str, message: str) -> RecordedCall:
    """The record of a call that was not made, and why."""
    return _record_of(question, 0.0, outcome=outcome, message=message, requests=0)


def storable(text: str) -> str:
    """The text with lone surrogates, which no store takes, written out as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
