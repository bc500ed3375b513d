"""The slow loop from cadence to judge: gates, batching, point in time, and what a report may recommend."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.judge_agent_client import JudgeAgentClient
from prompts import load_prompt
from schemas.errors import InvariantViolation, ModelError
from schemas.settings import EnvelopeSettings, GateSettings, JudgeSettings, Settings
from schemas.slow_reflection import DeferredItem, OpenEntry, UntradedSignal
from schemas.vocabulary import EvidenceGrade, InvocationOutcome, RecommendedAction, SlowSkipReason
from services.feeds.port import BarRow
from services.high_level.narrator import Narrator
from services.high_level_reflection_service import HighLevelReflectionService
from services.model_calls.language_model import ModelReply
from services.playbooks.measures import alter
from services.slow_loop.cadence import CadenceFacts, Run, Skip, due
from services.statistics.blocks import Trades
from services.statistics.calendar_units import DAY_NS
from tests.services.deliberation.scripted import section
from tests.services.high_level.builders import START, episode, playbook, request
from tests.worker.test_session_wires import session
from trading_core.live.growing_bars import Bar
from worker.slow_worker.wiring import bars_of_run, threaded_reflection

PULLBACK, BREAKOUT, SQUEEZE = playbook("pullback"), playbook("breakout"), playbook("squeeze")
BOOKS = (PULLBACK, BREAKOUT, SQUEEZE)
TRADES = {"kind": "value", "measure": "trades", "of": {"playbook": "pullback"}}


class Grid:
    """Evaluator whose trades depend on the value only; remembers what it was asked."""

    def __init__(self, means, n=60):
        self.means, self.n, self.requested = means, n, []

    def evaluate(self, definition, parameter, value, start_ns, end_ns):
        self.requested.append((definition.id, parameter, value, start_ns, end_ns))
        r = self.means.get((parameter, value), -0.5)
        return Trades.of([(START + k * DAY_NS // 4, START + k * DAY_NS // 4, r) for k in range(self.n)])


class Model:
    """Language model that answers one text, or fails."""

    def __init__(self, text=None):
        self.text, self.prompts = text, []

    async def complete(self, *, system, prompt, max_tokens, deadline_ms):
        self.prompts.append(prompt)
        if self.text is None:
            raise ModelError("no answer within the deadline")
        return ModelReply(self.text, "fake", 1, 1, 1.0)


def reflect(episodes, definitions=BOOKS, *, gate=None, grid=None, model=None, **changes):
    settings = Settings(gate=gate or GateSettings(), envelope=EnvelopeSettings(risk_fraction=0.02))
    narrator = None if model is None else Narrator(load_prompt("high_level_reflection"), model)
    service = HighLevelReflectionService(settings, grid, narrator)
    return asyncio.run(service.reflect(request(episodes, **changes), episodes, definitions))


def replan(report, definitions=BOOKS, open_experiments=0, **settings):
    judge = JudgeAgentClient(JudgeSettings(**settings), GateSettings())
    return asyncio.run(judge.replan(report, definitions, open_experiments))


def outcomes(seed, n, mean):
    return np.random.default_rng(seed).standard_t(3, n) / np.sqrt(3) + mean


def trades(definition, seed, n, mean, **facts):
    return [episode(definition, number=k, r=float(r), **facts) for k, r in enumerate(outcomes(seed, n, mean))]


def planted_cell():
    """Pullback loses 0.6R in sideways/low and earns .5R elsewhere; breakout is a coin flip."""
    return [
        *trades(PULLBACK, 1, 260, -0.6, regime="sideways/low"),
        *trades(PULLBACK, 2, 260, 0.5, regime="up/mid"),
        *trades(BREAKOUT, 3, 260, 0.0),
    ]


def planted_playbook(mean=-0.5):
    """Pullback loses a little in each of four cells, so only the playbook as a whole shows it."""
    cells = ("up/low", "up/mid", "sideways/low", "sideways/mid")
    r = outcomes(5, 220, mean)
    losing = [episode(PULLBACK, number=k, r=float(value), regime=cells[k % 4]) for k, value in enumerate(r)]
    return [*losing, *trades(BREAKOUT, 6, 100, 0.1)]


def adjustment(report):
    return next(
        item.change for item in report.recommendations if item.action is RecommendedAction.POLICY_ADJUST
    )


def finding(report, playbook_id, regime=None):
    return next(
        item
        for item in report.clusters
        if (item.playbook_id, item.regime, item.timeframe) == (playbook_id, regime, None)
    )


def test_high_level_reflection_below_the_minimum_is_insufficient_sample_with_monitoring_only():
    report = reflect(trades(PULLBACK, 1, 12, -0.2), grid=Grid({}))
    assert report.insufficient_sample
    assert report.recommended_action is RecommendedAction.HOLD
    assert {item.action for item in report.recommendations} == {RecommendedAction.HOLD}
    assert all(not item.change for item in report.recommendations)
    assert not report.grid_trials
    assert {item.grade for item in report.clusters} == {EvidenceGrade.INSUFFICIENT_SAMPLE}
    assert "insufficient_sample: 12 of 20 resolved trades" in report.recommendations[0].reason
    assert report.drift_findings
    assert "insufficient_sample" in report.narrative


@given(st.lists(st.floats(-1.5, 4.0), max_size=19), st.booleans())
def test_high_level_reflection_with_an_insufficient_sample_never_recommends_structure(r, structural):
    batch = [episode(PULLBACK, number=k, r=value) for k, value in enumerate(r)]
    report = reflect(batch, structural_allowed=structural)
    if all(item.grade is EvidenceGrade.INSUFFICIENT_SAMPLE for item in report.clusters):
        assert report.insufficient_sample
        assert report.recommended_action is RecommendedAction.HOLD


def test_high_level_reflection_without_episodes_is_insufficient_sample_and_holds():
    report = reflect([])
    assert report.insufficient_sample
    assert report.n_episodes == 0
    assert [item.action for item in report.recommendations] == [RecommendedAction.HOLD]


def test_significant_loss_below_twenty_trades_is_not_an_insufficient_sample():
    # The runbook's second arm: a deviation may be significant before the count is reached.
    batch = [episode(PULLBACK, number=k, week=k, r=-3.0, regime="up/mid") for k in range(19)]
    report = reflect(batch, (PULLBACK,), gate=GateSettings(q=0.45))
    assert finding(report, "pullback").grade is EvidenceGrade.SIGNIFICANT
    assert not report.insufficient_sample
    assert finding(report, "pullback", "up/mid").strongest_action is RecommendedAction.RESEARCH_EXPERIMENT


def test_planted_losing_cell_becomes_a_ban_that_the_judge_accepts_from_the_high_level_reflection():
    report = reflect(planted_cell())
    top = report.recommendations[0]
    assert (top.action, top.playbook_id, top.regime) == (
        RecommendedAction.POLICY_ADJUST,
        "pullback",
        "sideways/low",
    )
    assert top.change == {"kind": "set_eligibility", "regime": "sideways/low", "eligible": False}
    assert top.grade is EvidenceGrade.SIGNIFICANT
    assert top.confidence >= 0.9
    assert set(top.evidence_refs) <= {item.episode_id for item in planted_cell()}
    verdict = replan(report)
    assert verdict.decision is RecommendedAction.POLICY_ADJUST
    assert [(item.kind, item.regime, item.eligible, item.lowers_exposure) for item in verdict.actions] == [
        ("set_eligibility", "sideways/low", False, True)
    ]
    assert verdict.report_id == report.content_hash[:16] == verdict.evidence_ids[0]
    assert not verdict.refused


def test_every_cluster_of_the_report_carries_its_numbers():
    report = reflect(planted_cell())
    keys = [(item.playbook_id, item.regime, item.timeframe) for item in report.clusters]
    assert len(keys) == len(set(keys)) == 8
    proven = [item for item in report.clusters if item.grade is EvidenceGrade.SIGNIFICANT]
    selected = len({(item.playbook_id, item.regime) for item in proven})
    assert selected == 2  # pullback gains in one cell and loses in the other
    for item in report.clusters:
        assert item.blocks <= item.n
        assert item.lower_r <= item.mean_r <= item.upper_r
        assert item.interval_kind == "anytime"
        # Weights 4 and 2 over three playbooks and twelve cells, half of q at first, half of that for a claim,
        # times e-BH's count.
        weight = (4.0 if item.regime is None else 2.0) / (3 * 4.0 + 12 * 2.0)
        assert item.alpha == pytest.approx(0.1 * weight * 0.5 * 0.5 * selected)
        sides = {"losing": item.e_losing, "gaining": item.e_gaining, None: 1.0}
        assert item.e_value == sides[item.leaning]
        assert item.claim == (item.leaning if item in proven else None)
        assert (item.grade is EvidenceGrade.SIGNIFICANT) == (item.e_value * item.alpha >= 1.0)
        assert item.e_value > 0
        assert item.reason
    assert {item.family_size for item in report.clusters} == {
        15
    }  # three playbooks with four declared cells each
    assert sum(item.n for item in report.clusters if item.regime is None) == report.n_episodes


def test_blocks_are_weeks_on_hourly_bars_and_months_on_daily_ones_and_count_when_they_are_over():
    batch = trades(PULLBACK, 1, 60, 0.0)
    hourly = finding(reflect(batch), "pullback")  # on Saturday of the twelfth week
    assert (hourly.n, hourly.counted, hourly.blocks, hourly.unit) == (60, 55, 11, "week")
    assert "5 of 60 trades in a week that is not complete" in hourly.reason
    assert finding(reflect(batch, known_at=START + 84 * DAY_NS), "pullback").blocks == 12
    daily = [episode(PULLBACK, number=k, timeframe="1d", r=0.1) for k in range(60)]
    monthly = finding(reflect(daily, timeframe="1d", known_at=START + 91 * DAY_NS), "pullback")
    assert (monthly.blocks, monthly.unit) == (3, "month")


def test_losing_playbook_without_a_losing_cell_risks_less_and_sends_its_better_value_to_shadow():
    grid = Grid({("stretch", 1.0): -0.5, ("stretch", 1.1): -0.1, ("stretch", 0.9): -0.45})
    report = reflect(planted_playbook(), grid=grid)
    changes = [
        item.change for item in report.recommendations if item.action is RecommendedAction.POLICY_ADJUST
    ]
    assert changes == [
        {"kind": "set_risk_fraction", "value": 0.0025},
        {"kind": "set_threshold", "parameter": "stretch", "value": 1.1},
    ]
    assert [(item.parameter, item.value) for item in report.grid_trials] == [
        ("exit_below", 20.0), ("exit_below", 50.0), ("stretch", 0.9), ("stretch", 1.0), ("stretch", 1.1),
    ]  # fmt: skip
    assert {ask[3:] for ask in grid.requested} == {(START, report.known_at)}
    actions = [(item.kind, item.lowers_exposure) for item in replan(report).actions if item.kind != "replan"]
    assert actions == [("set_risk_fraction", True), ("set_threshold", False)]


REFUTED = {
    "playbook_id": "pullback",
    "version": 2,
    "kind": "refuted",
    "regime": None,
    "parameter": "stretch",
    "value": 1.1,
    "n": 30,
    "blocks": 6,
    "mean_r": -0.4,
    "e_value_below": 50.0,
}


def test_value_that_a_candidates_own_trades_refute_is_not_recommended_again():
    grid = Grid({("stretch", 1.1): -0.1})
    query = {"set_risk_fraction": 0.0025, "set_threshold": 1.1}
    for known, wanted in (((), query), ((REFUTED,), {"set_risk_fraction": 0.0025})):
        made = reflect(planted_playbook(), grid=grid, shadow_trials=known).recommendations
        assert {
            change.change["kind"]: change.change["value"] for change in made if "value" in change.change
        } == wanted
    others = {**REFUTED, "value": 0.9}, {**REFUTED, "playbook_id": "breakout"}
    assert len(candidates(reflect(planted_playbook(), grid=grid, shadow_trials=others))) == 1


CUT = {
    **REFUTED,
    "kind": "risk_cut",
    "value": 0.0025,
    "n": 20,
    "mean_raw_r": -0.5,
    "reference_r": 0.0,
}


@pytest.mark.parametrize(
    ("shown", "due"),
    [
        ({}, True),
        ({"n": 19}, False),
        ({"n": 0, "mean_r": None, "mean_raw_r": None}, False),
        ({"mean_r": 0.1}, False),
        ({"mean_raw_r": 0.1}, False),
        ({"n": 0, "playbook_id": "breakout"}, True),
    ],
)
def test_next_risk_cut_waits_for_the_trades_since_the_last_one_and_for_their_loss(shown, due):
    report = reflect(planted_playbook(), shadow_trials=({**CUT, **shown},))
    made = [
        recommendation
        for recommendation in report.recommendations
        if recommendation.change.get("kind") == "set_risk_fraction"
    ]
    assert len(made) == due
    held = [
        recommendation.reason
        for recommendation in report.recommendations
        if "its risk waits" in recommendation.reason
    ]
    assert len(held) == (not due)
    assert all(f"{shown.get('n', 20)} of 20 trades since it was cut to 0.0025" in item for item in held)


def test_every_grid_value_tried_joins_the_family_and_raises_the_bar():
    batch = planted_playbook()
    plain, searched = reflect(batch), reflect(batch, grid=Grid({}))
    assert finding(searched, "pullback").family_size == finding(plain, "pullback").family_size + 5
    remembered = reflect(batch, tested_before=tuple(item.hypothesis for item in searched.grid_trials))
    assert finding(remembered, "pullback").family_size == finding(searched, "pullback").family_size
    assert finding(remembered, "pullback").family_id == finding(searched, "pullback").family_id


def test_losing_playbook_without_a_better_grid_value_trades_at_half_the_risk():
    report = reflect(planted_playbook(), grid=Grid({}))
    assert adjustment(report) == {"kind": "set_risk_fraction", "value": 0.0025}
    action = next(item for item in replan(report).actions if item.kind != "replan")
    assert (action.kind, action.value, action.lowers_exposure) == ("set_risk_fraction", 0.0025, True)


def test_whole_live_set_losing_significantly_recommends_a_replan():
    batch = [*trades(PULLBACK, 1, 160, -0.7), *trades(BREAKOUT, 2, 160, -0.7)]
    report = reflect(batch)
    assert report.recommended_action is RecommendedAction.REPLAN
    assert replan(report).decision is RecommendedAction.REPLAN


def test_decay_alarm_with_a_significant_loss_recommends_a_replan():
    report = reflect(planted_playbook())
    assert any(line.startswith("decay pullback") for line in report.drift_findings)
    assert report.recommendations[0].action is RecommendedAction.REPLAN
    assert report.recommendations[0].playbook_id == "pullback"


def test_noise_recommends_nothing_structural():
    report = reflect([*trades(PULLBACK, 1, 200, 0.0), *trades(BREAKOUT, 3, 200, 0.0)])
    assert report.recommended_action in (RecommendedAction.HOLD, RecommendedAction.RESEARCH_EXPERIMENT)
    assert replan(report).decision is report.recommended_action


def test_significant_gain_recommends_more_risk_that_the_judge_accepts_and_noise_gets_none():
    report = reflect([*trades(PULLBACK, 1, 200, 0.6), *trades(BREAKOUT, 3, 200, 0.0)])
    assert finding(report, "pullback").grade is EvidenceGrade.SIGNIFICANT
    top = report.recommendations[0]
    assert (top.playbook_id, top.change) == ("pullback", {"kind": "set_risk_fraction", "value": 0.01})
    assert [item.playbook_id for item in report.recommendations if "value" in item.change] == ["pullback"]
    verdict = replan(report)
    assert [(item.kind, item.value, item.lowers_exposure) for item in verdict.actions] == [
        ("set_risk_fraction", 0.01, False)
    ]


def test_gain_that_has_turned_into_a_loss_is_given_no_more_risk_by_service_or_judge():
    """Trades around 0.6R for 100 weeks, then around -0.6R for 60: the mean of them all is still a gain.

    The other playbook shows no change: in an account of one alone, a turn may as well be a long shock.
    """
    before, after = trades(PULLBACK, 1, 500, 0.6), outcomes(2, 300, -0.6)
    turned = [*before, *(episode(PULLBACK, number=500 + k, r=float(r)) for k, r in enumerate(after))]
    raised = {"kind": "set_risk_fraction", "value": 0.01}
    assert reflect(before).recommendations[0].change == raised
    report = reflect([*turned, *trades(BREAKOUT, 3, 800, 0.0)])
    found = finding(report, "pullback")
    assert min(found.mean_r, found.mean_raw_r) > 0.1
    assert (found.claim, found.leaning, found.grade) == (None, None, EvidenceGrade.COUNT_ONLY)
    assert "but a stretch of blocks proves losing (E " in found.reason
    assert not [recommendation for recommendation in report.recommendations if recommendation.change]
    question = report.recommendations[0].model_copy(
        update={"change": raised, "playbook_id": "pullback", "action": RecommendedAction.POLICY_ADJUST}
    )
    verdict = replan(report.model_copy(update={"recommendations": (question,)}))
    assert not verdict.actions


def test_more_risk_needs_a_gain_and_the_trades_of_a_promotion():
    report = reflect([*trades(PULLBACK, 1, 200, 0.6), *trades(BREAKOUT, 3, 200, -0.7)])
    gain = next(item for item in report.recommendations if item.playbook_id == "pullback")
    loss = next(item for item in report.recommendations if item.playbook_id == "breakout")
    change = {"kind": "set_risk_fraction", "value": 0.01}
    wrong = report.model_copy(update={"recommendations": (loss.model_copy(update={"change": change}),)})
    assert [item.code for item in replan(wrong).refused] == ["not_gaining"]
    alone = report.model_copy(update={"recommendations": (gain,)})
    assert replan(alone).actions
    assert [item.code for item in replan(alone, promotion_minimum_trades=201).refused] == ["too_few_trades"]


@pytest.mark.parametrize(("kind", "raised"), [("candidate", []), ("experiment", ["pullback"])])
def test_more_risk_waits_while_a_candidate_of_the_playbook_is_on_trial(kind, raised):
    trial = {"playbook_id": "pullback", "version": 2, "kind": kind, "regime": None, "n": 0, "blocks": 0}
    batch = [*trades(PULLBACK, 1, 200, 0.6), *trades(BREAKOUT, 3, 200, 0.0)]
    question = reflect(batch, shadow_trials=(trial,)).recommendations
    assert [
        change.playbook_id for change in question if change.change.get("kind") == "set_risk_fraction"
    ] == raised
    other = reflect(batch, shadow_trials=({**trial, "playbook_id": "breakout"},)).recommendations
    assert [change.playbook_id for change in other if change.change.get("kind") == "set_risk_fraction"] == [
        "pullback"
    ]


BANNED = {
    "playbook_id": "pullback",
    "version": 1,
    "kind": "banned_cell",
    "regime": "sideways/low",
    "n": 60,
    "blocks": 12,
    "mean_r": 0.4,
    "reference_r": 0.0,
    "e_value": 130.0,
    "e_needed": 120.0,
}


def in_force(banned, cell):
    """The books with one cell of one of them banned."""
    eligibility = {side: alter(rules, banned=(cell,)) for side, rules in banned.eligibility.items()}
    return tuple(alter(book, eligibility=eligibility) if book is banned else book for book in BOOKS)


def with_ban(**shown):
    """A report on noise whose request shows the ledger of one banned cell."""
    return reflect(trades(PULLBACK, 1, 60, 0.0), shadow_trials=({**BANNED, **shown},))


def lifts(report):
    return [item for item in report.recommendations if item.change.get("eligible")]


def test_ban_whose_ledger_reaches_its_level_is_recommended_to_be_lifted_and_the_judge_weighs_it_again():
    report = with_ban()
    (lift,) = lifts(report)
    assert lift.change == {"kind": "set_eligibility", "regime": "sideways/low", "eligible": True}
    banned = in_force(PULLBACK, "sideways/low")
    assert [(item.kind, item.eligible) for item in replan(report, banned).actions] == [
        ("set_eligibility", True)
    ]
    assert [item.code for item in replan(report).refused] == ["already_set"]


@pytest.mark.parametrize(
    "shown",
    [
        {"e_value": 119.0},
        {"mean_r": -0.1},
        {"e_needed": None},
        {"kind": "experiment"},
        {"mean_r": None},
        {"n": 19},
    ],
)
def test_ban_whose_ledger_does_not_prove_it_is_not_recommended_to_be_lifted(shown):
    assert lifts(with_ban(**shown)) == []


EXPERIMENT = {
    **BANNED,
    "kind": "experiment",
    "regime": None,
    "parameter": "stretch",
    "value": 1.1,
    "e_needed": 40.0,
}


def with_experiment(batch=None, **shown):
    """A report on a playbook that does not gain, whose request shows an experiment with another value."""
    shadow_trials = ({**EXPERIMENT, **shown},)
    return reflect(trades(PULLBACK, 1, 60, 0.0) if batch is None else batch, shadow_trials=shadow_trials)


def candidates(report):
    return [item for item in report.recommendations if item.change.get("kind") == "set_threshold"]


def test_experiment_that_proves_a_gain_is_recommended_as_a_candidate_and_the_judge_weighs_it_again():
    """The trades of the account prove no loss: its playbook may be vetoed or stopped most of the time."""
    report = with_experiment()
    assert finding(report, "pullback").grade is EvidenceGrade.COUNT_ONLY
    (question,) = candidates(report)
    assert question.change == {"kind": "set_threshold", "parameter": "stretch", "value": 1.1}
    (action,) = replan(report).actions
    assert (action.kind, action.parameter, action.value) == ("set_threshold", "stretch", 1.1)
    assert not action.lowers_exposure


@pytest.mark.parametrize(
    "shown",
    [
        {"e_value": 39.0},
        {"mean_r": -0.1},
        {"mean_r": None, "e_value": None},
        {"mean_raw_r": -0.1},
        {"e_needed": None},
        {"kind": "candidate"},
        {"parameter": None},
        {"n": 19},
    ],
)
def test_experiment_that_does_not_prove_a_gain_is_not_recommended_as_a_candidate(shown):
    assert candidates(with_experiment(**shown)) == []


def test_experiment_is_no_candidate_where_its_playbook_gains_as_much_or_is_hardly_known():
    assert candidates(with_experiment(trades(PULLBACK, 1, 100, 0.6))) == []
    assert candidates(with_experiment(trades(PULLBACK, 1, 19, 0.0))) == []
    near = outcomes(1, 60, 0.0)
    batch = [episode(PULLBACK, number=k, r=float(r)) for k, r in enumerate(near - near.mean() - 0.02)]
    mean = finding(with_experiment(batch), "pullback").mean_r or 0.0
    assert candidates(with_experiment(batch, mean_r=mean + 0.09)) == []
    assert candidates(with_experiment(batch, mean_r=mean + 0.11)) != []


def test_proven_experiment_waits_for_the_structural_interval_and_for_a_candidate_on_trial():
    batch = trades(PULLBACK, 1, 60, 0.0)
    assert candidates(reflect(batch, shadow_trials=(EXPERIMENT,), structural_allowed=False)) == []
    for kind in ("candidate", "refuted"):
        tried = {**EXPERIMENT, "kind": kind, "version": 3}
        assert candidates(reflect(batch, shadow_trials=(EXPERIMENT, tried))) == []


@pytest.mark.parametrize(
    ("forged", "code"),
    [
        ({"e_needed": 1.0, "e_value": 39.0}, "not_proven"),
        ({"mean_r": -0.2}, "grade_mismatch"),
        ({"n": 19}, "grade_mismatch"),
        ({"value": 0.9}, "grade_mismatch"),
        ({"kind": "candidate"}, "grade_mismatch"),
    ],
)
def test_judge_refuses_a_candidate_of_an_experiment_on_numbers_that_do_not_carry_it(forged, code):
    forgery = with_experiment().model_copy(update={"shadow_trials": ({**EXPERIMENT, **forged},)})
    verdict = replan(forgery)
    assert [item.code for item in verdict.refused if item.action.kind == "set_threshold"] == [code]
    assert not verdict.actions


class StoreOfBars:
    """A store by shape that holds one bar of a paper run."""

    def __init__(self):
        self.runs = self.trading = self

    async def find(self, run_id):
        return SimpleNamespace(data={"symbols": ["AAA"], "timeframe": "1h", "label": "close"})

    async def rows(self, run_id):
        yield BarRow(START, {"AAA": Bar(100.0, 101.0, 99.0, 100.0, 1.0)})


def on_one_bar(settings):
    store: Any = StoreOfBars()
    return threaded_reflection(settings, bars_of_run(store, "r0001"))


REFLECTIONS: dict[str, Callable[[Settings], Any]] = {
    "run": lambda settings: session(settings).slow_loop._reflection.reflect,
    "run without its model": lambda settings: session(settings).slow_loop._reflection.by_rules().reflect,
    "worker": threaded_reflection,
    "worker of a paper run": on_one_bar,
}


@pytest.mark.parametrize("minimum", [60, 61])
@pytest.mark.parametrize("who", REFLECTIONS)
def test_ban_is_recommended_to_be_lifted_on_the_trades_that_the_settings_ask_of_a_promotion(who, minimum):
    settings = Settings(judge=JudgeSettings(promotion_minimum_trades=minimum))
    batch = trades(PULLBACK, 1, 60, 0.0)
    made = REFLECTIONS[who](settings)(request(batch, shadow_trials=(BANNED,)), batch, BOOKS)
    assert len(lifts(asyncio.run(made))) == (minimum == BANNED["n"])


@pytest.mark.parametrize(("limit", "raised"), [(0.005, []), (0.006, [0.006]), (0.02, [0.01])])
@pytest.mark.parametrize("who", REFLECTIONS)
def test_more_risk_keeps_to_the_risk_limit_of_the_account_that_the_settings_give(who, limit, raised):
    settings = Settings(envelope=EnvelopeSettings(risk_fraction=limit))
    batch = trades(PULLBACK, 1, 200, 0.6)
    report = asyncio.run(REFLECTIONS[who](settings)(request(batch), batch, BOOKS))
    assert finding(report, "pullback").grade is EvidenceGrade.SIGNIFICANT
    assert [
        recommendation.change["value"]
        for recommendation in report.recommendations
        if "value" in recommendation.change
    ] == raised


@pytest.mark.parametrize("who", REFLECTIONS)
def test_most_entries_of_a_block_that_the_settings_allow_bound_the_stakes(who):
    batch = trades(PULLBACK, 1, 200, 0.3)
    usual, many = (
        finding(
            asyncio.run(REFLECTIONS[who](Settings(envelope=envelope))(request(batch), batch, BOOKS)),
            "pullback",
        )
        for envelope in (EnvelopeSettings(), EnvelopeSettings(max_entries_per_block=500))
    )
    assert 1.0 < many.e_gaining < 0.9 * usual.e_gaining


def test_block_of_a_position_that_is_still_open_waits_and_so_do_those_after_it():
    batch = trades(PULLBACK, 1, 100, 0.3)
    whole = finding(reflect(batch), "pullback")
    opened = OpenEntry(playbook_id="pullback", regime="up/mid", entry_label=batch[60].entry_label)
    waiting = finding(reflect(batch, open_entries=(opened,)), "pullback")
    assert (waiting.n, waiting.counted, waiting.blocks) == (100, 60, 12)
    assert whole.blocks == 19
    other = opened.model_copy(update={"playbook_id": "breakout"})
    assert finding(reflect(batch, open_entries=(other,)), "pullback") == whole


def test_ban_waits_with_its_end_for_the_structural_interval():
    report = reflect(trades(PULLBACK, 1, 60, 0.0), shadow_trials=(BANNED,), structural_allowed=False)
    assert lifts(report) == []
    assert any(
        "would have been policy_adjust: pullback gains in" in recommendation.reason
        for recommendation in report.recommendations
    )


@pytest.mark.parametrize(
    ("forged", "code"),
    [
        ({"e_needed": 1.0, "e_value": 30.0}, "not_proven"),
        ({"mean_r": -0.2}, "not_proven"),
        ({"n": 19}, "too_few_trades"),
        ({"regime": "up/mid"}, "no_ledger"),
        ({"kind": "candidate"}, "no_ledger"),
    ],
)
def test_judge_refuses_to_lift_a_ban_on_numbers_that_do_not_carry_it(forged, code):
    report = with_ban()
    forgery = report.model_copy(update={"shadow_trials": ({**BANNED, **forged},)})
    verdict = replan(forgery, in_force(PULLBACK, "sideways/low"))
    assert [item.code for item in verdict.refused if item.action.eligible] == [code]
    assert not verdict.actions


def test_bare_count_with_a_loss_opens_an_experiment_at_most():
    batch = [episode(PULLBACK, number=k, r=(-1.0, 0.5)[k % 2]) for k in range(40)]
    report = reflect(batch)
    assert finding(report, "pullback").grade is EvidenceGrade.COUNT_ONLY
    assert report.recommendations[0].change == {
        "kind": "open_experiment",
        "parameter": "stretch",
        "value": 1.1,
    }
    assert replan(report).decision is RecommendedAction.RESEARCH_EXPERIMENT
    running = {**EXPERIMENT, "playbook_id": PULLBACK.id, "e_value": 1.0}
    held = reflect(batch, shadow_trials=(running,)).recommendations[0]
    assert (held.playbook_id, held.action) == (PULLBACK.id, RecommendedAction.HOLD)
    assert "on trial already: stretch 1.1" in held.reason
    again = reflect(batch, shadow_trials=(REFUTED,)).recommendations[0].change
    assert again == {"kind": "open_experiment", "parameter": "exit_below", "value": 20.0}


@pytest.mark.parametrize(
    ("mode", "strongest"),
    [
        ("runbook_or", RecommendedAction.POLICY_ADJUST),
        ("graded", RecommendedAction.RESEARCH_EXPERIMENT),
        ("significance_only", RecommendedAction.HOLD),
    ],
)
def test_gate_mode_bounds_what_a_bare_count_may_do(mode, strongest):
    batch = [episode(PULLBACK, number=k, r=(-1.0, 0.5)[k % 2]) for k in range(40)]
    report = reflect(batch, gate=GateSettings(mode=mode))
    assert report.recommended_action is strongest


def test_structural_recommendation_between_structural_slots_is_held():
    report = reflect(planted_cell(), structural_allowed=False, grid=Grid({}))
    assert RecommendedAction.POLICY_ADJUST not in {item.action for item in report.recommendations}
    held = next(item for item in report.recommendations if item.regime == "sideways/low")
    assert held.action is RecommendedAction.HOLD
    assert "would have been policy_adjust" in held.reason


def test_shadow_and_no_learn_episodes_are_counted_and_never_tested():
    batch = trades(PULLBACK, 1, 30, 0.1)
    odd = [
        *trades(BREAKOUT, 2, 40, -1.0, ledger="shadow"),
        *trades(SQUEEZE, 3, 40, -1.0, no_learn=True),
    ]
    report = reflect([*batch, *odd])
    assert report.excluded == {"no_learn": 40, "shadow": 40}
    assert report.n_episodes == 30
    assert {item.playbook_id for item in report.clusters} == {"pullback"}


def test_accepted_change_starts_a_new_epoch_without_the_trades_that_suggested_it():
    changed = playbook("pullback", version=2)
    report = reflect(planted_cell(), (changed, BREAKOUT, SQUEEZE))
    assert report.excluded == {"earlier_version": 520}
    assert {item.playbook_id for item in report.clusters} == {"breakout"}
    restored = reflect(planted_cell(), epoch_starts={"pullback": START + 20 * 7 * DAY_NS})
    assert restored.excluded == {"before_epoch": 200}
    assert finding(restored, "pullback").n == 320


def test_every_accepted_change_halves_what_the_playbook_may_still_spend_and_the_judge_charges_the_same():
    plain, later = reflect(planted_cell()), reflect(planted_cell(), epochs={"pullback": 2})
    cell = ("pullback", "sideways/low")

    def price(report, *key):
        """The level of a claim, without what e-BH gives to all for the number that it selects."""
        proven = [cluster for cluster in report.clusters if cluster.grade is EvidenceGrade.SIGNIFICANT]
        return finding(report, *key).alpha / len({(item.playbook_id, item.regime) for item in proven})

    assert price(later, *cell) == pytest.approx(price(plain, *cell) / 4)
    assert price(later, "breakout") == pytest.approx(price(plain, "breakout"))
    assert finding(later, *cell).family_id != finding(plain, *cell).family_id
    assert replan(later).decision is RecommendedAction.POLICY_ADJUST
    spent = reflect(planted_cell(), epochs={"pullback": 60})
    assert finding(spent, *cell).grade is EvidenceGrade.SUGGESTIVE
    assert replan(spent).decision is RecommendedAction.RESEARCH_EXPERIMENT
    body = {name: getattr(plain, name) for name in type(plain).model_fields} | {"epochs": {"pullback": 60}}
    assert {item.code for item in replan(type(plain)(**body)).refused} == {"grade_mismatch"}


def test_losers_that_only_e_bh_selects_together_are_changed_and_the_judge_selects_them_again():
    names = [f"loser_{k}" for k in range(8)]
    books = [playbook(name) for name in names]
    r = outcomes(40, 180, -0.42)
    batch = [
        episode(book, number=k, r=float(value), regime="up/mid")
        for book in books
        for k, value in enumerate(r)
    ]
    report = reflect(batch, books)
    first = finding(report, names[0], "up/mid")
    assert first.grade is EvidenceGrade.SIGNIFICANT
    assert first.e_value * first.alpha / len(names) < 1.0  # alone, or with its parent, it misses its price
    refused = [item.code for item in replan(report, books).refused]
    assert "grade_mismatch" not in refused
    assert replan(report, books).actions


def test_blocks_that_depend_on_each_other_are_told_in_the_finding():
    draw = np.random.default_rng(3).standard_normal(100) * 0.5
    for week in range(1, 100):
        draw[week] += 0.9 * draw[week - 1]
    found = finding(reflect([episode(number=k, week=k, r=float(r)) for k, r in enumerate(draw)]), "pullback")
    assert (found.unit, found.blocks) == ("week", 99)
    assert "weeks resemble each other, or trades outlast them: what up to " in found.reason


def test_future_in_the_batch_is_a_violation():
    batch = trades(PULLBACK, 1, 30, 0.1)
    known_at = batch[-1].known_at
    assert reflect(batch, known_at=known_at).n_episodes == 30
    with pytest.raises(InvariantViolation, match="given the future"):
        reflect(batch, known_at=known_at - 1)
    signal = UntradedSignal(
        symbol="AAA", playbook_id="pullback", direction="long", label=START, reason="expired",
        counterfactual_r=1.0, known_at=known_at + 1,
    )  # fmt: skip
    with pytest.raises(InvariantViolation, match="untraded AAA"):
        reflect(batch, known_at=known_at, untraded_signals=(signal,))


def test_batch_that_is_not_the_one_named_is_a_violation():
    batch = trades(PULLBACK, 1, 5, 0.1)
    service = HighLevelReflectionService(Settings())
    for given_batch in (batch[:-1], [*batch, batch[0]]):
        with pytest.raises(InvariantViolation, match="not the one the request names"):
            asyncio.run(service.reflect(request(batch), given_batch, BOOKS))


def test_report_does_not_depend_on_the_order_of_its_episodes_or_on_wall_time():
    batch = planted_playbook()
    ordered = tuple(item.episode_id for item in batch)
    clocks = (iter([0.0, 1.0]), iter([5.0, 50.0]))
    reports = []
    for given_batch, clock in zip((batch, batch[::-1]), clocks, strict=True):
        service = HighLevelReflectionService(Settings(), Grid({}), timer=clock.__next__)
        reports.append(asyncio.run(service.reflect(request(batch, episode_ids=ordered), given_batch, BOOKS)))
    assert reports[0].content_hash == reports[1].content_hash
    assert [report.latency_ms for report in reports] == [1_000, 45_000]


def test_report_carries_cadence_batch_size_request_and_prompt():
    batch = trades(PULLBACK, 1, 30, 0.1)
    report = reflect(batch)
    assert (report.meta.cadence, report.meta.batch_size, report.meta.outcome) == (
        "high_level",
        30,
        InvocationOutcome.RAN,
    )
    assert report.request_hash == request(batch).content_hash


def test_report_of_a_model_names_its_prompt_and_one_of_rules_no_word_of_it(monkeypatch):
    batch = trades(PULLBACK, 1, 30, 0.1)
    prompt = load_prompt("high_level_reflection")
    assert reflect(batch, model=Model()).prompt_hash == prompt.hash
    by_rules = reflect(batch)
    assert by_rules.prompt_hash is None
    other = replace(prompt, hash="0" * 64)
    monkeypatch.setattr("services.high_level_reflection_service.load_prompt", lambda name: other)
    assert reflect(batch).content_hash == by_rules.content_hash, "an edited prompt changes no run of rules"


def test_report_shows_regimes_misses_failures_untraded_deferred_and_judge_actions():
    losers = [
        episode(PULLBACK, number=k, r=-1.0, hold_bars=40, mfe_r=0.1, failure_mode="chop") for k in range(25)
    ]
    outcomes_missed: tuple[tuple[Literal["expired", "unfilled"], float | None], ...] = (
        ("expired", 1.0), ("expired", None), ("unfilled", -1.0),
    )  # fmt: skip
    signals = tuple(
        UntradedSignal(
            symbol="AAA", playbook_id="pullback", direction="long", label=START, reason=reason,
            counterfactual_r=r, known_at=START,
        )
        for reason, r in outcomes_missed
    )  # fmt: skip
    report = reflect(
        losers,
        untraded_signals=signals,
        judge_actions=("verdict1",),
        deferred_items=(
            DeferredItem(raised_at=START, symbol="AAA", text="look at gaps", reflection_hash="x"),
        ),
    )
    assert report.failure_modes == {"chop": 25}
    assert report.regime_cluster_summary[0]["recurring"] == ["chop"]
    assert report.playbook_findings[0]["failure_modes"] == {"chop": 25}
    assert [line.split()[0] for line in report.expectation_misses] == ["MFE", "hold"]
    assert report.untraded["expired"] == {"n": 2, "resolved": 1, "mean_counterfactual_r": 1.0}
    assert (report.judge_actions_seen, report.deferred_seen) == (("verdict1",), ("look at gaps",))


@pytest.mark.parametrize(
    ("reply", "tier", "outcome"),
    [
        ({"sections": [section(TRADES | {"stated": "30"})]}, "consolidated", "ran"),
        ({"sections": [section(TRADES | {"stated": "31"})]}, "deterministic", "degraded"),
        ({"sections": [section(TRADES | {"of": {"playbook": "made up"}})]}, "deterministic", "degraded"),
        ({"sections": [section(TRADES), section(TRADES | {"stated": "31"})]}, "consolidated", "degraded"),
        ({"narrative": "Nothing proven."}, "deterministic", "degraded"),
        ("not json", "deterministic", "degraded"),
        (None, "deterministic", "degraded"),
    ],
)
def test_model_narrative_stands_only_where_its_claims_hold(reply, tier, outcome):
    model = Model(json.dumps(reply) if isinstance(reply, dict) else reply)
    batch = trades(PULLBACK, 1, 30, 0.1)
    report, plain = reflect(batch, model=model), reflect(batch)
    assert (report.meta.tier, report.meta.outcome) == (tier, outcome)
    assert (report.narrative == plain.narrative) == (tier == "deterministic")
    assert report.clusters == plain.clusters
    assert report.recommendations == plain.recommendations
    assert plain.clusters[0].evidence[0] not in model.prompts[0], "figures are shown, and no hash"
    assert '"trades"' in model.prompts[0]


def test_cadence_gates_the_high_level_reflection_by_time_and_by_batch():
    monday = START + 7 * DAY_NS
    facts = CadenceFacts(now=monday, interval="weekly", started_at=START, new_episodes={"pullback": 20})
    assert isinstance(due(facts), Run)
    few, early = (
        due(replace(facts, new_episodes={"pullback": 19})),
        due(replace(facts, last_run=START + DAY_NS)),
    )
    assert isinstance(few, Skip)
    assert isinstance(early, Skip)
    assert few.reason is SlowSkipReason.INSUFFICIENT_EPISODES
    assert early.reason is SlowSkipReason.INTERVAL_NOT_ELAPSED


def test_judge_holds_on_an_insufficient_high_level_reflection():
    verdict = replan(reflect(trades(PULLBACK, 1, 12, -0.2)))
    assert verdict.decision is RecommendedAction.HOLD
    assert not verdict.actions
    assert verdict.reason.startswith("insufficient_sample")


def forged(report, *, finding_changes=None, **changes):
    """The report with its first recommendation, or the cluster behind it, altered."""
    first = report.recommendations[0]
    clusters = tuple(
        item.model_copy(update=finding_changes or {})
        if (item.playbook_id, item.regime, item.timeframe) == (first.playbook_id, first.regime, None)
        else item
        for item in report.clusters
    )
    body = {name: getattr(report, name) for name in type(report).model_fields}
    body |= {"clusters": clusters, "recommendations": (first.model_copy(update=changes),)}
    return type(report)(**body)


@pytest.mark.parametrize(
    ("finding_changes", "changes", "code"),
    [
        ({"e_value": 12.0}, {}, "grade_mismatch"),
        ({"family_size": 1, "e_value": 12.0}, {}, "grade_mismatch"),
        ({"grade": EvidenceGrade.SUGGESTIVE}, {}, "grade_mismatch"),
        ({}, {"grade": EvidenceGrade.SUGGESTIVE}, "grade_mismatch"),
        (
            {"e_value": 12.0, "grade": EvidenceGrade.SUGGESTIVE},
            {"grade": EvidenceGrade.SUGGESTIVE},
            "grade_too_weak",
        ),
        ({"n": 19}, {}, "grade_too_weak"),
        ({"mean_r": 0.2}, {}, "not_losing"),
        ({"mean_raw_r": 0.2}, {}, "not_losing"),
        ({"leaning": "gaining"}, {}, "not_losing"),
        ({"leaning": None}, {}, "not_losing"),
        ({}, {"regime": "up/low"}, "no_cluster"),
        (
            {},
            {"change": {"kind": "set_eligibility", "regime": "up/mid", "eligible": False}},
            "other_cluster",
        ),
    ],
)
def test_judge_refuses_what_the_numbers_of_the_high_level_reflection_do_not_carry(
    finding_changes, changes, code
):
    verdict = replan(forged(reflect(planted_cell()), finding_changes=finding_changes, **changes))
    assert verdict.decision is RecommendedAction.HOLD
    assert [item.code for item in verdict.refused] == [code]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"kind": "delete_playbook"},
        {"kind": "set_threshold"},
        {"kind": "set_eligibility", "regime": "up/mid", "eligible": False, "life_blocks": 9_999},
    ],
)
def test_judge_reads_no_change_that_the_high_level_reflection_cannot_type(change):
    verdict = replan(forged(reflect(planted_cell()), change=change))
    assert verdict.decision is RecommendedAction.HOLD
    assert not verdict.actions
    assert "unreadable" in verdict.reason


def test_judge_keeps_the_floor_against_a_high_level_reflection_that_bans_too_much():
    narrow = [
        playbook(
            name,
            eligibility={
                "long": PULLBACK.eligibility["long"].model_copy(
                    update={"trend": ("up",), "volatility": ("mid",)}
                )
            },
        )
        for name in ("one", "two", "three")
    ]
    batch = [item for seed, book in enumerate(narrow) for item in trades(book, seed, 300, -0.9)]
    verdict = replan(reflect(batch, narrow), tuple(narrow))
    bans = [item for item in verdict.actions if item.kind == "set_eligibility"]
    assert len(bans) == 1
    assert [item.code for item in verdict.refused if item.action.kind == "set_eligibility"] == [
        "floor",
        "floor",
    ]
