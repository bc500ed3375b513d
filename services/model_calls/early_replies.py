"""Replies to questions that were asked before their turn, kept until it comes.

Symbols of one bar are asked at the same time, and the run goes on as if one were asked after the other: what
is admitted, recorded and paid for, and in which order, is decided at the turn of each. What the turn does not
ask for is counted, and decides nothing.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from services.model_calls.budget import Spent
from services.model_calls.record import Purse, Question, RecordedCall


@dataclass
class EarlyTurn:
    """What was asked for one symbol before its turn: how often each question, and what each call may use."""

    asked: Counter[str] = field(default_factory=Counter)
    uses: list[tuple[Purse, Spent]] = field(default_factory=list)


_TURN: ContextVar[EarlyTurn | None] = ContextVar("early_turn", default=None)


class EarlyReplies:
    """Kept replies of one run.

    Attributes:
        turns: of the symbols that are asked now.
        unused: calls that no turn asked for, and what they used.
    """

    def __init__(self) -> None:
        self.turns: list[EarlyTurn] = []
        self.unused = Spent()
        self._kept: dict[tuple[str, int], tuple[RecordedCall, Spent]] = {}

    @contextmanager
    def turn(self) -> Iterator[EarlyTurn]:
        """What this task asks inside is asked for one symbol, before its turn."""
        turn = EarlyTurn()
        self.turns.append(turn)
        token = _TURN.set(turn)
        try:
            yield turn
        finally:
            _TURN.reset(token)

    def keep(self, question: Question, call: RecordedCall, spent: Spent) -> None:
        """Keep the outcome of a call for the turn that asks for it."""
        self._kept[question.key, question.repeat] = call, spent

    def take(self, question: Question) -> RecordedCall | None:
        """The outcome of exactly this question, once; None where it was not asked before."""
        kept = self._kept.pop((question.key, question.repeat), None) if self._kept else None
        return None if kept is None else kept[0]

    def clear(self) -> None:
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
        raise LookupError("a question is asked early inside `EarlyReplies.turn` alone")
    return turn
