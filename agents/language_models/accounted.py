"""A model as a run uses it: admitted by the account, asked or played back, recorded raw, then answered.

The record comes first and the answer is read from it, so live and replayed runs hand out the same. Where
replies come from is the source's business; retries, deadlines and the wire lie behind it.

A model can be asked before its turn: nothing is recorded or paid then, the reply is kept for the turn. What
the turn itself has to find out is not kept: that no limit has room, that a server turned a question away, or
that there was no time to ask. The asking for that symbol ends there.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agents.language_models.cassette import Cassette
from agents.language_models.paced import PACED
from schemas.errors import ModelError, ModelRefused
from schemas.tool import Tools
from services.model_calls.account import ModelAccount, is_turned_away
from services.model_calls.asking import PendingCall, tool_arguments
from services.model_calls.language_model import LanguageModel, ModelReply
from services.model_calls.record import (
    LATE,
    Caller,
    Question,
    RecordedCall,
    record_failure,
    record_reply,
    record_silence,
)
from trading_core.tick_guard import TickGuard

NS_PER_MS = 1_000_000
TOO_MANY = 429  # which a later question may mend
CHECK = {  # what a status is about
    401: "; check the key",
    403: "; check what the key may use",
    404: "; check the name of the model and its address (llm.base_url)",
}


class ReplySource(Protocol):
    """Where the outcome of a question comes from."""

    @property
    def waits(self) -> bool:
        """Whether it has to be waited for."""
        ...

    async def ask(self, question: Question, deadline_ms: float) -> RecordedCall:
        """The outcome."""
        ...


@dataclass(frozen=True)
class LiveSource:
    """Asks the model."""

    model: LanguageModel
    waits = True

    async def ask(self, question: Question, deadline_ms: float) -> RecordedCall:
        """The outcome of one call, failed or not."""
        if deadline_ms <= 0.0:
            return record_silence(question, 0.0, requested=False)
        start = time.perf_counter_ns()
        try:
            reply = await self.model.complete(
                system=question.system,
                prompt=question.prompt,
                max_tokens=question.max_tokens,
                deadline_ms=deadline_ms,
                **tool_arguments(question.tools),
            )
        except ModelError as error:
            return record_failure(question, error, _ms_since(start))
        except TimeoutError:
            return record_silence(question, _ms_since(start), requested=True)
        return record_reply(question, reply, _ms_since(start))


@dataclass(frozen=True)
class RecordedSource:
    """Plays a cassette back: no key, no network, no waiting, whatever the deadline is."""

    cassette: Cassette
    waits = False

    async def ask(self, question: Question, deadline_ms: float) -> RecordedCall:
        """The recorded outcome; raises CassetteMiss where there is none."""
        return self.cassette.find(question)


@dataclass(frozen=True)
class KnownSource:
    """The outcome of a question that was asked before its turn, or that may not be asked any more."""

    call: RecordedCall
    waits = False

    async def ask(self, question: Question, deadline_ms: float) -> RecordedCall:
        """The outcome, as it was."""
        return self.call


@dataclass(frozen=True)
class SplicedSource:
    """Plays back while the past of a run is replayed, then asks: how a run goes on after a restart.

    Attributes:
        past: whether the run still stands in its recorded past.
        recorded, live: the two sources.
    """

    past: Callable[[], bool]
    recorded: ReplySource
    live: ReplySource

    @property
    def waits(self) -> bool:
        """As the source that is due."""
        return self._due.waits

    @property
    def _due(self) -> ReplySource:
        return self.recorded if self.past() else self.live

    async def ask(self, question: Question, deadline_ms: float) -> RecordedCall:
        """The outcome from whichever source is due."""
        return await self._due.ask(question, deadline_ms)


async def _ask(
    source: ReplySource, question: Question, deadline_ms: float, settle: Callable[[RecordedCall], None]
) -> RecordedCall:
    """The outcome, settled; being cancelled is a timeout, settled before it goes on."""
    start = time.perf_counter_ns()
    try:
        call = await source.ask(question, deadline_ms)
    except asyncio.CancelledError:
        settle(record_silence(question, _ms_since(start), requested=True))
        raise
    settle(call)
    return call


def _ms_since(start_ns: int) -> float:
    return (time.perf_counter_ns() - start_ns) / NS_PER_MS


@dataclass(frozen=True)
class AccountedCall:
    """A question that may be asked, its price kept back."""

    question: Question
    source: ReplySource
    account: ModelAccount

    @property
    def waits(self) -> bool:
        """Whether its reply has to be waited for."""
        return self.source.waits

    async def reply(self, deadline_ms: float) -> ModelReply:
        """The reply, recorded and paid for.

        Raises:
            ModelError: it failed.
            ModelRefused: the first question of a run is answered as one is that can never be right.
            CassetteMiss: it is played back and was not recorded.
        """
        is_first = self.question.first and self.waits  # what is played back ended its run where it stands
        try:
            call = await _ask(self.source, self.question, deadline_ms, self._settle)
        finally:
            self.release()
        if is_first and is_turned_away(call) and call.status != TOO_MANY:
            raise ModelRefused(
                f"the first question was turned away: {call.message}{CHECK.get(call.status or 0, '')}; see "
                "`thinktwice doctor --network`"
            )
        return call.result()

    def release(self) -> None:
        """Keep nothing back any more; a call that was asked is paid for all the same."""
        self.account.release(self.question)

    def _settle(self, call: RecordedCall) -> None:
        self.account.settle(call, self.question)


class PromptModel(ABC):
    """`LanguageModel` of one prompt of one run."""

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """The reply of a question that may be asked; raises what `admit` and its call do."""
        admitted = self.admit(system=system, prompt=prompt, max_tokens=max_tokens, tools=tools)
        return await admitted.reply(deadline_ms)

    @abstractmethod
    def admit(self, *, system: str, prompt: str, max_tokens: int, tools: Tools = ()) -> PendingCall:
        """A question that may be asked, before it is."""


@dataclass(eq=False)
class AccountedModel(PromptModel):
    """The model of a run, asked at its turn."""

    caller: Caller
    source: ReplySource
    account: ModelAccount
    guard: TickGuard

    def admit(self, *, system: str, prompt: str, max_tokens: int, tools: Tools = ()) -> AccountedCall:
        """A question that may be asked, before it is.

        Raises:
            ModelError: budget or breaker did not admit it.
            InvariantViolation: called from inside the tick path.
        """
        self.guard.forbid("llm_calls")
        question = self.account.admit(self.caller, system, prompt, max_tokens, tools)
        call = self.account.early.take(question)
        if call is None and self.source.waits:
            call = self.account.record_crowded_out(question)
        return AccountedCall(question, self.source if call is None else KnownSource(call), self.account)


class NotAskedEarly(Exception):
    """The rest is asked when its turn comes."""


@dataclass(frozen=True)
class EarlyCall:
    """A question that may be asked before its turn."""

    model: AccountedModel
    question: Question
    waits = True

    async def reply(self, deadline_ms: float) -> ModelReply:
        """The reply, kept.

        Raises:
            ModelError: it failed, which is kept as well.
            NotAskedEarly: it failed in a way that the turn may not.
        """
        call = await _ask(self.model.source, self.question, deadline_ms, self._keep)
        if not _is_kept(call):
            raise NotAskedEarly(call.outcome)
        return call.result()

    def release(self) -> None:
        """Nothing is kept back."""

    def _keep(self, call: RecordedCall) -> None:
        if _is_kept(call):
            self.model.account.keep_early(self.question, call)


@dataclass(frozen=True)
class EarlyModel(PromptModel):
    """The model of a run, asked before its turn inside `EarlyReplies.asking`."""

    model: AccountedModel

    def admit(self, *, system: str, prompt: str, max_tokens: int, tools: Tools = ()) -> EarlyCall:
        """A question that is asked at its turn for certain, as far as that is known.

        Raises:
            NotAskedEarly: that is not known.
        """
        model, question = self.model, None
        if model.source.waits:  # what is played back is there in time
            question = model.account.admit_early(model.caller, system, prompt, max_tokens, tools)
        if question is None:
            raise NotAskedEarly(model.caller.prompt)
        return EarlyCall(model, question)


def _is_kept(call: RecordedCall) -> bool:
    """Whether the call may have been worked on; one that was turned away with a status was not."""
    return call.status is None and call.outcome not in (PACED, LATE)
