"""A model that is asked before its turn: nothing is recorded or paid, the reply is kept for the turn.

What the turn itself has to find out is not kept: that no limit has room, that a server turned a question
away, or that there was no time to ask. The asking for that symbol ends there.
"""

from dataclasses import dataclass

from agents.language_models.accounted import AccountedModel
from agents.language_models.paced import PACED
from schemas.tool import Tools
from services.model_calls.language_model import ModelReply
from services.model_calls.record import LATE, Question, RecordedCall


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
        call = await self.model.source.ask(self.question, deadline_ms, self._keep)
        if not _is_kept(call):
            raise NotAskedEarly(call.outcome)
        return call.result()

    def release(self) -> None:
        """Nothing is kept back."""

    def _keep(self, call: RecordedCall) -> None:
        if _is_kept(call):
            self.model.account.keep_early(self.question, call)


@dataclass(frozen=True)
class EarlyModel:
    """The model of a run, asked before its turn inside `EarlyReplies.turn`."""

    model: AccountedModel

    @property
    def waits(self) -> bool:
        """Whether its replies have to be waited for: those that are played back are there in time."""
        return self.model.source.waits

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """The reply, kept; raises as `EarlyCall.reply` does, and where it may not be asked."""
        admitted = self.admit(system=system, prompt=prompt, max_tokens=max_tokens, tools=tools)
        return await admitted.reply(deadline_ms)

    def admit(self, *, system: str, prompt: str, max_tokens: int, tools: Tools = ()) -> EarlyCall:
        """A question that is asked at its turn for certain, as far as that is known.

        Raises:
            NotAskedEarly: that is not known.
        """
        model = self.model
        question = model.account.admit_early(model.caller, system, prompt, max_tokens, tools)
        if question is None:
            raise NotAskedEarly(model.caller.prompt)
        return EarlyCall(model, question)


def _is_kept(call: RecordedCall) -> bool:
    """Whether the call may have been worked on; one that was turned away with a status was not."""
    return call.status is None and call.outcome not in (PACED, LATE)
