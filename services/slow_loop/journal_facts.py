"""What the slow loop of a run knows, read from the run's journal: the worker's memory, rebuilt from facts.

Rows are taken in order and kept small; every question names the time as of which it is asked, and nothing
known later enters the answer. What only bars can tell is missing here: the outcomes of `signals`, and trials
of grid values. It reads rows and writes nothing.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.canonical import content_id
from schemas.config import Settings
from schemas.episode import Episode
from schemas.judge import JudgeAction, ReplanVerdict
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.reflection import DeferredItem, HighLevelReflectionReport, OpenEntry, TickValidationEvent
from schemas.regime import RegimeView
from schemas.trials import NO_TRIALS, TrialLedger
from schemas.vocabulary import Direction, OverrideReason, VersionState
from services.high_level.grid import trial_key
from services.journal.chain import JournalRow
from services.playbooks.measures import duration_ns
from services.slow_loop.artefacts import with_moments
from services.slow_loop.cadence import CadenceFacts
from services.slow_loop.drift_window import COUNTED, DriftWindow
from services.slow_loop.evidence_epochs import EvidenceEpochs
from services.slow_loop.open_positions import OpenPositions
from services.slow_loop.requests import (
    CadenceState,
    RequestFacts,
    actions_seen,
    cadence_facts,
    changes_structure,
)
from services.slow_loop.signal_facts import SignalFacts

Drift = Callable[[DriftWindow], None]


@dataclass(frozen=True)
class PastRun:
    """A run of the slow loop that wrote a report; times in ns.

    Attributes:
        slot: its slot.
        known_at: when its report was known.
        read_until: the clock of its request: what was known later belongs to the next run.
        report: what it said.
        verdict: the judge's, once there is one, with its id and the time at which its actions were seen.
        refused: those of its actions that the state of the run did not allow.
        failed_at: when it was known that it could not be carried out: then its facts are told again.
    """

    slot: int
    known_at: int
    read_until: int
    report: HighLevelReflectionReport
    verdict: ReplanVerdict | None = None
    verdict_id: str = ""
    judged_at: int = 0
    refused: tuple[JudgeAction, ...] = ()
    failed_at: int | None = None

    @property
    def done(self) -> list[JudgeAction]:
        """The judge's actions that were carried out."""
        actions = () if self.verdict is None else self.verdict.actions
        return [one for one in actions if one not in self.refused]

    def failed(self, clock: int) -> bool:
        """Whether it was known by `clock`, ns, that the report could not be carried out."""
        return self.failed_at is not None and self.failed_at <= clock


class JournalFacts:
    """Facts of one run, row by row."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.signals = SignalFacts()
        self.last_seq = -1
        self.timeframe = ""
        self._before = NO_TRIALS
        self._first_label = 0
        self._label = "open"
        self._learnable: list[Episode] = []
        self._known: list[int] = []
        self._versions: list[tuple[int, PlaybookVersion]] = []
        self._shadow: list[tuple[int, tuple[dict[str, Any], ...]]] = []
        self._positions = OpenPositions()
        self._policies: dict[str, dict[str, str]] = {}
        self._overrides: list[tuple[int, OverrideReason]] = []
        self._deferred: list[tuple[int, DeferredItem]] = []
        self._drift: list[tuple[int, Drift]] = []
        self._asked: dict[str, str] = {}
        self._directions: dict[str, Direction] = {}
        self._requests: dict[str, tuple[int, int]] = {}
        self._runs: dict[str, PastRun] = {}
        self._outside: tuple[PastRun, ...] = ()
        self._takers: dict[str, Callable[[JournalRow, dict[str, Any]], None]] = {
            "genesis": self._genesis,
            "episode": self._episode,
            "shadow_trials": self._shadow_trials,
            "entry_filled": self._entered,
            "playbook_version": self._version,
            "policy_frozen": self._frozen,
            "policy_snapshot": self._snapshot,
            "policy_reflection": self._reflection,
            "envelope_breach": self._breach,
            "high_level_request": self._request,
            "high_level_report": self._report,
            "replan_verdict": self._verdict,
            "action_refused": self._refusal,
            "error": self._error,
            **{str(kind): self._fire for kind in COUNTED},
        }

    @property
    def kinds(self) -> frozenset[str]:
        """Journal kinds worth reading."""
        return frozenset(self._takers) | self.signals.kinds

    @property
    def report_kinds(self) -> frozenset[str]:
        """The kinds that `runs` alone needs."""
        return frozenset({"high_level_request", "high_level_report", "replan_verdict"})

    @property
    def begun(self) -> bool:
        """Whether the run's first row is there: before it there is nothing to reflect on."""
        return bool(self.timeframe)

    def add(self, row: JournalRow) -> None:
        """Take one row, in order of sequence; a kind that teaches nothing is passed over."""
        self.last_seq = row.seq
        taker = self._takers.get(row.kind)
        if taker is None and row.kind not in self.signals.kinds:
            return
        payload = json.loads(row.payload)
        if taker is not None:
            taker(row, payload)
        if row.kind in self.signals.kinds:
            self.signals.add(row, payload)

    def add_runs(self, runs: Iterable[PastRun]) -> None:
        """The runs that a worker made and the journal may not hold yet, each time all of them."""
        self._outside = tuple(runs)

    @property
    def started_at(self) -> int:
        """Close of the first bar."""
        bar = duration_ns(1, self.timeframe) if self.timeframe != "1d" else 86_400 * 10**9
        return self._first_label + (bar if self._label == "open" else 0)

    def runs(self) -> list[PastRun]:
        """Every run that is known, by slot; the journal's word goes before a worker's.

        A worker's run was known when it was made, though it reached the journal at a later bar.
        """
        made = {one.slot: one for one in self._outside}
        for one in self._runs.values():
            known_at = min(one.known_at, made[one.slot].known_at) if one.slot in made else one.known_at
            made[one.slot] = replace(one, known_at=known_at)
        return [made[slot] for slot in sorted(made)]

    def definitions(self, clock: int) -> tuple[PlaybookDefinition, ...]:
        """Playbook versions in force at a time, by id."""
        return tuple(version.definition for version in self._active(clock))

    def open_experiments(self, clock: int) -> int:
        """Experiments in shadow at a time."""
        return sum(self._kind_of(version) == "experiment" for version in self._on_trial(clock))

    def cadence(
        self, slot: int, clock: int, last_attempt: int | None, last_examined: int | None = None
    ) -> CadenceFacts:
        """Facts for `due` at a slot, with what was known at `clock`."""
        past = self._past(slot, clock)
        since = self.told_until(slot, clock)
        failed = [one.slot for one in self._made(slot, clock) if one.failed(clock)]
        overrides = [reason for at, reason in self._overrides if since < at <= clock]
        acted = [one.slot for one in past if changes_structure(one.done)]
        standing = CadenceState(
            self.started_at,
            last_run=past[-1].slot if past else None,
            last_attempt=max((one for one in (last_attempt, *failed) if one is not None), default=None),
            last_examined=last_examined,
            last_structural=acted[-1] if acted else None,
            override=overrides[-1] if overrides else None,
        )
        return cadence_facts(
            slot, self._settings, self.timeframe, standing, self.fresh(slot, clock), self.definitions(clock)
        )

    def fresh(self, slot: int, clock: int) -> list[Episode]:
        """Learnable episodes known at a slot that the last run did not know."""
        return self._learnable[self._counted_before(slot, clock) : self._count(slot)]

    def request_facts(self, slot: int, clock: int, trigger: str) -> RequestFacts:
        """What the request of a run at `slot` is made of, with what was known at `clock`."""
        past, since = self._past(slot, clock), self.told_until(slot, clock)
        history = [
            action
            for one in past
            if one.verdict is not None
            for action in actions_seen(one.verdict, one.verdict_id, one.judged_at)
        ]
        epochs = self._epochs(clock)
        return RequestFacts(
            known_at=clock,
            timeframe=self.timeframe,
            window_start=self._window_start(slot),
            evidence=self._learnable[: self._count(slot)],
            counted_before=self._counted_before(slot, clock),
            judge_history=history,
            deferred=tuple(item for at, item in self._deferred if since < at <= clock),
            shadow_trials=self._trials(clock),
            open_entries=self._positions.at(clock),
            drift_inputs=self._drift_window(past, clock).inputs(trigger),
            epochs=epochs.epochs,
            epoch_starts=epochs.starts,
            same_rules=epochs.same_rules,
            tested=tuple(
                trial_key(trial) for one in self._made(slot, clock) for trial in one.report.grid_trials
            ),
            ledger=self._before.told,
        )

    def told_until(self, slot: int, clock: int) -> int:
        """Clock of the last report before `slot`, ns, or the beginning: what was known later is new."""
        past = self._past(slot, clock)
        return past[-1].read_until if past else self.started_at - 1

    def evidence(self, episode_ids: Sequence[str]) -> list[Episode]:
        """The episodes of a stored request, in its order."""
        by_id = {one.episode_id: one for one in self._learnable}
        return [by_id[name] for name in episode_ids]

    def _made(self, slot: int, clock: int) -> list[PastRun]:
        return [one for one in self.runs() if one.slot < slot and one.known_at <= clock]

    def _past(self, slot: int, clock: int) -> list[PastRun]:
        """The runs that count: one that could not be carried out told nothing."""
        return [one for one in self._made(slot, clock) if not one.failed(clock)]

    def _count(self, slot: int) -> int:
        return bisect_right(self._known, slot)

    def _counted_before(self, slot: int, clock: int) -> int:
        past = self._past(slot, clock)
        return self._count(past[-1].slot) if past else 0

    def _window_start(self, slot: int) -> int:
        """Label of the first bar, or so many bar durations before the slot: no bars are at hand to count."""
        window = self._settings.high_level.window_bars
        if window is None:
            return self._first_label
        return max(self._first_label, slot - duration_ns(window, self.timeframe))

    def _drift_window(self, past: Sequence[PastRun], clock: int) -> DriftWindow:
        window = DriftWindow()
        for at, entry in self._drift:
            if at <= clock:
                entry(window)
        for one in past:
            window.close(one.read_until)
        return window

    def _active(self, clock: int) -> list[PlaybookVersion]:
        active: dict[str, PlaybookVersion] = {}
        for at, version in self._versions:
            name = version.definition.id
            if at > clock:
                continue
            if version.state is VersionState.ACTIVE:
                active[name] = version
            elif name in active and active[name].definition.content_hash == version.definition.content_hash:
                del active[name]
        return [active[name] for name in sorted(active)]

    def _epochs(self, clock: int) -> EvidenceEpochs:
        return EvidenceEpochs(
            one for at, one in self._versions if at <= clock and one.state is VersionState.ACTIVE
        )

    def _on_trial(self, clock: int) -> list[PlaybookVersion]:
        latest = {one.definition.content_hash: one for at, one in self._versions if at <= clock}
        return [one for one in latest.values() if one.state is VersionState.SHADOW]

    def _kind_of(self, version: PlaybookVersion) -> str:
        for one in self.runs():
            for action in one.verdict.actions if one.verdict is not None else ():
                named = content_id({"action": action.payload(), "report_id": version.report_id})
                if named == version.action_id:
                    return "experiment" if action.kind == "open_experiment" else "candidate"
        return "candidate"

    def _trials(self, clock: int) -> tuple[dict[str, Any], ...]:
        """What open trials and banned cells had shown when that was last told."""
        told = [trials for at, trials in self._shadow if at <= clock]
        return told[-1] if told else ()

    def _genesis(self, row: JournalRow, payload: dict[str, Any]) -> None:
        self.timeframe, self._label = payload["timeframe"], payload["label"]
        self._first_label = row.ts_event
        if payload.get("ledger") is not None:
            self._before = TrialLedger.model_validate(payload["ledger"])

    def _episode(self, row: JournalRow, payload: dict[str, Any]) -> None:
        episode = Episode.model_validate(payload["episode"])
        self._drift.append((row.known_at, lambda window: window.resolved(episode)))
        self._positions.resolved(episode)
        if not episode.no_learn:
            self._learnable.append(episode)
            self._known.append(episode.known_at)

    def _shadow_trials(self, row: JournalRow, payload: dict[str, Any]) -> None:
        self._shadow.append((row.known_at, tuple(payload["trials"])))

    def _entered(self, row: JournalRow, payload: dict[str, Any]) -> None:
        policy = self._policies.get(str(payload.get("policy_id")))
        if policy is not None:
            entry = OpenEntry(
                playbook_id=policy["playbook_id"],
                regime=policy["regime_key"],
                entry_label=payload["bar_label"],
            )
            self._positions.entered(str(row.symbol), entry, row.known_at)

    def _version(self, row: JournalRow, payload: dict[str, Any]) -> None:
        fields = {name: payload[name] for name in PlaybookVersion.model_fields if name in payload}
        self._versions.append((row.known_at, PlaybookVersion.model_validate(fields)))

    def _frozen(self, row: JournalRow, payload: dict[str, Any]) -> None:
        policy = payload["policy"]
        self._directions[payload["policy_id"]] = policy["proposal"]["direction"]
        self._policies[payload["policy_id"]] = {name: policy[name] for name in ("playbook_id", "regime_key")}

    def _snapshot(self, row: JournalRow, payload: dict[str, Any]) -> None:
        symbol, event_id = str(row.symbol), payload["event_id"]
        again = self._asked.get(symbol) == event_id  # taken anew for a late answer: the same evaluation
        self._asked[symbol] = event_id
        if payload["snapshot"]["regime"] is not None and not again:
            regime = RegimeView.model_validate(payload["snapshot"]["regime"])
            self._drift.append((row.known_at, lambda window: window.decided_in(regime)))

    def _reflection(self, row: JournalRow, payload: dict[str, Any]) -> None:
        for text in payload["result"].get("deferred", ()):
            item = DeferredItem(
                raised_at=row.ts_event,
                symbol=str(row.symbol),
                text=text,
                reflection_hash=payload["reflection_hash"],
            )
            self._deferred.append((row.known_at, item))

    def _breach(self, row: JournalRow, payload: dict[str, Any]) -> None:
        killed = payload["limit"] == "kill_switch"
        reason = OverrideReason.KILL_SWITCH if killed else OverrideReason.ENVELOPE_BREACH
        self._overrides.append((row.known_at, reason))

    def _fire(self, row: JournalRow, payload: dict[str, Any]) -> None:
        direction = self._directions.get(str(payload.get("policy_id")))
        event = TickValidationEvent.model_validate(
            {
                "kind": row.kind,
                "symbol": row.symbol,
                "bar_label": payload["bar_label"],
                "ts_event": row.ts_event,
                "known_at": row.known_at,
                "detail": payload,
            }
        )
        self._drift.append((row.known_at, lambda window: window.observe(event, direction)))

    def _request(self, row: JournalRow, payload: dict[str, Any]) -> None:
        request = payload["request"]
        self._requests[payload["request_hash"]] = (request["slot"], request["known_at"])

    def _report(self, row: JournalRow, payload: dict[str, Any]) -> None:
        slot, read_until = self._requests[payload["request_hash"]]
        report = HighLevelReflectionReport.model_validate(with_moments(payload["report"]))
        self._runs[payload["report_id"]] = PastRun(slot, row.known_at, read_until, report)

    def _verdict(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        self._runs[payload["report_id"]] = replace(
            self._runs[payload["report_id"]],
            verdict=ReplanVerdict.model_validate(payload["verdict"]),
            verdict_id=payload["verdict_id"],
            judged_at=row.known_at,
        )

    def _refusal(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        action = JudgeAction.model_validate(payload["action"])
        for name, past in self._runs.items():
            if past.verdict_id == payload["verdict_id"]:
                self._runs[name] = replace(past, refused=(*past.refused, action))

    def _error(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        failed = payload.get("report_id")
        if failed in self._runs:
            self._runs[failed] = replace(self._runs[failed], failed_at=row.known_at)
