"""A model behind an SDK: one question, one deadline, every failure a typed `ModelError`.

The SDK carries the wire and retries nothing; how a question is put and which message is its reply, a module
for each API says. The total deadline is ours, since an SDK counts its own per read and a dripping reply would
never end. The stop reason is read before the text, so a refusal or a cut reply never passes for an answer.
What a server refuses of the parameters is left out from then on. SDKs are imported at the first call, because
importing one takes seconds; their exceptions hold the request with its credentials and never leave here.
"""

import asyncio
import importlib
import inspect
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from pydantic import Field

from agents.language_models.context_check import ContextCheck, loaded_context
from agents.language_models.key_mask import KeyMask
from agents.language_models.wire_failures import (
    AnsweredError,
    Attempt,
    FailedCalls,
    UnusableReply,
    answered_error,
    note_unsent,
    refused_parameters,
)
from schemas.contract import Contract
from schemas.errors import ConfigError, ModelError
from schemas.model_table import answers_for
from schemas.settings.providers import PROVIDERS, Provider
from schemas.tool import ToolDefinition, Tools, ToolUse
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Usage
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import quote_beginning, strip_thoughts
from trading_core.tick_guard import TickGuard

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
TEACHING = (400, 422)  # how a server says that it does not take a parameter
BYTES_OF_TOKEN = 4  # of an answer, at least, where its server does not count thoughts apart
MOST_BYTES_COUNTED = 20  # of a question for each token that a server which counts at all has read
CONTEXT_S = 1.0  # for a server to tell its context
NS_PER_MS = 1_000_000
UNCOUNTED = Usage(input_tokens=0, output_tokens=0)


@dataclass(frozen=True)
class Request:
    """What is sent of a question; `max_tokens` bound its answer, thoughts aside."""

    system: str
    prompt: str
    max_tokens: int
    tools: tuple[ToolDefinition, ...] = ()


class Message(Contract, strict=True):
    """A whole reply, whatever API it came over. `fault` is the kind of failure that its stop reason is.

    `uses` are calls that the model asks for, of the tools that it was given; `thoughts` the tokens of its
    output that are no answer, where they are counted.
    """

    model: str
    text: str
    stop: str
    fault: str | None
    usage: Usage | None = None
    uses: tuple[ToolUse, ...] = ()
    thoughts: int | None = Field(default=None, ge=0)

    @property
    def answer_tokens(self) -> int:
        """Tokens of the answer; from below where thoughts are not counted apart."""
        if self.usage is None:
            return len(strip_thoughts(self.text).encode()) // BYTES_OF_TOKEN
        written = self.usage.output_tokens
        if self.thoughts:  # zero is also what a server says that does not count them
            return written - self.thoughts
        return min(written, len(strip_thoughts(self.text).encode()) // BYTES_OF_TOKEN)


@dataclass(frozen=True)
class TakenParameters:
    """What a server takes of the parameters, as far as its refusals have shown.

    Attributes:
        bounds: names of the bound of a reply, and whether it holds room for thoughts; the first is sent.
        temperature, effort, form: whether they are sent.
        context: tokens that it says that it holds; 0: it does not, None: it was not asked.
    """

    bounds: tuple[tuple[str, bool], ...]
    temperature: bool = True
    effort: bool = True
    form: bool = True
    context: int | None = None

    def without(self, refused: AbstractSet[str]) -> "TakenParameters":
        """The same without what was refused; another name of the bound, and in the end no room.

        The form and the effort may share a field: where that is refused without the form, the effort is it.
        """
        tried = "bound" in refused and len(self.bounds) > 1
        return replace(
            self,
            bounds=self.bounds[tried:],
            temperature=self.temperature and "temperature" not in refused,
            effort=self.effort and "effort" not in refused and (self.form or "form" not in refused),
            form=self.form and "form" not in refused,
        )


class WireModel(ABC):
    """One model of one API. `kind` in a `ModelError`'s context names the class of failure.

    Kinds: timeout, network, throttled, overloaded, conflict, server, rejected (request or key are wrong),
    refusal, cut (question or reply are incomplete), malformed (the reply is no reply), wrong_model (another
    answered). The context also holds what was said (`raw`), what was counted (`usage`), the `status`, and how
    long to wait (`retry_after_ms`), where there is such a thing.
    """

    package: ClassVar[str]
    """Import name of the SDK, and of the row that holds where none is given."""
    bounds: ClassVar[tuple[str, ...]]
    """What its servers call the bound of a reply."""
    read: ClassVar[Any]
    """The reply in a document, its tokens aside; raises one of `UNREADABLE` where it is none."""
    count: ClassVar[Any]
    """The tokens that a document tells, and those of thoughts among them; raises as `read` does."""
    fold: ClassVar[type[Any]]
    """Puts the document of a streamed reply together, event by event."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        guard: TickGuard,
        row: Provider | None = None,
        base_url: str | None = None,
        stall_ms: float | None = None,
        effort: str = "low",
        thought_tokens: int = 0,
        reply_format: ReplyFormat | None = None,
        accept: Sequence[str] = (),
        temperature: float | None = None,
        learned: dict[tuple[str | None, str], TakenParameters] | None = None,
    ) -> None:
        """Hold the settings; nothing is imported or opened before the first call.

        Args:
            model: model id as the API names it.
            api_key: credential; never logged, never part of an error or of what is stored of a reply.
            guard: refuses calls from inside the tick path.
            row: of the provider; None: that of the API's maker.
            base_url: of the API; None: that of the row.
            stall_ms: the reply is streamed, and given up after a silence this long, pings not counted;
                None: it comes whole.
            effort: how much the model thinks first; `none`: not at all.
            thought_tokens: room for its thoughts, on top of the bound of an answer.
            reply_format: form of the reply that the API is to hold the model to; None asks for none.
            accept: names of other models whose answer counts.
            temperature: of the reply, where the API takes one; None leaves it to the model.
            learned: what servers take, by address and model; shared by the models of a run.
        """
        self._model, self._api_key, self._mask = model, api_key, KeyMask(api_key)
        self._failed = FailedCalls(model, self._mask)
        self._guard = guard
        self._row = row or PROVIDERS[self.package]
        self._base_url = base_url or self._row.address
        self._stall_ms = stall_ms
        self._effort = effort
        self._room = 0 if effort == "none" else thought_tokens
        self._format = reply_format
        self._accept = tuple(accept)
        self._temperature = temperature
        self._learned = {} if learned is None else learned
        self._cuts = ContextCheck()
        self._form_in_doubt = True  # until a question is answered, or refused without it, too
        self._client: Any = None

    @abstractmethod
    def _connect(self, sdk: Any, **options: Any) -> Any:
        """The SDK's client, made with `options` and the key."""

    @abstractmethod
    async def _send(self, client: Any, request: Request, taken: TakenParameters, **options: Any) -> Any:
        """The SDK's raw response."""

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """The raw text of the reply, and the calls that it asks for.

        Args:
            system: instructions, the same from call to call.
            prompt: the request.
            max_tokens: bound of the answer; a reply cut there is a failure.
            deadline_ms: for everything from here on, the connection included.
            tools: that the model may call; the reply then has no form.

        Raises:
            ModelError: the call failed in any way; `retryable` says whether the same call may succeed later.
            InvariantViolation: called from inside the tick path.
        """
        self._guard.forbid("llm_calls")
        start = time.perf_counter_ns()
        client = self._client or self.open()
        request, attempt = Request(system, prompt, max_tokens, tuple(tools)), Attempt()
        message = await self._call(client, request, deadline_ms, attempt)
        if isinstance(message, Message):
            message = self._incomplete(message, request, attempt) or message
        if isinstance(message, ModelError):
            raise message
        form = "" if self._format is None else json.dumps(self._format.schema)
        questions = (system, prompt, form, *(tool.canonical_text() for tool in tools))
        return ModelReply(
            text=message.text,
            model=message.model,
            latency_ms=(time.perf_counter_ns() - start) / NS_PER_MS,
            **(message.usage or UNCOUNTED).model_dump(),
            requests=1 + attempt.refused,
            lost=int(message.usage is None),
            uses=message.uses,
            temperature_sent=attempt.temperature_sent,
            mask=self._mask.of_reply(questions),
        )

    async def close(self) -> None:
        """Close the connections, if any were opened."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def open(self) -> Any:
        """Import the SDK and make the client now, so that the first call has its whole deadline to itself.

        Raises:
            ConfigError: the SDK is not installed.
        """
        try:
            sdk = importlib.import_module(self.package)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"model {self._model!r} is asked with the package {self.package!r}: install "
                f"thinktwice[{self.package}]"
            ) from error
        from agents.language_models.http_client import http_client

        self._client = self._connect(
            sdk, api_key=self._api_key, base_url=self._base_url, max_retries=0, http_client=http_client(sdk)
        )
        return self._client

    @property
    def _taken(self) -> TakenParameters:
        """What the server takes, as far as it is known."""
        names = dict.fromkeys((self._row.bound, *self.bounds))
        rooms = (True, False) if self._room else (False,)
        bounds = tuple((name, room) for room in rooms for name in names)
        first = TakenParameters(bounds, "temperature" not in self._row.refuses)
        return self._learned.get((self._base_url, self._model), first)

    def _bound(self, request: Request, taken: TakenParameters) -> dict[str, int]:
        (name, room), *_ = taken.bounds
        return {name: request.max_tokens + (self._room if room else 0)}

    async def _call(
        self, client: Any, request: Request, deadline_ms: float, attempt: Attempt
    ) -> Message | ModelError:
        """The message, or what went wrong as a value: raised here, it would drag the SDK's request along."""
        sdk = importlib.import_module(self.package)
        from httpx2 import HTTPError

        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                while True:
                    known = self._taken
                    taken = replace(known, form=known.form and not attempt.formless)
                    attempt.temperature_sent = None if self._temperature is None else taken.temperature
                    try:
                        message = await self._receive(client, request, taken, attempt, deadline_ms / 1_000)
                    except sdk.APIStatusError as error:
                        if not (
                            self._learn(error, known) or self._doubt_form(error, known, request, attempt)
                        ):
                            raise
                        attempt.refused += 1
                    else:
                        if attempt.formless:
                            self._learned[self._base_url, self._model] = replace(self._taken, form=False)
                        self._form_in_doubt &= bool(request.tools)
                        if self._row.cuts and self._taken.context is None:
                            await self._learn_context(client)
                        return message
        except (TimeoutError, sdk.APITimeoutError) as error:
            reason = f"no whole reply within {deadline_ms:.0f} ms"
            return self._failed.describe("timeout", reason, attempt, retryable=True, **note_unsent(error))
        except (sdk.APIConnectionError, HTTPError) as error:
            reason = f"no connection: {type(error.__cause__ or error).__name__}"
            return self._failed.describe("network", reason, attempt, retryable=True, **note_unsent(error))
        except (sdk.APIError, AnsweredError) as error:
            return self._failed.describe_error(error, attempt, with_tools=bool(request.tools))
        except UNREADABLE as error:
            text = str(error) if isinstance(error, UnusableReply) else type(error).__name__
            return self._failed.describe_malformed(text, attempt)

    async def _receive(
        self, client: Any, request: Request, taken: TakenParameters, attempt: Attempt, timeout_s: float
    ) -> Message:
        from agents.language_models.http_client import RECEIVED

        attempt.received.clear()
        attempt.usage = None
        RECEIVED.set(attempt.received)
        headers = {"accept-encoding": "identity"}  # a compressed reply has no bound
        raw = await self._send(client, request, taken, timeout=timeout_s, extra_headers=headers)
        declared = raw.headers.get("content-type", "").partition(";")[0].strip().lower()
        if declared != ("application/json" if self._stall_ms is None else "text/event-stream"):
            await raw.http_response.aread()
            raise UnusableReply(f"its type is {quote_beginning(declared)}")
        if self._stall_ms is None:
            document = json.loads(attempt.received.decode())
        else:
            document = await self._read_events(raw.parse(), self._stall_ms / 1_000)
        attempt.usage, thoughts = self._believe_count(
            document, len((request.system + request.prompt).encode())
        )
        if (error := answered_error(document)) is not None:
            raise AnsweredError(error)
        message = cast("Message", self.read(document))
        return message.model_copy(update={"usage": attempt.usage, "thoughts": thoughts})

    def _believe_count(self, document: Any, size: int) -> tuple[Usage | None, int | None]:
        """The tokens that a reply to so many bytes tells, and its thoughts; None of what cannot be."""
        try:
            usage, thoughts = self.count(document)
        except UNREADABLE:
            return None, None
        is_counted = usage.total - usage.output_tokens >= max(1, size // MOST_BYTES_COUNTED)
        return (usage, thoughts) if is_counted and (thoughts or 0) >= 0 else (None, None)

    async def _read_events(self, parsed: Any, stall_s: float) -> Any:
        """The document of a streamed message; a silence longer than `stall_s` is a timeout."""
        stream = await parsed if inspect.isawaitable(parsed) else parsed
        fold, loop = self.fold(), asyncio.get_running_loop()
        async with stream, asyncio.timeout(stall_s) as silence:
            async for event in stream:
                fold.add(event.to_dict())
                silence.reschedule(loop.time() + stall_s)
        return fold.document()

    async def _learn_context(self, client: Any) -> None:
        """Ask the server for its context once, now that the model is loaded; it may tell none."""
        from agents.language_models.http_client import RECEIVED

        RECEIVED.set(bytearray())
        address, found = f"{str(self._base_url).rstrip('/').removesuffix('/v1')}/api/ps", 0
        with suppress(Exception):
            async with asyncio.timeout(CONTEXT_S):
                found = loaded_context(await client.get(address, cast_to=object), self._model)
        self._learned[self._base_url, self._model] = replace(self._taken, context=found)

    def _learn(self, error: Any, taken: TakenParameters) -> bool:
        """Take in what was refused of these parameters; whether others may be sent now."""
        if error.status_code not in TEACHING:
            return False
        if self._taken == taken:
            refused = refused_parameters(error.body)
            known = taken.without(refused)
            if known == taken:
                if "bound" in refused:  # no bound would do for this question: nothing is learned from it
                    self._learned.pop((self._base_url, self._model), None)
                return False
            self._learned[self._base_url, self._model] = known
        return True

    def _doubt_form(self, error: Any, known: TakenParameters, request: Request, attempt: Attempt) -> bool:
        """Whether what was refused for no parameter that is named may be the form, and is tried without.

        A form can be refused in any words. Only a server that never answered is doubted, and once.
        """
        is_sent = self._format is not None and known.form and not request.tools
        if error.status_code not in TEACHING or not is_sent or refused_parameters(error.body):
            return False
        may_be, attempt.formless = self._form_in_doubt and not attempt.formless, True
        self._form_in_doubt = may_be
        return may_be

    def _incomplete(self, message: Message, request: Request, attempt: Attempt) -> ModelError | None:
        """What keeps a message from being the answer of the model that was asked."""
        kind, reason, usage = "cut", "", message.usage
        size = len((request.system + request.prompt).encode())
        read = None if usage is None else usage.total - usage.output_tokens
        if not any(answers_for(message.model, name) for name in (self._model, *self._accept)):
            other = quote_beginning(self._mask(message.model), 80)
            kind = "wrong_model"
            reason = f"model {other} answered; llm.accept_models names others whose answer counts"
        elif message.uses and not request.tools:
            kind, reason = "malformed", "it calls a tool where none was given"
        elif self._row.cuts and read is not None and self._cuts.is_cut(read, size, self._taken.context or 0):
            text = f"it read {read} tokens of {size} bytes"
            reason = f"the server cut the question: raise its context ({text})"
        elif message.fault is not None:
            kind = message.fault
            reason = f"stopped with {self._mask(message.stop)[:80]!r}: no complete answer"
        elif message.answer_tokens > request.max_tokens:
            reason = f"its answer has {message.answer_tokens} tokens, and {request.max_tokens} at most may be"
        elif not message.uses and not message.text.strip():
            kind, reason = "malformed", "it has no text"
        if kind == "malformed":
            return self._failed.describe_malformed(reason, attempt)
        return self._failed.describe(kind, reason, attempt) if reason else None


def demand_kind(value: Any, wanted: str) -> None:
    """Raise UnusableReply where a document is of another kind than it should be."""
    if value != wanted:
        raise UnusableReply(f"it is {quote_beginning(str(value), 80)} where {wanted!r} belongs")


def read_usage(**counts: Any) -> Usage:
    """Tokens as a server counts them; raises ValueError where one is no number of tokens."""
    return Usage.model_validate(counts, strict=True)
