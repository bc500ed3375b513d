"""The script of a stored paper run: its bars, and what else came from outside, at the place where it came.

Bars are stored as rows of their own; anomalies, arrivals of answers and commands stand in the journal,
between the rows of two bars. Played in that order, a run comes out as it went: `recover` does so to go on
with it, `verify` to compare.
"""

import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas.judge import ReplanVerdict
from schemas.reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from services.feeds.port import BarRow
from services.journal.kinds import INPUT_KINDS
from services.policy_loop.evaluation import Evaluation
from services.slow_loop.artefacts import read_request, with_moments
from worker.live.evaluations import Answer, apply_answer, think
from worker.live.operator import execute
from worker.live.reports import apply_report, judge
from worker.live.stepper import LiveStepper

if TYPE_CHECKING:
    from services.store import Store


REPORT_KINDS = frozenset({"high_level_request", "high_level_report", "replan_verdict"})


@dataclass(frozen=True)
class RecordedInput:
    """An input that stands in the journal as row `seq`, after the bar that closed at `known_at`, ns.

    Both are needed: a bar on which nothing happened leaves no row.
    """

    seq: int
    known_at: int
    kind: str
    payload: dict[str, Any]


@dataclass
class Script:
    """What is to be played.

    Attributes:
        inputs: in order of the journal.
        arrivals: payloads of the answers that arrived, by event id.
        reports: requests and reports that arrived from elsewhere, by report id.
        verdicts: the judge's word on them, with the close of the row at which it was given, ns.
        outcomes: what came of each command, by its number.
        unanswered: evaluations whose answer never arrived; a restart asks again.
    """

    inputs: deque[RecordedInput]
    arrivals: dict[str, dict[str, Any]]
    reports: dict[str, tuple[HighLevelReflectionRequest, HighLevelReflectionReport]]
    verdicts: dict[str, tuple[ReplanVerdict, int]]
    unanswered: list[Evaluation] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    outcomes: dict[int, dict[str, Any]] = field(default_factory=dict)


async def read_script(store: "Store", run_id: str, start: int = 0) -> Script:
    """The inputs of a stored run, from journal row `start` on."""
    inputs = deque(
        [
            RecordedInput(row.seq, row.known_at, row.kind, json.loads(row.payload))
            async for row in store.journal.rows(run_id, kinds=INPUT_KINDS, after=start - 1)
        ]
    )
    arrivals = {item.payload["event_id"]: item.payload for item in inputs if item.kind == "answer_arrived"}
    requests: dict[str, HighLevelReflectionRequest] = {}
    reports: dict[str, tuple[HighLevelReflectionRequest, HighLevelReflectionReport]] = {}
    verdicts: dict[str, tuple[ReplanVerdict, int]] = {}
    async for row in store.journal.rows(run_id, kinds=REPORT_KINDS, after=start - 1):
        told = json.loads(row.payload)
        if row.kind == "high_level_request":
            text = json.dumps(told["request"])
            requests[told["request_hash"]] = read_request(text)
        elif row.kind == "high_level_report":
            report = HighLevelReflectionReport.model_validate(with_moments(told["report"]))
            reports[told["report_id"]] = requests[told["request_hash"]], report
        else:
            verdict = ReplanVerdict.model_validate(told["verdict"])
            verdicts[told["report_id"]] = verdict, row.known_at
    return Script(inputs, arrivals, reports, verdicts)


class Player:
    """Plays a script on a stepper."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._asked: list[Evaluation] = []

    def ask(self, evaluation: Evaluation) -> None:
        """Take an evaluation that the stepper opened; it thinks after the row."""
        self._asked.append(evaluation)

    async def play(self, stepper: LiveStepper, rows: AsyncIterator[BarRow]) -> AsyncIterator[int]:
        """Every row with the inputs behind it; yields the number of rows played.

        A stepper that stands at a savepoint may stand between a row and what came behind it.
        """
        if stepper.begun:
            await self._inputs(stepper)
        async for row in rows:
            await stepper.take(row)
            await self._think(stepper)
            await self._inputs(stepper)
            await stepper.journal.checkpoint()
            yield stepper.rows

    async def _think(self, stepper: LiveStepper) -> None:
        asked, self._asked = self._asked, []
        for evaluation in asked:
            arrived = self._script.arrivals.get(evaluation.event_id)
            if arrived is None:
                self._script.unanswered.append(evaluation)
            else:
                self._script.answers[evaluation.event_id] = await think(
                    stepper.session, evaluation, arrived["late_retrievals"]
                )

    async def _inputs(self, stepper: LiveStepper) -> None:
        inputs, now = self._script.inputs, stepper.session.clock.now
        while inputs and (inputs[0].seq, inputs[0].known_at) == (stepper.journal.events, now):
            one = inputs.popleft()
            if one.kind == "feed_anomaly":
                stepper.heard(one.payload)
            elif one.kind == "answer_arrived":
                apply_answer(stepper.session, self._script.answers.pop(one.payload["event_id"]))
            elif one.kind == "report_arrived":
                apply_report(
                    stepper.session,
                    await judge(stepper.session, *self._script.reports[one.payload["report_id"]]),
                )
            else:
                self._script.outcomes[one.payload["number"]] = await execute(stepper, one.payload)
