"""The runs of the slow loop that wrote a report, from a journal and from a worker's own tables."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from schemas.judge import JudgeAction, ReplanVerdict
from schemas.plan import ChangePlan
from schemas.slow_reflection import GridTrial, JudgeActionSeen
from schemas.state import Stateful
from schemas.vocabulary import RecommendedAction
from services.journal.chain import JournalRow

Taker = Callable[[JournalRow, Mapping[str, Any]], None]


@dataclass(frozen=True)
class PastRun:
    """A run of the slow loop that wrote a report; times in ns.

    Attributes:
        slot: its slot.
        known_at: when its report was known.
        read_until: the clock of its request: what was known later belongs to the next run.
        report_id: of the report.
        n_episodes, recommended_action: what it said.
        tried: grid values that it has tried.
        verdict: the judge's, once there is one, with its id and the time at which its actions were seen.
        refused: those of its actions that the state of the run did not allow.
        planned: those of them that wait in a change plan.
        enacted_at: when that plan was carried out, ns; None while it was not.
        failed_at: when it was known that it could not be carried out: then its facts are told again.
    """

    slot: int
    known_at: int
    read_until: int
    report_id: str
    n_episodes: int
    recommended_action: RecommendedAction
    tried: tuple[GridTrial, ...] = ()
    verdict: ReplanVerdict | None = None
    verdict_id: str = ""
    judged_at: int = 0
    refused: tuple[JudgeAction, ...] = ()
    planned: tuple[JudgeAction, ...] = ()
    enacted_at: int | None = None
    failed_at: int | None = None

    @cached_property
    def done(self) -> tuple[JudgeAction, ...]:
        """The judge's actions that were carried out; each look at the cadence asks every run."""
        actions = () if self.verdict is None else self.verdict.actions
        return tuple(action for action in actions if action not in (*self.refused, *self.waiting))

    @property
    def waiting(self) -> tuple[JudgeAction, ...]:
        """Actions of which nobody has decided, or which were declined."""
        return self.planned if self.enacted_at is None else ()

    @cached_property
    def changes_structure(self) -> bool:
        """Whether what was carried out uses up the week's structural change; an experiment does not."""
        return any(action.kind != "open_experiment" for action in self.done)

    @property
    def acted_at(self) -> int:
        """Its slot, or when a person let it act: from then on the week counts."""
        late = self.enacted_at is not None and self.enacted_at > self.judged_at
        return self.slot if self.enacted_at is None or not late else self.enacted_at

    def has_failed(self, clock: int) -> bool:
        """Whether it was known by `clock`, ns, that the report could not be carried out."""
        return self.failed_at is not None and self.failed_at <= clock


class PastRuns(Stateful):
    """Fold of the journal rows that tell of reports; times in ns."""

    STATE: ClassVar = {
        "_requests": dict[str, tuple[int, int]],
        "_journalled": dict[str, PastRun],
        "_plans": dict[str, str],
    }
    REBUILT = frozenset({"_outside", "_all", "takers"})  # a run reads of no other maker

    def __init__(self) -> None:
        self._requests: dict[str, tuple[int, int]] = {}  # slot and clock, by request hash
        self._journalled: dict[str, PastRun] = {}
        self._plans: dict[str, str] = {}  # report id by plan id
        self._outside: dict[str, PastRun] = {}
        self._all: list[PastRun] | None = None
        self.takers: dict[str, Taker] = {
            "high_level_request": self._request,
            "high_level_report": self._report,
            "replan_verdict": self._verdict,
            "action_refused": self._refusal,
            "error": self._error,
            "two_phase_phase1_complete": self._note_plan,
            "two_phase_phase2_complete": self._note_enactment,
        }

    def add(self, row: JournalRow) -> None:
        """Take one row, in order of sequence; a kind that tells of no report is passed over."""
        if row.kind in self.takers:
            self.takers[row.kind](row, json.loads(row.payload))

    def add_outside(self, runs: Iterable[PastRun]) -> None:
        """The runs that a worker made and the journal may not hold yet, each time all of them."""
        self._outside = {run.report_id: run for run in runs}
        self._all = None

    def all(self) -> list[PastRun]:
        """Every run that is known, by slot; the journal's word goes before a worker's.

        A worker's run was known when it was made, though it reached the journal at a later bar.
        """
        if self._all is None:
            made = dict(self._outside)
            for name, run in self._journalled.items():
                known_at = min(run.known_at, made[name].known_at) if name in made else run.known_at
                made[name] = replace(run, known_at=known_at)
            self._all = sorted(made.values(), key=lambda run: (run.slot, run.known_at))
        return self._all

    def list_known(self, slot: int, clock: int) -> list[PastRun]:
        """The runs of slots up to `slot` that were known at a time."""
        return [run for run in self.all() if run.slot <= slot and run.known_at <= clock]

    def list_completed(self, slot: int, clock: int) -> list[PastRun]:
        """Those of them that count: one that could not be carried out told nothing."""
        return [run for run in self.list_known(slot, clock) if not run.has_failed(clock)]

    def last(self, slot: int, clock: int) -> PastRun | None:
        """The last one that counts."""
        for run in reversed(self.all()):
            if run.slot <= slot and run.known_at <= clock and not run.has_failed(clock):
                return run
        return None

    def judge_history(self, slot: int, clock: int) -> list[JudgeActionSeen]:
        """Every action of the judge in them that was carried out, as later requests show it."""
        return [
            JudgeActionSeen(
                verdict_id=run.verdict_id,
                at=run.judged_at,
                kind=action.kind,
                playbook_id=action.playbook_id,
                regime=action.regime,
                parameter=action.parameter,
                value=action.value,
            )
            for run in self.list_completed(slot, clock)
            for action in run.done
        ]

    def _request(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        request = payload["request"]
        self._requests[payload["request_hash"]] = (request["slot"], request["known_at"])

    def _report(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        slot, read_until = self._requests.pop(payload["request_hash"])
        name, report = payload["report_id"], payload["report"]
        tried = tuple(GridTrial.model_validate(grid_trial) for grid_trial in report["grid_trials"])
        action = RecommendedAction(report["recommended_action"])
        self._note_run(
            name, PastRun(slot, row.known_at, read_until, name, report["n_episodes"], action, tried)
        )

    def _verdict(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        name, verdict = payload["report_id"], ReplanVerdict.model_validate(payload["verdict"])
        run = self._journalled[name]
        self._note_run(
            name, replace(run, verdict=verdict, verdict_id=payload["verdict_id"], judged_at=row.known_at)
        )

    def _refusal(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        action = JudgeAction.model_validate(payload["action"])
        for name, run in list(self._journalled.items()):
            if run.verdict_id == payload["verdict_id"]:
                self._note_run(name, replace(run, refused=(*run.refused, action)))

    def _note_plan(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        """Actions of a verdict that became a plan wait; behind a checkpoint the plan is told again."""
        for name, run in list(self._journalled.items()):
            if payload["plan"] is not None and run.verdict_id == payload["verdict_id"] and not run.planned:
                steps = ChangePlan.model_validate(_plain(payload["plan"])).steps
                actions = tuple(step.action for step in steps if isinstance(step.action, JudgeAction))
                self._plans[payload["plan_id"]] = name
                self._note_run(name, replace(run, planned=actions))

    def _note_enactment(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        name = self._plans.get(payload["plan_id"])
        if name is not None and payload["status"] in ("completed", "awaiting_approval"):
            self._note_run(name, replace(self._journalled[name], enacted_at=row.known_at))

    def _error(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        failed = payload.get("report_id")
        if failed in self._journalled:
            self._note_run(failed, replace(self._journalled[failed], failed_at=row.known_at))

    def _note_run(self, report_id: str, run: PastRun) -> None:
        self._journalled[report_id] = run
        self._all = None


def _plain(plan: Any) -> Any:
    return plan.payload() if isinstance(plan, ChangePlan) else plan
