"""Lifecycle of playbook versions: candidate, shadow, active, expired or retired, each with its evidence (D6).

An action that only lowers exposure (a banned cell, a lower risk fraction) is active at once. At the end of
its life it is weighed again: it is renewed unless its own trades contradict it, and no count of time ends it.
Everything else is a candidate that trades in shadow until its own evidence promotes it, or its life is over.
Every transition is returned as a `PlaybookVersion` for the journal.
"""

from collections.abc import Mapping, Sequence

from schemas.canonical import content_id
from schemas.errors import ConfigError, InvariantViolation
from schemas.judge import JudgeAction, RefusedAction
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.vocabulary import EXPERIMENT_ENDED, VersionState
from services.playbooks.action_effects import (
    PROVEN,
    Effect,
    Lift,
    Limit,
    Refusal,
    Trial,
    approved_composition,
    demand_bounds,
    effect_of,
)
from services.playbooks.measures import RISK, Composition, Ledger, Measure, alter, outcome_rules, same_rules
from services.playbooks.renewals import NOTHING, Due, Renewal, Shown, due_measures, next_end, renewals
from services.playbooks.transitions import Origin, Transitions, VersionTransitions
from services.playbooks.trials import Evidence, OpenTrial, ShadowTrial, banned_cells
from services.statistics.calendar_units import unit_of_timeframe

__all__ = ["DISCOVERIES", "PROVEN", "PlaybookLifecycle", "ShadowTrial"]

APPROVED = "approved by a person"  # the reason of a version that a plan brought into force
GAINED = "its own trades since the risk cut prove a gain"  # the reason of the end of a cut
DISCOVERIES = frozenset({PROVEN, GAINED})  # what came into force on evidence of its own


class PlaybookLifecycle(VersionTransitions):
    """Moves versions through their states over one registry; the only writer after the start."""

    def apply(
        self,
        actions: Sequence[JudgeAction],
        *,
        report_id: str | None,
        verdict_id: str | None,
        at: int,
        timeframe: str,
        proven: Shown = NOTHING,
    ) -> Transitions:
        """Carry out a verdict's actions, in order; each action of a report once, however often it comes.

        Actions that the present state does not allow (floor, no change, already in shadow) join `refused`.
        `proven` names the bans that their own paper trades allow to lift, see `Situation`.

        Raises:
            InvariantViolation: inside the tick path, or an action lies outside the bounds of its playbook
                file; then nothing has changed.
        """
        self._guard.forbid("policy_writes")
        for action in actions:
            demand_bounds(action, self.definitions())
        done: list[PlaybookVersion] = []
        for action in actions:
            action_id = content_id({"action": action.payload(), "report_id": report_id})
            if action_id not in self._applied:
                self._applied.add(action_id)
                origin = {"report_id": report_id, "verdict_id": verdict_id, "action_id": action_id}
                done += self._carry_out(action, origin, at, timeframe, proven)
        return tuple(done)

    def promote(
        self, version_hash: str, evidence: Evidence, at: int, known_at: int | None = None
    ) -> Transitions:
        """Make a candidate active on the evidence of its shadow trades.

        The version that was active retires, and so do other candidates for its place if the baseline changes:
        they were compared with what is gone, and a risk cut ends: it was taken for what is gone. Bans stay in
        force; if they change the candidate's content, it enters as a new version, known at `known_at` (ns;
        None for now). () for a version that has left the shadow in the meantime.

        Raises:
            InvariantViolation: inside the tick path, an unknown hash, or an experiment, which is never
            promoted.
        """
        self._guard.forbid("policy_writes")
        candidate = self._reader.by_hash(version_hash)
        if version_hash not in self._trials:
            return ()
        if self._trials[version_hash].trial.kind == "experiment":
            raise InvariantViolation(
                f"version {version_hash!r} is an experiment: it never becomes active by itself"
            )
        composition, wanted = self._promote_into(version_hash, at)
        proven = self._trials.pop(version_hash)
        active = self._reader.get(candidate.definition.id)
        done: list[PlaybookVersion] = []
        if not same_rules(proven.baseline, self._composition(active).baseline):
            done += self._retire_rivals(active.definition.id, at, f"version {wanted.version} was promoted")
        if wanted.content_hash != version_hash:
            done.append(
                self._move(candidate, VersionState.RETIRED, at, "promoted under the measures in force")
            )
            wanted = self._next(composition, at if known_at is None else known_at)
        reason = f"replaced by version {wanted.version}, proven in shadow"
        done.append(self._move(active, VersionState.RETIRED, at, reason))
        done.append(self._enter(wanted, composition, at, PROVEN, candidate, active, evidence))
        return tuple(done)

    def promotion(self, version_hash: str, at: int) -> PlaybookDefinition:
        """The definition that the promotion of a candidate in shadow would bring into force at a time, ns."""
        composition, wanted = self._promote_into(version_hash, at)
        return wanted if wanted.content_hash == version_hash else self._next(composition, at)

    def trial(self, version_hash: str) -> OpenTrial:
        """The open trial of a version in shadow."""
        return self._trials[version_hash]

    def effect(self, action: JudgeAction, at: int, timeframe: str, proven: Shown = NOTHING) -> Effect:
        """What `apply` would do with an action now; nothing changes."""
        return effect_of(action, self._situation(at, timeframe, proven))

    def find_refuted(self, at: int, proven: Shown) -> tuple[tuple[PlaybookVersion, tuple[Measure, ...]], ...]:
        """Measures whose life is over and that their own trades contradict, each with its version."""
        return tuple(
            (active, due)
            for active in self._reader.active()
            for ledger, due in due_measures(self._composition(active), at).items()
            if ledger in proven
        )

    def without(self, playbook_id: str, ledger: Ledger, at: int) -> PlaybookDefinition:
        """The definition in force of a playbook without the measures of a ledger, as a new version, ns."""
        composition = self._composition(self._reader.get(playbook_id))
        return self._next(composition.without(composition.of_ledger(ledger)), at)

    def end_measures(
        self, playbook_id: str, ledger: Ledger, evidence: Evidence, origin: Origin, at: int, known_at: int
    ) -> Transitions:
        """End the measures of a ledger on what their trades prove; the new version is known at `known_at`.

        () when none of them is in force any more.

        Raises:
            InvariantViolation: inside the tick path.
        """
        self._guard.forbid("policy_writes")
        active = self._reader.get(playbook_id)
        ended = self._composition(active).of_ledger(ledger)
        if not ended:
            return ()
        return tuple(self._lift(_proven_end(ended, evidence), active, origin, at, known_at))

    def enact(
        self, action: JudgeAction, approved: PlaybookDefinition, origin: Origin, evidence: Evidence,
        at: int, timeframe: str,
    ) -> Transitions:  # fmt: skip
        """Bring the very version into force that a person has approved for an action.

        Candidates for its place retire if the baseline changes: they were compared with what is gone.

        Raises:
            ConfigError: the present state does not allow it, or would make another version; then nothing has
                changed.
            InvariantViolation: inside the tick path.
        """
        self._guard.forbid("policy_writes")
        active = self._reader.get(str(action.playbook_id))
        made = approved_composition(action, self._situation(at, timeframe, NOTHING))
        if isinstance(made, Refusal):
            raise ConfigError(f"{action.kind} of {action.playbook_id}: {made.code}, {made.reason}")
        definition = made.definition(approved.version, approved.known_at)
        if definition.content_hash != approved.content_hash:
            raise ConfigError(
                f"{action.kind} of {action.playbook_id} would make {definition.content_hash[:12]}, approved "
                f"was {approved.content_hash[:12]}"
            )
        done: list[PlaybookVersion] = []
        if not same_rules(made.baseline, self._composition(active).baseline):
            done += self._retire_rivals(active.definition.id, at, f"version {approved.version} was approved")
        left = f"replaced by version {approved.version}: {APPROVED}"
        done += self._replace_active(active, definition, made, at, left, APPROVED, origin, evidence)
        return tuple(done)

    def retire(
        self, version_hash: str, evidence: Evidence, at: int, reason: str = "its own trades speak against it"
    ) -> Transitions:
        """End a candidate or experiment early, with the counter-evidence.

        Raises:
            InvariantViolation: inside the tick path, or the version is not in shadow (an active one is rolled
                back).
        """
        self._guard.forbid("policy_writes")
        if version_hash not in self._trials:
            raise InvariantViolation(
                f"version {version_hash!r} is not in shadow: only a trial can be retired"
            )
        del self._trials[version_hash]
        return (
            self._move(
                self._reader.by_hash(version_hash), VersionState.RETIRED, at, reason, _counter(evidence)
            ),
        )

    def renew_due(
        self, at: int, timeframe: str, shown: Shown = NOTHING, proven: Shown = NOTHING
    ) -> tuple[Renewal, ...]:
        """Give another life to the measures whose life is over and whose own trades do not contradict them.

        No version changes by it.

        Args:
            at: the time, ns.
            timeframe: of the bars.
            shown: what the trades of each measure have shown, by its ledger.
            proven: those of them that contradict their measure.
        """
        self._guard.forbid("policy_writes")
        done: list[Renewal] = []
        for active in self._reader.active():
            found = due_measures(self._composition(active), at)
            due = {ledger: measures for ledger, measures in found.items() if ledger not in proven}
            if due:
                version = self._renew(active, due, at, timeframe)
                done += renewals(version, self._composition(active), due, shown)
        return tuple(done)

    def end_contradicted(self, at: int, proven: Shown) -> Transitions:
        """End measures whose life is over and that their own trades contradict, each with its evidence."""
        self._guard.forbid("policy_writes")
        done: list[PlaybookVersion] = []
        for active, due in self.find_refuted(at, proven):
            lift = _proven_end(due, proven[due[0].ledger])
            done += self._lift(lift, self._reader.get(active.definition.id), {}, at)
        return tuple(done)

    def expire_due(self, at: int, evidence: Mapping[str, Evidence] | None = None) -> Transitions:
        """End the open trials whose life is over, or whose measure is no longer in force.

        Args:
            at: the time, ns.
            evidence: what the trades of open trials have shown, by version hash; recorded with their end.
        """
        self._guard.forbid("policy_writes")
        done: list[PlaybookVersion] = []
        for version_hash, opened in list(self._trials.items()):
            reason = self._over(opened, at)
            if reason is not None:
                del self._trials[version_hash]
                shown = (evidence or {}).get(version_hash)
                ended = self._reader.by_hash(version_hash)
                done.append(self._move(ended, VersionState.EXPIRED, at, reason, shown))
        return tuple(done)

    def earlier(self, playbook_id: str, at: int) -> PlaybookDefinition:
        """The definition that a rollback would bring into force at a time, ns.

        Raises:
            ConfigError: the playbook is unknown, or no ancestor traded differently.
        """
        target, composition = self._different_ancestor(self._reader.get(playbook_id), at)
        definition = composition.definition(target.definition.version, target.definition.known_at)
        known = definition.content_hash == target.definition.content_hash
        return definition if known else self._next(composition, at)

    def rollback(
        self,
        playbook_id: str,
        at: int,
        reason: str = "rolled back",
        evidence: Evidence | None = None,
        *,
        to: str | None = None,
        known_at: int | None = None,
    ) -> Transitions:
        """Return to the last ancestor that traded differently, or to the ancestor with the hash `to`.

        Of the measures that it held, those come back that are still in force, or whose life is not over. A
        version that this makes is known at `known_at`, ns; None for now.

        Raises:
            ConfigError: the playbook is unknown, or there is no such ancestor.
            InvariantViolation: inside the tick path.
        """
        self._guard.forbid("policy_writes")
        active = self._reader.get(playbook_id)
        target, composition = self._different_ancestor(active, at, to)
        definition = composition.definition(target.definition.version, target.definition.known_at)
        done: list[PlaybookVersion] = []
        if not same_rules(composition.baseline, self._composition(active).baseline):
            done += self._retire_rivals(
                playbook_id, at, f"version {active.definition.version} was rolled back"
            )
        done.append(self._move(active, VersionState.RETIRED, at, reason, _counter(evidence)))
        if definition.content_hash == target.definition.content_hash:
            done.append(self._move(target, VersionState.ACTIVE, at, reason))
        else:
            made = self._next(composition, at if known_at is None else known_at)
            done.append(self._enter(made, composition, at, reason, target, target))
        return tuple(done)

    def shadows(self) -> tuple[ShadowTrial, ...]:
        """Open trials in the order in which they began, then the banned cells by playbook."""
        compositions = [
            self._compositions[version.definition.content_hash] for version in self._reader.active()
        ]
        return (*(trial.trial for trial in self._trials.values()), *banned_cells(compositions))

    def risk_cuts(self) -> tuple[Measure, ...]:
        """Risk cuts in force, by playbook."""
        compositions = (self._composition(version) for version in self._reader.active())
        return tuple(
            measure for composition in compositions for measure in composition.measures if measure.key == RISK
        )

    def active(self, playbook_id: str) -> PlaybookDefinition:
        """The version of a playbook that is in force."""
        return self._reader.get(playbook_id).definition

    def counts(self) -> dict[str, int]:
        """Number of versions in each state."""
        states = [version.state for version in self._registry.latest()]
        return {str(state): states.count(state) for state in VersionState}

    @property
    def refused(self) -> tuple[RefusedAction, ...]:
        """Every action that the present state did not allow, in order."""
        return tuple(self._refused)

    def _promote_into(self, version_hash: str, at: int) -> tuple[Composition, PlaybookDefinition]:
        """What a promotion brings into force, under the number of the candidate."""
        candidate, proven = self._reader.by_hash(version_hash).definition, self._trials[version_hash]
        held = self._composition(self._reader.get(candidate.id)).lift(proven.lifts, proven.trial.since)
        if outcome_rules(proven.baseline) != outcome_rules(held.baseline):
            held = held.lift((RISK,), at)
        composition = Composition(proven.baseline, held.measures)
        return composition, composition.definition(candidate.version, candidate.known_at)

    def _carry_out(
        self, action: JudgeAction, origin: Origin, at: int, timeframe: str, proven: Shown
    ) -> list[PlaybookVersion]:
        effect = effect_of(action, self._situation(at, timeframe, proven))
        if isinstance(effect, Refusal):
            self._refused.append(RefusedAction(action=action, code=effect.code, reason=effect.reason))
        if effect is None or isinstance(effect, Refusal):
            return []
        active = self._reader.get(str(action.playbook_id))
        if isinstance(effect, Limit):
            return self._limit(effect, active, action.reason, origin, at)
        if isinstance(effect, Lift):
            return self._lift(effect, active, origin, at)
        return self._open(effect, active, action.reason, origin, at)

    def _renew(self, active: PlaybookVersion, due: Due, at: int, timeframe: str) -> PlaybookVersion:
        """The active version with another life for some of its measures.

        Versions from before it that hold the same measures follow, so that a rollback finds them as they are.
        """
        unit, blocks = unit_of_timeframe(self._block, timeframe), self._settings.action_life_blocks
        for measures in due.values():
            until = next_end(measures[0].expires_at, at, blocks, unit)
            for version_hash, composition in self._compositions.items():
                self._compositions[version_hash] = composition.renew(measures, until)
        return self._registry.extend(active.definition.id, self._composition(active).ends)

    def _lift(
        self, lift: Lift, active: PlaybookVersion, origin: Origin, at: int, known_at: int | None = None
    ) -> list[PlaybookVersion]:
        composition = self._composition(active).without(lift.measures)
        definition = self._next(composition, at if known_at is None else known_at)
        left = f"replaced by version {definition.version}, {lift.reason}"
        return self._replace_active(
            active, definition, composition, at, left, lift.reason, origin, lift.evidence
        )

    def _limit(
        self, limit: Limit, active: PlaybookVersion, reason: str, origin: Origin, at: int
    ) -> list[PlaybookVersion]:
        composition = self._composition(active)
        composition = Composition(composition.baseline, (*composition.measures, *limit.measures))
        definition = self._next(composition, at)
        left = f"replaced by version {definition.version}: {reason}"
        return self._replace_active(active, definition, composition, at, left, reason, origin)

    def _open(
        self, trial: Trial, active: PlaybookVersion, reason: str, origin: Origin, at: int
    ) -> list[PlaybookVersion]:
        measures = self._composition(active).lift(trial.lifts, at).measures
        definition = self._next(Composition(trial.baseline, measures), at)
        new = PlaybookVersion(
            definition=definition,
            state=VersionState.CANDIDATE,
            parent_hash=active.definition.content_hash,
            since=at,
            expires_at=trial.expires_at,
            reason=reason,
        )
        candidate = self._registry.record(alter(new, **origin))
        version_hash = definition.content_hash
        shadow = ShadowTrial(
            version_hash, definition, trial.directions, trial.regime_key, trial.kind, at, trial.expires_at
        )
        self._trials[version_hash] = OpenTrial(shadow, trial.baseline, trial.lifts)
        return [
            candidate,
            self._move(candidate, VersionState.SHADOW, at, f"on trial as {trial.kind}: {reason}"),
        ]

    def _over(self, opened: OpenTrial, at: int) -> str | None:
        if opened.trial.expires_at <= at:
            return EXPERIMENT_ENDED if opened.trial.kind == "experiment" else "not promoted in time"
        measures = self._composition(self._reader.get(opened.baseline.id)).measures
        if opened.lifts and not {measure.key for measure in measures} & set(opened.lifts):
            return "the measure it was to lift is no longer in force"
        return None

    def _different_ancestor(
        self, active: PlaybookVersion, at: int, to: str | None = None
    ) -> tuple[PlaybookVersion, Composition]:
        """The nearest ancestor whose rules, less what has ended for good, differ, or the one named."""
        target, in_force = active, self._composition(active).measures
        while target.parent_hash is not None:
            target = self._reader.by_hash(target.parent_hash)
            before = self._composition(target)
            left = tuple(
                measure for measure in before.measures if measure in in_force or measure.expires_at > at
            )
            composition = Composition(before.baseline, left)
            definition = composition.definition(target.definition.version, target.definition.known_at)
            named = target.definition.content_hash == to
            if named or (to is None and not same_rules(definition, active.definition)):
                return target, composition
        name, number = active.definition.id, active.definition.version
        raise ConfigError(f"playbook {name!r}: version {number} has nothing different to roll back to")


def _counter(evidence: Evidence | None) -> Evidence:
    """Evidence against a version, under names that leave the evidence for it in place."""
    return {f"counter_{name}": value for name, value in (evidence or {}).items()}


def _proven_end(measures: tuple[Measure, ...], evidence: Evidence) -> Lift:
    return Lift(measures, evidence, GAINED if measures[0].key == RISK else PROVEN)
