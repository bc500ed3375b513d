"""Replies to questions that were asked before their turn, kept until it comes.

Symbols of one bar are asked at the same time, and the run goes on as if one were asked after the other: what
is admitted, recorded and paid for, and in which order, is decided at the turn of each. What the turn does not
ask for was paid for all the same, and counts for the limits of what is asked from then on.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import Any

from services.model_calls.budget import Spent
from services.model_calls.record import Purse, Question, RecordedCall

Asked = tuple[str, int]  # key and repeat of a question


@dataclass
class EarlyTurn:
    """What was asked for one symbol before its turn: how often each question, and what each call may use."""

    requested: Counter[str] = field(default_factory=Counter)
    uses: dict[Asked, tuple[Purse, Spent]] = field(default_factory=dict)


TURN: ContextVar[EarlyTurn] = ContextVar("early_turn")  # that a task of `EarlyReplies.asking` asks for

WaitFor = Callable[[Any], Awaitable[None]]


class EarlyReplies:
    """Kept replies of one run.

    Attributes:
        ask: asks what an evaluation will ask at its turn; None: everything is asked at its turn.
        turns: of the symbols that are asked now.
        answers: usable replies of the run so far.
    """

    def __init__(self, at_once: int, drop: Callable[[Purse, Spent], None]) -> None:
        """Nothing is kept; at most `at_once` evaluations are asked for at the same time.

        `drop` is told what each reply used that no turn asked for.
        """
        self.ask: WaitFor | None = None
        self.turns: list[EarlyTurn] = []
        self.answers = 0
        self._at_once = at_once
        self._drop = drop
        self._kept: dict[Asked, RecordedCall] = {}

    @asynccontextmanager
    async def asking(self, evaluations: Sequence[Any]) -> AsyncIterator[WaitFor]:
        """Ask for evaluations at the same time; what is given back waits until one of them is answered.

        A model that fails is asked in turn. After its next usable reply those that are left are asked at the
        same time again.
        """
        ask, at_once = self.ask, min(len(evaluations), self._at_once)
        answers: float = self.answers
        waiting = {id(evaluation): evaluation for evaluation in evaluations}
        places, tasks = asyncio.Semaphore(at_once), dict[int, asyncio.Task[bool]]()

        def begin() -> None:
            if ask is None or at_once == 1:
                return
            for key, evaluation in waiting.items():
                if key not in tasks or (tasks[key].done() and not tasks[key].result()):
                    tasks[key] = asyncio.create_task(self._ask(ask, evaluation, places))

        async def wait_for(evaluation: Any) -> None:
            nonlocal answers
            if self.answers > answers:
                answers = inf  # once: what is put off then has another reason
                begin()
            waiting.pop(id(evaluation), None)
            if (task := tasks.get(id(evaluation))) is not None:
                await task

        try:
            begin()
            yield wait_for
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            self._clear()

    async def _ask(self, ask: WaitFor, evaluation: Any, places: asyncio.Semaphore) -> bool:
        """Whether anything was asked."""
        turn = EarlyTurn()
        TURN.set(turn)  # in the context of this task alone
        async with places:
            self.turns.append(turn)
            with suppress(Exception):  # the turn meets it again, or asks for itself what was not asked
                await ask(evaluation)
        return bool(turn.requested)

    def keep(self, question: Question, call: RecordedCall, spent: Spent) -> None:
        """Keep the outcome of a call for the turn that asks for it."""
        self._kept[question.key, question.repeat] = call
        TURN.get().uses[question.key, question.repeat] = question.caller.purse, spent

    def take(self, question: Question) -> RecordedCall | None:
        """The outcome of exactly this question, once; None where it was not asked before."""
        questions = (question.key, question.repeat)
        call = self._kept.pop(questions, None) if self._kept else None
        for turn in self.turns if call is not None else ():
            turn.uses.pop(questions, None)
        return call

    def uses_beside(self, turn: EarlyTurn | None) -> list[tuple[Purse, Spent]]:
        """What the questions of the other turns use or may use, but for those that were asked for."""
        return [use for other in self.turns if other is not turn for use in other.uses.values()]

    def _clear(self) -> None:
        """Every turn is over: what is left was asked in vain."""
        for turn in self.turns:
            for request, (purse, spent) in turn.uses.items():
                if request in self._kept:
                    self._drop(purse, spent)
        self._kept.clear()
        self.turns.clear()
