"""Answers beside the bars: evaluations of a live feed think in turn while rows go on.

An evaluation sees the present of its own boundary, whatever bar the engine stands at: the clock is pinned,
its rows are parked, its retrievals run under the deadline of the memory. It changes nothing before it is
taken back by the trading loop, between two rows, and the journal names the row.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from services.journal.parking import ParkedRow
from services.memory.episode_memory import retrievals
from services.policy_loop.evaluation import Evaluation
from worker.session import Session


@dataclass(frozen=True)
class Answer:
    """An evaluation that has been thought about.

    Attributes:
        evaluation: with what is to be done.
        rows: what it had to say, parked.
        late: numbers of its retrievals that passed the deadline.
    """

    evaluation: Evaluation
    rows: list[ParkedRow]
    late: tuple[int, ...]


async def think(session: Session, evaluation: Evaluation, late: Collection[int] | None = None) -> Answer:
    """Let an evaluation think beside the bars.

    Args:
        session: the run.
        evaluation: as the policy loop opened it.
        late: in a replay, the retrievals that were late; None measures.
    """
    boundary, bars = evaluation.boundary, session.bars
    asked_at = int(bars.close_times[boundary.t])
    with session.clock.pin(asked_at), session.events.parking() as rows, retrievals(late) as reads:
        session.models.account.open_event(bars.symbols[boundary.s])
        await session.policy_loop.think(evaluation)
    return Answer(evaluation, rows, tuple(reads.late))


def apply_answer(session: Session, answer: Answer) -> None:
    """Carry an answer out at the last validated row, which the journal names."""
    row = session.engine.t - 1
    now = int(session.bars.close_times[row])
    evaluation = answer.evaluation
    payload: dict[str, Any] = {
        "event_id": evaluation.event_id,
        "bar_label": int(session.bars.times[row]),
        "bars_later": row - evaluation.boundary.t,
        "late_retrievals": list(answer.late),
    }
    symbol = session.bars.symbols[evaluation.boundary.s]
    session.journal.append("answer_arrived", ts_event=now, known_at=now, symbol=symbol, payload=payload)
    session.events.deliver(answer.rows, now)
    session.policy_loop.close(evaluation)


class EvaluationQueue:
    """Lets evaluations think one after the other in a task of its own.

    Args:
        session: the run.
        taken: told after an answer was carried out.
    """

    def __init__(self, session: Session, taken: Callable[[], None]) -> None:
        self._session = session
        self._taken = taken
        self._waiting: asyncio.Queue[Evaluation] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.in_flight = 0

    def ask(self, evaluation: Evaluation) -> None:
        """Put an evaluation in the queue; returns at once."""
        self.in_flight += 1
        self._waiting.put_nowait(evaluation)
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="answers")

    async def settle(self) -> None:
        """Wait until nothing is in flight; for the end of a feed that ends.

        Raises:
            Exception: whatever ended the task.
        """
        if self._task is None:
            return
        waiting = asyncio.create_task(self._waiting.join())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        self.check()

    def check(self) -> None:
        """Raise what ended the task, if something did: an answer that cannot be recorded ends the run."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def close(self) -> None:
        """Drop what is in flight; a restart asks again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while True:
            due = [await self._waiting.get()]
            while not self._waiting.empty():
                due.append(self._waiting.get_nowait())
            async with self._session.models.account.early.asking(due) as wait_for:
                for evaluation in due:
                    await wait_for(evaluation)
                    answer = await think(self._session, evaluation)
                    # No await between answer and effect: a row comes wholly before or wholly after it.
                    apply_answer(self._session, answer)
                    self.in_flight -= 1
                    self._waiting.task_done()
                    self._taken()
