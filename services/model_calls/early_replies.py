"""Replies to questions that were asked before their turn, kept until it comes.

Symbols of one bar are asked at the same time, and the run goes on as if one were asked after the other: what
is admitted, recorded and paid for, and in which order, is decided at the turn of each. What the turn does not
ask for is counted, and decides nothing.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from services.model_calls.budget import Spent
from services.model_calls.record import Purse, Question, RecordedCall


@dataclass
class EarlyTurn:
    """What was asked for one symbol before its turn: how often each question, and what each call may use."""

    asked: Counter[str] = field(default_factory=Counter)
    uses: list[tuple[Purse, Spent]] = field(default_factory=list)


_TURN: ContextVar[EarlyTurn | None] = ContextVar("early_turn", default=None)


WaitFor = Callable[[Any], Awaitable[None]]


class EarlyReplies:
    """Kept replies of one run.

    Attributes:
        ask: asks what an evaluation will ask at its turn; None: everything is asked at its turn.
        turns: of the symbols that are asked now.
        unused: calls that no turn asked for, and what they used.
    """

    def __init__(self, at_once: int) -> None:
        """Nothing is kept; at most `at_once` evaluations are asked for at the same time."""
        self.ask: WaitFor | None = None
        self.turns: list[EarlyTurn] = []
        self.unused = Spent()
        self._at_once = at_once
        self._kept: dict[tuple[str, int], tuple[RecordedCall, Spent]] = {}

    @asynccontextmanager
    async def asking(self, evaluations: Sequence[Any]) -> AsyncIterator[WaitFor]:
        """Ask for evaluations at the same time; what is given back waits until one of them is answered."""
        ask, at_once = self.ask, min(len(evaluations), self._at_once)
        places, tasks = asyncio.Semaphore(at_once), dict[int, asyncio.Task[None]]()
        if ask is not None and at_once > 1:
            for evaluation in evaluations:
                tasks[id(evaluation)] = asyncio.create_task(self._ask(ask, evaluation, places))

        async def wait_for(evaluation: Any) -> None:
            if (task := tasks.get(id(evaluation))) is not None:
                await task

        try:
            yield wait_for
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            self._clear()

    async def _ask(self, ask: WaitFor, evaluation: Any, places: asyncio.Semaphore) -> None:
        # Nothing comes of a failure here: the turn meets it again, or asks for itself what was not asked.
        async with places:
            with suppress(Exception), self._turn():
                await ask(evaluation)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        turn = EarlyTurn()
        self.turns.append(turn)
        token = _TURN.set(turn)
        try:
            yield
        finally:
            _TURN.reset(token)

    def keep(self, question: Question, call: RecordedCall, spent: Spent) -> None:
        """Keep the outcome of a call for the turn that asks for it."""
        self._kept[question.key, question.repeat] = call, spent

    def take(self, question: Question) -> RecordedCall | None:
        """The outcome of exactly this question, once; None where it was not asked before."""
        kept = self._kept.pop((question.key, question.repeat), None) if self._kept else None
        return None if kept is None else kept[0]

    def _clear(self) -> None:
        """Every turn is over: what is left was asked in vain."""
        for _, spent in self._kept.values():
            self.unused.add(spent)
        self._kept.clear()
        self.turns.clear()


def present_turn() -> EarlyTurn:
    """The turn that this task asks for.

    Raises:
        LookupError: it asks for none.
    """
    turn = _TURN.get()
    if turn is None:
        raise LookupError("a question is asked early inside `EarlyReplies.asking` alone")
    return turn
