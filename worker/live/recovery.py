"""The script of a stored paper run: its bars, and what else came from outside, at the place where it came.

Bars are stored as rows of their own; anomalies, arrivals of answers and commands stand in the journal,
between the rows of two bars. Played in that order, a run comes out as it went: `recover` does so to go on
with it, `verify` to compare. So start-up and recovery are one path: play what is stored, compare every hash,
then read new bars. What a killed run had decided comes out again bit by bit, or the run does not go on.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from services.feeds.port import BarRow
from services.journal.chain import JournalRow
from services.journal.kinds import INPUT_KINDS
from services.journal.writer import JournalSink
from services.policy_loop.evaluation import Evaluation
from worker.live.evaluations import Answer, apply_answer, think
from worker.live.operator import execute
from worker.live.reports import apply_report, judge
from worker.live.stepper import LiveStepper
from worker.models import RecordedPast
from worker.runs.replay import stored_cassette

if TYPE_CHECKING:
    from services.store import RunRecord, Store

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
        payload = json.loads(row.payload)
        if row.kind == "high_level_request":
            requests[payload["request_hash"]] = HighLevelReflectionRequest.model_validate(payload["request"])
        elif row.kind == "high_level_report":
            report = HighLevelReflectionReport.model_validate(payload["report"])
            reports[payload["report_id"]] = requests[payload["request_hash"]], report
        else:
            verdict = ReplanVerdict.model_validate(payload["verdict"])
            verdicts[payload["report_id"]] = verdict, row.known_at
    return Script(inputs, arrivals, reports, verdicts)


class Player:
    """Plays a script on a stepper."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._requested: list[Evaluation] = []

    def ask(self, evaluation: Evaluation) -> None:
        """Take an evaluation that the stepper opened; it thinks after the row."""
        self._requested.append(evaluation)

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
        request, self._requested = self._requested, []
        for evaluation in request:
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
            recorded = inputs.popleft()
            if recorded.kind == "feed_anomaly":
                stepper.write_anomaly(recorded.payload)
            elif recorded.kind == "answer_arrived":
                apply_answer(stepper.session, self._script.answers.pop(recorded.payload["event_id"]))
            elif recorded.kind == "report_arrived":
                arrived = recorded.payload
                request = self._script.reports[arrived["report_id"]]
                judged = await judge(stepper.session, *request, seen=arrived.get("seen"))
                apply_report(stepper.session, judged)
            else:
                self._script.outcomes[recorded.payload["number"]] = await execute(
                    stepper.session, recorded.payload, lock_step=stepper.lock_step
                )


class StoppedEarly(Exception):
    """A stop was asked for before the stepper stood where its run stands."""


@dataclass(eq=False)
class RecoveringSink:
    """Compares what is played with what is stored; behind the last stored row everything goes on to `behind`.

    Attributes:
        stored: rows that the store holds.
        compared: rows that were equal, or that lie before the savepoint that is gone on from.
    """

    store: "Store"
    run_id: str
    stored: int
    following: JournalSink
    compared: int = 0

    @property
    def past(self) -> bool:
        """Whether rows are still compared."""
        return self.compared < self.stored

    async def write(self, rows: list[JournalRow]) -> None:
        """Compare a batch, and hand on what is new.

        Raises:
            ConfigError: a row differs from what is stored.
        """
        old = [row for row in rows if row.seq < self.stored]
        if old:
            stored = await self.store.journal.hashes(self.run_id, old[0].seq, old[-1].seq)
            for row, digest in zip(old, stored, strict=True):
                if row.hash != digest:
                    raise ConfigError(
                        f"run {self.run_id} does not come out as it was stored: row {row.seq} ({row.kind}) "
                        f"differs. `thinktwice verify {self.run_id}` says more; another version of the "
                        "program or of the playbooks may have made it. Trade a new run with --new"
                    )
                self.compared = row.seq + 1
        new = rows[len(old) :]
        if new or not rows:
            await self.following.write(new)


async def past_of(store: "Store", record: "RunRecord", sink: RecoveringSink) -> RecordedPast:
    """The replies that a run has had from its models, played until its past is over."""
    cassette = await stored_cassette(store, record, sink.compared)
    return RecordedPast(cassette, lambda: sink.past, recorded=record.events > 0)


async def recover(
    store: "Store",
    record: "RunRecord",
    stepper: LiveStepper,
    player: Player,
    hear: Callable[[int], None] = lambda rows: None,
) -> int | None:
    """Bring a stepper to where its run stands, from its first row or from the savepoint that it stands at.

    Everything stored is checked first, also what a savepoint makes it needless to play: a run over a damaged
    row ends with figures that nobody can prove. A hash takes 1/200 of the time of playing its row. `hear` is
    told of the rows so far, and may raise `StoppedEarly`.

    Returns:
        The label of the last row, ns; None when there is none.

    Raises:
        StoppedEarly: a stop was asked for; nothing was changed.
        ConfigError: it does not come out as it was stored.
        StoreError: the store failed, or is damaged.
    """
    await store.seals.demand(record.run_id)
    async for _ in store.journal.rows(record.run_id):
        pass  # each is held against its hash: those before a savepoint are not played
    async for rows in player.play(stepper, store.trading.rows(record.run_id, stepper.rows)):
        await asyncio.sleep(0)  # others say that this process lives, and hear that it shall stop
        hear(rows)
    await stepper.journal.flush()
    if stepper.journal.events < record.events:
        raise ConfigError(
            f"run {record.run_id} comes out with {stepper.journal.events} of {record.events} stored rows: "
            "its bars are incomplete. Restore a backup, or trade a new run with --new"
        )
    return int(stepper.session.bars.times[stepper.rows - 1]) if stepper.begun else None
