"""Shadow trials: candidates and disabled cells trade on paper until their own new evidence speaks.

At every slot the ledgers are advanced to the present bar, their episodes are journalled as shadow episodes,
and a candidate is promoted whose own mean lies above the reference and whose difference from the incumbent,
traded on paper on the same bars, is proven. A banned cell that gains since the ban is `proven`: a report may
recommend to lift the ban, which ends with its life at the latest. So is a risk cut, by the trades that its
playbook has entered since. Nothing that suggested a change is counted for it. What its own trades refute is
told as `refuted` while rules and bans stay, so that none asks for it again. However many candidates, bans
and cuts come, all of them share one level: each begins with what `online_levels` leaves it. Experiments have
levels of their own: what one proves may be recommended as a candidate, which has to be proven again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.slow_reflection import OpenEntry
from schemas.state import PART, Pairs, Stateful, demand_fields, read_as, write_as
from schemas.trials import NO_TRIALS, TrialLedger
from schemas.vocabulary import VersionState
from services.context import RunContext
from services.playbooks.lifecycle import DISCOVERIES, PlaybookLifecycle, ShadowTrial
from services.playbooks.measures import Measure, outcome_rules
from services.slow_loop.promotion_levels import KINDS, Key, PromotionLevels, TrialKey
from services.slow_loop.shadow_ledger import ShadowLedger, ShadowLedgers
from services.slow_loop.trial_evidence import (
    Evidence,
    beside,
    gains,
    paired_evidence,
    round_figure,
    trial_evidence,
)
from services.statistics.calendar_units import unit_numbers, unit_of_timeframe

Promoter = Callable[[str, Evidence, int], tuple[PlaybookVersion, ...]]
EvidenceOfMeasures = Mapping[Key, Evidence]


class ShadowTrials(Stateful):
    """The open trials of one run, each with its ledger, and what speaks for or against its measures.

    `measure` is called with the row and its close, ns, before trials are advanced to it.

    Attributes:
        shown: what open trials have shown, by version hash.
        measured: what the trades since each measure have shown, by its ledger.
        proven: those of them that contradict their measure.
        promote: takes a candidate that its trades prove, and returns what moved.
    """

    STATE: ClassVar = {
        "_shown": Pairs(TrialKey, dict[str, Any]),
        "_spent": set[TrialKey],
        "_refuted": Pairs(TrialKey, tuple[ShadowTrial, dict[str, Any]]),
        "_cuts": list[dict[str, Any]],
        "_levels": PART,
        "_experiments": PART,
        "shown": dict[str, dict[str, Any]],
        "measured": Pairs(Key, dict[str, Any]),
        "proven": Pairs(Key, dict[str, Any]),
    }
    REBUILT = frozenset(
        {"_ledgers", "_lifecycle", "_measure", "_gate", "_judge", "_journal", "_rules", "promote"}
    )
    LEDGERS: ClassVar = {"_open": Pairs(TrialKey, dict[str, Any]), "_beside": Pairs(TrialKey, dict[str, Any])}

    def __init__(
        self,
        context: RunContext,
        ledgers: ShadowLedgers,
        lifecycle: PlaybookLifecycle,
        measure: Callable[[int, int], None],
        before: TrialLedger = NO_TRIALS,
    ) -> None:
        self._ledgers, self._lifecycle, self._measure = ledgers, lifecycle, measure
        self._gate, self._judge = context.settings.gate, context.settings.judge
        self._journal = context.events
        self._open: dict[TrialKey, ShadowLedger] = {}
        self._beside: dict[TrialKey, ShadowLedger] = {}  # what candidates are compared with
        self._shown: dict[TrialKey, Evidence] = {}
        self._spent: set[TrialKey] = set()
        self._refuted: dict[TrialKey, tuple[ShadowTrial, Evidence]] = {}
        self._cuts: list[Evidence] = []
        self._rules: dict[str, str] = {}  # by version hash
        self.promote: Promoter = lifecycle.promote
        self._levels = PromotionLevels(self._judge, before)
        self._experiments = PromotionLevels(self._judge)
        self.shown: dict[str, Evidence] = {}
        self.measured: dict[Key, Evidence] = {}
        self.proven: dict[Key, Evidence] = {}

    def state(self) -> dict[str, Any]:
        """Every field of the state, and each ledger under the key of its trial."""
        ledgers = {}
        for name, kind in self.LEDGERS.items():
            ledgers[name] = write_as(
                kind, {key: ledger.state() for key, ledger in getattr(self, name).items()}
            )
        return super().state() | ledgers

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the trials stood that wrote this.

        Raises:
            ValueError: it has other fields, or a value is not of its type.
        """
        demand_fields("ShadowTrials", state, {**self.STATE, **self.LEDGERS})
        super().restore({name: state[name] for name in self.STATE})
        for name, kind in self.LEDGERS.items():
            reopened = {
                key: self._ledgers.reopen(written) for key, written in read_as(kind, state[name]).items()
            }
            getattr(self, name).update(reopened)

    @property
    def counts(self) -> tuple[int, int]:
        """Candidates and measures that have begun, and those that were promoted or ended on proof."""
        return self._levels.counts

    def step(
        self,
        row: int,
        now: int,
        traded: Sequence[Episode] = (),
        open_entries: Sequence[OpenEntry] = (),
    ) -> tuple[PlaybookVersion, ...]:
        """Advance every trial through row `row`; versions whose state changed on their own evidence.

        What trades of a playbook look like by its rules is measured before.

        Args:
            row: of the bars.
            now: its close, ns.
            traded: the trades of the account that are known.
            open_entries: its positions.
        """
        self._measure(row, now)
        self._follow(row)
        changed: list[PlaybookVersion] = []
        self.shown, self.measured, self.proven = {}, {}, {}
        self._shown, self._cuts = {}, []
        for trial, key in [(opened, self._key(opened)) for opened in self._lifecycle.shadows()]:
            if trial not in self._lifecycle.shadows():
                continue  # a promotion before it in this step has ended it
            ledger = self._open[key]
            for episode in ledger.advance(row + 1):
                self._record(trial, episode, now)
            evidence = self._evidence(trial, key, row, now)
            level = self._levels_of(trial.kind).of(_place(key))
            if level is not None:
                evidence["e_needed"] = round_figure(1.0 / level)
            self._shown[key] = evidence
            if trial.kind != "banned_cell":
                self.shown[trial.version_hash] = evidence
            if trial.kind == "candidate" and level is not None:
                changed += self._weigh(trial, key, evidence, now)
            if trial.kind == "banned_cell":
                self._note_measure(_place(key), evidence)
        self._weigh_cuts(now, traded, open_entries)
        return tuple(changed)

    def _weigh_cuts(self, now: int, traded: Sequence[Episode], open_entries: Sequence[OpenEntry]) -> None:
        for cut in self._lifecycle.risk_cuts():
            held = [
                entry.entry_label
                for entry in open_entries
                if entry.playbook_id == cut.before.id and entry.entry_label >= cut.since
            ]
            shown = trial_evidence(
                since_cut(cut, traded), self._gate, now, cut.before, min(held, default=None)
            )
            self._note_measure(cut.ledger, shown)
            payload = _describe(cut.before, "risk_cut", None) | {"value": cut.risk_fraction}
            self._cuts.append(payload | self.measured.get(cut.ledger, shown))

    def _evidence(self, trial: ShadowTrial, key: TrialKey, row: int, now: int) -> Evidence:
        """What a trial has shown; a candidate's e-value is that of its difference from the incumbent."""
        ledger, other = self._open[key], self._beside.get(key)
        own = trial_evidence(ledger.episodes, self._gate, now, trial.definition, ledger.open_since)
        unit = unit_of_timeframe(self._gate.block, self._ledgers.market.bars.timeframe)
        reached, end = unit_numbers([now, trial.expires_at], unit).tolist()
        own["blocks_left"] = max(0, end - reached)
        if other is None:
            return own
        other.advance(row + 1)
        own |= beside(other)
        is_weighed = trial.kind == "candidate"  # an experiment is shown beside it, and proven by its own
        return own | paired_evidence(ledger, other, self._gate, now) if is_weighed else own

    def _note_measure(self, ledger: Key, evidence: Evidence) -> None:
        """Note what the trades since a measure have shown, and whether that contradicts it."""
        level = self._levels.of(ledger)
        if level is None:
            return
        self.measured[ledger] = evidence | {"e_needed": round_figure(1.0 / level)}
        if gains(evidence) and self._reaches(evidence, "e_value", level):
            self.proven[ledger] = self.measured[ledger]

    def note_lift(self, changed: tuple[PlaybookVersion, ...], at: int) -> None:
        """Note measures that ended on their own evidence: that is a promotion to the levels after it."""
        for version in changed:
            if version.state is VersionState.ACTIVE and version.reason in DISCOVERIES:
                self._levels.note_promotion(at)

    def key_of(self, version_hash: str) -> TrialKey | None:
        """Key of the ledger of a candidate in shadow; None when it is not there any more."""
        found = (trial for trial in self._lifecycle.shadows() if trial.version_hash == version_hash)
        return next((self._key(trial) for trial in found if trial.kind == "candidate"), None)

    def note_promotion(self, key: TrialKey, at: int) -> None:
        """Note that a candidate came into force: its evidence is spent, and those after it need more."""
        self._levels.note_promotion(at)
        self._levels.spend(_place(key))
        self._spent.add(key)

    def proves(self) -> dict[str, Evidence]:
        """What is proven as of the last step: candidates by version hash, measures as `HASH|CELL`."""
        found = {f"{version_hash}|{cell or ''}": shown for (version_hash, cell), shown in self.proven.items()}
        for trial in self._lifecycle.shadows():
            shown = self.shown.get(trial.version_hash)
            if trial.kind == "candidate" and shown is not None and self._proven(trial, shown):
                found[trial.version_hash] = shown
        return found

    def _proven(self, trial: ShadowTrial, shown: Evidence) -> bool:
        level = self._levels.of(_place(self._key(trial)))
        return level is not None and gains(shown) and self._reaches(shown, "e_value", level)

    def _weigh(
        self, trial: ShadowTrial, key: TrialKey, evidence: Evidence, now: int
    ) -> tuple[PlaybookVersion, ...]:
        """Promote a candidate that its own trades prove, retire one that they speak against."""
        if self._proven(trial, evidence):
            promoted = self.promote(trial.version_hash, evidence, now)
            if promoted:
                self.note_promotion(key, now)
            return promoted
        if self._reaches(evidence, "e_value_below", self._judge.promotion_alpha):
            self._refuted[key] = trial, evidence
            return self._lifecycle.retire(trial.version_hash, evidence, now)
        return ()

    def summaries(self) -> tuple[Evidence, ...]:
        """What open trials, risk cuts and refuted candidates have shown so far, for the next request."""
        shown: list[tuple[ShadowTrial, str, Evidence | None]] = [
            (opened, opened.kind, self._shown.get(self._key(opened))) for opened in self._lifecycle.shadows()
        ]
        for key, (trial, evidence) in self._refuted.items():
            in_force = self._lifecycle.active(trial.definition.id)
            if self._key(trial) == key and _bans(trial.definition) == _bans(in_force):
                shown.append((trial, "refuted", evidence))
        trials = (
            _describe(trial.definition, kind, trial.regime_key) | self._change_of(trial) | evidence
            for trial, kind, evidence in shown
            if evidence is not None
        )
        return (*trials, *self._cuts)

    def _follow(self, row: int) -> None:
        """Open ledgers for new trials from the next bar on.

        The ledger of a trial that has ended is kept, so that an identical candidate goes on with what it had;
        not after its evidence was spent on a promotion, and not that of a ban.
        """
        trials = {self._key(trial): trial for trial in self._lifecycle.shadows()}
        for key in self._spent | {key for key in self._open if key[1] == "banned_cell" and key not in trials}:
            self._open.pop(key, None)
            self._beside.pop(key, None)
        self._spent.clear()
        for key, trial in trials.items():
            if key not in self._open:
                start = int(np.searchsorted(self._ledgers.market.bars.close_times, trial.since, side="right"))
                first = min(start, row + 1)
                self._open[key] = self._ledgers.open(
                    trial.definition, trial.directions, first, trial.regime_key
                )
                incumbent = self._lifecycle.active(trial.definition.id)
                if _differs(trial, incumbent):
                    self._beside[key] = self._ledgers.open(incumbent, trial.directions, first)
        begun = [(trial.since, KINDS.index(trial.kind), _place(key)) for key, trial in trials.items()]
        begun += [(cut.since, KINDS.index("risk_cut"), cut.ledger) for cut in self._lifecycle.risk_cuts()]
        for since, kind, place in sorted(begun, key=lambda begin: begin[:2]):
            self._levels_of(KINDS[kind]).begin(place, since)

    def _levels_of(self, kind: str) -> PromotionLevels:
        return self._experiments if kind == "experiment" else self._levels

    def _change_of(self, trial: ShadowTrial) -> Evidence:
        """The parameter and value that a trial has against what is in force, where it is one."""
        if trial.kind == "banned_cell":
            return {}
        in_force = self._lifecycle.active(trial.definition.id).parameters
        tried = [
            (name, parameter.value)
            for name, parameter in sorted(trial.definition.parameters.items())
            if name not in in_force or parameter.value != in_force[name].value
        ]
        return {"parameter": tried[0][0], "value": tried[0][1]} if len(tried) == 1 else {}

    def _key(self, trial: ShadowTrial) -> TrialKey:
        """What a trial trades: a ban by its version, all else by its rules and the cells that are open.

        A candidate is another one where it is compared with another incumbent.
        """
        if trial.kind == "banned_cell":
            return trial.version_hash, trial.kind, trial.regime_key, trial.directions
        definition, against = trial.definition, ""
        if trial.kind == "candidate":
            against = self._rules_of(self._lifecycle.active(definition.id))
        traded = "+".join((self._rules_of(definition), against, *_bans(definition)))
        return traded, trial.kind, trial.regime_key, trial.directions

    def _rules_of(self, definition: PlaybookDefinition) -> str:
        if definition.content_hash not in self._rules:
            self._rules[definition.content_hash] = outcome_rules(definition)
        return self._rules[definition.content_hash]

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
                "episode": episode,
            },
        )


def _bans(definition: PlaybookDefinition) -> list[str]:
    return [
        f"{side}:{cell}" for side, rules in sorted(definition.eligibility.items()) for cell in rules.banned
    ]


def _describe(definition: PlaybookDefinition, kind: str, regime: str | None) -> Evidence:
    return {"playbook_id": definition.id, "version": definition.version, "kind": kind, "regime": regime}


def since_cut(cut: Measure, traded: Sequence[Episode]) -> list[Episode]:
    """The trades that the playbook of a risk cut has entered since."""
    return [
        episode
        for episode in traded
        if episode.playbook_id == cut.before.id and episode.entry_label >= cut.since
    ]


def _differs(trial: ShadowTrial, incumbent: PlaybookDefinition) -> bool:
    """Whether trades of a candidate may end differently from the incumbent's.

    A cell in which the incumbent does not trade has no incumbent, and more risk ends no trade otherwise.
    """
    return trial.regime_key is None and outcome_rules(trial.definition) != outcome_rules(incumbent)


def _place(key: TrialKey) -> Key:
    """By what a level is kept: a ban by its version and cell, a candidate by what it trades against what."""
    if key[1] == "banned_cell":
        return key[0], key[2]
    return "|".join(str(part) for part in key), None
