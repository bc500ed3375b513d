"""Random rules against an oracle that shares no code with the compiled walk, whole and in windows."""

from math import nan

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trading_core.growing_bars import edges, first_rows, gappy
from tests.trading_core.rule_oracle import oracle
from trading_core.rules import RuleColumns, evaluate_for_symbol, parse
from trading_core.rules.evaluate import program_of

ROWS = 160
BARS = gappy(11, ROWS, 0.15)
FEATURES = ("close", "open", "sma_5", "zscore_20", "volume_rank", "sma_3_1h", "hour")
COLUMNS = RuleColumns(BARS)

_leaves = st.sampled_from([*FEATURES, "0", "1", "100", "0.5"])
_pairs = ("{} + {}", "({} - {})", "{} * {}", "({} / {})", "min({}, {})", "max({}, {}, 99)")
numbers = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(str.format, st.sampled_from([f"({pair})" for pair in _pairs]), inner, inner),
        st.builds(str.format, st.sampled_from(["abs({})", "(-{})", "prev({}, 1)", "prev({}, 9)"]), inner),
    ),
    max_leaves=5,
)
_comparisons = ("{} < {}", "{} <= {}", "{} > {}", "{} >= {}", "{} == {}", "{} != {}")
_crossings = ("crosses_above({}, {})", "crosses_below({}, {})", "between({}, {}, 100)")
_simple = st.sampled_from([*(f"({comparison})" for comparison in _comparisons), *_crossings])
conditions = st.recursive(
    st.builds(str.format, _simple, numbers, numbers),
    lambda inner: st.one_of(
        st.builds(str.format, st.sampled_from(["({} and {})", "({} or {})"]), inner, inner),
        st.builds(str.format, st.sampled_from(["(not {})", "prev({}, 1)", "prev({}, 4)"]), inner),
    ),
    max_leaves=4,
)
texts = st.one_of(conditions, numbers)


def _expected(text, s, rows=ROWS):
    """The oracle's column over all rows."""
    rule, own = parse(text), np.flatnonzero(BARS.present[:rows, s])
    columns = {name: COLUMNS.features.own(name, s)[: own.size] for name in rule.features}
    values = oracle(rule, columns, own.size)
    full = np.full(rows, np.nan if rule.kind == "number" else -1, dtype=values.dtype)
    full[own] = values
    return full


def _column(columns, text, s):
    return columns.boolean(text, s) if parse(text).kind == "boolean" else columns.number(text, s)


@settings(max_examples=300, deadline=None)
@given(texts, st.integers(0, 1))
def test_random_rule_equals_the_oracle_on_every_bar(text, s):
    np.testing.assert_array_equal(_column(COLUMNS, text, s), _expected(text, s))


@settings(max_examples=150, deadline=None)
@given(texts, st.integers(0, 1), st.integers(0, ROWS), st.integers(0, ROWS))
def test_random_rule_in_a_window_equals_the_slice_of_its_column(text, s, a, b):
    start, stop = min(a, b), max(a, b)
    window = RuleColumns(BARS, COLUMNS.features).window(text, s, start, stop)
    whole = _column(COLUMNS, text, s)
    assert window.dtype == whole.dtype
    assert window.tobytes() == whole[start:stop].tobytes()


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=2, max_size=5), st.lists(st.integers(1, ROWS), max_size=4), st.integers(0, 1))
def test_random_rules_asked_for_on_the_way_equal_the_oracle(rules, cuts, s):
    counts = edges(cuts, ROWS)
    columns = RuleColumns(first_rows(BARS, counts[0]))
    for k, count in enumerate(counts):
        columns.extend(first_rows(BARS, count))
        for text in rules[k :: len(counts)]:
            np.testing.assert_array_equal(_column(columns, text, s), _expected(text, s, count))
    for text in rules:
        np.testing.assert_array_equal(_column(columns, text, s), _expected(text, s))


@settings(max_examples=150, deadline=None)
@given(conditions)
def test_random_condition_over_given_columns_equals_the_oracle(text):
    rule = parse(text)
    columns = {name: COLUMNS.features.own(name, 0) for name in rule.features}
    expected = oracle(rule, columns, 50 if not columns else None)
    found = evaluate_for_symbol(rule, columns, 50 if not columns else None)
    assert found.tobytes() == expected.tobytes()


@settings(max_examples=150, deadline=None)
@given(texts, st.integers(0, 99))
def test_random_rule_at_one_close_equals_it_over_that_bar_alone(text, row):
    rule = parse(text)
    columns = {name: COLUMNS.features.own(name, 0)[row : row + 1] for name in rule.features}
    (over_bar,) = evaluate_for_symbol(rule, columns, 1)
    expected = nan if rule.kind == "boolean" and over_bar < 0 else float(over_bar)
    program = program_of(text)
    (found,) = program.at_one_bar([float(columns[name][0]) for name in program.inputs])
    np.testing.assert_array_equal(found, expected)
