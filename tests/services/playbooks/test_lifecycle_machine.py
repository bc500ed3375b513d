"""The lifecycle against a small model, over any sequence of actions, promotions, rollbacks and time."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from schemas.errors import ConfigError
from schemas.judge import JudgeAction
from schemas.playbook import PlaybookVersion
from schemas.settings import JudgeSettings
from schemas.vocabulary import VersionState
from services.playbooks.lifecycle import PlaybookLifecycle
from services.playbooks.measures import is_open
from services.playbooks.registry import PlaybookRegistry
from tests.services.playbooks.samples import DAY, NOON, definitions
from trading_core.tick_guard import TickGuard

FLOOR = 2
NAMES = ("alpha", "beta", "gamma")
CELLS = tuple(f"{trend}/{band}" for trend in ("up", "sideways") for band in ("low", "mid", "high"))
names = st.sampled_from(NAMES)


class LifecycleMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        guard = TickGuard()
        self.registry = PlaybookRegistry(definitions(3), guard, NOON)
        choices = JudgeSettings(
            minimum_eligible_playbooks=FLOOR, shadow_life_blocks=30, action_life_blocks=10
        )
        self.lifecycle = PlaybookLifecycle(self.registry, choices, guard, "day")
        self.reader = self.registry.reader()
        self.now = NOON
        self.reports = 0
        self.promoted = {name: {0.5} for name in NAMES}

    def act(self, kind: Any, **fields: Any) -> tuple[PlaybookVersion, ...]:
        self.reports += 1
        action = JudgeAction(kind=kind, reason="test", **fields)
        known: dict[str, Any] = {
            "report_id": f"r{self.reports}",
            "verdict_id": "v",
            "at": self.now,
            "timeframe": "1d",
        }
        found = self.lifecycle.apply([action], **known)
        assert self.lifecycle.apply([action], **known) == (), "an action is applied once"
        return found

    @rule(
        name=names,
        cell=st.sampled_from(CELLS),
        side=st.sampled_from(["long", "short", None]),
        life=st.integers(1, 40),
    )
    def ban(self, name, cell, side, life):
        before = self.reader.get(name).definition
        found = self.act(
            "set_eligibility", playbook_id=name, regime=cell, direction=side, eligible=False, life_blocks=life
        )
        if found:
            after = self.reader.get(name).definition
            banned = {key: set(cells.banned) for key, cells in after.eligibility.items()}
            assert all(set(cells.banned) <= banned[key] for key, cells in before.eligibility.items())

    @rule(name=names, value=st.sampled_from([0.25, 0.5, 1.0]))
    def tune(self, name, value):
        active = self.reader.get(name)
        found = self.act("set_threshold", playbook_id=name, parameter="edge", value=value)
        assert self.reader.get(name) is active
        assert [item.state for item in found] in ([], [VersionState.CANDIDATE, VersionState.SHADOW])

    @rule(name=names, value=st.sampled_from([0.001, 0.0025, 0.005, 0.01]))
    def risk(self, name, value):
        before = self.reader.get(name).definition.risk_fraction
        self.act("set_risk_fraction", playbook_id=name, value=value, life_blocks=20)
        assert self.reader.get(name).definition.risk_fraction == min(before, value), (
            "risk is only ever lowered at once"
        )

    @rule(name=names, cell=st.sampled_from(CELLS))
    def unban(self, name, cell):
        active = self.reader.get(name)
        self.act("set_eligibility", playbook_id=name, regime=cell, eligible=True, life_blocks=20)
        assert self.reader.get(name) is active

    @rule(name=names, life=st.integers(1, 20))
    def experiment(self, name, life):
        self.act("open_experiment", playbook_id=name, parameter="stop_atr", value=2.5, life_blocks=life)

    @precondition(lambda self: any(trial.kind == "candidate" for trial in self.lifecycle.shadows()))
    @rule(data=st.data())
    def promote(self, data):
        trials = [trial for trial in self.lifecycle.shadows() if trial.kind == "candidate"]
        trial = data.draw(st.sampled_from(trials))
        name, edge = trial.definition.id, trial.definition.parameters["edge"].value
        self.promoted[name].add(edge)
        found = self.lifecycle.promote(trial.version_hash, {"n": 20}, self.now)
        assert found[-1].state is VersionState.ACTIVE
        assert found[-1].evidence == {"n": 20}
        assert self.reader.get(name).definition.parameters["edge"].value == edge

    @precondition(lambda self: any(trial.kind != "banned_cell" for trial in self.lifecycle.shadows()))
    @rule(data=st.data())
    def retire(self, data):
        trials = [trial for trial in self.lifecycle.shadows() if trial.kind != "banned_cell"]
        (found,) = self.lifecycle.retire(data.draw(st.sampled_from(trials)).version_hash, {"n": 9}, self.now)
        assert found.evidence["counter_n"] == 9

    @rule(name=names)
    def rollback(self, name):
        before = self.reader.get(name).definition
        try:
            found = self.lifecycle.rollback(name, self.now)
        except ConfigError:
            assert self.reader.get(name).definition is before
        else:
            assert found[-1].state is VersionState.ACTIVE
            assert self.reader.get(name).definition.content_hash != before.content_hash

    def measures(self):
        """(playbook, direction and cell, ledger) of every ban, and the fraction of every playbook."""
        compositions = (self.lifecycle._composition(version) for version in self.reader.active())
        return {
            (composition.baseline.id, held.key, held.ledger)
            for composition in compositions
            for held in composition.measures
        }

    @rule(days=st.integers(1, 40), data=st.data())
    def wait(self, days, data):
        """No measure ends without evidence: what ends was due and contradicted, the rest goes on."""
        self.now += days * DAY
        before, definitions_before = self.measures(), [entry.definition for entry in self.reader.active()]
        ledgers = sorted({ledger for _, _, ledger in before})
        proven = {item: {"n": 21} for item in ledgers if data.draw(st.booleans())}
        known = len(self.registry.history())
        renewed = self.lifecycle.renew_due(self.now, "1d", proven=proven)
        assert len(self.registry.history()) == known, "a renewal is no transition"
        assert [entry.definition for entry in self.reader.active()] == definitions_before
        assert all(renewal.until > self.now for renewal in renewed)
        ended = self.lifecycle.end_contradicted(self.now, proven)
        assert all(entry.evidence == {"n": 21} for entry in ended if entry.state is VersionState.ACTIVE)
        gone = before - self.measures()
        assert {ledger for _, _, ledger in gone} <= set(proven)
        assert len({(name, ledger) for name, _, ledger in gone}) == len(ended) / 2
        self.lifecycle.expire_due(self.now)
        assert self.measures() == before - gone
        assert self.lifecycle.expire_due(self.now) == self.lifecycle.end_contradicted(self.now, proven) == ()
        assert self.lifecycle.renew_due(self.now, "1d") == ()
        assert all(trial.expires_at > self.now for trial in self.lifecycle.shadows())
        for version in self.reader.active():
            assert version.expires_at is None or version.expires_at > self.now

    @invariant()
    def every_playbook_has_one_active_version(self):
        assert tuple(version.definition.id for version in self.reader.active()) == NAMES
        assert self.lifecycle.counts()["active"] == len(NAMES)

    @invariant()
    def the_floor_holds(self):
        assert sum(is_open(version.definition, "1d") for version in self.reader.active()) >= FLOOR

    @invariant()
    def versions_are_numbered_once_and_their_parents_exist(self):
        for name in NAMES:
            first = dict.fromkeys(item.definition.content_hash for item in self.registry.history(name))
            numbers = [self.reader.by_hash(entry).definition.version for entry in first]
            assert numbers == list(range(1, len(numbers) + 1))
        for version in self.registry.latest():
            if version.parent_hash is not None:
                assert self.reader.by_hash(version.parent_hash).definition.id == version.definition.id

    @invariant()
    def no_value_is_active_that_was_not_promoted(self):
        for version in self.reader.active():
            assert version.definition.parameters["edge"].value in self.promoted[version.definition.id]
            assert version.definition.parameters["stop_atr"].value == 2.0, "experiments never become active"

    @invariant()
    def every_banned_cell_has_its_trial_and_trials_are_told_apart(self):
        trials = self.lifecycle.shadows()
        keys = [(trial.version_hash, trial.kind, trial.regime_key) for trial in trials]
        assert len(keys) == len(set(keys))
        found = {
            (trial.definition.id, side, trial.regime_key)
            for trial in trials
            if trial.kind == "banned_cell"
            for side in trial.directions
        }
        expected = {
            (version.definition.id, side, cell)
            for version in self.reader.active()
            for side, cells in version.definition.eligibility.items()
            for cell in cells.banned
        }
        assert found == expected
        for trial in trials:
            assert trial.version_hash == trial.definition.content_hash
            assert self.reader.by_hash(trial.version_hash).definition == trial.definition


LifecycleMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestLifecycleMachine = LifecycleMachine.TestCase
