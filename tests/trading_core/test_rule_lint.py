import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import RuleError
from tests.each_case import check_each
from tests.trading_core.price_paths import columns_of, one_symbol, series, walk
from trading_core.features import feature_names
from trading_core.rules import RuleColumns, evaluate_for_symbol, fire_rate, lint, parse
from trading_core.rules.bounds import bounds, possible

N = 600
COLUMNS = RuleColumns(one_symbol(walk(1, N)))


def _codes(text, role="setup", upto=N):
    return [finding.code for finding in lint({role: text}, COLUMNS, 0, upto)]


@check_each(
    "text",
    [
        "close > 5 and close < 3",
        "close > 5 and not close > 5",
        "close > 5 and 4 > close",
        "close > sma_20 and close < sma_20",
        "close > sma_20 and sma_20 > close",
        "between(close, 3, 2)",
        "between(rsi_14, 10, 20) and rsi_14 > 20",
        "rsi_14 > 120",
        "rsi_14 + 1 > 102",
        "volume_rank < -0.1",
        "abs(zscore_20) < 0",
        "max(rsi_14, 150) < 140",
        "close > close",
        "prev(rsi_14, 3) > 101",
        "crosses_above(2, 1)",
        "crosses_above(rsi_14, 110)",
        "1 > 2",
        "1 + 1 == 3",
        "close == 5 and close > 5",
        "rsi_14 > 50 and (rsi_14 < 60 and rsi_14 < 40)",
        "not (rsi_14 <= 100)",
    ],
)
def test_lint_rule_that_cannot_be_true_is_unreachable(text):
    assert _codes(text) == ["unreachable"]


@pytest.mark.parametrize(
    "text",
    [
        "1 < 2",
        "close >= close",
        "close > 3 or close < 5",
        "rsi_14 <= 100",
        "rsi_14 > 40 or not rsi_14 > 40",
        "not rsi_14 > 130",
        "between(volume_rank, 0, 1)",
        "close - sma_20 > 0 or close - sma_20 <= 0",
    ],
)
def test_lint_rule_that_cannot_be_false_is_a_tautology(text):
    assert _codes(text) == ["tautology"]


@pytest.mark.parametrize(
    "text",
    [
        "close > sma_20",
        "rsi_14 > 30 and rsi_14 < 70",
        "close >= 5 and close <= 500",
        "close > prev(close, 1) or rsi_14 < 20",
        "crosses_above(sma_5, sma_20)",
        "zscore_20 * volume_rank > 1 / 2",
        "close / open > 1",
        "close > 5 or close < 3",
    ],
)
def test_lint_ordinary_rule_has_no_finding(text):
    assert [code for code in _codes(text) if code not in ("tautology", "always_fired")] == []
    can_be = possible(parse(text).tree)
    assert can_be.true
    assert can_be.false


def test_lint_unknown_feature_names_role_and_nearest():
    (finding,) = lint({"stop": "close - 2 * atr14", "setup": "close > sma_20"}, COLUMNS, 0, N)
    assert (finding.code, finding.role) == ("unknown_feature", "stop")
    assert "write atr_14" in finding.message


def test_lint_other_broken_text_and_number_rules_are_left_to_the_parser():
    assert lint({"setup": "close >", "stop": "close - atr_14"}, COLUMNS, 0, N) == ()


def test_lint_rule_true_on_every_known_bar_is_a_tautology_with_its_counts():
    (finding,) = lint({"setup": "close > 0.0001"}, COLUMNS, 0, N)
    assert (finding.code, finding.fires, finding.known) == ("always_fired", N, N)


def test_lint_rule_that_never_fired_says_on_how_many_bars():
    (finding,) = lint({"invalidation": "close > 1000000"}, COLUMNS, 0, 400)
    assert (finding.code, finding.role, finding.fires, finding.known) == (
        "never_fired",
        "invalidation",
        0,
        400,
    )


def test_lint_counts_past_bars_only_and_needs_enough_of_them():
    close = np.concatenate([np.linspace(100, 90, 300), np.linspace(120, 130, 100)])
    columns = RuleColumns(series({"AAA": columns_of(close)}))
    rule = {"setup": "close > 110"}
    assert [finding.code for finding in lint(rule, columns, 0, 300)] == ["never_fired"]
    assert lint(rule, columns, 0, 249) == ()
    assert lint(rule, columns, 0, 301) == ()


def test_fire_rate_of_a_rule_without_a_column_makes_none_and_is_that_of_its_column():
    columns = RuleColumns(one_symbol(walk(3, 400)))
    fresh = fire_rate("crosses_above(close, sma_20)", columns, 0, 350)
    assert columns.place("close > open", 0).index == 0, "the first column is still to be made"
    column = columns.boolean("crosses_above(close, sma_20)", 0)[:350]
    assert fresh.fires == (column == 1).sum() > 0
    assert fresh == fire_rate("crosses_above(close, sma_20)", columns, 0, 350)


def test_fire_rate_counts_known_bars_only():
    past = fire_rate("close > sma_20", COLUMNS, 0, 119)
    fires = COLUMNS.boolean("close > sma_20", 0)[:119]
    assert (past.known, past.fires) == (100, int((fires == 1).sum()))
    assert past.rate == past.fires / 100
    assert fire_rate("close > sma_20", COLUMNS, 0, 10).rate is None
    with pytest.raises(RuleError):
        fire_rate("close", COLUMNS, 0, 10)


bounded = [
    name for name in feature_names() if name.endswith("_rank") or name in ("rsi_14", "close", "zscore_20")
]
numbers = st.recursive(
    st.sampled_from(bounded) | st.integers(0, 120).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda x: f"-{x}"),
        inner.map(lambda x: f"abs({x})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        inner.map(lambda x: f"prev({x}, 2)"),
    ),
    max_leaves=5,
)
comparisons = st.tuples(numbers, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers).map(" ".join)
conditions = st.recursive(
    comparisons
    | st.tuples(numbers, numbers, numbers).map(lambda p: f"between({', '.join(p)})")
    | st.tuples(numbers, numbers).map(lambda p: f"crosses_above({', '.join(p)})"),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda x: f"not {x}"),
    ),
    max_leaves=4,
)


def _on_bars(text):
    rule = parse(text)
    COLUMNS.features.load(sorted(rule.features), [0])
    columns = {name: COLUMNS.features.own(name, 0) for name in sorted(rule.features)}
    return rule, evaluate_for_symbol(rule, columns, N)


@given(numbers)
def test_bounds_hold_every_value_that_occurs(text):
    rule, values = _on_bars(text)
    low, high = bounds(rule.tree)
    known = values[np.isfinite(values)]
    slack = 1e-9 * np.maximum(np.abs(known), 1.0)
    assert ((known >= low - slack) & (known <= high + slack)).all()


@given(conditions)
def test_possible_never_denies_what_occurs(text):
    rule, truth = _on_bars(text)
    can_be = possible(rule.tree)
    assert can_be.true or not (truth == 1).any()
    assert can_be.false or not (truth == 0).any()
