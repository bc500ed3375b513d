"""A position is left the same way in a playbook on paper, in research of its rule, and had it been taken."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from agents.strategies.rule_strategist import candidate, proposal_of
from schemas.episode import Episode
from schemas.playbook import DirectionRules, PlaybookDefinition
from schemas.settings import EnvelopeSettings, ExecutionSettings
from services.slow_loop.shadow_ledger import ShadowLedgers
from services.slow_loop.untraded_signals import UntradedSignals
from tests.each_case import check_each
from tests.services.policy_checks.plans import right_request
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from trading_core.market import Market
from trading_core.research import counterfactual
from trading_core.research.counterfactual import PaperPlans
from trading_core.research.simulation import simulate
from trading_core.trigger_engine import TriggerEngine

SETUP = "close > highest_20"
STOPS = {"long": "close - 2 * atr_14", "short": "close + 2 * atr_14"}
TARGETS = {"long": "close + 3 * atr_14", "short": "close - 3 * atr_14"}
WAYS: dict[str, dict[str, Any]] = {
    "target": {},
    "far target": {"target": None, "time_stop_bars": 12},
    "time": {"time_stop_bars": 3},
    "target that moves": {"target_moves": True},
    "exit": {"exit": "day_of_week == 4"},
    "exit of the position": {"exit": "bars_held >= 4 and open_r > 0.2"},
    "trail": {"trail": {"long": "close - 2 * atr_14", "short": "close + 2 * atr_14"}},
    "trail of the position": {
        "trail": {"long": "min(close, entry_price) - atr_14", "short": "max(close, entry_price) + atr_14"}
    },
    "invalidation": {"invalidation": "month == 5 or day_of_week == 0"},
    "break even": {"break_even_r": 0.5},
    "one scale-out": {"scale_out_r": 0.5, "scale_out_share": 0.5},
    "scale-outs": {"scale_out_r": (0.3, 0.8, 1.2), "scale_out_share": (0.2, 0.3, 0.2)},
    "addition": {"add_at_r": 0.4, "add_share": 0.5, "target": None, "time_stop_bars": 30},
}


@cache
def bars() -> BarSeries:
    return embedded_bars("2003-01-01", "2006-12-31")


def read_shown(way: str, direction: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rules and terms of a way out; terms hold `time_stop_bars`."""
    rules, terms = {"stop": STOPS[direction], "target": TARGETS[direction]}, {"time_stop_bars": 20}
    for name, value in WAYS[way].items():
        text = value[direction] if isinstance(value, dict) else value
        (rules if name in DirectionRules.model_fields else terms)[name] = text
    return {name: text for name, text in rules.items() if text is not None}, terms


def playbook_of(way: str, direction: str) -> PlaybookDefinition:
    rules, terms = read_shown(way, direction)
    horizon = terms.pop("time_stop_bars")
    sides: dict[str, Any] = {direction: {"setup": SETUP, "exit": "bars_held >= 200", **rules}}
    return tt.Playbook("ways", horizon_bars=horizon, **sides, **terms)


def traded(playbook: PlaybookDefinition) -> tuple[Episode, ...]:
    """What it trades on paper, again and again."""
    market = Market.of(bars(), now=int(bars().close_times[-1]))
    ledgers = ShadowLedgers(market, ExecutionSettings(), EnvelopeSettings(cooldown_bars=0))
    return ledgers.open(playbook, tuple(playbook.rules), 0).advance(bars().shape[0])


@check_each("direction", ["long", "short"])
@check_each("way", WAYS)
def test_rule_by_itself_leaves_a_position_as_its_playbook_does(way, direction):
    rules, terms = read_shown(way, direction)
    side: Any = direction
    found = simulate(bars(), SETUP, direction=side, target_pct=None, **rules, **terms).trades
    paper = traded(playbook_of(way, direction))
    assert len(paper) > 20
    assert sorted(found["r"].tolist()) == sorted(episode.r for episode in paper)
    assert set(found["exit_reason"]) == {str(episode.exit_reason) for episode in paper}
    assert sorted(pd.DatetimeIndex(found["exit_time"]).asi8.tolist()) == sorted(
        episode.exit_label for episode in paper
    )


@check_each("direction", ["long", "short"])
@check_each("way", WAYS)
def test_signal_that_was_not_traded_would_have_made_what_the_engine_makes_of_its_plan(way, direction):
    playbook = playbook_of(way, direction)
    market = Market.of(bars(), now=int(bars().close_times[-1]))
    snapshot = right_request().snapshot.model_copy(update={"regime": None})
    plan = proposal_of(candidate(playbook, direction, snapshot), snapshot)
    signals, paper = UntradedSignals(ExecutionSettings()), traded(playbook)
    for episode in paper:
        row = int(np.searchsorted(bars().times, episode.entry_label)) - 1
        signals.note_blocked(episode.symbol, int(bars().times[row]), plan, int(bars().close_times[row]))
    found = signals.select_known(PaperPlans(market.columns), 0, int(bars().close_times[-1]))
    assert len(found) == len(paper) > 20
    payload = {(signal.symbol, signal.label): (signal.counterfactual_r, signal.known_at) for signal in found}
    assert [signal.reason for signal in found] == ["blocked"] * len(paper)
    for episode in paper:
        before = int(bars().times[int(np.searchsorted(bars().times, episode.entry_label)) - 1])
        assert payload[episode.symbol, before] == (episode.r, episode.known_at)


def test_signal_whose_exit_has_not_come_is_open_until_it_has():
    playbook = playbook_of("exit of the position", "long")
    market = Market.of(bars(), now=int(bars().close_times[-1]))
    snapshot = right_request().snapshot
    plan = proposal_of(candidate(playbook, "long", snapshot), snapshot)
    signals, episode = UntradedSignals(ExecutionSettings()), traded(playbook)[5]
    row = int(np.searchsorted(bars().times, episode.entry_label)) - 1
    signals.note_blocked(episode.symbol, int(bars().times[row]), plan, int(bars().close_times[row]))
    assert signals.select_known(PaperPlans(market.columns), 0, episode.known_at - 1) == ()
    (found,) = signals.select_known(PaperPlans(market.columns), 0, episode.known_at)
    assert (found.counterfactual_r, found.known_at) == (episode.r, episode.known_at)


def test_outcome_of_a_plan_is_traded_on_its_own_rows_whatever_the_length_of_the_run(monkeypatch):
    market, snapshot = Market.of(bars(), now=int(bars().close_times[-1])), right_request().snapshot
    shapes: list[tuple[int, int]] = []

    def engine(series, *rest, **more):
        shapes.append(series.shape)
        return TriggerEngine(series, *rest, **more)

    monkeypatch.setattr(counterfactual, "TriggerEngine", engine)
    plan = proposal_of(candidate(playbook_of("target", "long"), "long", snapshot), snapshot)
    for row in (0, 300):
        PaperPlans(market.columns).outcome(plan, 1, row, row + 40, ExecutionSettings())
    assert shapes == [(40, 1), (41, 1)]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "target"])
def test_every_way_out_changes_the_trades(way):
    plain = [episode.r for episode in traded(playbook_of("target", "long"))]
    assert [episode.r for episode in traded(playbook_of(way, "long"))] != plain


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"target_moves": True}, "there is no rule that it reads: give target"),
        ({"add_at_r": 1.0}, "add_at_r 1.0 and add_share None belong together"),
        ({"scale_out_r": 30.0, "scale_out_share": 0.5}, "each must be greater than 0, at most 20"),
        ({"break_even_r": -1.0}, r"break_even_r -1.0: Input should be greater than 0"),
    ],
)
def test_terms_of_a_rule_by_itself_that_cannot_be_are_named(terms, words):
    with pytest.raises(tt.ConfigError, match=words):
        simulate(bars(), SETUP, **terms)


def test_term_that_is_none_names_the_nearest():
    with pytest.raises(TypeError, match="no argument 'break_evn_r'. Did you mean 'break_even_r'"):
        tt.simulate(entry=SETUP, break_evn_r=1.0)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_rule_by_itself_reads_the_time_of_day_by_the_clock_of_the_data(zone):
    index = pd.date_range("2024-01-02", periods=480, freq="30min", tz="UTC")
    rising = 100.0 + np.arange(480) / 10
    frame = pd.DataFrame(dict.fromkeys(("open", "high", "low", "close"), rising) | {"volume": 1.0}, index)
    found = tt.simulate(
        frame, "minute_of_day == 600", exit="minute_of_day >= 900", target_pct=None, data__zone=zone
    ).trades
    assert {f"{time:%H:%M}" for time in found["entry_time"].dt.tz_convert(zone)} == {"10:30"}
    assert {f"{time:%H:%M}" for time in found["exit_time"].dt.tz_convert(zone)} == {"15:30"}


def test_exit_that_is_a_price_is_refused():
    with pytest.raises(tt.RuleError, match="sma_5"):
        tt.simulate(entry=SETUP, exit="sma_5")
