"""Answers that come a bar late, as on a live feed: no policy stays in force where it may not."""

import asyncio
import json
from typing import Any

import pytest

from schemas.vocabulary import EvaluationOutcome
from services.journal.chain import JournalRow
from services.journal.index import JournalIndex
from services.journal.references import check_references
from services.policy_loop.evaluation import Evaluation
from services.slow_loop.cadence import Run
from services.slow_loop.loop_facts import LoopFacts
from tests.services.journal.rows import stream
from tests.worker.test_session_wires import payloads, session
from trading_core.trigger_engine import Boundary
from worker.session import Session, Timing
from worker.studies.ask_again.strategist import read_strategist_questions

PERIOD = ("2003-01-01", "2005-06-30")
ENDED = (EvaluationOutcome.STALE, EvaluationOutcome.ERROR)


class LateAnswers:
    """Opens the boundaries of each row while the answers of the row before are on their way.

    Attributes:
        lost: (symbol, row) of each policy that went with a stale or failed answer.
        kept: of each that such an answer left in force.
        ineligible: of each answer that left a policy in force which the present regime does not allow.
        missed: of each boundary with an override that was skipped because an answer was out.
    """

    def __init__(self, made: Session) -> None:
        self.made = made
        self.conflicts = set[int]()
        self.lost, self.kept, self.ineligible, self.missed = (list[tuple[int, int]]() for _ in range(4))

    def rows(self) -> list[JournalRow]:
        return asyncio.run(self._driven())

    async def _driven(self) -> list[JournalRow]:
        made, timing, loop = self.made, Timing(), self.made.policy_loop
        waiting = list[Evaluation]()
        every = range(len(made.bars.symbols))
        while not made.engine.done:
            if made.engine.t in self.conflicts:
                for s in every:
                    made.engine.doubt_data(s)
            step = made.validate(timing, made.engine.t + 1)
            questions = [evaluation for b in step.boundaries if (evaluation := self._open(b)) is not None]
            for evaluation in questions:
                await loop.think(evaluation)
            for evaluation in waiting:
                self._close(evaluation)
            waiting = questions
        for evaluation in waiting:
            self._close(evaluation)
        made.finish()
        await made.journal.flush()
        rows: list[JournalRow] = made.journal._sink.rows  # type: ignore[attr-defined]
        return rows

    def _open(self, boundary: Boundary) -> Evaluation | None:
        evaluation = self.made.policy_loop.open(boundary)
        if evaluation is None and boundary.overrides and boundary.s in self.made.policy_loop._in_flight:
            self.missed.append((boundary.s, boundary.t))
        return evaluation

    def _close(self, evaluation: Evaluation) -> None:
        made, s = self.made, evaluation.boundary.s
        loop, before = made.policy_loop, made.policy_loop.in_force(s)
        ended = dict(loop.counters.outcomes)
        loop.close(evaluation)
        if self._is_ineligible(s):
            self.ineligible.append((s, made.engine.t - 1))
        dropped = any(loop.counters.outcomes[str(kind)] > ended.get(str(kind), 0) for kind in ENDED)
        if not dropped or before is None or made.engine.state["direction"][s] != 0:
            return
        (self.lost if loop.in_force(s) is None else self.kept).append((s, made.engine.t - 1))

    def _is_ineligible(self, s: int) -> bool:
        """Whether a policy without a position is in force in a regime that its playbook is not for."""
        made, loop = self.made, self.made.policy_loop
        policy, regime = loop.in_force(s), loop._builder.regime(made.engine.t - 1, s)
        if policy is None or made.engine.state["direction"][s] != 0:
            return False
        playbook = made.books.reader.get(policy.playbook_id).definition
        return regime is None or not playbook.eligibility[policy.proposal.direction].allows(regime.labels)


def failing_where_a_policy_is_in_force(made: Session) -> None:
    provide = made.policy_loop.provider.provide

    async def failing(snapshot: Any, *rest: Any, **named: Any) -> Any:
        if snapshot.active_policy_id is not None:
            raise RuntimeError("late and broken")
        return await provide(snapshot, *rest, **named)

    made.policy_loop.provider.provide = failing  # type: ignore[method-assign]


@pytest.mark.parametrize("failing", [False, True], ids=["stale", "error"])
def test_session_late_answer_that_comes_to_nothing_leaves_no_ineligible_policy_in_force(
    failing: bool,
) -> None:
    made = session(period=PERIOD)
    if failing:
        failing_where_a_policy_is_in_force(made)
    late = LateAnswers(made)
    rows = late.rows()
    assert late.ineligible == []
    assert len(late.lost) > 3
    assert len(late.kept) > 3, "what may stay stays"
    assert made.policy_loop.counters.errors == (made.policy_loop.counters.outcomes["error"] if failing else 0)
    index = asyncio.run(JournalIndex.read(stream(rows)))
    assert check_references(index, finished=True).ok


def test_session_stale_answer_keeps_or_stands_down_by_an_amendment_on_the_present_snapshot() -> None:
    made = session(period=PERIOD)
    late = LateAnswers(made)
    rows = late.rows()
    snapshots = {
        payload["snapshot_hash"]: payload["snapshot"] for payload in payloads(rows, "policy_snapshot")
    }
    amended = {payload["amendment_id"]: payload["amended"] for payload in payloads(rows, "policy_amended")}
    carried = [
        (row.ts_event, row.known_at, ended, amended[ended["amendment_id"]])
        for row in rows
        if row.kind == "policy_evaluation"
        and (ended := json.loads(row.payload))["outcome"] == "stale"
        and ended["amendment_id"] is not None
    ]
    assert len(carried) == len(late.kept) + len(late.lost) > 6
    for asked_at, known_at, ended, put_in_force in carried:
        assert asked_at < known_at == snapshots[put_in_force["snapshot_hash"]]["ts_event"]
        assert ended["snapshot_hash"] == put_in_force["snapshot_hash"]
    kinds = [put_in_force["amendment"]["kind"] for _, _, _, put_in_force in carried]
    assert (kinds.count("keep"), kinds.count("stand_down")) == (len(late.kept), len(late.lost))


def test_session_symbol_that_lost_its_policy_to_a_stale_answer_gets_a_boundary_at_its_next_close() -> None:
    made = session(period=PERIOD)
    late = LateAnswers(made)
    rows = late.rows()
    opened = {
        (row.symbol, row.ts_event)
        for row in rows
        if row.kind == "policy_event" and "replan" in json.loads(row.payload)["events"]
    }
    times = made.bars.close_times
    assert len(late.lost) > 3
    assert {
        (made.bars.symbols[s], int(times[row + 1])) for s, row in late.lost if row + 1 < times.size
    } == opened


def test_session_override_that_was_skipped_for_an_answer_opens_a_boundary_at_the_next_close() -> None:
    made = session(period=PERIOD)
    late = LateAnswers(made)
    for row in range(40, made.bars.close_times.size, 40):  # in any state, with whatever is out
        late.conflicts.add(row)
    rows = late.rows()
    evaluated = {
        (row.symbol, row.ts_event)
        for row in rows
        if row.kind == "policy_event" and json.loads(row.payload)["overrides"]
    }
    times = made.bars.close_times
    again = {(made.bars.symbols[s], int(times[row + 1])) for s, row in late.missed if row + 1 < times.size}
    assert len(again) > 3
    assert again <= evaluated


def test_session_evaluation_that_looked_twice_counts_once_for_the_worker_and_asked_once() -> None:
    made = session(period=PERIOD)
    seen, look = list[tuple[float, ...]](), made.policy_loop._look

    def looked(evaluation: Evaluation) -> None:
        look(evaluation)
        regime = None if evaluation.snapshot is None else evaluation.snapshot.regime
        seen.append(regime.fingerprint if regime is not None else ())

    made.policy_loop._look = looked  # type: ignore[method-assign]
    rows = LateAnswers(made).rows()
    facts = LoopFacts(made.settings)
    for row in rows:
        facts.add(row)
    known = rows[-1].known_at
    request = facts.request(Run(known, "batch", structural_allowed=True), known, None)
    shown = request.drift_inputs["fingerprints"]
    snapshots = payloads(rows, "policy_snapshot")
    assert len(snapshots) > len(seen), "late answers are weighed on a snapshot of their own"
    assert sorted(shown) == sorted(seen)
    index = asyncio.run(JournalIndex.read(stream(rows)))
    questions = read_strategist_questions("r", index, made.settings)
    assert len(questions.requested) + sum(questions.left_out.values()) == len(seen)
