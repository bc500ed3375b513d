"""What the slow loop of a run knows: one fold of its journal, for the run as it writes and for the worker.

Rows are taken in order; every question names the time as of which it is asked, and nothing known later enters
the answer. What a report has told is forgotten two reports later, so clocks never fall. It reads rows and
writes nothing; what only bars can tell is asked of plans on paper.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from schemas.canonical import content_id, ns_to_datetime
from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from schemas.settings import Settings
from schemas.slow_reflection import DeferredItem, HighLevelReflectionRequest, OpenEntry
from schemas.state import PART, Stateful
from schemas.timeframes import close_of
from schemas.trials import NO_TRIALS, TrialLedger
from schemas.vocabulary import (
    CheckName,
    EvaluationOutcome,
    OverrideReason,
    ReflectionStatus,
    Severity,
    VersionState,
)
from services.high_level.fire_quality import rule_name
from services.high_level.hypotheses import declared_hypotheses
from services.journal.chain import JournalRow
from services.playbooks.measures import duration_ns
from services.slow_loop.cadence import ORDINARY_MINIMUM, CadenceFacts, Run, surprises
from services.slow_loop.drift_window import COUNTED, DriftWindow
from services.slow_loop.evidence_epochs import EvidenceEpochs, active, ancestors, next_versions, on_trial
from services.slow_loop.open_positions import OpenPositions
from services.slow_loop.past_runs import PastRun, PastRuns, Taker
from services.slow_loop.run_state import RunState
from services.slow_loop.untraded_signals import EVENTS, PaperBars, UntradedSignals


class LoopFacts(Stateful):
    """Facts of one run, row by row; times in ns.

    Attributes:
        runs: those that wrote a report.
        run_state: positions, policies, and what blocks entries, after the last row.
        episodes: every resolved one, by time.
        last_seq: of the last row taken; -1 before the first.
        timeframe: of the bars; empty before the first row.
    """

    STATE: ClassVar = {
        "timeframe": str,
        "last_seq": int,
        "_before": TrialLedger,
        "_first_label": int,
        "_label": str,
        "_versions": list[tuple[int, PlaybookVersion]],
        "_shadow": list[tuple[int, tuple[dict[str, Any], ...]]],
        "_positions": PART,
        "_overrides": list[tuple[int, OverrideReason]],
        "_deferred": list[tuple[int, DeferredItem]],
        "_drift": PART,
        "_signals": PART,
        "_requested": dict[str, dict[str, Any]],
        "_proposals": dict[str, PolicyProposal | None],
        "_blocked": dict[str, PolicyProposal | None],
        "runs": PART,
        "run_state": PART,
    }
    REBUILT = frozenset(
        {"_settings", "_takers", "_learnable", "_known", "_epochs", "_policies", "_looked", "episodes"}
    )  # of the settings, the versions, the episodes and the policies in force, and the last look

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._before = NO_TRIALS
        self._first_label = 0
        self._label = "open"
        self._learnable: list[Episode] = []
        self._known: list[int] = []
        self._versions: list[tuple[int, PlaybookVersion]] = []
        self._epochs = EvidenceEpochs()
        self._shadow: list[tuple[int, tuple[dict[str, Any], ...]]] = []
        self._positions = OpenPositions()
        self._policies: dict[str, FrozenPolicy] = {}  # by id, the last one of each symbol
        self._overrides: list[tuple[int, OverrideReason]] = []
        self._deferred: list[tuple[int, DeferredItem]] = []
        self._looked: tuple[list[PastRun], tuple[int | None, ...], CadenceFacts] | None = None
        self._drift = DriftWindow()
        self._signals = UntradedSignals(settings.execution)
        self._requested: dict[str, dict[str, Any]] = {}  # the latest snapshot of a symbol
        self._proposals: dict[str, PolicyProposal | None] = {}
        self._blocked: dict[str, PolicyProposal | None] = {}
        self.runs = PastRuns()
        self.run_state = RunState(kill_switch=settings.envelope.kill_switch)
        self.episodes: list[Episode] = []
        self.last_seq = -1
        self.timeframe = ""
        self._takers: dict[str, Taker] = {
            "genesis": self._genesis,
            "episode": self._episode,
            "shadow_trials": self._shadow_trials,
            "playbook_version": self._version,
            "policy_frozen": self._frozen,
            "policy_snapshot": self._snapshot,
            "policy_proposal": self._proposal,
            "policy_reflection": self._reflection,
            "policy_evaluation": self._evaluation,
            "envelope_breach": self._breach,
            "operator_command": self._command,
            **self.runs.takers,
            **dict.fromkeys((*EVENTS, *COUNTED), self._event),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the facts stood that wrote this, but for episodes and policies.

        Raises:
            ValueError: it has other fields, or a value is not of its type.
        """
        super().restore(state)
        for _, version in self._versions:
            if version.state is VersionState.ACTIVE:
                self._epochs.note_version(version)

    def remember(self, episode: Episode) -> None:
        """An episode of before; what followed from it is part of the state."""
        self.episodes.append(episode)
        if not episode.no_learn:
            self._learnable.append(episode)
            self._known.append(episode.known_at)

    def in_force(self, policies: Mapping[str, FrozenPolicy]) -> None:
        """The policies that rows to come may tell of, by id."""
        self._policies.update(policies)

    @property
    def kinds(self) -> frozenset[str]:
        """Journal kinds worth reading."""
        return frozenset({*self._takers, *self.run_state.takers})

    @property
    def begun(self) -> bool:
        """Whether the run's first row is there: before it there is nothing to reflect on."""
        return bool(self.timeframe)

    def add(self, row: JournalRow, payload: Mapping[str, Any] | None = None) -> None:
        """Take one row, in order of sequence; a kind that teaches nothing is passed over.

        `payload` is what the row's text was written from, contracts and all; None reads the text.
        """
        self.last_seq = row.seq
        own, other = self._takers.get(row.kind), self.run_state.takers.get(row.kind)
        if own is not None or other is not None:
            fields = json.loads(row.payload) if payload is None else payload
            for taker in filter(None, (own, other)):
                taker(row, fields)
        if row.kind == "high_level_report":
            self._forget(row.known_at)

    @property
    def started_at(self) -> int:
        """Close of the first bar."""
        return close_of(self._first_label, self.timeframe, self._label, self._settings.data.zone)

    def definitions(self, clock: int) -> tuple[PlaybookDefinition, ...]:
        """Playbook versions in force at a time, by id."""
        return tuple(version.definition for version in active(self._versions, clock))

    def next_versions(self, clock: int) -> dict[str, int]:
        """The number that a new version of each playbook in force gets, by id."""
        return next_versions(self._versions, clock)

    def earlier(self, clock: int) -> dict[str, PlaybookDefinition]:
        """By id, the nearest ancestor of each version in force that traded differently, if any."""
        return ancestors(self._versions, clock)

    def open_experiments(self, clock: int) -> int:
        """Experiments in shadow at a time."""
        return sum(self._kind_of(version) == "experiment" for version in on_trial(self._versions, clock))

    def cadence(
        self, slot: int, clock: int, last_attempt: int | None = None, last_examined: int | None = None
    ) -> CadenceFacts:
        """Facts for `due` at a slot, with what was known at `clock`.

        A run asks at every close: where nothing was told since it asked last, only the moment has moved on.
        """
        runs = self.runs.all()
        told = tuple(len(known) for known in (self._known, self._versions, self._overrides))
        key = (*told, last_attempt, last_examined)
        if self._looked is not None and self._looked[0] is runs and self._looked[1] == key:
            looked = self._looked[2]
            if slot == clock >= looked.now:
                return replace(looked, now=slot)
        found = self._look(slot, clock, last_attempt, last_examined)
        if slot == clock >= self._find_newest():
            self._looked = runs, key, found
        return found

    def _find_newest(self) -> int:
        """When the newest thing that a look at the cadence reads was known, ns."""
        told = [at for at, _ in (*self._versions[-1:], *self._overrides[-1:])]
        told += [max(run.known_at, run.failed_at or 0) for run in self.runs.all()]
        return max((*told, *self._known[-1:]), default=0)

    def _look(
        self, slot: int, clock: int, last_attempt: int | None, last_examined: int | None
    ) -> CadenceFacts:
        known, since = self.runs.list_known(slot, clock), self._find_last_clock(slot, clock)
        past = [run for run in known if not run.has_failed(clock)]
        attempts = [run.slot for run in known if run.has_failed(clock)]
        if last_attempt is not None:
            attempts.append(last_attempt)
        overrides = [reason for at, reason in self._overrides if since < at <= clock]
        high_level, fresh = self._settings.high_level, self.fresh(slot, clock)
        added = surprises(fresh, self._settings)
        seen = [] if last_examined is None else [each for at, each in added if at <= last_examined]
        minima = {book.id: book.minimum_episodes for book in self.definitions(clock)}
        return CadenceFacts(
            now=slot,
            interval=high_level.interval_for(self.timeframe),
            started_at=self.started_at,
            last_run=past[-1].slot if past else None,
            last_attempt=max(attempts, default=None),
            last_structural=max((run.acted_at for run in past if run.changes_structure), default=None),
            new_episodes=dict(sorted(Counter(episode.playbook_id for episode in fresh).items())),
            minimum_episodes=high_level.minimum_episodes,
            playbook_minimum={name: least for name, least in minima.items() if least > ORDINARY_MINIMUM},
            structural_interval_days=high_level.structural_interval_days,
            surprise=sum(each for _, each in added),
            surprise_seen=sum(seen),
            safety_override=overrides[-1] if overrides else None,
            enabled=high_level.enabled,
        )

    def fresh(self, slot: int, clock: int) -> list[Episode]:
        """Learnable episodes known at a slot that the last run did not know."""
        return self._learnable[self._count_before(slot, clock) : self._count(slot)]

    def learnable(self, clock: int) -> list[Episode]:
        """Every episode that may teach and was known at a time."""
        return self._learnable[: self._count(clock)]

    def request(self, run: Run, clock: int, on_paper: PaperBars | None) -> HighLevelReflectionRequest:
        """The request of one run; its hash names what was asked, whoever asks.

        Only episodes entered in the window are examined, and only actions of the judge in it are shown.

        Args:
            run: what is due.
            clock: what was known later does not exist.
            on_paper: over the run's bars, as far as they are known at the clock at least. None where no bars
                are at hand: then no signal has an outcome, and a window of bars is as long as these last.
        """
        slot, window_start = run.slot, self._window_start(on_paper, clock)
        past, since = self.runs.list_completed(slot, clock), self._find_last_clock(slot, clock)
        evidence, epochs = self.learnable(slot), self._epochs_at(clock)
        acted = tuple(action for action in self.runs.judge_history(slot, clock) if action.at >= window_start)
        tested = [trial for made in self.runs.list_known(slot, clock) for trial in made.tried]
        closes = [made.read_until for made in past]
        return HighLevelReflectionRequest(
            slot=slot,
            known_at=clock,
            window_start=ns_to_datetime(window_start),
            window_end=ns_to_datetime(slot),
            timeframe=self.timeframe,
            episode_ids=tuple(known.episode_id for known in evidence if known.entry_label >= window_start),
            new_episodes=len(evidence) - self._count_before(slot, clock),
            judge_actions=tuple(dict.fromkeys(action.verdict_id for action in acted)),
            judge_history=acted,
            deferred_items=tuple(item for at, item in self._deferred if since < at <= clock),
            untraded_signals=() if on_paper is None else self._signals.select_known(on_paper, since, clock),
            shadow_trials=self.shadow_trials(clock),
            drift_inputs=self._drift.inputs(run.trigger, closes, clock),
            structural_override=run.override,
            structural_allowed=run.structural_allowed,
            epochs=dict(sorted(epochs.epochs.items())),
            epoch_starts=dict(epochs.starts),
            tested_before=tuple(trial.hypothesis for trial in tested),
            open_entries=self.open_entries(clock),
            same_rules=dict(epochs.same_rules),
            ledger=self._before.shown,
        )

    def list_tested(self) -> list[str]:
        """Every grid value that a report has tried, by its name, and what plans with their own rules test."""
        own = {episode.playbook_id for episode in self._learnable if not episode.playbook_hash}
        tried = [trial.hypothesis for run in self.runs.all() for trial in run.tried]
        return [*tried, *declared_hypotheses((), [self.timeframe], own)]

    def evidence(self, episode_ids: Sequence[str]) -> list[Episode]:
        """The episodes of a request, in its order."""
        by_id = {episode.episode_id: episode for episode in self._learnable}
        return [by_id[name] for name in episode_ids]

    def open_entries(self, clock: int) -> tuple[OpenEntry, ...]:
        """Positions that were open at a time."""
        return self._positions.at(clock)

    def shadow_trials(self, clock: int) -> tuple[dict[str, Any], ...]:
        """What open trials and banned cells had shown when that was last told."""
        shown = [trials for at, trials in self._shadow if at <= clock]
        return shown[-1] if shown else ()

    def _find_last_clock(self, slot: int, clock: int) -> int:
        """Clock of the last report before `slot`, or the beginning: what was known later is new."""
        last = self.runs.last(slot, clock)
        return self.started_at - 1 if last is None else last.read_until

    def _count(self, slot: int) -> int:
        return bisect_right(self._known, slot)

    def _count_before(self, slot: int, clock: int) -> int:
        last = self.runs.last(slot, clock)
        return 0 if last is None else self._count(last.slot)

    def _window_start(self, on_paper: PaperBars | None, clock: int) -> int:
        """Label of the first bar of the window that ends with the last bar closed at `clock`."""
        window = self._settings.high_level.window_bars
        if window is None:
            return self._first_label
        if on_paper is None:
            return max(self._first_label, clock - duration_ns(window, self.timeframe))
        closed = int(np.searchsorted(on_paper.bars.close_times, clock, side="right"))
        return int(on_paper.bars.times[max(0, closed - window)])

    def _epochs_at(self, clock: int) -> EvidenceEpochs:
        entered = [
            version for at, version in self._versions if version.state is VersionState.ACTIVE and at <= clock
        ]
        if len(entered) == self._epochs.versions:
            return self._epochs
        return EvidenceEpochs(entered)

    def _kind_of(self, version: PlaybookVersion) -> str:
        for run in self.runs.all():
            for action in run.verdict.actions if run.verdict is not None else ():
                named = content_id({"action": action.payload(), "report_id": version.report_id})
                if named == version.action_id:
                    return "experiment" if action.kind == "open_experiment" else "candidate"
        return "candidate"

    def forget_regimes(self, clock: int) -> None:
        """Whoever asks from now on asks as of `clock`, ns, or later."""
        self._drift.forget_regimes(clock)

    def _forget(self, clock: int) -> None:
        """Drop what the last report but one has told; a failure gives back only what the last one told."""
        past = self.runs.list_completed(clock, clock)
        if len(past) < 3:
            return
        until = past[-3].read_until
        self._positions.forget(until)
        self._drift.forget(until)
        self._signals.forget(until)
        self._overrides = [(at, reason) for at, reason in self._overrides if at > until]
        self._deferred = [(at, item) for at, item in self._deferred if at > until]
        old = sum(at <= until for at, _ in self._shadow)
        del self._shadow[: max(0, old - 1)]

    def _genesis(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        self.timeframe, self._label, self._first_label = payload["timeframe"], payload["label"], row.ts_event
        if payload.get("ledger") is not None:
            self._before = TrialLedger.model_validate(payload["ledger"])

    def _episode(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        episode = Episode.model_validate(payload["episode"])
        self.remember(episode)
        self._positions.note_exit(episode)
        if not episode.no_learn:
            rule = rule_name(episode.playbook_id, episode.direction)
            self._drift.note_fire(row.known_at, rule, episode.r)

    def _shadow_trials(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        self._shadow.append((row.known_at, tuple(payload["trials"])))

    def _version(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        version = PlaybookVersion.of_row(payload)
        self._versions.append((row.known_at, version))
        if version.state is VersionState.ACTIVE:
            self._epochs.note_version(version)

    def _frozen(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        others = {name: policy for name, policy in self._policies.items() if policy.symbol != row.symbol}
        self._policies = others | {payload["policy_id"]: FrozenPolicy.model_validate(payload["policy"])}

    def _snapshot(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        """A snapshot taken anew for a late answer belongs to the same evaluation."""
        symbol, snapshot = str(row.symbol), payload["snapshot"]
        again = symbol in self._requested and self._requested[symbol]["event_id"] == payload["event_id"]
        self._requested[symbol] = {"event_id": payload["event_id"], "bar_label": snapshot["bar_label"]}
        self._blocked.pop(symbol, None)
        if snapshot["regime"] is not None and not again:
            self._drift.note_regime(row.known_at, snapshot["regime"]["fingerprint"])

    def _proposal(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        given = payload["proposal"]
        self._proposals[str(row.symbol)] = None if given is None else PolicyProposal.model_validate(given)

    def _reflection(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        symbol, result = str(row.symbol), payload["result"]
        if payload.get("amendment") is None and _blocks(result):
            self._blocked[symbol] = self._proposals[symbol]
        for text in result.get("deferred", ()):
            item = DeferredItem(
                raised_at=row.ts_event, symbol=symbol, text=text, reflection_hash=payload["reflection_hash"]
            )
            self._deferred.append((row.known_at, item))

    def _evaluation(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        symbol = str(row.symbol)
        blocked = self._blocked.pop(symbol, None)
        if blocked is not None and payload["outcome"] != EvaluationOutcome.STALE:
            self._signals.note_blocked(symbol, self._requested[symbol]["bar_label"], blocked, row.known_at)

    def _breach(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        killed = payload["limit"] == "kill_switch"
        reason = OverrideReason.KILL_SWITCH if killed else OverrideReason.ENVELOPE_BREACH
        self._overrides.append((row.known_at, reason))

    def _command(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        """A rule that somebody tried on bars of the run while it goes on was tried before the next report."""
        if payload["kind"] == "rule_tried":
            self._before = self._before.with_a_rule

    def _event(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        """A tick event of a policy: for the drift window, the signals, and the open positions."""
        if row.symbol is None:
            return
        policy = self._policies.get(str(payload.get("policy_id")))
        counted, playbook = COUNTED.get(row.kind), payload.get("playbook_id")
        if counted is not None and playbook is not None and policy is not None:
            self._drift.note_fire(row.known_at, rule_name(str(playbook), policy.proposal.direction), counted)
        if row.kind in EVENTS:
            proposal = None if policy is None else policy.proposal
            refusal = str(payload.get("reason"))
            self._signals.observe(row.kind, row.symbol, payload["bar_label"], row.known_at, proposal, refusal)
        if row.kind == "entry_filled" and policy is not None:
            entry = OpenEntry(
                playbook_id=policy.playbook_id, regime=policy.regime_key, entry_label=payload["bar_label"]
            )
            self._positions.note_entry(row.symbol, entry, row.known_at)


def _blocks(result: Mapping[str, Any]) -> bool:
    # What an invariant blocks may not trade anyway.
    return result.get("status") == ReflectionStatus.BLOCK and not any(
        finding["check"] == CheckName.INVARIANT and finding["severity"] == Severity.BLOCKER
        for finding in result["findings"]
    )
