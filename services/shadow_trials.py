"""Shadow trials: candidates and disabled cells trade on paper until their own new evidence speaks.

At every slot the ledgers are advanced to the present bar, their episodes are journalled as shadow episodes,
and a candidate whose own outcomes since its start reject the reference is promoted. Nothing that suggested
a change is counted for it. Called by the slow loop.
"""

from collections.abc import Sequence

import numpy as np

from schemas.config import GateSettings, JudgeSettings
from schemas.episode import Episode
from schemas.playbook import PlaybookVersion
from services.playbooks.lifecycle import PlaybookLifecycle, ShadowTrial
from services.ports import EventJournal
from services.standing_ledger import StandingLedger, StandingLedgers
from services.statistics.eprocess import e_value, log_e_above
from services.statistics.expectancy import Trades, observe, resolve_unit

Evidence = dict[str, float | int | str | None]


class ShadowTrials:
    """The open trials of one run, each with its ledger."""

    def __init__(
        self,
        ledgers: StandingLedgers,
        lifecycle: PlaybookLifecycle,
        gate: GateSettings,
        judge: JudgeSettings,
        journal: EventJournal,
    ) -> None:
        self._ledgers = ledgers
        self._lifecycle = lifecycle
        self._gate = gate
        self._judge = judge
        self._journal = journal
        self._open: dict[tuple[str, str, str | None], StandingLedger] = {}

    def step(self, row: int, now: int) -> tuple[PlaybookVersion, ...]:
        """Advance every trial through row `row`; versions whose state changed on their own evidence."""
        self._follow(row)
        changed: list[PlaybookVersion] = []
        for trial in self._lifecycle.shadows():
            ledger = self._open[_key(trial)]
            for episode in ledger.advance(row + 1):
                self._record(trial, episode, now)
            if trial.kind == "candidate":
                evidence = self.evidence(ledger.episodes)
                if self._proven(evidence):
                    changed += self._lifecycle.promote(trial.version_hash, evidence, now)
        return tuple(changed)

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

    def evidence(self, episodes: Sequence[Episode]) -> Evidence:
        """What a ledger has shown: trades, blocks, mean R, and the e-value against the reference."""
        if not episodes:
            return {
                "n": 0,
                "blocks": 0,
                "mean_r": None,
                "reference_r": self._gate.reference_r,
                "e_value": None,
            }
        trades = Trades.of([(one.exit_label, one.entry_label, one.r) for one in episodes])
        gate = self._gate
        unit = resolve_unit(gate.bet_unit, episodes[0].timeframe)
        seen = observe(trades, unit, gate.winsor_low, gate.winsor_high, gate.reference_r)
        log_e = float(log_e_above(seen.values, seen.low, seen.high, seen.reference))
        return {
            "n": len(episodes),
            "blocks": len(seen),
            "mean_r": float(np.mean([one.r for one in episodes])),
            "reference_r": self._gate.reference_r,
            "e_value": e_value(log_e),
        }

    def _proven(self, evidence: Evidence) -> bool:
        e, n = evidence["e_value"], evidence["n"]
        enough = isinstance(n, int) and n >= self._judge.promotion_minimum_trades
        return enough and isinstance(e, float) and e >= 1.0 / self._judge.promotion_alpha

    def _record(self, trial: ShadowTrial, episode: Episode, now: int) -> None:
        self._journal.append(
            "shadow_episode",
            ts_event=episode.known_at,
            known_at=now,
            symbol=episode.symbol,
            payload={"version_hash": trial.version_hash, "kind": trial.kind, "episode": episode.payload()},
        )


def _key(trial: ShadowTrial) -> tuple[str, str, str | None]:
    return trial.version_hash, trial.kind, trial.regime_key
