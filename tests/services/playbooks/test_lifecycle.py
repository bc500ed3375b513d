from datetime import datetime
from typing import Any

import pytest

from schemas.errors import ConfigError, InvariantViolation
from schemas.judge import JudgeAction
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.regime import RegimeLabels
from schemas.settings import GateSettings, JudgeSettings, Settings
from schemas.vocabulary import Structure, Trend, VersionState, VolatilityBand
from services.playbooks.assembly import assemble_playbooks
from services.playbooks.lifecycle import PlaybookLifecycle
from services.playbooks.measures import duration_ns
from services.playbooks.registry import PlaybookRegistry, RegistryReader
from services.playbooks.renewals import Renewal
from services.playbooks.trials import Evidence
from tests.services.playbooks.samples import DAY, NOON, definition, definitions
from trading_core.tick_guard import TickGuard

CELL = RegimeLabels(trend=Trend.UP, volatility=VolatilityBand.HIGH, structure=Structure.NEUTRAL)
ACTIVE, SHADOW, CANDIDATE, EXPIRED, RETIRED = (
    VersionState.ACTIVE,
    VersionState.SHADOW,
    VersionState.CANDIDATE,
    VersionState.EXPIRED,
    VersionState.RETIRED,
)
EVIDENCE = {"n": 30, "mean_r": 0.2, "e_value": 25.0}


class World:
    """A registry of small playbooks with its lifecycle; actions are applied under ever new reports."""

    def __init__(self, *books: PlaybookDefinition, **settings: Any) -> None:
        self.guard = TickGuard()
        self.registry = PlaybookRegistry(books or definitions(), self.guard, NOON)
        self.lifecycle = PlaybookLifecycle(self.registry, JudgeSettings(**settings), self.guard, "day")
        self.reader: RegistryReader = self.registry.reader()
        self.reports = 0
        self.renewed: tuple[Renewal, ...] = ()

    def act(
        self, kind: Any, at: int = NOON, report: str | None = None, **fields: Any
    ) -> tuple[PlaybookVersion, ...]:
        self.reports += 1
        action = JudgeAction(kind=kind, reason="test", **({"playbook_id": "alpha"} | fields))
        name = report or f"report{self.reports}"
        return self.lifecycle.apply([action], report_id=name, verdict_id="verdict", at=at, timeframe="1d")

    def ban(
        self, cell: str = "up/high", at: int = NOON, life: int = 10, **fields
    ) -> tuple[PlaybookVersion, ...]:
        return self.act("set_eligibility", at, regime=cell, eligible=False, life_blocks=life, **fields)

    def weigh(self, at: int, *proven: tuple[str, str]) -> tuple[PlaybookVersion, ...]:
        """What a slot does: measures whose life is over are renewed, or end when they are named as proven."""
        contradicted: dict[tuple[str, str | None], Evidence] = {pair: EVIDENCE for pair in proven}
        self.renewed = self.lifecycle.renew_due(at, "1d", proven=contradicted)
        return (*self.lifecycle.end_contradicted(at, contradicted), *self.lifecycle.expire_due(at))

    def tune(
        self, value: float, parameter: str = "edge", at: int = NOON, **fields
    ) -> tuple[PlaybookVersion, ...]:
        return self.act("set_threshold", at, parameter=parameter, value=value, **fields)

    def alpha(self) -> PlaybookDefinition:
        return self.reader.get("alpha").definition

    def sides(self) -> list[str]:
        return [side for item, side in self.reader.eligible(CELL, "1d") if item.id == "alpha"]

    def code(self) -> str:
        return self.lifecycle.refused[-1].code


def states(found: tuple[PlaybookVersion, ...]) -> list[tuple[int, VersionState]]:
    return [(item.definition.version, item.state) for item in found]


TEN_DAYS = 11 * DAY  # a life of ten blocks of a day begins with the day after


def test_duration_of_daily_bars_counts_the_days_without_a_session():
    assert duration_ns(5, "1d") == 7 * DAY
    assert duration_ns(24, "1h") == DAY


def test_ban_is_active_at_once_for_both_directions_and_keeps_its_reasons():
    world = World()
    before = world.alpha()
    found = world.ban()
    assert states(found) == [(1, RETIRED), (2, ACTIVE)]
    assert "version 2" in found[0].reason
    assert world.sides() == []
    assert found[1].parent_hash == before.content_hash
    assert (found[1].report_id, found[1].verdict_id) == ("report1", "verdict")
    assert found[1].action_id is not None
    assert found[1].expires_at == NOON + TEN_DAYS
    assert world.alpha().known_at == NOON
    assert world.alpha().content_hash != before.content_hash


def test_ban_of_one_direction_leaves_the_other():
    world = World()
    world.ban(direction="long")
    assert world.sides() == ["short"]


def test_ban_that_its_ledger_contradicts_ends_with_its_life_and_returns_the_definition_without_it():
    world = World()
    ledger = (world.alpha().content_hash, "up/high")
    world.ban()
    assert world.weigh(NOON + TEN_DAYS - 1, ledger) == ()
    found = world.weigh(NOON + TEN_DAYS, ledger)
    assert states(found) == [(2, RETIRED), (3, ACTIVE)]
    assert world.renewed == ()
    assert (found[1].reason, found[1].evidence) == ("proven in shadow", EVIDENCE)
    assert world.sides() == ["long", "short"]
    assert found[1].parent_hash == found[0].definition.content_hash
    assert found[1].report_id == "report1"
    assert world.alpha().payload() | {"version": 1, "known_at": None} == definition().payload()
    assert world.weigh(NOON + 2 * TEN_DAYS, ledger) == ()


def test_ban_without_evidence_is_renewed_life_after_life_and_changes_no_version():
    world = World(action_life_blocks=3)
    world.ban(life=2)
    standing, events = world.reader.get("alpha"), len(world.registry.history())
    end = NOON + 3 * DAY
    for _ in range(50):
        assert world.weigh(end - 1) == ()
        assert not [*world.renewed]
        assert world.weigh(end) == ()
        (renewal,) = [*world.renewed]
        end += 3 * DAY
        assert (renewal.text, renewal.since) == ("ban of up/high long, ban of up/high short", NOON)
        assert renewal.until == renewal.version.expires_at == world.reader.get("alpha").expires_at == end
    assert world.reader.get("alpha").since == standing.since
    assert world.alpha() == standing.definition
    assert len(world.registry.history()) == events
    assert world.sides() == []
    assert [trial.expires_at for trial in world.lifecycle.shadows()] == [end]


def test_life_that_was_over_for_long_goes_on_from_the_day_of_the_look():
    world = World(action_life_blocks=3)
    world.ban(life=2)
    world.weigh(NOON + 100 * DAY)
    assert world.reader.get("alpha").expires_at == NOON + 104 * DAY


def test_renewal_tells_what_the_ledger_has_shown():
    world = World()
    ledger = (world.alpha().content_hash, "up/high")
    world.ban()
    (renewal,) = world.lifecycle.renew_due(NOON + TEN_DAYS, "1d", {ledger: {"n": 4, "mean_r": -0.2}})
    assert renewal.shown == {"n": 4, "mean_r": -0.2}


def test_two_bans_end_each_by_its_own_evidence():
    world = World()
    first = world.alpha().content_hash
    world.ban("up/high", life=10)
    second = world.alpha().content_hash
    world.ban("up/mid", life=20)
    assert world.alpha().eligibility["long"].banned == ("up/high", "up/mid")
    assert world.reader.get("alpha").expires_at == NOON + TEN_DAYS
    world.weigh(NOON + TEN_DAYS, (first, "up/high"), (second, "up/mid"))
    assert world.alpha().eligibility["short"].banned == ("up/mid",)
    assert world.reader.get("alpha").expires_at == NOON + 21 * DAY
    world.weigh(NOON + 21 * DAY, (second, "up/mid"))
    assert world.sides() == ["long", "short"]
    assert world.reader.get("alpha").expires_at is None


def test_two_measures_that_are_contradicted_at_once_end_each_with_its_own_evidence():
    world = World()
    ledgers = [(world.alpha().content_hash, "up/high")]
    world.ban("up/high")
    ledgers.append((world.alpha().content_hash, "up/mid"))
    world.ban("up/mid")
    ledgers.append((world.alpha().content_hash, ""))
    world.act("set_risk_fraction", value=0.0025, life_blocks=10)
    found = world.lifecycle.end_contradicted(
        NOON + TEN_DAYS, {ledger: {"n": 20 + k} for k, ledger in enumerate(ledgers)}
    )
    entered = [(version.reason, version.evidence) for version in found if version.state is ACTIVE]
    assert entered == [
        ("proven in shadow", {"n": 20}),
        ("proven in shadow", {"n": 21}),
        ("its own trades since the risk cut prove a gain", {"n": 22}),
    ]
    assert world.alpha().payload() | {"version": 1, "known_at": None} == definition().payload()


def test_ban_written_in_the_file_outlives_every_lesson():
    cells = definition().eligibility["long"].model_dump() | {"banned": ("up/low",)}
    world = World(definition(eligibility={"long": cells, "short": cells}), *definitions()[1:])
    ledger = (world.alpha().content_hash, "up/high")
    world.ban("up/high")
    assert world.alpha().eligibility["long"].banned == ("up/high", "up/low")
    world.weigh(NOON + TEN_DAYS, ledger)
    assert world.alpha().eligibility["long"].banned == ("up/low",)
    assert world.act("set_eligibility", regime="up/low", eligible=True, life_blocks=5) == ()
    assert world.code() == "not_banned"


def test_banned_cell_keeps_a_shadow_trial_until_the_ban_ends():
    world = World()
    before = world.alpha()
    world.ban(at=NOON + DAY, direction="short")
    (trial,) = world.lifecycle.shadows()
    assert (trial.kind, trial.regime_key, trial.directions) == ("banned_cell", "up/high", ("short",))
    assert trial.version_hash == before.content_hash == trial.definition.content_hash
    assert (trial.since, trial.expires_at) == (NOON + DAY, NOON + DAY + TEN_DAYS)
    assert trial.definition.eligibility["short"].allows(CELL)
    world.weigh(NOON + DAY + TEN_DAYS, (before.content_hash, "up/high"))
    assert world.lifecycle.shadows() == ()


def test_ban_of_a_cell_that_is_banned_or_never_was_eligible_is_refused():
    world = World()
    world.ban()
    assert world.ban(life=11) == ()
    assert world.code() == "nothing_to_ban"
    assert world.ban("down/high") == ()
    assert [item.code for item in world.lifecycle.refused] == ["nothing_to_ban"] * 2


def test_bans_never_leave_fewer_open_playbooks_than_the_floor():
    world = World(*definitions(3), minimum_eligible_playbooks=2)
    cells = [f"{trend}/{volatility}" for trend in ("up", "sideways") for volatility in ("low", "mid", "high")]
    for cell in cells:
        assert world.ban(cell) != ()
    for cell in cells[:-1]:
        assert world.ban(cell, playbook_id="beta") != ()
    assert world.ban(cells[-1], playbook_id="beta") == ()
    assert world.code() == "floor"
    assert "1 playbook(s)" in world.lifecycle.refused[-1].reason


def test_disabled_playbooks_and_those_of_another_timeframe_do_not_hold_the_floor():
    others = (definition("beta", enabled=False), definition("gamma", timeframes=("1h",)), definition("delta"))
    cells = {"trend": ("up",), "volatility": ("high",), "structure": ("neutral",)}
    world = World(definition(eligibility={"long": cells, "short": cells}), *others)
    assert world.ban() == ()
    assert world.code() == "floor"


def test_threshold_becomes_a_candidate_then_a_shadow_and_leaves_the_active_version():
    world = World()
    found = world.tune(1.0)
    assert states(found) == [(2, CANDIDATE), (2, SHADOW)]
    assert world.alpha().version == 1
    (trial,) = world.lifecycle.shadows()
    assert (trial.kind, trial.directions, trial.regime_key) == ("candidate", ("long", "short"), None)
    assert trial.definition.parameters["edge"].value == 1.0
    assert trial.version_hash == found[1].definition.content_hash == trial.definition.content_hash
    assert trial.expires_at == NOON + 81 * DAY == found[1].expires_at


def test_threshold_that_claims_to_lower_exposure_still_goes_through_shadow():
    world = World()
    assert states(world.tune(1.0, lowers_exposure=True)) == [(2, CANDIDATE), (2, SHADOW)]


def ns(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp()) * 10**9


@pytest.mark.parametrize(("block", "ends"), [("week", "2026-09-14"), ("quarter", "2032-10-01")])
def test_playbooks_of_a_run_count_lives_in_the_blocks_of_its_gate(block, ends):
    settings = Settings(gate=GateSettings(block=block))
    books = assemble_playbooks(settings, definitions(), TickGuard(), NOON)
    ban = JudgeAction(
        kind="set_eligibility", playbook_id="alpha", regime="up/high", eligible=False, life_blocks=26,
        reason="test",
    )  # fmt: skip
    at = ns("2026-03-12T09:30")
    found = books.lifecycle.apply([ban], report_id="r", verdict_id="v", at=at, timeframe="15m")
    assert [version.expires_at for version in found if version.state is ACTIVE] == [ns(ends)]


@pytest.mark.parametrize(
    ("block", "timeframe", "trial_ends", "measure_ends"),
    [
        ("", "15m", "2026-06-01", "2026-04-08"),  # 80 and 26 whole days after Thursday, 12 March
        ("", "1h", "2027-09-27", "2026-09-14"),  # whole weeks after the one that ends on Sunday, 15 March
        ("", "4h", "2027-09-27", "2026-09-14"),
        ("", "1d", "2032-12-01", "2028-06-01"),  # whole months after March
        ("week", "1d", "2027-09-27", "2026-09-14"),
        ("quarter", "15m", "2046-04-01", "2032-10-01"),
    ],
)
def test_lives_are_counted_in_whole_blocks_of_the_timeframe(block, timeframe, trial_ends, measure_ends):
    world, at = World(), ns("2026-03-12T09:30")
    world.lifecycle = PlaybookLifecycle(world.registry, JudgeSettings(), world.guard, block)
    measures = [
        JudgeAction(kind="set_eligibility", playbook_id="alpha", regime="up/high", eligible=False,
                    life_blocks=26, reason="test"),
        JudgeAction(kind="set_risk_fraction", playbook_id="beta", value=0.0025, reason="test"),
    ]  # fmt: skip
    tried = JudgeAction(kind="set_threshold", playbook_id="gamma", parameter="edge", value=1.0, reason="test")
    found = world.lifecycle.apply(
        [*measures, tried], report_id="r", verdict_id="v", at=at, timeframe=timeframe
    )
    ends = [version.expires_at for version in found if version.state in (ACTIVE, SHADOW)]
    assert ends == [ns(measure_ends), ns(measure_ends), ns(trial_ends)]
    assert world.lifecycle.expire_due(ns(trial_ends) - 1) == ()
    assert [version.reason for version in world.lifecycle.expire_due(ns(trial_ends))] == [
        "not promoted in time"
    ]


def test_invalidation_becomes_a_candidate():
    world = World()
    found = world.act("set_invalidation", parameter="stop_atr", value=1.5)
    assert states(found) == [(2, CANDIDATE), (2, SHADOW)]


def test_promotion_replaces_the_active_version_and_carries_the_evidence():
    world = World()
    first = world.alpha()
    (_, shadow) = world.tune(1.0)
    version_hash = shadow.definition.content_hash
    found = world.lifecycle.promote(version_hash, EVIDENCE, NOON + DAY)
    assert states(found) == [(1, RETIRED), (2, ACTIVE)]
    assert found[1].evidence == EVIDENCE
    assert found[1].parent_hash == first.content_hash
    assert found[1].report_id == "report1"
    assert found[1].expires_at is None
    assert world.alpha().content_hash == version_hash
    assert world.lifecycle.shadows() == ()
    assert world.lifecycle.promote(version_hash, EVIDENCE, NOON + DAY) == ()


def test_promotion_under_a_ban_that_came_later_keeps_the_ban():
    world = World()
    (_, shadow) = world.tune(1.0)
    ledger = (world.alpha().content_hash, "up/high")
    world.ban(life=10, at=NOON + DAY)
    found = world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + 2 * DAY)
    assert states(found) == [(2, RETIRED), (3, RETIRED), (4, ACTIVE)]
    assert world.alpha().parameters["edge"].value == 1.0
    assert world.sides() == []
    assert world.reader.get("alpha").expires_at == NOON + DAY + TEN_DAYS
    world.weigh(NOON + DAY + TEN_DAYS, ledger)
    assert world.alpha().parameters["edge"].value == 1.0
    assert world.sides() == ["long", "short"]


def test_promotion_after_the_ban_has_ended_does_not_bring_it_back():
    world = World()
    ledger = (world.alpha().content_hash, "up/high")
    world.ban(life=10)
    (_, shadow) = world.tune(1.0)
    assert shadow.definition.eligibility["long"].banned == ("up/high",)
    world.weigh(NOON + TEN_DAYS, ledger)
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + TEN_DAYS)
    assert world.sides() == ["long", "short"]
    assert world.alpha().parameters["edge"].value == 1.0


def test_promotion_retires_rivals_but_not_experiments_or_other_playbooks():
    world = World()
    (_, first) = world.tune(1.0)
    (_, rival) = world.tune(0.25)
    (_, other) = world.tune(1.0, playbook_id="beta")
    (_, trial) = world.act("open_experiment", parameter="edge", value=0.25, life_blocks=30)
    found = world.lifecycle.promote(first.definition.content_hash, EVIDENCE, NOON + DAY)
    assert (rival.definition.version, RETIRED) in states(found)
    left = {item.version_hash for item in world.lifecycle.shadows()}
    assert left == {other.definition.content_hash, trial.definition.content_hash}
    assert world.lifecycle.promote(rival.definition.content_hash, EVIDENCE, NOON + DAY) == ()


def test_shadow_that_is_not_promoted_in_time_expires():
    world = World(shadow_life_blocks=10)
    world.tune(1.0)
    assert world.lifecycle.expire_due(NOON + TEN_DAYS - 1) == ()
    found = world.lifecycle.expire_due(NOON + TEN_DAYS)
    assert states(found) == [(2, EXPIRED)]
    assert found[0].reason == "not promoted in time"
    assert world.lifecycle.shadows() == ()
    assert world.alpha().version == 1


def test_candidate_that_is_retired_keeps_the_counter_evidence():
    world = World()
    (_, shadow) = world.tune(1.0)
    (found,) = world.lifecycle.retire(shadow.definition.content_hash, {"n": 40, "mean_r": -0.3}, NOON + DAY)
    assert found.state is RETIRED
    assert found.evidence == {"counter_n": 40, "counter_mean_r": -0.3}
    with pytest.raises(InvariantViolation, match="not in shadow"):
        world.lifecycle.retire(shadow.definition.content_hash, {}, NOON + DAY)


def test_same_change_in_shadow_or_in_force_is_refused():
    world = World()
    world.tune(1.0)
    assert world.tune(1.0) == ()
    assert world.code() == "already_in_shadow"
    assert world.tune(0.5) == ()
    assert world.code() == "no_change"


def test_action_of_one_report_is_applied_once():
    world = World()
    assert world.tune(1.0, report="r") != ()
    world.lifecycle.retire(world.lifecycle.shadows()[0].version_hash, {}, NOON)
    assert world.tune(1.0, report="r") == ()
    assert world.lifecycle.refused == ()
    assert world.tune(1.0, report="s") != ()


def test_risk_cut_is_active_at_once_and_ends_by_its_own_evidence():
    world = World()
    first = (world.alpha().content_hash, "")
    found = world.act("set_risk_fraction", value=0.0025, life_blocks=10)
    assert states(found) == [(1, RETIRED), (2, ACTIVE)]
    assert world.alpha().risk_fraction == 0.0025
    second = (world.alpha().content_hash, "")
    world.act("set_risk_fraction", value=0.001, life_blocks=5)
    assert [cut.ledger for cut in world.lifecycle.risk_cuts()] == [first, second]
    world.weigh(NOON + 6 * DAY, second)
    assert world.alpha().risk_fraction == 0.0025
    ended = world.weigh(NOON + TEN_DAYS, first)
    assert world.alpha().risk_fraction == 0.005
    assert (ended[1].reason, ended[1].evidence) == (
        "its own trades since the risk cut prove a gain",
        EVIDENCE,
    )
    assert world.lifecycle.risk_cuts() == ()


def test_risk_cut_without_evidence_is_renewed():
    world = World(action_life_blocks=26)
    world.act("set_risk_fraction", value=0.0025)
    assert world.weigh(NOON + 27 * DAY) == ()
    assert [(renewal.text, renewal.until) for renewal in world.renewed] == [("risk 0.0025", NOON + 53 * DAY)]
    assert world.alpha().risk_fraction == 0.0025


def test_higher_risk_goes_through_shadow_and_lifts_the_lower_one_it_answers():
    world = World()
    world.act("set_risk_fraction", value=0.0025, life_blocks=100)
    (_, shadow) = world.act("set_risk_fraction", value=0.004, at=NOON + DAY)
    assert world.alpha().risk_fraction == 0.0025
    assert shadow.definition.risk_fraction == 0.004
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + 2 * DAY)
    assert world.alpha().risk_fraction == 0.004
    assert world.weigh(NOON + 1000 * DAY) == ()
    assert world.renewed == ()


def test_promoted_rules_end_a_risk_cut_and_leave_the_bans():
    world = World()
    world.act("set_risk_fraction", value=0.0025, life_blocks=100)
    world.act("set_eligibility", regime="up/low", eligible=False, life_blocks=100, at=NOON + DAY)
    (_, shadow) = world.tune(1.0, at=NOON + 2 * DAY)
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + 3 * DAY)
    assert world.alpha().risk_fraction == 0.005
    assert world.alpha().eligibility["long"].banned == ("up/low",)


def test_promoted_risk_does_not_lift_a_lower_one_that_came_after_its_trial_began():
    world = World()
    (_, shadow) = world.act("set_risk_fraction", value=0.01)
    ledger = (world.alpha().content_hash, "")
    world.act("set_risk_fraction", value=0.0025, life_blocks=100, at=NOON + DAY)
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + 2 * DAY)
    assert world.alpha().risk_fraction == 0.0025
    world.weigh(NOON + 1000 * DAY, ledger)
    assert world.alpha().risk_fraction == 0.01


def test_unban_is_a_trial_of_the_cell_and_its_promotion_lifts_the_ban():
    world = World()
    world.ban(life=50)
    (_, shadow) = world.act(
        "set_eligibility", regime="up/high", eligible=True, life_blocks=20, direction="long"
    )
    trial = world.lifecycle.shadows()[0]
    assert (trial.kind, trial.regime_key, trial.directions) == ("candidate", "up/high", ("long",))
    assert world.sides() == []
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + DAY)
    assert world.sides() == ["long"]
    (banned,) = world.lifecycle.shadows()
    assert (banned.kind, banned.directions) == ("banned_cell", ("short",))


def test_unban_ends_when_the_ledger_of_the_ban_has_lifted_it():
    world = World()
    ledger = (world.alpha().content_hash, "up/high")
    world.ban(life=10)
    world.act("set_eligibility", regime="up/high", eligible=True, life_blocks=50)
    found = world.weigh(NOON + TEN_DAYS, ledger)
    assert states(found) == [(2, RETIRED), (4, ACTIVE), (3, EXPIRED)]
    assert "no longer in force" in found[-1].reason


def test_experiment_has_an_end_and_never_becomes_active():
    world = World()
    (candidate, shadow) = world.act(
        "open_experiment", parameter="edge", value=1.0, life_blocks=10, regime="up/high"
    )
    assert (candidate.state, shadow.state) == (CANDIDATE, SHADOW)
    (trial,) = world.lifecycle.shadows()
    assert (trial.kind, trial.regime_key, trial.expires_at) == ("experiment", "up/high", NOON + TEN_DAYS)
    with pytest.raises(InvariantViolation, match="never becomes active"):
        world.lifecycle.promote(trial.version_hash, EVIDENCE, NOON + DAY)
    (ended,) = world.lifecycle.expire_due(NOON + TEN_DAYS)
    assert (ended.state, ended.reason) == (EXPIRED, "the experiment has ended")


def test_experiments_are_limited():
    world = World(max_open_experiments=1)
    tried: dict[str, Any] = {"parameter": "edge", "value": 1.0, "life_blocks": 10}
    world.act("open_experiment", **tried)
    assert world.act("open_experiment", **tried, playbook_id="beta") == ()
    assert world.code() == "too_many_experiments"


def test_experiment_that_is_running_is_not_opened_again():
    world = World()
    world.act("open_experiment", parameter="edge", value=1.0, life_blocks=10)
    assert world.act("open_experiment", parameter="edge", value=1.0, life_blocks=20) == ()
    assert world.code() == "already_in_shadow"
    assert world.act("open_experiment", parameter="edge", value=0.25, life_blocks=10) != ()


def test_replan_moves_no_version():
    world = World()
    assert world.act("replan", playbook_id=None) == ()
    assert world.lifecycle.counts()["active"] == 4


def test_rollback_of_a_promotion_reactivates_the_parent_by_its_hash():
    world = World()
    first = world.alpha()
    (_, shadow) = world.tune(1.0)
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + DAY)
    found = world.lifecycle.rollback("alpha", NOON + 2 * DAY, "worse than before", {"mean_r": -0.4})
    assert states(found) == [(2, RETIRED), (1, ACTIVE)]
    assert found[0].evidence == EVIDENCE | {"counter_mean_r": -0.4}
    assert world.alpha().content_hash == first.content_hash
    with pytest.raises(ConfigError, match="nothing different to roll back to"):
        world.lifecycle.rollback("alpha", NOON + 3 * DAY)


def test_rollback_does_not_bring_a_ban_back_that_its_ledger_has_ended():
    world = World()
    ledger = (world.alpha().content_hash, "up/high")
    world.ban(life=10)
    (_, shadow) = world.tune(1.0)
    world.lifecycle.promote(
        shadow.definition.content_hash, EVIDENCE, NOON + DAY
    )  # replaces the banned version 2
    world.weigh(NOON + TEN_DAYS, ledger)
    world.lifecycle.rollback("alpha", NOON + TEN_DAYS)
    assert world.alpha().parameters["edge"].value == 0.5
    assert world.sides() == ["long", "short"]
    with pytest.raises(ConfigError, match="nothing different"):
        world.lifecycle.rollback("alpha", NOON + 2 * TEN_DAYS)


@pytest.mark.parametrize("weighed", [True, False])
def test_rollback_of_a_promotion_keeps_a_ban_whose_first_life_is_over(weighed):
    world = World()
    world.ban(life=10)
    (_, shadow) = world.tune(1.0)
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON + DAY)
    if weighed:
        world.weigh(NOON + TEN_DAYS)
    world.lifecycle.rollback("alpha", NOON + TEN_DAYS)
    assert world.alpha().parameters["edge"].value == 0.5
    assert world.sides() == []
    world.weigh(NOON + 500 * DAY)
    assert world.sides() == []


def test_rollback_of_a_ban_lifts_it_and_leaves_candidates_on_trial():
    world = World()
    world.tune(1.0)
    world.ban()
    world.lifecycle.rollback("alpha", NOON + DAY)
    assert world.sides() == ["long", "short"]
    assert [trial.kind for trial in world.lifecycle.shadows()] == ["candidate"]


def test_rollback_of_a_promotion_retires_candidates_derived_from_it():
    world = World()
    (_, shadow) = world.tune(1.0)
    world.lifecycle.promote(shadow.definition.content_hash, EVIDENCE, NOON)
    world.act("set_invalidation", parameter="stop_atr", value=1.5)
    found = world.lifecycle.rollback("alpha", NOON + DAY)
    assert states(found) == [(3, RETIRED), (2, RETIRED), (1, ACTIVE)]
    assert world.lifecycle.shadows() == ()


def test_counts_show_every_state():
    world = World()
    world.ban()
    world.tune(1.0)
    assert world.lifecycle.counts() == {"candidate": 0, "shadow": 1, "active": 4, "expired": 0, "retired": 1}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("set_threshold", {"parameter": "edge", "value": 0.6}),
        ("set_threshold", {"parameter": "egde", "value": 0.5}),
        ("set_risk_fraction", {"value": 0.05}),
        ("set_risk_fraction", {"value": 0.0}),
        ("set_risk_fraction", {"value": 0.001, "playbook_id": "alfa"}),
        ("open_experiment", {"life_blocks": 5, "parameter": "edge", "value": 7.0}),
    ],
)
def test_action_outside_the_files_bounds_raises_and_changes_nothing(kind, fields):
    world = World()
    good = JudgeAction(kind="set_threshold", playbook_id="beta", parameter="edge", value=1.0, reason="test")
    bad = JudgeAction(kind=kind, reason="test", **({"playbook_id": "alpha"} | fields))
    with pytest.raises(InvariantViolation):
        world.lifecycle.apply([good, bad], report_id="r", verdict_id="v", at=NOON, timeframe="1d")
    assert len(world.registry.history()) == 4
    assert world.lifecycle.apply([good], report_id="r", verdict_id="v", at=NOON, timeframe="1d") != ()


def test_every_write_inside_the_tick_path_raises():
    world = World()
    (_, shadow) = world.tune(1.0)
    version_hash = shadow.definition.content_hash
    with world.guard.tick_path():
        for write in (
            lambda: world.ban(),
            lambda: world.act("replan", playbook_id=None),
            lambda: world.lifecycle.promote(version_hash, EVIDENCE, NOON),
            lambda: world.lifecycle.retire(version_hash, {}, NOON),
            lambda: world.lifecycle.expire_due(NOON),
            lambda: world.lifecycle.renew_due(NOON, "1d"),
            lambda: world.lifecycle.end_contradicted(NOON, {}),
            lambda: world.lifecycle.rollback("alpha", NOON),
        ):
            with pytest.raises(InvariantViolation, match="policy_writes"):
                write()
    assert world.guard.attempts["policy_writes"] == 8
    assert world.lifecycle.counts()["shadow"] == 1
