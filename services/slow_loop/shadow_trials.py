"""Shadow trials: candidates and disabled cells trade on paper until their own new evidence speaks.

At every slot the ledgers are advanced to the present bar, their episodes are journalled as shadow episodes,
and a candidate whose own outcomes since its start reject the reference is promoted. A banned cell whose
outcomes since the ban do so is `proven`: a report may recommend to lift the ban. Nothing that suggested a
change is counted for it. However many candidates and bans come, all of them share one level: each begins with
what `online_levels` leaves it. Called by the slow loop.
"""

import numpy as np

from schemas.config import GateSettings, JudgeSettings
from schemas.episode import Episode
from schemas.playbook import PlaybookVersion
from schemas.trials import NO_TRIALS, TrialLedger
from schemas.vocabulary import VersionState
from services.playbooks.lifecycle import PROVEN, PlaybookLifecycle, ShadowTrial
from services.ports import EventJournal
from services.slow_loop.promotion_levels import Key, PromotionLevels
from services.slow_loop.standing_ledger import StandingLedger, StandingLedgers
from services.slow_loop.trial_evidence import Evidence, gains, rounded, trial_evidence


class ShadowTrials:
    """The open trials of one run, each with its ledger."""

    def __init__(
        self,
        ledgers: StandingLedgers,
        lifecycle: PlaybookLifecycle,
        gate: GateSettings,
        judge: JudgeSettings,
        journal: EventJournal,
        before: TrialLedger = NO_TRIALS,
    ) -> None:
        self._ledgers = ledgers
        self._lifecycle = lifecycle
        self._gate = gate
        self._judge = judge
        self._journal = journal
        self._open: dict[tuple[str, str, str | None], StandingLedger] = {}
        self._levels = PromotionLevels(judge, before)
        self.shown: dict[str, Evidence] = {}
        self.proven: dict[Key, Evidence] = {}

    @property
    def counts(self) -> tuple[int, int]:
        """Candidates and bans that have begun, and those that were promoted."""
        return self._levels.counts

    def step(self, row: int, now: int) -> tuple[PlaybookVersion, ...]:
        """Advance every trial through row `row`; versions whose state changed on their own evidence."""
        self._follow(row)
        changed: list[PlaybookVersion] = []
        self.shown, self.proven = {}, {}
        for trial in self._lifecycle.shadows():
            ledger = self._open[_key(trial)]
            for episode in ledger.advance(row + 1):
                self._record(trial, episode, now)
            evidence = trial_evidence(ledger.episodes, self._gate)
            level = self._levels.of(_place(trial))
            if level is not None:
                evidence["e_needed"] = rounded(1.0 / level)
            self.shown[trial.version_hash] = evidence
            if trial.kind == "candidate" and level is not None:
                changed += self._weigh(trial, evidence, level, now)
            proven = level is not None and gains(evidence) and self._reaches(evidence, "e_value", level)
            if trial.kind == "banned_cell" and proven:
                self.proven[_place(trial)] = evidence
        return tuple(changed)

    def lifted(self, changed: tuple[PlaybookVersion, ...], at: int) -> None:
        """Note bans that were lifted on their own evidence: that is a promotion to the levels after it."""
        for version in changed:
            if version.state is VersionState.ACTIVE and version.reason == PROVEN:
                self._levels.promoted(at)

    def _weigh(
        self, trial: ShadowTrial, evidence: Evidence, level: float, now: int
    ) -> tuple[PlaybookVersion, ...]:
        """Promote a candidate that its own trades prove, retire one that they speak against."""
        if self._reaches(evidence, "e_value", level):
            promoted = self._lifecycle.promote(trial.version_hash, evidence, now)
            if promoted:
                self._levels.promoted(now)
            return promoted
        if self._reaches(evidence, "e_value_below", self._judge.promotion_alpha):
            return self._lifecycle.retire(trial.version_hash, evidence, now)
        return ()

    def summaries(self) -> tuple[dict[str, float | int | str | None], ...]:
        """What every open trial has shown so far, for the next request."""
        return tuple(
            {
                "playbook_id": trial.definition.id,
                "version": trial.definition.version,
                "kind": trial.kind,
                "regime": trial.regime_key,
                **self.shown[trial.version_hash],
            }
            for trial in self._lifecycle.shadows()
            if trial.version_hash in self.shown
        )

    def _follow(self, row: int) -> None:
        """Open ledgers for new trials from the next bar on, and drop those whose trial has ended."""
        trials = {_key(trial): trial for trial in self._lifecycle.shadows()}
        self._open = {key: ledger for key, ledger in self._open.items() if key in trials}
        for key, trial in trials.items():
            if key not in self._open:
                start = int(np.searchsorted(self._ledgers.bars.close_times, trial.since, side="right"))
                self._open[key] = self._ledgers.open(
                    trial.definition, trial.directions, min(start, row + 1), trial.regime_key
                )
        for trial in sorted(trials.values(), key=lambda one: (one.since, one.kind == "banned_cell")):
            if trial.kind != "experiment":
                self._levels.begin(_place(trial), trial.since)

    def _reaches(self, evidence: Evidence, name: str, level: float) -> bool:
        """Ending a trial early risks nothing, so only a promotion has to pay for the candidates before it."""
        e, n = evidence[name], evidence["n"]
        enough = isinstance(n, int) and n >= self._judge.promotion_minimum_trades
        return enough and isinstance(e, float) and e >= 1.0 / level

    def _record(self, trial: ShadowTrial, episode: Episode, now: int) -> None:
        """A trade of a banned cell may be signalled in another one: it is armed in its own."""
        cell = {} if trial.regime_key is None else {"cell": trial.regime_key}
        self._journal.append(
            "shadow_episode",
            ts_event=episode.known_at,
            known_at=now,
            symbol=episode.symbol,
            payload={
                "version_hash": trial.version_hash,
                "kind": trial.kind,
                **cell,
                "episode": episode.payload(),
            },
        )


def _place(trial: ShadowTrial) -> Key:
    """By what a level is kept: a candidate by its version alone, a ban by its cell, too."""
    return trial.version_hash, trial.regime_key if trial.kind == "banned_cell" else None


def _key(trial: ShadowTrial) -> tuple[str, str, str | None]:
    return trial.version_hash, trial.kind, trial.regime_key
