"""Mistakes of a playbook that no market can make right: found in its rules and numbers alone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.playbook import DirectionRules, PlaybookDefinition
from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
from services.playbooks.rendering import KIND_OF_ROLE
from services.policy_checks.static_checks import list_mistakes
from tests.each_case import check_each
from trading_core.rules.bounds import possible_of, ratio
from trading_core.rules.evaluate import evaluate_for_symbol
from trading_core.rules.grammar import parse

RULES = {
    "setup": "close > sma_20",
    "activation": "close > highest_20",
    "stop": "close - 2 * atr_14",
    "target": "close + 3 * atr_14",
    "invalidation": "close < sma_50",
}


def book(**changed: Any) -> PlaybookDefinition:
    """A playbook whose plans may pass, with some rules or numbers changed."""
    embedded = load_playbooks(None)[0].payload()
    rules = RULES | {name: text for name, text in changed.items() if name in KIND_OF_ROLE}
    numbers = {name: value for name, value in changed.items() if name not in KIND_OF_ROLE}
    return PlaybookDefinition.model_validate(
        embedded
        | {"parameters": {}, "rules": {"long": rules}}
        | numbers
        | {"eligibility": everywhere(embedded)}
    )


def everywhere(embedded: dict[str, Any]) -> dict[str, Any]:
    return {"long": embedded["eligibility"]["long"]}


def codes(**changed: Any) -> list[tuple[str, str]]:
    found = list_mistakes((book(**changed),), Settings())
    return [(mistake.field.removeprefix("rules.long."), mistake.code) for mistake in found]


@check_each(
    ("changed", "found"),
    [
        ({"horizon_bars": 500}, [("horizon_bars", "horizon_over_bound")]),
        ({"horizon_bars": 41}, [("horizon_bars", "horizon_too_long")]),
        ({"risk_fraction": 0.02}, [("risk_fraction", "risk_fraction_over_cap")]),
        ({"invalidation": "close >= 0"}, [("invalidation", "tautology")]),
        ({"setup": "rsi_14 > 100"}, [("setup", "unreachable")]),
        ({"activation": "close < low and close > low"}, [("activation", "unreachable")]),
        ({"invalidation": "close > sma_20"}, [("invalidation", "invalidation_already_true")]),
        ({"stop": "close * 1.02"}, [("stop", "stop_on_wrong_side")]),
        ({"stop": "max(close + atr_14, sma_20)"}, [("stop", "stop_on_wrong_side")]),
        ({"stop": "high + atr_14"}, [("stop", "stop_on_wrong_side")]),
        ({"stop": "-close"}, [("stop", "level_not_a_price")]),
        ({"setup": "crosses_above(sma_10, sma_30)", "invalidation": "sma_10 > sma_30"},
         [("invalidation", "invalidation_already_true")]),
        ({"entry": "high + 1", "entry_kind": "limit"}, [("entry", "entry_on_wrong_side")]),
        ({"entry": "low - atr_14", "entry_kind": "stop"}, [("entry", "entry_on_wrong_side")]),
        ({"trail": "max(entry_price, high)"}, [("trail", "trail_on_wrong_side")]),
        ({"activation": "close < sma_20", "invalidation": "close < sma_20"},
         [("invalidation", "invalidation_already_true")]),
        ({"activation": "close < sma_20", "stop": "sma_20"}, [("stop", "stop_on_wrong_side")]),
        ({"scale_out_r": 2.0, "scale_out_share": 0.5}, [("scale_out_r", "scale_out_beyond_target")]),
        ({"target": "close - atr_14"}, [("target", "target_on_wrong_side")]),
        ({"target": "close + atr_14"}, [("target", "reward_to_risk_too_low")]),
        ({"target": "close + 20 * atr_14"}, [("target", "target_beyond_mfe")]),
    ],
)  # fmt: skip
def test_mistake_that_no_market_makes_right_is_named_with_its_field(changed, found):
    assert codes(**changed) == found


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"stop": "lowest_20"},  # may lie above the close, and may not
        {"stop": "min(close - 2 * atr_14, ema_20)", "target": "max(close + 3 * atr_14, ema_20)"},
        {"target": "sma_20"},
        {"invalidation": "sma_20 < sma_50"},
        {"setup": "close > 0"},
        {"stop": "100", "target": "120"},
        {"stop": "high - atr_14", "target": "low + 3 * atr_14"},
        {"entry": "close", "entry_kind": "limit"},
        {"trail": "highest_20 - 3 * atr_14"},
        {"setup": "crosses_above(sma_10, sma_30)", "invalidation": "sma_10 < sma_30"},
    ],
)
def test_plan_that_some_market_makes_right_has_no_mistake(changed):
    assert codes(**changed) == []


def test_embedded_playbooks_have_no_mistake_at_the_default_settings():
    assert list_mistakes(load_playbooks(None), Settings()) == ()


def test_cap_and_least_reward_are_those_of_the_settings():
    shown = Settings()
    wider = shown.model_copy(
        update={
            "envelope": shown.envelope.model_copy(update={"risk_fraction": 0.02}),
            "reflection": shown.reflection.model_copy(update={"min_reward_to_risk": 2.0}),
        }
    )
    (mistake,) = list_mistakes((book(risk_fraction=0.02),), wider)
    assert mistake.code == "reward_to_risk_too_low"
    assert mistake.text.startswith("playbook 'channel_breakout', rules.long.target: it is 1.50 times")


@given(
    st.lists(st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 2)), min_size=3, max_size=3),
    st.floats(0.01, 500.0),
    st.floats(0.0, 50.0),
)
def test_comparison_that_is_called_impossible_is_false_at_every_price(factors, close, atr):
    a, b, c = factors
    text = f"{a} * close + {b} * atr_14 < {c} * close"
    if not possible_of(text).true:
        assert not a * close + b * atr < c * close - 1e-9 * close
    if not possible_of(text).false:
        assert a * close + b * atr < c * close + 1e-9 * close


@given(
    st.lists(st.floats(-3, 3, allow_nan=False).map(lambda x: round(x, 2)), min_size=4, max_size=4),
    st.lists(st.floats(1.0, 100.0), min_size=4, max_size=4),
)
def test_prices_of_one_bar_make_nothing_impossible_that_a_bar_shows(factors, prices):
    low, *inner, high = sorted(prices)
    bar = {"open": inner[0], "high": high, "low": low, "close": inner[1]}
    text = " + ".join(f"({factor}) * {name}" for factor, name in zip(factors, bar, strict=True)) + " < 0"
    total = sum(factor * price for factor, price in zip(factors, bar.values(), strict=True))
    if not possible_of(text).true:
        assert total >= -1e-9
    if not possible_of(text).false:
        assert total < 1e-9


def test_ratio_is_that_of_numbers_in_proportion_alone():
    def between(a: str, b: str) -> float | None:
        return ratio(parse(a).tree, parse(b).tree)

    assert between("close + 3 * atr_14 - close", "2 * atr_14") == pytest.approx(1.5)
    assert between("close + 3 * atr_14", "2 * atr_14") is None
    assert between("close - close", "atr_14") is None
    assert between("close * 1.03 - close", "close - close * 0.98") == pytest.approx(1.5)


def test_target_that_is_left_out_is_reached_by_no_market_however_near_the_stop_lies():
    for stop in ("close * 0.9999", "close - 0.001 * atr_14"):
        rules = DirectionRules(setup="close > 0", stop=stop, exit="rsi_14 > 70")
        bars = {"close": np.array([100.0]), "atr_14": np.array([2.0])}
        target = float(evaluate_for_symbol(parse(rules.target), bars)[0])
        assert target > 5 * 100.0, stop
