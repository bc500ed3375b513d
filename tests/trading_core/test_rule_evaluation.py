import itertools
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import RuleError
from tests.trading_core.price_paths import columns_of, one_symbol, series, walk
from trading_core.features import compute
from trading_core.rules import RuleColumns, evaluate_for_symbol, parse

NAN = math.nan
TRUTH = {"T": 1, "F": 0, "U": -1}
# A condition with each truth value: the close is 1, the open unknown.
TEXT = {"T": "close > 0", "F": "close < 0", "U": "open > 0"}
ROW = {"close": np.array([1.0]), "open": np.array([NAN])}


def _one(text, **columns):
    return evaluate_for_symbol(
        parse(text), {name: np.array(v, dtype=float) for name, v in columns.items()}
    ).tolist()


@pytest.mark.parametrize(
    ("a", "b", "both", "either"),
    [
        ("T", "T", "T", "T"),
        ("T", "U", "U", "T"),
        ("T", "F", "F", "T"),
        ("U", "U", "U", "U"),
        ("U", "F", "F", "U"),
        ("F", "F", "F", "F"),
    ],
)
def test_kleene_and_or_follow_the_table_in_both_orders(a, b, both, either):
    for left, right in ((a, b), (b, a)):
        conjunction = parse(f"{TEXT[left]} and {TEXT[right]}")
        disjunction = parse(f"{TEXT[left]} or {TEXT[right]}")
        assert evaluate_for_symbol(conjunction, ROW).tolist() == [TRUTH[both]]
        assert evaluate_for_symbol(disjunction, ROW).tolist() == [TRUTH[either]]


@pytest.mark.parametrize(("a", "opposite"), [("T", "F"), ("F", "T"), ("U", "U")])
def test_kleene_not_leaves_unknown_unknown(a, opposite):
    assert evaluate_for_symbol(parse(f"not {TEXT[a]}"), ROW).tolist() == [TRUTH[opposite]]


@pytest.mark.parametrize(
    ("op", "compare"),
    [
        ("<", operator.lt),
        ("<=", operator.le),
        (">", operator.gt),
        (">=", operator.ge),
        ("==", operator.eq),
        ("!=", operator.ne),
    ],
)
def test_comparison_with_unknown_operand_is_unknown_and_else_as_in_arithmetic(op, compare):
    values = [-1.0, 0.0, 1.0, NAN]
    for x, y in itertools.product(values, values):
        expected = -1 if math.isnan(x) or math.isnan(y) else int(compare(x, y))
        assert _one(f"open {op} close", open=[x], close=[y]) == [expected]


@pytest.mark.parametrize(
    "text", ["close / open > 1", "not close / open > 1", "open / open == 1", "close * 1e308 * 1e308 > 1"]
)
def test_division_by_zero_and_overflow_are_unknown(text):
    assert _one(text, close=[5.0], open=[0.0]) == [-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("close + 2 * open", [7.0, 8.0, NAN]),
        ("-close - 1", [-2.0, -3.0, -5.0]),
        ("(close - open) / 2", [-1.0, -0.5, NAN]),
        ("max(close, open, 2.5)", [3.0, 3.0, NAN]),
        ("min(close, 2.5)", [1.0, 2.0, 2.5]),
        ("abs(close - 3)", [2.0, 1.0, 1.0]),
        ("prev(close, 1)", [NAN, 1.0, 2.0]),
        ("prev(close, 7)", [NAN, NAN, NAN]),
        ("prev(1, 1) + close", [NAN, 3.0, 5.0]),
        ("2 * 3", [6.0, 6.0, 6.0]),
    ],
)
def test_number_rule_computes_column_with_unknowns(text, expected):
    assert str(_one(text, close=[1.0, 2.0, 4.0], open=[3.0, 3.0, NAN])) == str(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between(close, 1, 2)", [1, 1, 0, -1]),
        ("between(close, 3, 2)", [0, 0, 0, -1]),
        ("prev(close > 1, 1)", [-1, 0, 1, 1]),
        ("not prev(close > 1, 2)", [-1, -1, 1, 0]),
        ("1 > 0", [1, 1, 1, 1]),
        ("close >= 1 and 0 > 1", [0, 0, 0, 0]),
    ],
)
def test_boolean_rule_computes_column_with_unknowns(text, expected):
    assert _one(text, close=[1.0, 2.0, 4.0, NAN]) == expected


@pytest.mark.parametrize(
    ("a", "b", "above", "below"),
    [
        ([1, 3], [2, 2], [0, 1], [-1, 0]),
        ([2, 3], [2, 2], [0, 1], [0, 0]),
        ([2, 1], [2, 2], [0, 0], [0, 1]),
        ([3, 3], [2, 2], [-1, 0], [0, 0]),
        ([NAN, 3], [2, 2], [-1, -1], [-1, 0]),
        ([NAN, 2], [2, 2], [-1, 0], [-1, 0]),
    ],
)
def test_crosses_needs_the_other_side_or_equality_before(a, b, above, below):
    assert _one("crosses_above(close, open)", close=a, open=b) == above
    assert _one("crosses_below(close, open)", close=a, open=b) == below


def test_evaluate_missing_column_is_refused():
    with pytest.raises(RuleError, match="no column for high"):
        evaluate_for_symbol(parse("close > high"), {"close": np.ones(3)})


def test_rule_columns_run_prev_over_present_bars_only():
    closes = {"AAA": [1.0, 2.0, 3.0], "BBB": [10.0, 20.0, 30.0]}
    present = np.array([[True, True], [False, True], [True, True]])
    shapes = {symbol: columns_of(np.array(close)) for symbol, close in closes.items()}
    columns = RuleColumns(series(shapes, present=present))
    found = [columns.number("prev(close, 1)", s).tolist() for s in (0, 1)]
    assert str(found) == "[[nan, nan, 1.0], [nan, 10.0, 20.0]]"
    truths = [columns.boolean("close > prev(close, 1)", s).tolist() for s in (0, 1)]
    assert truths == [[-1, -1, 1], [-1, 1, 1]]
    assert columns.boolean("close > 2", 0).tolist() == [0, -1, 1]


N = 300
RULES = [
    "crosses_above(sma_5, sma_20)",
    "close > highest_20 and not rsi_14 > 70 or prev(close < lowest_20, 3)",
    "between(zscore_20, -1, 1)",
    "volume_rank > 0.5",
]
LEVELS = ["close - 2 * atr_14", "min(lowest_5, prev(low, 1))", "max(close, sma_20) / sma_5"]


def _shape(seed):
    return columns_of(walk(seed, N), seed)


def _all_columns(bars, s):
    columns = RuleColumns(bars)
    return [columns.boolean(text, s) for text in RULES] + [columns.number(text, s) for text in LEVELS]


def test_rule_columns_match_direct_computation():
    bars = one_symbol(walk(1, N))
    columns, features = RuleColumns(bars), compute(bars, ["sma_5", "sma_20", "atr_14"])
    fast, slow = features["sma_5"][:, 0], features["sma_20"][:, 0]
    crossed = columns.boolean("crosses_above(sma_5, sma_20)", 0)
    expected = [t for t in range(20, N) if fast[t] > slow[t] and fast[t - 1] <= slow[t - 1]]
    assert np.flatnonzero(crossed == 1).tolist() == expected
    assert len(expected) > 3
    assert (crossed[:19] == -1).all()
    stop = columns.number("close - 2 * atr_14", 0)
    np.testing.assert_array_equal(stop, bars.close[:, 0] - 2 * features["atr_14"][:, 0])


def test_rule_columns_have_full_length_dtype_and_cache_by_canonical_text():
    columns = RuleColumns(one_symbol(walk(1, N)))
    column = columns.boolean("close>sma_20", 0)
    assert column.dtype.name == "int8"
    assert column.shape == (N,)
    assert np.shares_memory(columns.boolean(" (close) > sma_20 ", 0), column)
    assert columns.number("atr_14", 0).dtype.name == "float64"
    assert columns.number("2", 0).tolist() == [2.0] * N


def test_rule_columns_wrong_kind_is_refused():
    columns = RuleColumns(one_symbol(walk(1, N)))
    with pytest.raises(RuleError, match="a boolean is needed"):
        columns.boolean("close", 0)
    with pytest.raises(RuleError, match="a number is needed"):
        columns.number("close > 1", 0)


def test_rule_columns_absent_bars_are_unknown_and_other_symbols_do_not_matter():
    present = np.ones((N, 2), dtype=bool)
    present[::4, 0] = False
    bars = series({"AAA": _shape(1), "BBB": _shape(2)}, present=present)
    alone = _all_columns(bars.select(("AAA",)), 0)
    for both, own in zip(_all_columns(bars, 0), alone, strict=True):
        assert both[present[:, 0]].tobytes() == own.tobytes()
        unknown = both[~present[:, 0]]
        assert (unknown == -1).all() if both.dtype == np.int8 else np.isnan(unknown).all()
    for both, own in zip(_all_columns(bars, 1), _all_columns(bars.select(("BBB",)), 0), strict=True):
        assert both.tobytes() == own.tobytes()


@given(st.integers(1, N - 1))
def test_rule_columns_of_a_shorter_history_are_a_prefix(t):
    bars = one_symbol(walk(1, N))
    short = bars.select(end_ns=int(bars.times[t - 1]))
    for longer, shorter in zip(_all_columns(bars, 0), _all_columns(short, 0), strict=True):
        assert longer[:t].tobytes() == shorter.tobytes()
